"""Lines of numbers that are made as a whole: without repetition, in order or nearly so."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fsr.testgen.draws import BLOCK, word

Array = np.ndarray[Any, Any]

SHUFFLED = ("normal", "uniform")


def arranged(count: int, span: int, rng: np.random.Generator, family: str) -> Array:
    """Distinct integers, shuffled, or in most families nearly in order, which shortcuts take for in order: as they are,
    backwards, one neighbour on, or with neighbours exchanged here and there but at the ends of short stretches."""
    order = np.arange(count, dtype=np.int64)
    kept = word(int(rng.integers(2**62)), 1) % 5
    if family in SHUFFLED or kept == 0 or count < 4:
        return distinct(count, span, rng)
    if kept == 1:
        return order if family != "reverse" else order[::-1].copy()
    if kept == 2:
        return np.roll(order, 1)
    inner = order[1 : count - 2]
    places = inner[(inner % 4 == 1) & (rng.integers(0, 2, len(inner)) > 0)]
    order[places], order[places + 1] = places + 1, places
    return order


def distinct(count: int, span: int, rng: np.random.Generator) -> Array:
    """``count`` distinct integers of [0, span), shuffled, in linear time: steps of a stride coprime to the span."""
    if span <= BLOCK:
        return rng.permutation(span)[:count]
    stride = int(rng.integers(span // 3, span)) | 1
    while math.gcd(stride, span) != 1:
        stride += 2
    start = int(rng.integers(span))
    if span < 2**31:
        return (start + np.arange(count, dtype=np.int64) * stride % span) % span
    return (start + np.arange(count, dtype=np.int64)) % span  # products would overflow: distinct, unshuffled


def stretched(ordered: Array, count: int) -> Array:
    """A sorted block made ``count`` long by repeating each element."""
    if len(ordered) >= count:
        return ordered
    return np.repeat(ordered, -(-count // len(ordered)))[:count]
