"""Infinities that only a fused product keeps the original from: ``fma(x, y, sum)`` is finite where ``x * y`` is not."""

from __future__ import annotations

import numpy as np

from fsr.backends.protocol import Array
from fsr.hardware.dtypes import doubled
from fsr.testgen.oracle import Expected


def infinite_unfused(expected: Expected, name: str, got: Array, wrong: Array) -> Array:
    """Which of the wrong elements have no number where the original has one, and has none either once its products are
    rounded before they are added: which are fused is the compiler's choice, in the original as in a candidate."""
    asked = wrong & ~np.isfinite(doubled(got)) & np.isfinite(doubled(expected.arrays[name]))
    if not asked.any() or expected.unfused is None:
        return np.zeros(got.shape, dtype=bool)
    return np.asarray(asked & ~np.isfinite(doubled(expected.unfused[name])))
