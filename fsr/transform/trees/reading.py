"""Statements that fold the elements of shared arrays as a tree, found by going through them for all threads of a block.

Whatever the loops, tests and indices are, what counts is which element is folded into which between which barriers, and
that the first element ends as one of two trees over all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fsr.analysis.index_values import Values
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Comment,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Name,
    Scope,
    Stmt,
    While,
    conjunction,
    conjuncts,
)  # fmt: skip
from fsr.source.walk import BARRIER, Block, blocks_of, exprs_of, walk_expr, walk_stmts
from fsr.transform.trees.fold import MINE, OTHER, Fold, Step, elements_in, step_of
from fsr.transform.trees.nodes import Nodes
from fsr.transform.trees.threads import WARP, Threads

_TURNS = 4096
_LEAST_LEFT = 4  # elements in one, of which a warp does not do the rest


@dataclass(frozen=True)
class Tree:
    """``stmts`` (of ``within``, from ``start`` on) fold the first ``count`` elements of the arrays into the first one,
    or into each of the first ``results`` those that are a multiple of ``results`` away, level by level: ``neighbours``
    first, or else halves. ``waits_first``: a barrier comes before anything is read; ``waits_last``: one stands behind
    the last level; ``reach``: how many elements are touched; ``left``: values of variables afterwards."""

    within: Block
    start: int
    stmts: Block
    fold: Fold
    count: int
    results: int
    neighbours: bool
    waits_first: bool
    waits_last: bool
    reach: int
    left: Mapping[str, int] = field(default_factory=dict)

    @property
    def levels(self) -> int:
        """How many there are."""
        return (self.count // self.results).bit_length() - 1


def trees_in(block: Block, threads: Threads, shared: Mapping[str, Declare]) -> Iterator[Tree]:
    """The trees among statements, nested ones too."""
    at = 0
    while at < len(block):
        found = _tree_from(block, at, threads, shared)
        if found is not None:
            yield found
            at += len(found.stmts)
            continue
        for inner in blocks_of(block[at]):
            yield from trees_in(inner, threads, shared)
        at += 1


def _tree_from(block: Block, start: int, threads: Threads, shared: Mapping[str, Declare]) -> Tree | None:
    """The longest run of statements from there that is one."""
    if isinstance(block[start], Comment) or block[start] == BARRIER or not _leads_to_fold(block[start:], shared):
        return None
    machine, best = _Machine(threads, shared), None
    for at in range(start, len(block)):
        try:
            machine.run(block[at : at + 1], np.full(threads.count, True))
        except _UnknownError:
            break
        best = machine.tree(block, start, at + 1) or best
    return best


def _leads_to_fold(stmts: Block, shared: Mapping[str, Declare]) -> bool:
    """Whether the first statement may belong to a tree: it sets a variable that the next may count with, or mentions
    an element. Going through all others would take long."""
    first = stmts[0]
    if isinstance(first, Declare | Assign):
        loops = [s for s in stmts[1:4] if isinstance(s, While | For | Scope)]
        return bool(loops) and bool(elements_in(loops, shared))
    return bool(elements_in((first,), shared))


class _UnknownError(Exception):
    pass


@dataclass
class _Machine:
    """``held``: by element, the number of what it holds; ``read``, ``written``: by element, the warps that did so since
    the last barrier."""

    threads: Threads
    shared: Mapping[str, Declare]
    nodes: Nodes = field(default_factory=Nodes)
    held: dict[int, int] = field(default_factory=dict)
    variables: dict[str, Values] = field(default_factory=dict)
    fold: Fold | None = None
    read: dict[int, set[int]] = field(default_factory=dict)
    written: dict[int, set[int]] = field(default_factory=dict)
    barriers: int = 0
    reach: int = 0
    waits_first: bool = False
    waits_last: bool = False
    turns: int = 0

    def tree(self, block: Block, start: int, end: int) -> Tree | None:
        """The tree that has been gone through, if it is whole."""
        found = self._found() if self.barriers else None
        if self.fold is None or found is None:
            return None
        count, results, neighbours = found
        left = {n: int(v[0]) for n, v in self.variables.items() if np.all(v == v[0])}
        if len(left) != len(self.variables):
            return None
        return Tree(
            block, start, block[start:end], self.fold, count, results, neighbours, self.waits_first, self.waits_last,
            self.reach, left,
        )  # fmt: skip

    def _found(self) -> tuple[int, int, bool] | None:
        """How many elements have been folded, into how many, and whether neighbours were first."""
        root = self.held.get(0, 0)
        count = self.nodes.size(root)
        if count & (count - 1) or count > WARP * WARP:
            return None
        if count >= WARP and root == self.nodes.halving(count):
            return count, 1, False
        if WARP <= count <= self.threads.count and root == self.nodes.doubling(count):
            return count, 1, True
        for results in (WARP, 2 * WARP):  # what is left is for a warp, in whatever way
            some = count >= _LEAST_LEFT and results <= self.threads.count and count * results <= WARP * WARP
            if some and all(self.held.get(e) == self.nodes.halving(count, e, results) for e in range(results)):
                return count * results, results, False
        return None

    # ------------------------------------------------------------ statements

    def run(self, stmts: Sequence[Stmt], active: Values) -> None:
        """Go through statements for the threads that are active."""
        at = 0
        while at < len(stmts):
            if not self._controls(stmts[at], active):
                at += self._folds(stmts[at:], active)
            else:
                at += 1

    def _controls(self, s: Stmt, active: Values) -> bool:
        """Go through one statement if it is no part of a fold; says whether it was."""
        match s:
            case Comment() | ExprStmt(Call(Name("__syncwarp"))):
                return True
            case ExprStmt() if s == BARRIER:
                self._wait(active)
                return True
            case Scope(body):
                self._within(body, active)
                return True
            case Declare(name=name, init=init) if init is not None and not s.dims and not s.qualifiers:
                return self._set(name, init, active, new=True)
            case Assign(Name(name), op, value) if name in self.threads.variables and (
                name in self.variables or op == "="
            ):
                return self._set(name, value if op == "=" else Binary(op[:-1], Name(name), value), active)
            case If(test, then, orelse):
                return self._branch(test, then, orelse, active)
            case For(type_, var):
                before = self.variables.get(var)
                if not self._set(var, s.start, active, new=True):
                    raise _UnknownError
                step = Assign(Name(var), "=", Binary("+", Name(var), s.step))
                self._repeat(Binary(s.relation, Name(var), s.bound), (*s.body, step), active)
                if type_ is not None:
                    self.variables.pop(var)
                    self.variables |= {} if before is None else {var: before}
                return True
            case While(test, body):
                self._repeat(test, body, active)
                return True
        return False

    def _within(self, body: Block, active: Values) -> None:
        """Go through statements whose own variables end with them."""
        own = {s.name for s in body if isinstance(s, Declare)}
        outside = {n: v for n, v in self.variables.items() if n in own}
        self.run(body, active)
        self.variables = {n: v for n, v in self.variables.items() if n not in own} | outside

    def _set(self, name: str, value: Expr, active: Values, *, new: bool = False) -> bool:
        found = self.threads.values(value, self.variables)
        if found is None:
            return False
        old = self.variables.get(name)
        if not new and old is None and not np.all(active):
            raise _UnknownError
        self.variables[name] = found if old is None else np.where(active, found, old)
        return True

    def _branch(self, test: Expr, then: Block, orelse: Block, active: Values) -> bool:
        """An ``if`` on what threads are; what else is asked in it belongs to the fold."""
        parts = conjuncts(test)
        known = [self.threads.values(p, self.variables) for p in parts]
        first = next((n for n, v in enumerate(known) if v is None), len(parts))
        if first == 0:
            return False
        yes = active.copy()
        for v in known[:first]:
            assert v is not None
            yes &= v != 0
        rest = conjunction(parts[first:])
        if rest is not None and orelse:
            raise _UnknownError
        self._run_some(then if rest is None else (If(rest, then),), yes)
        self._run_some(orelse, active & ~yes)
        return True

    def _run_some(self, stmts: Block, active: Values) -> None:
        if np.any(active):
            self._within(stmts, active)

    def _repeat(self, test: Expr, body: Block, active: Values) -> None:
        while True:
            self.turns += 1
            found = self.threads.values(test, self.variables)
            if found is None or self.turns > _TURNS:
                raise _UnknownError
            active = active & (found != 0)
            if not np.any(active):
                return
            self._within(body, active)

    # ------------------------------------------------------------ elements

    def _wait(self, active: Values) -> None:
        if not np.all(active):
            raise _UnknownError
        self.waits_first |= self.fold is None
        self.waits_last = self.fold is not None
        self.barriers += 1
        self.read, self.written = {}, {}

    def _folds(self, stmts: Sequence[Stmt], active: Values) -> int:
        """Go through the longest run of statements that is one fold; gives its length."""
        best: tuple[int, Step] | None = None
        for end in range(1, len(stmts) + 1):
            last = stmts[end - 1]
            if end > 1 and (last == BARRIER or isinstance(last, For | While | Scope)):
                break
            found = step_of(
                stmts[:end], self.threads.target, self.shared, lambda e: _some(self._values(e), active)
            )  # fmt: skip
            best = (end, found) if found is not None else best
        if best is None:
            raise _UnknownError
        self._step(best[1], np.flatnonzero(active))
        return best[0]

    def _values(self, e: Expr) -> Values | None:
        return self.threads.values(e, self.variables)

    def _step(self, step: Step, active: Values) -> None:
        """One fold a thread, all at the same time."""
        if self.fold is None:
            self.fold = step.fold
        overlap = bool(np.intersect1d(step.mine, step.other).size)
        if self.fold.arrays != step.fold.arrays or self.fold.shape != step.fold.shape:
            raise _UnknownError
        if len(set(step.mine.tolist())) != len(step.mine):
            raise _UnknownError
        if overlap and _reads_late(step.fold):
            raise _UnknownError
        pairs = list(zip(active.tolist(), step.mine.tolist(), step.other.tolist(), strict=True))
        for thread, mine, other in pairs:
            for place in (mine, other):
                self._touch(self.read, (self.written,), place, thread // WARP)
        new = {mine: self.nodes.of(self.held.get(mine, mine), self.held.get(other, other)) for _, mine, other in pairs}
        for thread, mine, _ in pairs:
            self._touch(self.written, (self.written, self.read), mine, thread // WARP)
        self.held |= new
        self.reach = max(self.reach, int(max(step.mine.max(), step.other.max())) + 1)
        self.waits_last = False

    @staticmethod
    def _touch(own: dict[int, set[int]], others: tuple[dict[int, set[int]], ...], place: int, warp: int) -> None:
        """Note what a warp does to an element, unless it races with what another did since the last barrier."""
        if any(o.get(place, set()) - {warp} for o in others):
            raise _UnknownError
        own.setdefault(place, set()).add(warp)


def _some(values: Values | None, active: Values) -> Values | None:
    return None if values is None else values[active]


def _reads_late(fold: Fold) -> bool:
    """Whether the other side of an array is read behind where the own one was written: lanes of a warp in which one's
    own is another's other would see the new one."""
    written = set[str]()
    for s in walk_stmts(fold.body):
        mentioned = {n.text for n in _names(s)}
        if any(OTHER.format(a) in mentioned for a in written):
            return True
        if isinstance(s, Assign) and isinstance(s.target, Name):
            written |= {a for a in fold.arrays if s.target.text == MINE.format(a)}
    return False


def _names(s: Stmt) -> Iterator[Name]:
    return (e for top in exprs_of(s) for e in walk_expr(top) if isinstance(e, Name))
