"""Offsets of rows in what lies row after row (CSR row pointers, segments): from 0 up to how many elements there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fsr.records import Case
from fsr.testgen import families
from fsr.testgen.draws import BLOCK

Array = np.ndarray[Any, Any]

SPREAD = 0.25  # of rows of about one length: the deviation, as a part of their mean
SHORTEST = 0.05  # of them, as a part of the mean
LONG = 1000.0  # times as long as all other rows together: one very long row
TAIL = 1.2  # exponent of skewed lengths


def offsets(shape: tuple[int, ...], dtype: np.dtype[Any], total: int, case: Case, rng: np.random.Generator) -> Array:
    """Each line of the last extent ascends from 0 to ``total``; a line of one element, no rows, is 0. How long rows are
    depends on the case: about equal in timed ones; in others also empty ones, one very long, equal ones, skewed, all
    elements in the first row or in the last."""
    found = np.zeros(shape, dtype)
    rows = shape[-1] - 1 if shape else 0
    if rows <= 0:
        return found
    lengths = _lengths(case, rng)
    for line in found.reshape(-1, rows + 1):
        sums = np.cumsum(lengths(rows, rng))
        line[1:] = np.minimum(np.rint(sums * (total / max(float(sums[-1]), 1e-300))), total).astype(dtype)
        line[-1] = total
    return found


Lengths = Callable[[int, np.random.Generator], Array]  # of so many rows, in any unit


def _lengths(case: Case, rng: np.random.Generator) -> Lengths:
    if case.kind.timed:
        return _about_equal
    if case.family.startswith(families.ENDS):
        return _all_in_one
    return _OF_FAMILY.get(case.family) or _ANY[int(rng.integers(len(_ANY)))]


def _about_equal(rows: int, rng: np.random.Generator) -> Array:
    """Long lines repeat a block."""
    return np.resize(np.maximum(rng.normal(1.0, SPREAD, min(rows, BLOCK)), SHORTEST), rows)


def _equal(rows: int, rng: np.random.Generator) -> Array:
    return np.ones(rows)


def _some_empty(rows: int, rng: np.random.Generator) -> Array:
    """Half of the rows, or all but a few; the first and the last among them."""
    found = _about_equal(rows, rng) * np.resize(rng.random(min(rows, BLOCK)) < rng.choice([0.5, 0.9]), rows)
    found[[0, -1]] = 0.0
    return found


def _one_long(rows: int, rng: np.random.Generator) -> Array:
    found = np.ones(rows)
    found[rng.integers(rows)] = LONG * rows
    return found


def _skewed(rows: int, rng: np.random.Generator) -> Array:
    return np.resize(rng.pareto(TAIL, min(rows, BLOCK)) + 0.01, rows)


def _all_in_one(rows: int, rng: np.random.Generator) -> Array:
    found = np.zeros(rows)
    found[-int(rng.integers(2))] = 1.0
    return found


_ANY = (_about_equal, _equal, _some_empty, _one_long, _skewed)
_OF_FAMILY: dict[str, Lengths] = {
    "uniform": _about_equal, "ones": _equal, "constant": _equal, "uniform rows": _equal, "zeros": _some_empty,
    "signed zeros": _some_empty, "repeated": _some_empty, "one-hot": _one_long, families.SPIKE: _one_long,
    "outliers": _one_long, "limits": _all_in_one, "alternating": _all_in_one, "wide": _skewed, "mixed": _skewed,
    "exponents": _skewed,
}  # fmt: skip
