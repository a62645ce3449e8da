"""Indices that are a remainder or a quotient of a dimension, ``i % n`` or ``(i - 1) / 4``."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from fsr.computation.expression import Affine, Quotient, Remainder
from fsr.lifting.points import Ints, Points

_DIVISORS = (2, 3, 4, 8, 16, 32, 64, 128, 256)
_SHIFTS = (0, 1, -1)
_PROBES = 3  # samples that are looked at before all are: nearly every divisor fails at one of them


def divided(points: Points, values: Ints, sizes: Sequence[str]) -> Remainder | Quotient | None:
    """The values as a remainder or a quotient of a dimension, or of its neighbour, by a size or a number; None where
    they are no such."""
    loops = [n for n in points.columns if n not in sizes]
    at = np.unique(np.linspace(0, len(values) - 1, _PROBES).astype(int))
    wanted = values[at].tolist()
    known = [s for s in sizes if s in points.columns and points.columns[s].all()]
    probed = {s: points.columns[s][at].tolist() for s in known}
    for name, shift in itertools.product(loops, _SHIFTS):
        column, inner = points.columns[name] + shift, Affine(((name, 1),), shift)
        places = column[at].tolist()
        choices: list[str | int] = [*known, *dict.fromkeys((*_DIVISORS, *_divisors(points.columns[name], values)))]
        for by in choices:
            divisors = probed[by] if isinstance(by, str) else [by] * len(places)
            whole: Ints | int = points.columns[by] if isinstance(by, str) else by
            told = list(zip(places, divisors, wanted, strict=True))
            if all(p % d == w for p, d, w in told) and (column % whole == values).all():
                return Remainder(inner, by)
            if all(p // d == w for p, d, w in told) and (column // whole == values).all():
                return Quotient(inner, by)
    return None


def _divisors(column: Ints, found: Ints) -> list[int]:
    """Numbers by which values may be remainders of a column, or quotients: the largest value is one less; the least
    place at which there is a quotient."""
    places = column[found == 1]
    return [n for n in (int(found.max()) + 1, int(places.min()) if len(places) else 0) if n > 1]
