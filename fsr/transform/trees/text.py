"""What stands in a tree's place: one warp that reads its elements once, and folds them in registers by shuffles.

Pairs, and which of the two stands left, are those of the tree, so that every bit stays: of a tree by halves a lane
folds the elements a warp apart itself, and shuffles do what is left; of one by neighbours each warp begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Declare,
    Expr,
    For,
    If,
    Index,
    Literal,
    Member,
    Name,
    Scope,
    Stmt,
    While,
    number,
)  # fmt: skip
from fsr.source.mapping import substitute
from fsr.source.walk import BARRIER, Block, fresh
from fsr.transform.trees.fold import MINE, OTHER
from fsr.transform.trees.reading import Tree
from fsr.transform.trees.threads import WARP

_UNROLL = ("#pragma unroll",)


@dataclass(frozen=True)
class Text:
    """``types`` of the arrays' elements; ``vectors``: those that are built-in ones, with how many numbers these have;
    ``thread``: a thread's number in its block; ``most``: elements that a thread
    has in registers at a time."""

    types: Mapping[str, str]
    vectors: Mapping[str, tuple[str, int]]
    thread: Expr
    most: int
    taken: frozenset[str]

    def of(self, tree: Tree, *, barrier: bool) -> Block:
        """The statements, the last of them a barrier where that is asked for."""
        levels = self._by_neighbours(tree) if tree.neighbours else self._by_halves(tree)
        return (*((BARRIER,) if tree.waits_first else ()), *levels, *((BARRIER,) if barrier else ()))

    # ------------------------------------------------------------ the two trees

    def _by_halves(self, tree: Tree) -> Block:
        found: list[Stmt] = []
        count = tree.count
        while (
            count > max(WARP, tree.results) * self.most
        ):  # each lane of more warps has some, so that a block needs fewer registers
            count //= self.most
            parts = self._parts(tree, count, self.most)
            found += [self._if_below(count, (*parts, *self._stored(tree, self.most, self.thread))), BARRIER]
        if tree.results > 1:
            each = count // tree.results
            rest = (*self._parts(tree, tree.results, each), *self._stored(tree, each, self.thread))
            return (*found, self._if_below(tree.results, rest)) if each > 1 else tuple(found[:-1])
        each = count // WARP
        shuffles = self._shuffles(tree, each, WARP // 2, down=True)
        done = self._first_stores(tree, each)
        return (*found, self._if_below(WARP, (*self._parts(tree, WARP, each), *shuffles, done)))

    def _by_neighbours(self, tree: Tree) -> Block:
        warps = tree.count // WARP
        leader = Binary("==", Binary("%", self.thread, number(WARP)), Literal("0"))
        own = (
            *self._loaded(tree, self.thread),
            *self._shuffles(tree, 1, WARP // 2, down=False),
            If(leader, self._stored(tree, 1, self.thread)),
        )
        if warps == 1:
            return (self._if_below(WARP, own),)
        rest = (
            *self._loaded(tree, Binary("*", self.thread, number(WARP))),
            *self._shuffles(tree, 1, warps // 2, down=False, lanes=warps),
            self._first_stores(tree, 1),
        )
        return (self._if_below(tree.count, own), BARRIER, self._if_below(warps, rest))

    # ------------------------------------------------------------ parts of these

    def _name(self, array: str, what: str) -> str:
        return fresh(f"{array}_{what}", self.taken)

    def _mine(self, array: str, each: int) -> Expr:
        return Name(self._name(array, "part")) if each == 1 else Index(Name(self._name(array, "parts")), Literal("0"))

    def _if_below(self, count: int, body: Block) -> If:
        return If(Binary("<", self.thread, number(count)), body)

    def _first_stores(self, tree: Tree, each: int) -> If:
        return If(Binary("==", self.thread, Literal("0")), self._stored(tree, each, Literal("0")))

    def _loaded(self, tree: Tree, place: Expr) -> Block:
        return tuple(
            Declare(self.types[a], self._name(a, "part"), Index(Name(a), place)) for a in tree.fold.arrays
        )  # fmt: skip

    def _stored(self, tree: Tree, each: int, place: Expr) -> Block:
        return tuple(Assign(Index(Name(a), place), "=", self._mine(a, each)) for a in tree.fold.arrays)

    def _parts(self, tree: Tree, apart: int, each: int) -> Block:
        """What a thread reads, ``each`` elements that are ``apart``, folded into the first of them."""
        if each == 1:
            return self._loaded(tree, self.thread)
        part, half = Name(fresh("part", self.taken)), Name(fresh("half", self.taken))
        arrays = tree.fold.arrays
        heads = [Declare(self.types[a], self._name(a, "parts"), None, (number(each),)) for a in arrays]
        place = Binary("+", self.thread, Binary("*", part, number(apart)))
        reads = tuple(
            Assign(Index(Name(self._name(a, "parts")), part), "=", Index(Name(a), place)) for a in arrays
        )  # fmt: skip
        mine = {MINE.format(a): Index(Name(self._name(a, "parts")), part) for a in arrays}
        upper = Binary("+", part, half)
        other = {OTHER.format(a): Index(Name(self._name(a, "parts")), upper) for a in arrays}
        level = For(
            "int", part.text, Literal("0"), "<", half, Literal("1"), substitute(tree.fold.body, {**mine, **other}),
            _UNROLL,
        )  # fmt: skip
        return (
            *heads,
            For("int", part.text, Literal("0"), "<", number(each), Literal("1"), reads, _UNROLL),
            _counting(half, each // 2, (level,), down=True),
        )

    def _shuffles(self, tree: Tree, each: int, last: int, *, down: bool, lanes: int = WARP) -> Block:
        """Levels between lanes that are ``last`` or less apart, the farthest first or (not ``down``) last."""
        if last == 0:
            return ()
        offset = Name(fresh("offset", self.taken))
        together = Literal(f"0x{(1 << lanes) - 1:x}u")
        width = () if lanes == WARP else (number(lanes),)
        mine = {MINE.format(a): self._mine(a, each) for a in tree.fold.arrays}
        other = {OTHER.format(a): Name(self._name(a, "other")) for a in tree.fold.arrays}
        handed = [
            Declare(
                f"const {self.types[a]}", self._name(a, "other"),
                self._handed(a, together, self._mine(a, each), (offset, *width)),
            )
            for a in tree.fold.arrays
        ]  # fmt: skip
        level = (*handed, *substitute(tree.fold.body, {**mine, **other}))
        return (_counting(offset, last, level, down=down),)

    def _handed(self, array: str, together: Expr, mine: Expr, where: tuple[Expr, ...]) -> Expr:
        """What a lane gets of another one's element."""
        if array not in self.vectors:
            return Call(Name("__shfl_down_sync"), (together, mine, *where))
        plain, count = self.vectors[array]
        parts = (Member(mine, axis) for axis in "xyzw"[:count])
        sent = (Call(Name("__shfl_down_sync"), (together, part, *where)) for part in parts)
        return Call(Name(f"make_{plain}"), tuple(sent))


def _counting(variable: Name, far: int, body: Block, *, down: bool) -> Stmt:
    """A loop over the powers of two up to ``far``."""
    first, op = (far, "/=") if down else (1, "*=")
    test = Binary(">", variable, Literal("0")) if down else Binary("<=", variable, number(far))
    turn = While(test, (*body, Assign(variable, op, number(2))), _UNROLL)
    return Scope((Declare("int", variable.text, number(first)), turn))
