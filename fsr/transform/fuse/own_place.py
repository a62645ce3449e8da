"""Whether an element is one thread's own: no other thread of the grid reaches it.

The index is taken for a number whose digits are where the thread stands and, below and above these, the turns of its
loops: ``(y * w + x) * 3 + c`` under ``x < w`` is of the thread at (x, y) alone for c = 0, 1, 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, permutations

from fsr.analysis.polynomial import Poly, symbol
from fsr.transform.fuse.coordinates import is_coordinate

Widths = Mapping[str, tuple[Poly, ...]]
"""Exclusive bounds of coordinates, in all forms that are known; coordinates are at least 0."""


@dataclass(frozen=True)
class Place:
    """What is told of one index. ``digits``: the coordinates with their factors; ``rest``: what is the same for all
    threads; ``low``, ``high``: the least and the most below the lowest of these digits, None for all that there is room
    for; ``top``: what the index would be the same modulo, where more than one such part is added; ``tops``: what
    ``top`` may be."""

    digits: tuple[tuple[str, Poly], ...]
    rest: Poly
    low: int | None
    high: int | None
    top: Poly | None
    tops: frozenset[Poly] = field(compare=False)

    @property
    def lowest(self) -> Poly:
        """The factor of the lowest digit, the room below it."""
        return self.digits[0][1]

    @property
    def fixed(self) -> bool:
        """Whether it is one element of each thread."""
        return self.low is not None and self.low == self.high and self.top is None


def place_of(at: Poly, axes: Sequence[str], widths: Widths) -> Place | None:
    """The place of an index in a grid that extends along some axes; None where it may be another thread's too, and in a
    grid of one thread, whose loops are its own."""
    if not axes:
        return None
    own = [f"@turn.{a}" if f"@turn.{a}" in at.symbols else f"@{a}" for a in axes]
    factors, left = dict[str, Poly](), at
    for name in own:
        factor = at.coefficient(name)
        if factor is None or not factor.terms or any(is_coordinate(s) or s.startswith("arg:") for s in factor.symbols):
            return None
        factors[name], left = factor, left.without(name)
    for order in permutations(own):
        steps = [(widths.get(low, ()), factors[low], factors[high]) for low, high in pairwise(order)]
        if all(any(_fits(one, width, other) for width in known) for known, one, other in steps):
            return _with_loops(tuple((name, factors[name]) for name in order), left, widths)
    return None


def _fits(factor: Poly, width: Poly, next_factor: Poly) -> bool:
    """Whether a digit stays below the next one: ``x < w - 1`` does in ``y * w + x``, too."""
    room = next_factor.over(factor)
    spare = None if room is None else (room - width).value
    return spare is not None and spare >= 0


def _with_loops(digits: tuple[tuple[str, Poly], ...], left: Poly, widths: Widths) -> Place | None:
    name, factor = digits[-1]
    tops = frozenset(factor * width for width in widths.get(name, ()) if len((factor * width).terms) == 1)
    top, lower, rest = None, list[tuple[Poly, Poly]](), Poly()
    base = 0
    for monomial, count in left.terms:
        term = Poly(((monomial, count),))
        over = next((t for t in sorted(tops, key=Poly.text) if term.over(t) is not None), None)
        varying = [s for s in monomial if is_coordinate(s)]
        if not monomial:
            base = count
        elif over is not None and (top is None or over == top):
            top = over
        elif not varying:
            rest = rest + term
        elif len(varying) == 1 and varying[0][1:2].isdigit() and not lower and widths.get(varying[0]):
            lower.append((term.coefficient(varying[0]) or Poly(), widths[varying[0]][0]))
        else:
            return None
    span = _span(lower, base, digits[0][1])
    return None if span is None else Place(digits, rest, *span, top, tops)


def _span(lower: list[tuple[Poly, Poly]], base: int, room: Poly) -> tuple[int | None, int | None] | None:
    """The least and the most of what is added below the room that digits leave; None where that is not told."""
    if not lower:
        return base, base
    ((factor, width),) = lower
    if factor.value is not None and width.value is not None:
        return (base, base + factor.value * (width.value - 1)) if factor.value > 0 else None
    step = factor.value or 0
    return (None, None) if factor * width == room and (base == 0 or 0 <= base < step) else None


def one_owner(places: Iterable[Place]) -> bool:
    """Whether elements at several places that are the same are the same thread's."""
    places = list(places)
    first, tops = places[0], {p.top for p in places if p.top is not None}
    if any((p.digits, p.rest) != (first.digits, first.rest) for p in places) or len(tops) > 1:
        return False
    if any(not tops <= p.tops for p in places):
        return False
    room = first.lowest.value
    if room is None:
        return all(p.low is None or (p.low, p.high) == (0, 0) for p in places) or _alike(places)
    low = min(0 if p.low is None else p.low for p in places)
    high = max(room - 1 if p.high is None else p.high for p in places)
    return high - low < abs(room)


def _alike(places: Sequence[Place]) -> bool:
    return all(p.fixed and p.low == places[0].low for p in places)


def turn(axis: str) -> Poly:
    """The coordinate of a turn of a loop over the grid."""
    return symbol(f"@turn.{axis}")
