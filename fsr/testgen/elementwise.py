"""What holds of each element of two answers, in float64, slice by slice (:mod:`fsr.testgen.chunks`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fsr.hardware.dtypes import doubled
from fsr.testgen.chunks import in_chunks
from fsr.testgen.values import Array


def broadcast(values: Array, like: Array) -> Array:
    """Values in float64, of another's shape."""
    return np.broadcast_to(np.asarray(values, dtype=np.float64), like.shape)


def told(like: Array, tell: Callable[[slice], Array]) -> Array:
    """What holds of each element, slice by slice."""
    found = np.empty(like.shape, bool)
    flat = found.reshape(-1)

    def one(part: slice) -> None:
        flat[part] = tell(part)

    in_chunks(like.size, one)
    return found


def holds(count: int, tell: Callable[[slice], Array]) -> bool:
    """Whether something holds of every element; others are not asked once it does not of one."""
    wrong = list[bool]()

    def one(part: slice) -> None:
        if not wrong and not tell(part).all():
            wrong.append(True)

    in_chunks(count, one)
    return not wrong


def distances(got: Array, want: Array) -> Array:
    """How far elements are apart, in float64 and one row; nought for equal ones and for two that are no numbers."""
    own, other, distance = got.reshape(-1), want.reshape(-1), np.empty(got.size)

    def measure(part: slice) -> None:
        a, b = doubled(own[part]), doubled(other[part])
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.abs(a - b)
        apart[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
        distance[part] = apart

    in_chunks(got.size, measure)
    return distance


def same_wildness(got: Array, want: Array) -> Array:
    """Where both are finite, both NaN, or both the same infinity."""
    own, other = got.reshape(-1), want.reshape(-1)

    def alike(part: slice) -> Array:
        a, b = doubled(own[part]), doubled(other[part])
        return np.asarray((np.isfinite(a) & np.isfinite(b)) | (np.isnan(a) & np.isnan(b)) | (a == b))

    return told(got, alike)


def agree(got: Array, truth: Array, bound: Array) -> Array:
    """Where an element is no farther from the truth than its bound, equal to it, or no number as it is none."""
    own, right, most = got.reshape(-1), truth.reshape(-1), broadcast(bound, got).reshape(-1)

    def agrees(part: slice) -> Array:
        a, b = doubled(own[part]), doubled(right[part])
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray((np.abs(a - b) <= most[part]) | (a == b) | (np.isnan(a) & np.isnan(b)))

    return told(got, agrees)
