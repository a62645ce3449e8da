"""Lines that are segments of equal length, one behind the other, as segments: halves of a head turned by an angle, a
gate beside what it gates, queries, keys and values of one product, the mean and the maximum of each channel.

A point of the segment's length makes its elements of all segments. What was an index further on is the number of
another segment then, what a condition chose by where in the line an element is, is known, and every access goes along
memory from a place where a pack may begin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from fsr.computation.computation import Computation, Statement
from fsr.computation.expression import (
    Affine,
    Carried,
    Case,
    Expr,
    Load,
    Number,
    Recurrence,
    children,
    distinct,
    indices_of,
    names_in,
    put_in_place,
    rebuilt,
    with_affine,
)  # fmt: skip
from fsr.transform.computed.parts import bound_in, value_of, written_out

_MOST_SEGMENTS = 8  # of a line; of what a point writes half as many: all are in registers at a time


class _Other(Exception):  # noqa: N818
    """Something does not lie in segments."""


def segmented(c: Computation, same: Callable[[str, str], bool]) -> Iterator[Computation]:
    """The computation over segments, for each length that divides its lines; of maps, and of folds over what is no part
    of a line: results of several kinds for each column. ``same``: whether two size expressions have one value at all
    sizes."""
    whole = _as_maps(c)
    if whole is None or any(not s.domain for s in whole.statements):
        return
    c = whole
    if any(isinstance(e, Recurrence | Carried) for s in c.statements for e in distinct(value_of(s))):
        return
    if any(s.domain[-1][0] in bound_in(value_of(s)) for s in c.statements):
        return
    for length in dict.fromkeys(n for s in c.statements for n in _lengths(s)):
        try:
            found = _Segments(c, length, same).done()
        except _Other:
            continue
        if found.buffers != c.buffers:
            yield found


def _as_maps(c: Computation) -> Computation | None:
    """The computation with what is kept between statements put in; None where it is more than maps and folds."""
    if any(s.value is None or s.kind not in ("map", "fold") for s in c.statements):
        return None
    whole = written_out(c)
    if whole is None:
        return None
    return replace(whole, statements=tuple(replace(s, kind="map") for s in whole.statements))


def _lengths(s: Statement) -> Iterator[str]:
    """What stands beside the last dimension in indices and conditions: so far apart are segments."""
    last, dims = s.domain[-1][0], {n for n, _ in s.domain}
    for e in distinct(value_of(s)):
        for index in indices_of(e):
            others = [n for n, _ in index.terms if n not in dims]
            if len(others) == 1 and (isinstance(e, Case) or last in {n for n, _ in index.terms}):
                yield others[0]


@dataclass
class _Segments:
    c: Computation
    length: str
    same: Callable[[str, str], bool]
    shapes: dict[str, tuple[str, ...]] = field(default_factory=dict)  # what each buffer's has to be

    def done(self) -> Computation:
        """Raises _Other."""
        self.old = {b.name: b.shape for b in self.c.buffers}
        statements = tuple(made for s in self.c.statements for made in self._statement(s))
        buffers = tuple(replace(b, shape=self.shapes.get(b.name, b.shape)) for b in self.c.buffers)
        return replace(self.c, buffers=buffers, statements=statements)

    def _statement(self, s: Statement) -> Iterator[Statement]:
        """One a segment of what it writes."""
        last, extent = s.domain[-1]
        count = self._count(extent)
        if count is None or count > _MOST_SEGMENTS // 2:
            raise _Other
        for number in range(count):
            place = self._at(Load(s.target, s.place, ""), last, number)
            value = self._at(value_of(s), last, number)
            assert isinstance(place, Load)
            yield replace(s, domain=(*s.domain[:-1], (last, self.length)), value=value, place=place.indices)

    def _count(self, extent: str) -> int | None:
        """How many segments make an extent."""
        counts = range(1, _MOST_SEGMENTS + 1)
        return next((n for n in counts if self.same(extent, f"{n} * ({self.length})")), None)

    def _at(self, e: Expr, last: str, number: int) -> Expr:
        """The expression at a point of the segment of that number."""
        return self._told(with_affine(e, lambda a: _moved(a, last, self.length, number)), last)

    def _told(self, e: Expr, last: str) -> Expr:
        if isinstance(e, Case):
            known = self._known(e, last)
            if known is not None:
                return self._told(e.yes if known else e.no, last)
        e = rebuilt(e, tuple(self._told(part, last) for part in children(e)))
        return self._load(e, last) if isinstance(e, Load) and e.indices else e

    def _known(self, e: Case, last: str) -> bool | None:
        """Whether the condition holds at every point of the segment, or at none; None where points differ."""
        less = dict(e.left.terms)
        for name, k in e.right.terms:
            less[name] = less.get(name, 0) - k
        own, far = less.pop(last, 0), less.pop(self.length, 0)
        if any(less.values()):
            return None
        constant = e.left.constant - e.right.constant
        ends = [(far, constant), (far + own, constant - own)]  # at the first and at the last point: times the length
        if all(k <= 0 and k + more <= 0 for k, more in ends):
            return True
        return False if all(k >= 0 and k + more > 0 for k, more in ends) else None

    def _load(self, e: Load, last: str) -> Load:
        """An element by the number of its segment and its place there, along whichever index that is."""
        shape, own = self.old[e.buffer], [n for n, i in enumerate(e.indices) if last in names_in(i)]
        if len(own) > 1:
            raise _Other
        for at in own:
            count = self._count(shape[at])
            number = self._number(e.indices[at], last)
            if count is None or not 0 <= number < count:
                raise _Other
            inner = [Affine(((last, 1),), 0)] if count == 1 else [Affine((), number), Affine(((last, 1),), 0)]
            extents = (shape[at],) if count == 1 else (str(count), self.length)
            shape = (*shape[:at], *extents, *shape[at + 1 :])
            e = replace(e, indices=(*e.indices[:at], *(Number(i, "int64") for i in inner), *e.indices[at + 1 :]))
        if self.shapes.setdefault(e.buffer, shape) != shape:
            raise _Other
        return e

    def _number(self, index: Expr, last: str) -> int:
        match index:
            case Number(Affine(terms, 0), _) if dict(terms).get(last) == 1:
                rest = [t for t in terms if t[0] != last]
                if not rest or (len(rest) == 1 and rest[0][0] == self.length):
                    return rest[0][1] if rest else 0
        raise _Other


def _moved(a: Affine, last: str, length: str, number: int) -> Affine:
    """An index as many segments further on."""
    return put_in_place(a, last, Affine(((last, 1), (length, number))))
