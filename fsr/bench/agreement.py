"""Whether two computations of one thing gave the same, as a figure: the check that peers are asked the same question.

It finds another formula, not another rounding: that winners are right is what the tests of a refinement prove.
"""

from __future__ import annotations

import numpy as np

from fsr.backends.protocol import Array
from fsr.hardware.dtypes import is_float

_PART = 1 << 22
LIMITS = {"float64": 1e-6, "float32": 1e-3, "float16": 3e-2, "bfloat16": 3e-2}  # share of the largest value
_EACH_TERM = 4 * 2.0**-23 / LIMITS["float32"]  # so much of a unit may a sum in float be off for each of its terms


def disagreement(got: Array, want: Array, terms: int = 1) -> float:
    """The largest difference over the largest wanted value, of arrays of one shape; inf where only one is no number.
    For integers the share of elements that differ. ``terms``: so many are summed in an element; of a long sum of both
    signs little is left beside its rounding."""
    if got.size != want.size:
        return float("inf")
    a, b = got.reshape(-1), want.reshape(-1)
    if not is_float(want.dtype):
        return float(np.mean(a != b)) if a.size else 0.0
    worst = largest = 0.0
    for start in range(0, a.size, _PART):
        x, y = (part[start : start + _PART].astype(np.float64) for part in (a, b))
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        with np.errstate(invalid="ignore"):
            apart = np.where(same, 0.0, np.abs(x - y))
        worst = max(worst, float("inf") if np.isnan(apart).any() else float(apart.max(initial=0.0)))
        largest = max(largest, float(np.abs(y[np.isfinite(y)]).max(initial=0.0)))
    floor = terms * _EACH_TERM if terms > 1 else 0.0
    return worst / (max(largest, floor) or 1.0)


def agrees(share: float, dtype: str) -> bool:
    """Whether a disagreement is rounding, for outputs of this type."""
    return share <= LIMITS.get(dtype, 0.0)
