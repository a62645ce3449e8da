"""The kernel whose blocks each have a segment of the turns of a march."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fsr.analysis.conditions import exclusive
from fsr.analysis.threads import AXES
from fsr.records import Launch
from fsr.source.form import (
    Assign,
    Binary,
    Cast,
    Comment,
    Declare,
    Expr,
    For,
    If,
    KernelForm,
    Literal,
    Member,
    Name,
    Scope,
    Stmt,
    Ternary,
    number,
)
from fsr.source.mapping import map_stmts
from fsr.source.walk import Block, base_name, fresh, is_zero
from fsr.transform.launch.told_ids import with_ids
from fsr.transform.march.form import March
from fsr.transform.march.warm_up import Phase, phases
from fsr.transform.plan import along


@dataclass
class Segments:
    """``march`` in ``parts`` segments, along an axis of the grid that it has no blocks along, or between those along
    z."""

    march: March
    parts: int
    _names: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._names = set(self.march.target.names)
        grid = self.march.target.launch.grid
        self._axis = next((a for a in reversed(AXES[1:]) if grid[AXES.index(a)] == "1"), "z")
        self._alone = grid[AXES.index(self._axis)] == "1"

    def launch(self, launch: Launch) -> Launch:
        """The launch with so many times as many blocks."""
        before = launch.grid[AXES.index(self._axis)]
        count = str(self.parts) if self._alone else f"({before}) * {self.parts}"
        return replace(launch, grid=along(launch.grid, self._axis, count))

    def kernel(self) -> KernelForm:
        """The kernel."""
        march, part = self.march, self._name("segment")
        inner: Block = (*self._begun(part), *self._turns())
        for block, at in reversed(march.levels):
            around = block[at]
            if around is not march.loop:
                inner = (self._around(around, inner, part),)
            behind = block[at + 1 :]
            last = Binary("==", Name(part), Literal(f"{self.parts - 1}u"))
            ends: Block = (If(last, behind),) if any(not isinstance(s, Comment) for s in behind) else behind
            inner = (*self._by_first(block[:at], part), *inner, *ends)
        index, extent = Member(Name("blockIdx"), self._axis), Member(Name("gridDim"), self._axis)
        parts = Literal(f"{self.parts}u")
        told: dict[tuple[str, str], Expr] = {
            ("blockIdx", self._axis): Literal("0u") if self._alone else Binary("/", index, parts),
            ("gridDim", self._axis): Literal("1u") if self._alone else Binary("/", extent, parts),
        }
        own = Declare("const unsigned int", part, index if self._alone else Binary("%", index, parts))
        note = Comment(
            f"// a segment of the loop over {march.loop.var} for each, begun {march.lines.depth} turns early"
        )
        return replace(march.target.kernel, body=(note, own, *with_ids(inner, told)))

    def _name(self, wanted: str) -> str:
        name = fresh(wanted, self._names)
        self._names.add(name)
        return name

    def _around(self, s: Stmt, inner: Block, part: str) -> Stmt:
        """A statement around the loop, with other statements where those were that hold it."""
        levels = self.march.levels
        within = next(levels[n + 1][0] for n, (block, at) in enumerate(levels) if block[at] is s)
        if isinstance(s, If):
            if s.then is within:
                return replace(s, then=inner, orelse=self._by_first(s.orelse, part))
            return replace(s, then=self._by_first(s.then, part), orelse=inner)
        assert isinstance(s, Scope)
        return replace(s, body=inner)

    def _by_first(self, before: Block, part: str) -> Block:
        """Statements before or beside the loop, whose stores the first segment does."""
        written = {a.root for a in self.march.scene.outside if a.writes} - self.march.scene.shared
        roots = self.march.scene.roots

        def alone(s: Stmt) -> Stmt:
            stores = isinstance(s, Assign) and not isinstance(s.target, Name)
            if stores and isinstance(s, Assign) and roots.get(base_name(s.target) or "") in written:
                return If(Binary("==", Name(part), Literal("0u")), (s,))
            return s

        return map_stmts(before, alone) if written else before

    def _begun(self, part: str) -> Block:
        """Which turns are the segment's."""
        loop, type_ = self.march.loop, f"const {self.march.type.removeprefix('const ')}"
        self._first, self._count, self._own, self._end = (
            self._name(n) for n in ("first_turn", "turns", "segment_begin", "segment_end")
        )
        each, size = self._name("turns_each"), abs(self.march.by)
        up = self.march.by > 0
        bound = exclusive(loop.bound, loop.relation) if up else _above(loop)
        high, low = (bound, Name(self._first)) if up else (Name(self._first), bound)
        over: Expr = Binary("-", high, low)
        if size > 1:
            over = Binary("/", Binary("+", over, number(size - 1)), number(size))
        more = Binary(loop.relation, Name(self._first), loop.bound)
        count, own = Name(self._count), Name(self._own)
        ahead: Expr = Binary("*", Cast(self.march.type.removeprefix("const "), Name(part), "c"), Name(each))
        ends = Binary("+", own, Name(each))
        parts = number(self.parts)
        return (
            Declare(type_, self._first, loop.start),
            Declare(type_, self._count, Ternary(more, over, number(0))),
            Declare(type_, each, Binary("/", Binary("+", count, number(self.parts - 1)), parts)),
            Declare(type_, self._own, Ternary(Binary("<", ahead, count), ahead, count)),
            Declare(type_, self._end, Ternary(Binary("<", ends, count), ends, count)),
        )

    def _turns(self) -> Block:
        """The turns that fill the lines, and the segment's own."""
        found = list[Stmt]()
        filling = phases(self.march)
        begins = [self._before(p.turns + p.last, found) for p in filling]
        begins.append(Name(self._own))
        for step in self.march.steps:
            ahead = Binary("*", Cast("long long", step.by, "c"), begins[0])
            found.append(Assign(Name(step.name), step.op, ahead))
        for phase, begin, end in zip(filling, begins, begins[1:], strict=False):
            found.append(self._part(begin, end, phase))
        found.append(self._part(begins[-1], Name(self._end), None))
        return tuple(found)

    def _before(self, turns: int, found: list[Stmt]) -> Name:
        """A variable that is so many turns before the segment's first, or the first of all."""
        name, own = self._name("filled_from"), Name(self._own)
        early = Ternary(Binary(">", own, number(turns)), Binary("-", own, number(turns)), number(0))
        found.append(Declare(f"const {self.march.type.removeprefix('const ')}", name, early))
        return Name(name)

    def _part(self, begin: Name, end: Name, phase: Phase | None) -> For:
        loop = self.march.loop
        relation = loop.relation[0]
        changed = replace(loop, start=self._at(begin), bound=self._at(end), relation=relation)
        return changed if phase is None else replace(changed, body=phase.body, pragmas=())

    def _at(self, turn: Name) -> Expr:
        """The loop's variable in a turn."""
        size = abs(self.march.by)
        amount: Expr = turn if size == 1 else Binary("*", turn, number(size))
        if self.march.by > 0 and is_zero(self.march.loop.start):
            return amount
        return Binary("+" if self.march.by > 0 else "-", Name(self._first), amount)


def _above(loop: For) -> Expr:
    """The bound that a variable that counts down is greater than."""
    return loop.bound if loop.relation == ">" else Binary("-", loop.bound, number(1))
