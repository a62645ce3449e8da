"""Value families: what the elements of an argument look like, one function a family.

Every function fills ``n`` elements from a generator; what an argument's constraints forbid is bent back into
range by :mod:`fsr.testgen.values`. Floating families return float64 or float32; integer ones int64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fsr.hardware.dtypes import FloatLimits

Values = np.ndarray[Any, Any]
FloatFamily = Callable[[np.random.Generator, int, FloatLimits], Values]

FEW = 5  # distinct values of the 'repeated' family


def _normal(rng: np.random.Generator, n: int, limits: FloatLimits) -> Values:
    return rng.standard_normal(n, dtype=np.float32)


def _uniform(rng: np.random.Generator, n: int, limits: FloatLimits) -> Values:
    return rng.random(n, dtype=np.float32)


def _wide(rng: np.random.Generator, n: int, limits: FloatLimits) -> Values:
    return 100.0 * rng.standard_normal(n)  # exp() of these overflows: stable formulas must stay stable


def _mixed(rng: np.random.Generator, n: int, limits: FloatLimits) -> Values:
    return rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-3, 3, n)


def _alternating(rng: np.random.Generator, n: int, limits: FloatLimits) -> Values:
    return np.where(np.arange(n) % 2 == 0, 1.0, -1.0) * float(rng.uniform(0.5, 2.0))


def _one_hot(rng: np.random.Generator, n: int, limits: FloatLimits) -> Values:
    values = np.zeros(n)
    if n:
        values[int(rng.integers(n))] = 1.0
        values[-1] = 1.0  # the last element is the one that tail code loses
    return values


def _repeated(rng: np.random.Generator, n: int, limits: FloatLimits) -> Values:
    return rng.choice(rng.standard_normal(FEW), n)


def _denormals(rng: np.random.Generator, n: int, limits: FloatLimits) -> Values:
    return rng.uniform(-1.0, 1.0, n) * limits.tiny


def _near_overflow(rng: np.random.Generator, n: int, limits: FloatLimits) -> Values:
    # Plain sums of all elements stay finite, so that overflow does not depend on the order of summing;
    # products overflow far beyond the edge, whatever the order.
    return rng.uniform(-1.0, 1.0, n) * max(limits.largest / (4.0 * max(n, 1)), 1.0)


def _cancelling(rng: np.random.Generator, n: int, limits: FloatLimits) -> Values:
    values = rng.standard_normal(n)
    half = n // 2
    values[half : 2 * half] = -values[:half] * (1.0 + 4.0 * limits.eps)
    return values


def _planted(rng: np.random.Generator, n: int, specials: list[float]) -> Values:
    values = rng.standard_normal(n)
    if n:
        places = rng.choice(n, size=min(n, 3), replace=False)
        values[places] = rng.choice(specials, len(places))
    return values


FLOAT: dict[str, FloatFamily] = {
    "normal": _normal,
    "uniform": _uniform,
    "small": lambda rng, n, lim: 0.01 * _normal(rng, n, lim),
    "large": lambda rng, n, lim: 3.0 * _normal(rng, n, lim),
    "negated": lambda rng, n, lim: -np.abs(_normal(rng, n, lim)) - 0.25,
    "zeros": lambda rng, n, lim: np.zeros(n),
    "ones": lambda rng, n, lim: np.ones(n),
    "constant": lambda rng, n, lim: np.full(n, rng.uniform(-2.0, 2.0)),
    "alternating": _alternating,
    "sorted": lambda rng, n, lim: np.sort(_normal(rng, n, lim)),
    "reverse": lambda rng, n, lim: np.sort(_normal(rng, n, lim))[::-1],
    "one-hot": _one_hot,
    "repeated": _repeated,
    "wide": _wide,
    "raised": lambda rng, n, lim: 1000.0 + _normal(rng, n, lim),  # differences of large numbers
    "sunk": lambda rng, n, lim: -1000.0 + 100.0 * _normal(rng, n, lim),  # a maximum that starts at 0 never moves
    "mixed": _mixed,
    "denormals": _denormals,
    "near-overflow": _near_overflow,
    "cancelling": _cancelling,
}
NON_FINITE: dict[str, FloatFamily] = {
    "infinite": lambda rng, n, lim: _planted(rng, n, [np.inf, -np.inf]),
    "nan": lambda rng, n, lim: _planted(rng, n, [np.nan, np.inf]),
}
INTEGER = ("uniform", "zeros", "ones", "constant", "alternating", "sorted", "reverse", "one-hot", "repeated", "limits")


def integer_values(family: str, rng: np.random.Generator, n: int, low: int, high: int) -> Values:
    """``n`` int64 (uint64 when ``high`` needs it) elements within [low, high] of a family; families that only
    make sense for floating values fall back to uniform."""
    dtype = np.uint64 if high > np.iinfo(np.int64).max else np.int64
    calm_low, calm_high = max(low, -1000), min(high, 1000)
    if calm_low > calm_high:
        calm_low, calm_high = low, high
    match family:
        case "zeros" | "ones":
            return np.full(n, min(max(int(family == "ones"), low), high), dtype=dtype)
        case "constant" | "small":
            return np.full(n, int(rng.integers(calm_low, calm_high, endpoint=True)), dtype=dtype)
        case "alternating" | "limits" | "near-overflow":
            return np.where(np.arange(n) % 2 == 0, dtype(high), dtype(low))
        case "negated" | "denormals":
            return np.full(n, low, dtype=dtype)  # everything on one bound: one bin, one row, one address
        case "one-hot":
            values = np.full(n, low, dtype=dtype)
            values[-1:] = high
            return values
        case "repeated":
            return rng.choice(rng.integers(low, high, FEW, dtype=dtype, endpoint=True), n)
    values = rng.integers(low, high, n, dtype=dtype, endpoint=True)
    if family in ("sorted", "reverse"):
        values.sort()
        values = values[::-1] if family == "reverse" else values
    return values


def names(*, floating: bool, finite: bool) -> tuple[str, ...]:
    """The families to test a contract with: floating ones when it has a floating input, non-finite ones when
    some input may hold inf and NaN."""
    if not floating:
        return INTEGER
    return tuple(FLOAT) + (() if finite else tuple(NON_FINITE))
