"""The row-major shape that an index runs over."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fsr.analysis.polynomial import Poly, constant, symbol
from fsr.analysis.ranges import Reach


def shape_of(access: Reach, extra: Mapping[str, Poly]) -> tuple[Poly, ...] | str:
    """The row-major shape that an index runs over, or why there is none.

    The index must be a chain: the innermost atom alone, the next multiplied by the innermost extent, and so on,
    every atom with a known range. An atom missing inside (``x[row * cols]``) leaves its extent from the factor.
    """
    bounds = {**extra, **access.bounds}
    left, inner, shape = access.index, constant(1), list[Poly]()
    moving = [a for a in sorted(access.index.symbols) if a[0] in "@?%"]
    for atom in moving:
        if atom not in bounds:
            what = "data read from memory, or a variable" if atom[0] == "?" else "an index"
            return f"the index depends on {what} whose range is not clear"
    steps = {atom: access.index.coefficient(atom) or Poly() for atom in moving}
    while steps:
        ready = [a for a, c in steps.items() if c == inner]
        if len(ready) > 1:
            return f"the index {readable(access.index)} adds two indices with the same step"
        if not ready:
            factors = sorted({c.over(inner) for c in steps.values()} - {None}, key=lambda p: len(p.terms) if p else 0)
            exact = [f for f in factors if f is not None and all(c.over(inner * f) is not None for c in steps.values())]
            if not exact or (shape and shape[0] != exact[0]):
                return f"the index {readable(access.index)} is not row-major over the ranges that are known"
            if shape:
                return f"the index {readable(access.index)} skips elements"
            shape.insert(0, exact[0])
            inner = inner * exact[0]
            continue
        atom = ready[0]
        shape.insert(0, bounds[atom])
        left = left - symbol(atom) * inner
        inner = inner * bounds[atom]
        del steps[atom]
    if left.value != 0:
        if not shape and left.value is not None:
            return (constant(left.value + 1),)
        return f"the index {readable(access.index)} reaches beyond its range by {left.text()}"
    return tuple(shape) or (constant(1),)


def readable(poly: Poly) -> str:
    """A polynomial with names a developer knows."""
    text = re.sub(r"@g([xyz])", r"global_\1", poly.text())
    text = re.sub(r"@t([xyz])", r"threadIdx.\1", re.sub(r"@b([xyz])", r"blockIdx.\1", text))
    text = re.sub(r"%(quotient|rest) \S+ \S+", r"\1", text)
    return re.sub(r"[@?](\w+?)\d*\b", r"\1", text)
