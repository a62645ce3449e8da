"""The row-major shape that an index runs over."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fsr.analysis.polynomial import Poly, constant, symbol
from fsr.analysis.ranges import Reach


def shape_of(access: Reach, extra: Mapping[str, Poly]) -> tuple[Poly, ...] | str:
    """The row-major shape that an index runs over, or why there is none.

    The index must be a chain: the innermost atom alone, the next multiplied by the innermost extent, and so on,
    every atom with a known range. An atom missing inside (``x[row * cols]``) leaves its extent from the factor. A
    neighbour (``x[(row + 1) * cols + col - 1]``) lies in the same shape where the ranges leave room for it.
    """
    bounds = {**extra, **access.bounds}
    moving = [a for a in sorted(access.index.symbols) if a[0] in "@?%"]
    for atom in moving:
        if atom not in bounds:
            what = "data read from memory, or a variable" if atom[0] == "?" else "an index"
            return f"the index depends on {what} whose range is not clear"
    steps = {atom: access.index.coefficient(atom) or Poly() for atom in moving}
    levels = _levels(steps, bounds)
    if levels is None:
        return _no_chain(access.index, steps)
    left = access.index
    for atom, step in steps.items():
        left = left - symbol(atom) * step
    if not levels and left.value is not None:
        return (constant(left.value + 1),)
    offsets = _offsets(left, levels)
    if offsets is None:
        return f"the index {readable(access.index)} reaches beyond its range by {left.text()}"
    if any(level.room is not None and offset > level.room for level, offset in zip(levels, offsets, strict=True)):
        return f"the index {readable(access.index)} reaches beyond its range by {left.text()}"
    return tuple(level.holding() for level in levels) or (constant(1),)


@dataclass(frozen=True)
class _Level:
    """One dimension: how far apart its elements lie, how many the atoms reach (None: they stand still), how many there
    are (None: the outermost, which nothing else tells), and how many of these a range is seen to leave out."""

    step: Poly
    reach: Poly | None
    extent: Poly | None
    spare: int = 0

    @property
    def room(self) -> int | None:
        """Elements beyond the reach, as far as they are known: of the outermost dimension those that a range leaves
        out (``i < n - 1``), since nothing says that an array goes on behind its end."""
        if self.reach is None:
            return 0 if self.extent is None or self.extent.value is None else self.extent.value - 1  # rgb[3 * i + 2]
        if self.extent is None:
            return self.spare if self.reach.symbols else None
        return (self.extent - self.reach).value

    def holding(self) -> Poly:
        """How many elements there are, those among them that a range leaves out."""
        if self.extent is not None:
            return self.extent
        return (constant(1) if self.reach is None else self.reach) + constant(self.room or 0)


def _levels(steps: Mapping[str, Poly], bounds: Mapping[str, Poly]) -> list[_Level] | None:
    """The dimensions, outermost first; None where the steps are no chain."""
    left, inner, found = dict(steps), constant(1), list[_Level]()
    while left:
        ready = [a for a, c in left.items() if c == inner]
        for atom in ready:
            del left[atom]
        reach = constant(1 - len(ready)) + sum((bounds[a] for a in ready), Poly()) if ready else None
        if not left:
            spare = -reach.constant if reach is not None and len(ready) == 1 else 0
            found.insert(0, _Level(inner, reach, None, max(spare, 0)))
            break
        if len(ready) > 1 or (not ready and found):
            return None
        factor = _common_factor(left.values(), inner)
        if factor is None:
            return None
        level = _Level(inner, reach, factor)
        if reach is not None and (level.room is None or level.room < 0):
            return None
        found.insert(0, level)
        inner = inner * factor
    return found


def _common_factor(steps: Iterable[Poly], inner: Poly) -> Poly | None:
    """The smallest of the steps, over the inner one, that all of them are multiples of."""
    listed = list(steps)
    factors = sorted({c.over(inner) for c in listed} - {None}, key=lambda p: len(p.text()) if p else 0)
    return next((f for f in factors if f and all(c.over(inner * f) is not None for c in listed)), None)


def _offsets(left: Poly, levels: Sequence[_Level]) -> list[int] | None:
    """How many elements of each dimension, outermost first, a rest without atoms is: ``cols - 1`` is (1, -1)."""
    found = []
    for at, level in enumerate(levels):
        step, count = level.step, 0
        if step.value is None:
            monomial, unit = step.terms[0]
            held = dict(left.terms).get(monomial, 0)
            count = held // unit if len(step.terms) == 1 and held % unit == 0 else 0
        elif left.value is not None:
            inside = at + 1 < len(levels) and levels[at + 1].reach is None  # a place of its own, never before the first
            count = left.value // step.value if inside else round(left.value / step.value)
        found.append(count)
        left = left - step * constant(count)
    return found if left.value == 0 else None


def _no_chain(index: Poly, steps: Mapping[str, Poly]) -> str:
    """Why the steps are no chain, in words."""
    counted = Counter(steps.values())
    if any(n > 1 for n in counted.values()):
        return f"the index {readable(index)} adds two indices with the same step"
    if constant(1) not in counted:
        return f"the index {readable(index)} skips elements"
    return f"the index {readable(index)} is not row-major over the ranges that are known"


def readable(poly: Poly) -> str:
    """A polynomial with names a developer knows."""
    text = re.sub(r"@g([xyz])", r"global_\1", poly.text())
    text = re.sub(r"@t([xyz])", r"threadIdx.\1", re.sub(r"@b([xyz])", r"blockIdx.\1", text))
    text = re.sub(r"%(quotient|rest) \S+ \S+", r"\1", text)
    return re.sub(r"[@?]_?(\w+?)\d*\b", r"\1", text)
