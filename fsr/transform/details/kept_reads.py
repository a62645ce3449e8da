"""What every turn of a loop reads again is read once, into registers; what the next turn reads, while this one runs.

A recurrence that multiplies its state with the same weights in each step keeps its part of them. Arrays in registers
need lengths that are constant, so the lengths of inner loops are taken as they are timed, and the loop stays as it was
for others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from fsr.expressions import evaluate_int, names
from fsr.hardware.c_types import BY_DTYPE
from fsr.hardware.limits import REGISTERS_PER_SM
from fsr.records import Candidate, Launch, Role
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    Jump,
    Name,
    Return,
    Scope,
    Stmt,
    Ternary,
    While,
    conjunction,
    number,
)  # fmt: skip
from fsr.source.mapping import replace_stmt, substitute, with_exprs, with_parts
from fsr.source.walk import (
    Block,
    base_name,
    contains_opaque,
    declared,
    fresh,
    loop_regions,
    loops,
    names_assigned,
    names_in,
    walk_expr,
    walk_stmts,
)  # fmt: skip
from fsr.transform.details.unroll import trip_count
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import largest
from fsr.transform.target import Target, part_of, region_in, target_of, targets

MOST_WORDS, OTHER_REGISTERS = 160, 48  # of a thread
GAIN = 2.0
_UNROLL = ("#pragma unroll",)


@dataclass(frozen=True, slots=True)
class KeepReads:
    """``ahead=1``: what depends on the turn is read a turn ahead."""

    name: str = "keep-reads"
    aims_at: frozenset[str] = frozenset(["latency", "instructions", "uncoalesced", "bandwidth"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Loops in whose turns inner loops read the same elements of what nobody writes."""
        for target in targets(subject):
            for region, loop in loop_regions(target.kernel).items():
                found = _kept(target, loop)
                for ahead in (1, 0) if found is not None and found.turns else (0,) if found is not None else ():
                    yield Move(self.name, region_in(target, region), (("ahead", ahead),), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with the loop in two versions."""
        target = target_of(subject, move)
        loop = loop_regions(target.kernel)[part_of(move)]
        found = _kept(target, loop, ahead=bool(move.param("ahead")))
        assert found is not None
        body = replace_stmt(target.kernel.body, loop, (found.versions(),))
        return rewritten(target, move, replace(target.kernel, body=body), launch=partial(_with_room, target))


def _with_room(target: Target, launch: Launch) -> Launch:
    """The launch with as much dynamic shared memory at every size as at the timed one: nvcc reads what the version for
    that one reads before it has asked whether it is the one to run."""
    if not names(launch.shared_bytes):
        return launch
    timed = evaluate_int(launch.shared_bytes, target.contract.timed_sizes()[0])
    return replace(launch, shared_bytes=f"max({launch.shared_bytes}, {timed})")


@dataclass(frozen=True)
class _Read:
    """An element that is read, as it stands outside of the inner loops around it that it depends on."""

    element: Expr
    type: str
    around: tuple[tuple[str, int], ...]

    @property
    def words(self) -> int:
        """Registers of all elements."""
        return math.prod(count for _, count in self.around)

    def at(self, name: str) -> Expr:
        """The register of one of them."""
        found: Expr = Name(name)
        for var, _ in self.around:
            found = Index(found, Name(var))
        return found

    def declared(self, name: str) -> Declare:
        """The registers."""
        return Declare(self.type, name, None, tuple(number(count) for _, count in self.around))

    def each(self, target: Expr, value: Expr) -> Stmt:
        """An assignment for all elements."""
        found: Stmt = Assign(target, "=", value)
        for var, count in reversed(self.around):
            found = For("int", var, number(0), "<", number(count), number(1), (found,), _UNROLL)
        return found


@dataclass
class _Kept:
    """A loop with constants in place of sizes, and what it keeps: ``always`` the same, or of ``turns``, by name."""

    target: Target
    loop: For
    sizes: Mapping[str, int]
    ahead: bool
    always: dict[_Read, str] = field(default_factory=dict)
    turns: dict[_Read, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        constants = {name: number(value) for name, value in self.sizes.items()}
        self.fixed = substitute(self.loop, constants)
        self.inner = {s.name: s for s in walk_stmts(self.fixed.body) if isinstance(s, Declare)}
        self.changing = names_assigned(self.fixed.body) | set(self.inner) | {x.var for x in loops(self.fixed.body)}
        self.body = self._block(self.fixed.body, ())

    # ------------------------------------------------------------ finding

    def _block(self, body: Block, around: tuple[tuple[str, int], ...]) -> Block:
        """The statements with registers where every turn reads whatever happens."""
        return tuple(self._statement(s, around) for s in body)

    def _statement(self, s: Stmt, around: tuple[tuple[str, int], ...]) -> Stmt:
        match s:
            case Scope():
                return replace(s, body=self._block(s.body, around))
            case For():
                count = trip_count(self.target, s)
                counted = s.type == "int" and s.start == number(0) and s.step == number(1)
                if count and counted and s.var not in names_assigned(s.body):
                    body = self._block(s.body, (*around, (s.var, count)))
                    return s if body == s.body else replace(s, body=body, pragmas=s.pragmas or _UNROLL)
                return s
            case Assign():
                return replace(s, value=self._expr(s.value, around))
            case Declare() | ExprStmt():
                return with_exprs(s, lambda e: self._expr(e, around))
        return s

    def _expr(self, e: Expr, around: tuple[tuple[str, int], ...]) -> Expr:
        match e:
            case Ternary() | Binary("&&" | "||"):
                return e
            case Index():
                read = self._read(e, around)
                if read is not None:
                    return self._register(read) or e
        return with_parts(e, lambda part: self._expr(part, around))

    def _register(self, read: _Read) -> Expr | None:
        turning = self.loop.var in names_in(read.element)
        found = self.turns if turning else self.always
        if turning and not self.ahead:
            found.setdefault(read, "")
            return None
        taken = self.target.names | set(self.always.values()) | set(self.turns.values())
        root = base_name(read.element) or "own"
        name = found.setdefault(read, found.get(read) or fresh(f"{root}_{'now' if turning else 'kept'}", taken))
        return read.at(name)

    def _read(self, e: Index, around: tuple[tuple[str, int], ...]) -> _Read | None:
        """What an element is, if nobody writes it and only loops around it tell which; None where it is not kept."""
        element = self._element(e)
        if element is None or any(isinstance(x, Call | Index) for x in walk_expr(element.index)):
            return None
        names = names_in(element)
        own = tuple((var, count) for var, count in around if var in names)
        if names & self.changing - {var for var, _ in own} or not (own or self.loop.var in names):
            return None
        root = base_name(self.target.known.expand(element.base)) or ""
        known = self.target.argument(root) if root in self.target.unaliased else None
        if known is None or known.role is not Role.IN or BY_DTYPE[known.dtype].bytes > 4:
            return None
        return _Read(element, BY_DTYPE[known.dtype].spelling, own)

    def _element(self, e: Index) -> Index | None:
        """The element told without pointers that the loop declares."""
        match e:
            case Index(Name(text)) if text not in self.inner:
                return e
            case Index(Name(text), index) if text not in names_assigned(self.fixed.body):
                match self.inner[text].init:
                    case Binary("+", Name(root), offset) if root not in self.inner:
                        return Index(Name(root), Binary("+", offset, index))
        return None

    # ------------------------------------------------------------ text

    def fits(self) -> bool:
        """Whether inner loops read what stays, and registers hold all that is kept."""
        words = sum(r.words for r in self.always) + 2 * sum(r.words for r in self.turns)
        threads = largest(self.target.contract, " * ".join(f"({x})" for x in self.target.launch.block))
        if not self.always or words > MOST_WORDS or threads is None:
            return False
        return (words + OTHER_REGISTERS) * threads <= REGISTERS_PER_SM

    def versions(self) -> If:
        """The loop with registers for the sizes that it was made for, and as it was."""
        loop = self.fixed
        before, first = list[Stmt](), list[Stmt]()
        for read, name in self.always.items():
            before += [read.declared(name), read.each(read.at(name), read.element)]
        after: Expr = Binary("+", Name(loop.var), loop.step)
        fetched = list[Stmt]()
        for read, name in self.turns.items() if self.ahead else ():
            later = fresh(f"{name.removesuffix('_now')}_next", self.target.names)
            begin, following = (substitute(read.element, {loop.var: e}) for e in (loop.start, after))
            before += [read.declared(later), read.each(read.at(later), begin)]
            first += [read.declared(name), read.each(read.at(name), read.at(later))]
            fetched.append(read.each(read.at(later), following))
        more = [If(Binary(loop.relation, after, loop.bound), tuple(fetched))] if fetched else []
        tests = [Binary("==", Name(name), number(value)) for name, value in self.sizes.items()]
        test = conjunction([*tests, Binary(loop.relation, loop.start, loop.bound)])
        assert test is not None
        return If(test, (*before, replace(loop, body=(*first, *more, *self.body))), (self.loop,))


def _kept(target: Target, loop: For, *, ahead: bool = False) -> _Kept | None:
    """The loop with what it may keep; None where that is nothing, or cannot be told."""
    inside = list(walk_stmts(loop.body))
    if loop.type is None or contains_opaque((loop,)) or any(isinstance(s, Jump | Return | While) for s in inside):
        return None
    changing = names_assigned(loop.body) | set(declared(loop.body))
    if loop.var in {inner.var for inner in loops(loop.body)}:
        return None
    head = names_in(loop.start) | names_in(loop.bound) | names_in(loop.step)
    called = any(isinstance(x, Call) for e in (loop.start, loop.bound, loop.step) for x in walk_expr(e))
    if called or (head | {loop.var}) & changing:
        return None
    bounds = {name for inner in loops(loop.body) for name in names_in(inner.bound)} - changing - set(target.constants)
    timed = {name: target.timed(Name(name)) for name in sorted(bounds)}
    found = _Kept(target, loop, {name: value for name, value in timed.items() if value is not None}, ahead)
    return found if found.fits() else None
