"""How a loop over the rows of a dynamic program uses scratch memory: which rows a turn reads, and at which columns.

What is argued from: a kernel without barriers reads of such memory only what the same thread wrote, and touches nothing
that another thread does; all else would be a race, or undefined. Rows that are kept in the place of the first ones are
cells that the thread itself uses in the original, so that threads stay apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fsr.analysis.accesses import Access, accesses_in
from fsr.analysis.polynomial import Poly, constant
from fsr.records import Role
from fsr.source.form import For, Jump, Return, While
from fsr.source.walk import Block, walk_stmts
from fsr.transform.scratch.buffers import Unfit
from fsr.transform.scratch.row_nests import Nest, Pointers, always_written, ascends
from fsr.transform.scratch.told import narrowed_ends, tests_around
from fsr.transform.sizes import always
from fsr.transform.target import Target

_MOST_BACK = 3


@dataclass(frozen=True, slots=True)
class Columns:
    """Places along a row that an access takes, both ends included; the thread's own place in the row is part of
    each. ``loop``: over them; None: one place."""

    low: Poly
    high: Poly
    loop: For | None


@dataclass(frozen=True, slots=True)
class Use:
    """An access, of the row that is ``back`` before the loop's own, or before its last one for what stands behind it;
    of what stands in front, nothing but its place is told."""

    access: Access
    back: int
    columns: Columns


@dataclass(frozen=True, slots=True)
class Rows:
    """A buffer whose rows are so used. ``shift``: from the loop's variable to the row that a turn writes; ``first``:
    that row in the first turn; ``kept``: how many rows are enough; ``once``: each turn's row is read in no other."""

    param: str
    stride: Poly
    shift: int
    first: int
    last: Poly
    kept: int
    once: bool
    before: tuple[Use, ...]
    inside: tuple[Use, ...]
    after: tuple[Use, ...]

    @property
    def written(self) -> list[Columns]:
        """What turns write, each of them."""
        return [u.columns for u in self.inside if u.access.writes]


def at_least(target: Target, value: Poly, least: int) -> bool:
    """Whether a value of sizes is that or more, whatever they are."""
    if value.value is not None:
        return value.value >= least
    text = target.poly_text(value)
    return text is not None and always(target.contract, f"({text}) >= {least}")


class Reading:
    """The uses of one buffer, as far as they can be told. Raises Unfit."""

    def __init__(self, target: Target, nest: Nest, param: str) -> None:
        self.target, self.nest, self.param = target, nest, param
        self.pointers = Pointers(target, param)
        self.own = nest.loops_variables
        # Of reads alone: what a turn writes under a test, it writes at the other columns in another branch.
        self._tests = tests_around((nest.loop,))
        inside = self._accesses((nest.loop,))
        write = next((a for a in inside if a.writes), None)
        if write is None or nest.loop.var in target.known.changed:
            raise Unfit
        self.stride = self._per_turn(self.pointers.place(write))
        self.shift = self.rows_in(self.pointers.place(write).without(nest.loop.var))
        self.first = self._number(target.poly(nest.loop.start)) + self.shift
        last = target.poly(nest.loop.bound) + constant(self.shift - (nest.loop.relation == "<"))
        self._steady(last)
        self.last = last
        self._inside = inside

    def rows(self) -> Rows:
        """All of it."""
        loop = self.nest.loop
        if any(isinstance(s, Jump | Return) for s in walk_stmts(loop.body)):
            raise Unfit
        written = [self._written(a) for a in self._inside if a.writes]
        hull = [u.columns for u in written]
        read = [self._read(a, hull) for a in self._inside if not a.writes]
        after = [self._behind(a, hull) for a in self._accesses(self.nest.after)]
        before = [self._in_front(a, hull) for a in self._accesses(self.nest.before)]
        back = max((u.back for u in (*read, *after)), default=0)
        once = back == 0 and (not after or self._runs())
        kept = self.first + 1 if once else max(back + 1, self.first, 2)
        if kept > _MOST_BACK + 1 or not 0 <= self.first <= kept:
            raise Unfit
        found = Rows(
            self.param, self.stride, self.shift, self.first, self.last, kept, once,
            tuple(before), (*written, *read), tuple(after),
        )  # fmt: skip
        self._narrow(hull)
        if self.nest.outer is not None:
            self._apart(self.nest.outer, [*hull, *(u.columns for u in before)])
        if not once:
            self._own_cells(found)
        return found

    # ------------------------------------------------------------ places

    def _accesses(self, body: Block) -> list[Access]:
        return [a for a in accesses_in(body, self.pointers.names) if a.array in self.pointers.names]

    def _per_turn(self, place: Poly) -> Poly:
        stride = place.coefficient(self.nest.loop.var)
        if stride is None or not stride.terms or any(s[0] == "{" for s in stride.symbols):
            raise Unfit
        self._steady(stride)
        if not at_least(self.target, stride, 1):
            raise Unfit
        return stride

    def rows_in(self, place: Poly) -> int:
        """How many rows a place is behind that of a loop's variable: one in ``(i + 1) * n``."""
        rest = dict(place.terms)
        lead, count = max(self.stride.terms, key=lambda t: len(t[0]))
        return round(rest.get(lead, 0) / count)

    def _number(self, value: Poly) -> int:
        if value.value is None:
            raise Unfit
        return value.value

    def _steady(self, value: Poly, loops: Iterable[str] = ()) -> None:
        """Raises Unfit for a value that may change while the rows are used."""
        names = {n.split(".")[0] for n in value.names()} - set(loops)
        if names & (self.target.known.changed | self.own):
            raise Unfit
        for name in names & {p.name for p in self.target.kernel.params if p.is_pointer}:
            argument = self.target.argument(name)
            if argument is None or argument.role is not Role.IN or name not in self.target.unaliased:
                raise Unfit

    def _columns(self, place: Poly, a: Access, loops: Sequence[For | While]) -> Columns:
        over = [s for s in loops if isinstance(s, For) and place.depends_on({s.var})]
        if not all(isinstance(s, For) for s in loops) or len(over) > 1:
            raise Unfit
        if not over:
            self._steady(place)
            return Columns(place, place, None)
        (loop,) = over
        each, rest = place.coefficient(loop.var), place.without(loop.var)
        counted = loop.type is not None and ascends(loop) and loop.var not in self.target.known.changed
        if each is None or not counted or not at_least(self.target, each, 1):
            raise Unfit
        first, last = self.target.poly(loop.start), self.target.poly(loop.bound) - constant(loop.relation == "<")
        for value in (each, rest, first, last):
            self._steady(value)
        first, last = narrowed_ends(
            loop.var, (first, last), () if a.writes else self._tests.get(id(a.expr), ()), self.target.poly
        )
        return Columns(rest + each * first, rest + each * last, loop)

    def _within(self, columns: Columns, hull: Sequence[Columns]) -> bool:
        return any(at_least(self.target, columns.low - w.low, 0) for w in hull) and any(
            at_least(self.target, w.high - columns.high, 0) for w in hull
        )

    # ------------------------------------------------------------ uses

    def _row(self, number: int) -> Poly:
        return self.stride * constant(number)

    def _turn(self, a: Access) -> Poly:
        """The place without the row that a turn writes."""
        place = self.pointers.place(a)
        if place.coefficient(self.nest.loop.var) != self.stride:
            raise Unfit
        return place.without(self.nest.loop.var) - self._row(self.shift)

    def _written(self, a: Access) -> Use:
        always_ = always_written(self.nest.loop.body, self.pointers)
        if a.kind != "write" or (a.tests and self.pointers.place(a) not in always_):
            raise Unfit
        return Use(a, 0, self._columns(self._turn(a), a, a.loops[1:]))

    def _read(self, a: Access, hull: Sequence[Columns]) -> Use:
        rest = self._turn(a)
        for back in range(_MOST_BACK + 1):
            columns = self._columns(rest + self._row(back), a, a.loops[1:])
            if self._within(columns, hull):
                return Use(a, back, columns)
        raise Unfit

    def _behind(self, a: Access, hull: Sequence[Columns]) -> Use:
        if a.kind != "read":
            raise Unfit
        for back in range(_MOST_BACK + 1):
            place = self.pointers.place(a) - self.stride * (self.last - constant(back))
            columns = self._columns(place, a, a.loops)
            if self._within(columns, hull):
                return Use(a, back, columns)
        raise Unfit

    def _in_front(self, a: Access, hull: Sequence[Columns]) -> Use:
        """An access of rows before the first turn's: none of what turns write."""
        columns = self._columns(self.pointers.place(a), a, a.loops)
        first = self._row(self.first)
        below = all(at_least(self.target, first + w.low - columns.high, 1) for w in hull)
        if not below and not any(self._within(self._moved(columns, k), hull) for k in range(self.first)):
            raise Unfit
        return Use(a, 0, columns)

    def _moved(self, columns: Columns, rows: int) -> Columns:
        by = self._row(rows)
        return Columns(columns.low - by, columns.high - by, columns.loop)

    # ------------------------------------------------------------ what must hold of all

    def _runs(self) -> bool:
        """Whether the loop has a turn at all sizes."""
        return at_least(self.target, self.last - constant(self.first), 0)

    def _narrow(self, hull: Sequence[Columns]) -> None:
        """Raises Unfit where columns of two rows may be one place."""
        stride = self.target.poly_text(self.stride)
        for one in hull:
            for other in hull:
                span = self._most(one, other)
                if span is None or not always(self.target.contract, f"({span}) < ({stride})"):
                    raise Unfit

    def _apart(self, outer: For, used: Sequence[Columns]) -> None:
        """Raises Unfit where a turn of the loop around may use what another does."""
        each = used[0].low.coefficient(outer.var)
        if each is None or outer.var in self.target.known.changed:
            raise Unfit
        for columns in used:
            low, high = columns.low.without(outer.var), columns.high.without(outer.var)
            same = columns.low.coefficient(outer.var) == each == columns.high.coefficient(outer.var)
            room = each - self.stride * self.last - high
            if not same or not at_least(self.target, low, 0) or not at_least(self.target, room, 1):
                raise Unfit

    def _most(self, one: Columns, other: Columns) -> str | None:
        """The distance from the lowest place of ``other`` to the highest of ``one``, at most, as a size expression."""
        text = self.target.poly_text(one.high - other.low)
        if text is not None or one.loop is None:
            return text
        bound = self.target.poly(one.loop.bound)
        high = self.target.limit(one.loop.bound, "high")
        found = (one.high - other.low) - bound  # each a column of its own
        rest = self.target.poly_text(found)
        return None if high is None or rest is None else f"({high}) + ({rest})"

    def _own_cells(self, rows: Rows) -> None:
        """Raises Unfit unless the rows in front, in whose place later ones come, are the thread's own everywhere."""
        reads = [u for u in rows.inside if not u.access.writes and not u.access.tests]
        for k in range(rows.first):
            known = [u.columns for u in reads if u.back == rows.first - k]
            known += [self._moved(u.columns, k) for u in rows.before if not u.access.tests]
            for w in rows.written:
                if not any(self._within(w, [x]) for x in known):
                    raise Unfit
