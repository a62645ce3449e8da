"""Values where code that is right nearly everywhere is wrong, several kinds to an array.

*Edges*: whole numbers at and around every size and every scalar of the case, with both signs, and small ones that some
multiple of 2^8, 2^16 or 2^32 was added to, which are the same again once they are cut; floating values equal to the
scalars, and both zeros; scalars at 0, at -0.0, and where half of the indices added to them pass a power of two.
*Crowds*: NaN of every sign and payload, alone and close together. *Structures*: integers that change at every element,
never, or after some hundreds. Such arrays are made as a whole: no formula of one element says them.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from fsr.hardware.dtypes import float_limits, is_float

Array = np.ndarray[Any, Any]

ZERO, MINUS = "edges zero", "edges minus"  # scalars at 0; floating ones at -0.0
WIDE = tuple(f"edges wide {n}" for n in range(5))  # scalars at wide numbers, one after another
EDGES = (ZERO, MINUS, *WIDE)
CROWD = "nan crowd"
PERIOD, CONSTANT, RUNS = STRUCTURES = ("period two", "constant high", "long runs")
FAMILIES = frozenset((*EDGES, CROWD, *STRUCTURES))
CUTS = (8, 16, 32)  # bits that an index is cut to
SEGMENT = 64  # elements in which NaNs stand in one manner
RUN = (257, 1200)  # lengths that a byte does not hold
LETTER = (33, 127)  # above what text is separated by


# ---------------------------------------------------------------- edges


def edge_integers(shape: tuple[int, ...], dtype: np.dtype[Any], family: str, known: Sequence[int],
                  limits: tuple[tuple[int, int], tuple[int, int]], rng: np.random.Generator) -> Array:  # fmt: skip
    """Half edges, half ordinary values; each edge once where there is room. ``known``: sizes and scalars. ``limits``:
    what may be passed, and what ordinary values lie in."""
    (low, high), (least, most) = limits
    edges = [0, 1, -1, low, high] if high - low < 1 << 31 else [0, 1, -1]
    edges += [v for n in known for v in (n - 1, n, n + 1, -n)]
    if family != ZERO:  # apart from it, where the original's own arithmetic may overflow on them
        small = [int(rng.integers(max(n, 1))) for n in known if n < 1 << 31 for _ in range(2)] or [1]
        edges += [int(rng.choice(small)) + sign * (1 << bits) for bits in CUTS for sign in (1, 1, -1)]
    edges = [v for v in dict.fromkeys(edges) if low <= v <= high] or [low]
    count = math.prod(shape)
    values = rng.integers(least, most, count, dtype=dtype, endpoint=True)
    valid = [n for n in known if max(least, 0) < n <= most]
    for n in valid[:4]:  # ordinary ones that are indices for some size
        places = rng.integers(0, 4, count) == 0
        values[places] = rng.integers(max(least, 0), n, int(places.sum()), dtype=dtype)
    table = np.array(edges, dtype)
    at = rng.permutation(count)[: max(count // 2, min(count, 1))]
    turns = np.concatenate([rng.permutation(len(edges)), rng.integers(0, len(edges), max(len(at) - len(edges), 0))])
    values[at] = table[turns[: len(at)]]
    return values.reshape(shape)


def edge_floats(values: Array, scalars: Sequence[float], low: float, high: float, rng: np.random.Generator) -> Array:
    """Values of which every third becomes a scalar's, its negative, what is next to it, or a zero of either sign."""
    dtype = values.dtype
    steps = [abs(s) * float_limits(dtype).eps for s in scalars]
    table = [0.0, -0.0, *(v for s, e in zip(scalars, steps, strict=True) for v in (s, -s, s + e, s - e))]
    table = [v for v in table if low <= v <= high]
    if not table or not values.size:
        return values
    changed = values.reshape(-1).copy()
    places = rng.integers(0, 3, changed.size) == 0
    changed[places] = np.array(table, dtype)[rng.integers(0, len(table), int(places.sum()))]
    return changed.reshape(values.shape)


def wide_numbers(low: int, high: int, size: int) -> list[int]:
    """Numbers that 32 bits, or a float64, do not hold any more once indices up to ``size`` are added, as far as limits
    allow them; none within those of small numbers."""
    half, sign = size // 2, 1 << 31
    found = (sign - half, sign, 2 * sign - half, (1 << 53) - half, (1 << 64) - half, sign - 1, sign - size, 1 << 63)
    return [n for n in dict.fromkeys(found) if max(low, 1 << 30) <= n <= high][: len(WIDE)]


def edge_scalar(
    name: str, family: str, limits: tuple[float, float], size: int, *, floating: bool
) -> float | int | None:
    """A scalar's value in a family of edges; None for one drawn as usual."""
    low, high = limits
    if family == ZERO and low <= 0 <= high:
        return 0.0 if floating else 0
    if floating:
        return -0.0 if family == MINUS and low < 0 <= high else None
    wide = wide_numbers(int(low), int(high), size) if family in WIDE else []
    return wide[(WIDE.index(family) + zlib.crc32(name.encode())) % len(wide)] if wide else None


# ---------------------------------------------------------------- crowds


def nan_patterns(dtype: np.dtype[Any]) -> Array:
    """The bits of NaNs of both signs: the usual one, signalling ones and those of all ones; as unsigned integers."""
    width, mantissa = 8 * dtype.itemsize, round(-math.log2(float_limits(dtype).eps))
    sign, quiet, ones = 1 << (width - 1), 1 << (mantissa - 1), (1 << mantissa) - 1
    exponent = (sign - 1) ^ ones
    found = [s | exponent | payload for payload in (quiet, 1, ones) for s in (0, sign)]
    return np.array(found, np.dtype(f"u{dtype.itemsize}"))


def crowded(values: Array, low: float, high: float, rng: np.random.Generator) -> Array:
    """The values with NaNs in their places: from each few to the next in another manner (none, one, two side by side,
    a run, every other, half, and among infinities where limits have none)."""
    flat = values.reshape(-1).copy()
    none, infinite = np.zeros(flat.size, bool), np.zeros(flat.size, bool)
    for start in range(0, flat.size, SEGMENT):
        part = none[start : start + SEGMENT]
        place, manner = int(rng.integers(len(part))), int(rng.integers(7))
        half = rng.integers(0, 2, len(part)) == 1
        if manner in (1, 2, 3):
            part[place : place + (0, 1, 2, 17)[manner]] = True
        elif manner == 4:
            part[place % 2 :: 2] = True
        elif manner >= 5:
            part |= half
            infinite[start : start + SEGMENT] = (rng.integers(0, 3, len(part)) == 0) & ~half & (manner == 6)
    signs = [end for end in (low, high) if math.isinf(end)]
    if signs:
        flat[infinite] = rng.choice(signs, int(infinite.sum())).astype(flat.dtype)
    patterns = nan_patterns(flat.dtype)
    flat.view(patterns.dtype)[none] = patterns[rng.integers(0, len(patterns), int(none.sum()))]
    return flat.reshape(values.shape)


def has_patterns(dtype: np.dtype[Any]) -> bool:
    """Whether a type has NaNs of several payloads, and infinities, as IEEE's do."""
    return is_float(dtype) and dtype.itemsize > 1


# ---------------------------------------------------------------- structures


def structured(shape: tuple[int, ...], dtype: np.dtype[Any], family: str, limits: tuple[int, int],
               rng: np.random.Generator, *, leads: bool) -> Array:  # fmt: skip
    """Integers of a structure, along the last axis. Those that only go with it (``leads`` False: lengths, say) stand
    mostly at their upper limit, the first and the last always."""
    low, high = limits
    count, row = math.prod(shape), shape[-1] if shape else 1
    if not leads:
        values = rng.integers(low, high, count, dtype=dtype, endpoint=True)
        chosen = rng.integers(0, 4, count)
        values[chosen < 2], values[chosen == 2] = high, low
        values[:1] = values[-1:] = high
        return values.reshape(shape)
    letter = min(max(int(rng.integers(*LETTER)), low), high)
    if family == PERIOD:
        values = np.array([low, high], dtype)[(np.arange(count) % max(row, 1) + int(rng.integers(2))) % 2]
    elif family == CONSTANT:  # beside whole rows of others
        rows = np.array([high, letter, high, low], dtype)[np.arange(max(count // max(row, 1), 1)) % 4]
        values = np.repeat(rows, max(row, 1))[:count]
    else:
        lengths = rng.integers(*RUN, count // RUN[0] + 1)
        own = rng.integers(low, high, len(lengths), dtype=dtype, endpoint=True)
        turns = (np.arange(len(lengths)) + int(rng.integers(4))) % 4
        heads = np.where(turns == 3, own, np.array([low, letter, high, low], dtype)[turns])
        values = np.repeat(heads, lengths)[:count]
    return np.ascontiguousarray(values.reshape(shape))
