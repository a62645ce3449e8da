"""Loops that copy rows at the end of a turn, and what shows that the rows may change places instead.

A row that was copied and its copy are the same only where the copy went. Rows that change places differ elsewhere, so
what a turn reads of an older row must have been written in the turn before, or never, in rows that were filled alike;
and of the newest row it reads what it has written itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

from fsr.analysis.polynomial import Poly, constant, symbol
from fsr.analysis.uniform import Uniformity
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
    Index,
    Literal,
    Name,
    Return,
    Scope,
    Stmt,
    Unary,
    While,
)  # fmt: skip
from fsr.source.loop_heads import has_continue
from fsr.source.walk import (
    Block,
    blocks_of,
    integer,
    names_assigned,
    names_in,
    names_mentioned,
    names_written,
    variables,
    walk_expr,
    walk_stmts,
)
from fsr.transform.swaps.bounds import Bound, Extreme, Interval, covers, is_at_most, plus, symbols
from fsr.transform.swaps.turn import Access, Turn
from fsr.transform.target import Target

_ZERO, _ONE = constant(0), constant(1)
BARRIERS = tuple(ExprStmt(Call(Name(name), ())) for name in ("__syncthreads", "__syncwarp"))


@dataclass(frozen=True)
class Place:
    """A loop, the block that it stands in, and whether a loop is around it."""

    loop: For
    block: Block
    within: bool


@dataclass(frozen=True)
class Copy:
    """``at``: of the statement in the loop's body that copies; ``chains``: rows, each of which gets what the next one
    holds; ``barrier``: the place of one that nothing needs without the copy."""

    place: Place
    at: int
    chains: tuple[tuple[str, ...], ...]
    barrier: int | None


def copies(target: Target) -> Iterator[Copy]:
    """The copies of a kernel that may be left out."""
    for place in _places(target.kernel.body, False):
        found = _copy(place)
        if found is not None and _Rows(target, found).may_swap():
            yield found


def _places(block: Block, within: bool) -> Iterator[Place]:
    for s in block:
        if isinstance(s, For):
            yield Place(s, block, within)
        for inner in blocks_of(s):
            yield from _places(inner, within or isinstance(s, For | While))


def _copy(place: Place) -> Copy | None:
    """The copy at the end of a loop's turn; None where there is none, or a turn may leave it out."""
    body = place.loop.body
    own = [n for n, s in enumerate(body) if not isinstance(s, Comment)]
    behind = own.pop() if own and body[own[-1]] in BARRIERS else None
    if len(own) < 2 or has_continue(body):
        return None
    at, before = own[-1], own[-2]
    chains = list[list[str]]()
    for s in _assigned(body[at]) or ():
        match s:
            case Assign(Index(Name(to), index), "=", Index(Name(of), same)) if index == same:
                chain = next((c for c in chains if c[-1] == to), None)
                if chain is None:
                    chains.append([to, of])
                else:
                    chain.append(of)
            case _:
                return None
    names = [name for chain in chains for name in chain]
    if not names or len(set(names)) < len(names):
        return None
    needless = behind if behind is not None and body[before] == body[behind] else None
    return Copy(place, at, tuple(map(tuple, chains)), needless)


def _assigned(s: Stmt) -> Sequence[Stmt] | None:
    """The statements in a loop, or under a condition, or the one that it is."""
    match s:
        case For(body=inner) | If(then=inner, orelse=()) | Scope(inner):
            own = [x for x in inner if not isinstance(x, Comment)]
            return _assigned(own[0]) if len(own) == 1 else own
    return [s]


def pointed(s: Declare) -> str:
    """The type of a row's elements."""
    return s.type.split("*")[0].strip()


@dataclass(frozen=True)
class _Rows:
    """What is known of the rows of a copy."""

    target: Target
    copy: Copy

    @property
    def loop(self) -> For:
        return self.copy.place.loop

    @cached_property
    def declared(self) -> dict[str, Declare]:
        names = {name for chain in self.copy.chains for name in chain}
        return {s.name: s for s in walk_stmts(self.target.kernel.body) if isinstance(s, Declare) and s.name in names}

    @cached_property
    def together(self) -> bool:
        return any("__shared__" in s.qualifiers or not s.dims for s in self.declared.values())

    @cached_property
    def uniform(self) -> Uniformity:
        return Uniformity(self.target.kernel, functions=self.target.functions)

    def walked(self, body: Block, changed: frozenset[str]) -> Turn:
        """What statements do to the rows."""
        turn = Turn(self.target, frozenset(self.declared), self.together, self.uniform, changed)
        for turn.place, s in enumerate(body):
            turn.walk((s,))
        return turn

    @cached_property
    def turn(self) -> Turn:
        return self.walked(self.loop.body[: self.copy.at + 1], names_written(self.loop.body))

    # ------------------------------------------------------------ whether rows may change places

    def may_swap(self) -> bool:
        """Whether nobody can tell."""
        if not all(self._are_alike(chain) for chain in self.copy.chains) or not self.turn.clear:
            return False
        if self.together and not self._meet():
            return False
        if self.loop.var in names_assigned(self.loop.body):
            return False
        return all(self._is_proved(chain) for chain in self.copy.chains)

    def _meet(self) -> bool:
        """Whether all threads come to each turn, and wait for one another beside the copy."""
        body, at = self.loop.body, self.copy.at
        beside = [s for s in body[max(at - 1, 0) : at + 2] if s in BARRIERS]
        threads = self.target.row_threads
        if not beside or (BARRIERS[1] in beside and BARRIERS[0] not in beside and (threads or 33) > 32):
            return False
        leaving = (s for s in walk_stmts(self.target.kernel.body) if isinstance(s, If | While | For))
        return all(
            isinstance(s, If) and self.uniform(s.test)
            for s in leaving if any(isinstance(x, Return) for block in blocks_of(s) for x in walk_stmts(block))
        )  # fmt: skip

    def _are_alike(self, chain: tuple[str, ...]) -> bool:
        """Whether rows are arrays of one kind and length, or pointers to shared memory of one kind."""
        if any(variables(self.target.kernel.body).count(name) != 1 or name not in self.declared for name in chain):
            return False
        own = [self.declared[name] for name in chain]
        plain = {(pointed(s), s.type.count("*"), "__shared__" in s.qualifiers) for s in own}
        if len(plain) > 1 or any({"extern", "static", "constexpr"} & set(s.qualifiers) for s in own):
            return False
        if all(s.dims for s in own):
            sizes = {self.target.poly(s.dims[0]) for s in own}
            return len(sizes) == 1 and all(len(s.dims) == 1 and s.init is None and "*" not in s.type for s in own)
        changed = self.target.known.changed
        return not any(s.dims or not s.type.endswith("*") or s.init is None or s.name in changed for s in own)

    def _offset(self, row: str) -> tuple[str, Poly] | None:
        """Of a pointer the shared memory that it leads to, and where in it."""
        init = self.declared[row].init
        match init:
            case Unary("&", Index(base, index)):
                init = Binary("+", base, index)
        known, shared = self.target.known, self.target.known.shared
        if init is None or (names_in(known.expand(init)) - shared) & self.uniform.divergent:
            return None
        whole = self.target.poly(init)
        for name in whole.symbols:
            if symbol(name).depends_on(shared) and whole.coefficient(name) == _ONE:
                return name, whole.without(name)
        return None

    def _is_proved(self, chain: tuple[str, ...]) -> bool:
        *old, new = chain
        own = [a for a in self.turn.accesses if a.row in chain and a.place < self.copy.at]
        made = [a.cover for a in self.turn.accesses if a.row in old and a.place == self.copy.at and a.writes]
        copied = made[0] if made else None
        if copied is None or any(c != copied for c in made) or any(a.writes for a in own if a.row != new):
            return False
        proof = _Proof(self, [a for a in own if a.writes], copied, self.filled(chain), len(old))
        if not all(proof.is_written(a) for a in own if a.row == new and not a.writes):
            return False
        if not all(proof.is_kept(a) for a in own if a.row != new):
            return False
        if not self._is_kept_outside(chain, proof):
            return False
        pointers = any(not self.declared[row].dims for row in chain)
        return not pointers or self._is_apart(chain, proof)

    def _is_kept_outside(self, chain: tuple[str, ...], proof: _Proof) -> bool:
        """Whether nothing else reads what it would find elsewhere."""
        place, known = self.copy.place, self.target.known.changed
        at = next(n for n, s in enumerate(place.block) if s is self.loop)
        behind = self.walked(place.block[at + 1 :], known)
        whole = self.walked(self.target.kernel.body, known)
        reads = [a for a in whole.accesses if a.row in chain and not a.writes]
        here = [a for a in self.turn.accesses if a.row in chain and not a.writes]
        later = [a for a in behind.accesses if a.row in chain and not a.writes]
        if not behind.clear or not whole.clear or any(a.row == chain[-1] for a in later):
            return False
        if len(reads) != len(here) + len(later):
            return False
        if place.within and not all(proof.is_filled(a) for a in here if a.row != chain[-1] and a.place < self.copy.at):
            return False
        return all(proof.is_kept(a, outside=True) for a in later)

    def _is_apart(self, chain: tuple[str, ...], proof: _Proof) -> bool:
        """Whether rows that are pointers never meet: as far as they are copied, and nothing of them is used beyond."""
        first, last = proof.copied
        offsets = [self._offset(row) for row in chain]
        known = [o for o in offsets if o is not None]
        if len(known) < len(chain) or len({base for base, _ in known}) > 1 or not self._at_most(_ZERO, first):
            return False
        used = [a for a in self.turn.accesses if a.row in chain and a.place < self.copy.at]
        if not all(any(self._at_most(first, x) for x in a.lows) and any(self._at_most(x, last) for x in a.highs)
                   for a in used):  # fmt: skip
            return False
        return all(
            self._at_most(plus(last, _ONE), one[1] - other[1]) or self._at_most(plus(last, _ONE), other[1] - one[1])
            for one, other in combinations(known, 2)
        )

    def _at_most(self, one: Bound, other: Bound) -> bool:
        return is_at_most(self.target, one, other)

    # ------------------------------------------------------------ before the loop

    def filled(self, chain: tuple[str, ...]) -> Interval | None:
        """Where all rows hold one number each when the loop begins, as far as the statements before it tell."""
        block = self.copy.place.block
        at = next(n for n, s in enumerate(block) if s is self.loop)
        for s in reversed(block[:at]):
            if not names_mentioned((s,)) & set(chain) or (isinstance(s, Declare) and s.name in chain):
                continue
            values = dict[str, tuple[Expr, Expr]]()
            for x in _assigned(s) or ():
                match x:
                    case Assign(Index(Name(row), index), "=", value) if row not in values:
                        values[row] = index, value
                    case _:
                        return None
            own = {values.get(row) for row in chain}
            one = next(iter(own))
            if len(own) != 1 or one is None or not _is_number(one[1]):
                return None
            turn = self.walked((s,), self.target.known.changed)
            ends = {a.cover for a in turn.accesses if a.row in chain}
            return ends.pop() if len(ends) == 1 else None
        return None


@dataclass(frozen=True)
class _Proof:
    """``writes``: to the newest row in a turn; ``copied``: what each row gets of the next; ``filled``: where all held
    one number at first; ``turns``: until a row's number is the oldest."""

    rows: _Rows
    writes: list[Access]
    copied: Interval
    filled: Interval | None
    turns: int

    @property
    def covered(self) -> list[Interval]:
        return [a.cover for a in self.writes if a.cover is not None]

    def is_written(self, read: Access) -> bool:
        """Whether a turn has written what it reads of the newest row."""
        before = [a.cover for a in self.writes if a.cover is not None and a.place < read.place]
        if any(self._covers(ends, before) for ends in _intervals(read)):
            return True
        for own in self.writes:
            if own.cover is None or own.at is None or read.at is None or own.loops != read.loops:
                continue
            apart, step = (own.at - read.at).value, integer(own.loops[-1].step) if own.loops else None
            along = own.at.coefficient(next((n for n in own.at.symbols if " " in n), ""))
            earlier = self._is_earlier(own, read)
            if apart == 0 and earlier:
                return True
            if apart is not None and apart >= 1 and step == 1 and along == _ONE and not self.rows.together:
                first = plus(own.cover[0], constant(-apart)), plus(own.cover[0], constant(-1))
                if self._covers(first, before):
                    return True
        return False

    def _is_earlier(self, own: Access, read: Access) -> bool:
        every = self.rows.turn.accesses
        return next(n for n, a in enumerate(every) if a is own) < next(n for n, a in enumerate(every) if a is read)

    def is_kept(self, read: Access, outside: bool = False) -> bool:
        """Whether what is read of an older row was written in the turns before, or never. ``outside``: behind the
        loop, where a turn's own range is no more."""
        return any(self._is_kept(ends, outside) for ends in _intervals(read))

    def is_filled(self, read: Access) -> bool:
        """Whether what is read was filled before the loop."""
        return any(self._within(ends, self.filled) for ends in _intervals(read))

    def _is_kept(self, ends: Interval, outside: bool) -> bool:
        fixed = [c for c in self.covered if self._is_fixed(c[0]) and self._is_fixed(c[1])]
        if self._covers(ends, fixed) and self._within(ends, self.copied):
            return True
        if not self._within(ends, self.filled):
            return False
        for first, last in self.covered:
            all_in = all(any(self._at_most(first, x) for x in a.lows) and any(self._at_most(x, last) for x in a.highs)
                         for a in self.writes)  # fmt: skip
            if not all_in or not self._within((first, last), self.copied):
                continue
            stands = self._is_fixed(first) and self._is_fixed(last)
            below = self._is_fixed(first) or (self._at_most(first, ends[0]) and self._rises(ends[0]))
            above = self._is_fixed(last) or self._rises(last)
            if stands or (below and above and self.turns == 1 and not outside):
                return True
        return False

    def _covers(self, ends: Interval, by: list[Interval]) -> bool:
        return covers(self.rows.target, ends, by)

    def _within(self, ends: Interval, of: Interval | None) -> bool:
        return of is not None and self._at_most(of[0], ends[0]) and self._at_most(ends[1], of[1])

    def _at_most(self, one: Bound, other: Bound) -> bool:
        return is_at_most(self.rows.target, one, other)

    # ------------------------------------------------------------ from turn to turn

    def _moving(self, bound: Bound) -> frozenset[str]:
        own = self.rows.turn.made.keys() | {self.rows.loop.var}
        return frozenset(n for n in symbols(bound) if n in own or n[0] in "?@")

    def _is_fixed(self, bound: Bound) -> bool:
        """Whether an end is the same in all turns."""
        return not self._moving(bound)

    def _rises(self, bound: Bound) -> bool:
        """Whether an end is never less than in the turn before."""
        if isinstance(bound, Extreme):
            return self._rises(bound.left) and self._rises(bound.right)
        for names, count in bound.terms:
            moving = [n for n in names if self._moving(symbol(n))]
            others = [n for n in names if n not in moving]
            if moving and (len(moving) > 1 or count < 0 or not self._grows(moving[0])):
                return False
            if moving and not all(self._at_most(_ZERO, symbol(n)) for n in others):
                return False
        return True

    def _grows(self, name: str) -> bool:
        if name == self.rows.loop.var:
            return (integer(self.rows.loop.step) or 0) > 0
        above, by = self.rows.turn.made.get(name, (None, None))
        return (
            above is not None
            and by is not None
            and self._rises(above)
            and self._is_fixed(by)
            and self._at_most(_ZERO, by)
        )


def _intervals(read: Access) -> Iterator[Interval]:
    return product(read.lows, read.highs)


def _is_number(e: Expr) -> bool:
    return all(isinstance(x, Literal | Name | Unary | Binary) for x in walk_expr(e))
