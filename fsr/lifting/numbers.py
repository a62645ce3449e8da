"""Whole numbers that a kernel makes by floating-point arithmetic of sizes alone: rows and columns of a triangle by
``floor((sqrt(8.0 * k + 1.0) - 1.0) / 2.0)``, ``(int)ceilf((float)n / tile)``. No data is in them, so that what they
point at is as known as where whole numbers do."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from fsr.lifting.graph import LISTS, Graph

_MOST = 1 << 24  # beyond it not every whole number is one in single precision
_CASTS = ("int32", "int64", "zext_int64", "float32", "float64")
# What IEEE 754 rounds in one way alone; powers and logarithms are another bit elsewhere.
_OF_ONE: dict[str, Callable[..., np.floating]] = {
    "neg": np.negative, "fabs": np.abs, "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "rint": np.rint, "inv": lambda a: a.dtype.type(1) / a,
}  # fmt: skip


def whole_number(graph: Graph, e: int) -> int | None:
    """What a floating value is that is converted to an integer, cut off towards nought. None where data is in it, where
    single and double precision do not agree on it, or it is no such number."""
    if graph.terms[e][0] in ("int", "const"):
        return None  # told without
    found = set[int]()
    for precision in (np.float32, np.float64):
        with np.errstate(all="ignore"):
            value = _valued(graph, e, precision)
        if value is None or not abs(value) < _MOST:
            return None
        found.add(math.trunc(value))
    return found.pop() if len(found) == 1 else None


def _valued(graph: Graph, e: int, precision: type) -> float | None:
    known: dict[int, np.floating | None] = {}
    for k in graph.upward(e, known):
        below = [known[p] for p in graph.operands(k)]
        parts = [v for v in below if v is not None]
        known[k] = _made(graph, k, parts, precision) if len(parts) == len(below) else None
    value = known[e]
    return None if value is None or not np.isfinite(value) else float(value)


def _made(graph: Graph, k: int, parts: Sequence[np.floating], precision: type) -> np.floating | None:
    x = graph.terms[k]
    if x[0] in ("int", "const"):
        return precision(x[1]) if abs(x[1]) < _MOST else None
    if x[0] in LISTS and parts and x[0] in ("sum", "prod", "max", "min"):
        fold = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[x[0]]
        return fold.reduce(np.array(parts, precision))  # type: ignore[no-any-return]
    if x[0] == "div":
        return parts[0] / parts[1]
    if x[0] in _OF_ONE:
        return _OF_ONE[x[0]](parts[0])
    if x[0].startswith(_CASTS):
        whole = "int" in x[0]
        return precision(np.trunc(parts[0])) if whole and np.isfinite(parts[0]) else parts[0]
    return None
