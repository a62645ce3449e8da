"""Values where code that is right nearly everywhere is wrong, several kinds to an array.

*Edges*: whole numbers at and around every size and every scalar of the case, with both signs, and small ones that some
multiple of 2^8, 2^16 or 2^32 was added to, which are the same again once they are cut; floating values equal to the
scalars, and both zeros, and where a scalar's multiples, or equal parts of what lies between two scalars, begin; scalars
at 0, at -0.0, at next to nothing, and where half of the indices added to them pass a power of two. *Halves*: what is
rounded, at and next to the middle between two whole numbers. *Crowds*: NaN of every sign and payload, alone and close
together. *Structures*: integers that change at every element, never, or after some hundreds. *Twins*: of equals the
first has to win, or the last, wherever threads, packs and chains of a loop part them. *Levels*: sums that are large
beside what tells them apart. Such arrays are made as a whole: no formula of one element says them.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from fsr.hardware.dtypes import FloatLimits, float_limits, is_float

Array = np.ndarray[Any, Any]

ZERO, MINUS = "edges zero", "edges minus"  # scalars at 0; floating ones at -0.0
WIDE = tuple(f"edges wide {n}" for n in range(5))  # scalars at wide numbers, one after another
TINY = "edges tiny"  # floating scalars just above the smallest normal number
EDGES = (ZERO, MINUS, TINY, *WIDE)
HALVES = "halves"
CROWD, CROWD_ZERO = "nan crowd", "nan crowd zero"  # beside scalars as they come, and at 0
FIRST_NAN, LAST_NAN = "nan first", "nan last"  # at that place alone
ALL_NAN = "nan all"  # nothing else: what a maximum begins with is what is left
CROWDS = (CROWD, CROWD_ZERO, FIRST_NAN, LAST_NAN, ALL_NAN)
RUNS, LONG, LOWEST, PERIOD, CONSTANT = STRUCTURES = (
    "long runs", "long ordinary", "constant lowest", "period two", "constant high"
)  # fmt: skip
TWINS = "twins"  # the largest of a line, or the least, at places a power of two apart
BRINK, BRINK_APART = "brink", "brink apart"  # whole arrays a step or none from an end: all of one, or each of its own
CLIFF, CLIFF_APART = "cliff", "cliff apart"  # lines at the upper end up to some place, and next to nothing behind it
TOGETHER = (BRINK, CLIFF)  # where all arrays do the same
LEVELS = (BRINK, BRINK_APART, CLIFF, CLIFF_APART)
FAMILIES = frozenset((*EDGES, HALVES, *CROWDS, *STRUCTURES, TWINS, *LEVELS))
OVERFLOWING = frozenset((*EDGES, LOWEST))  # integers with which an original's own arithmetic may overflow
PARTS = 8  # of a scalar, or of what lies between two, at whose beginnings values stand
ABOVE = 48.0  # a tiny number is so many times the smallest normal one
MOST_HALVES = 9  # whole numbers up to which middles between two are taken
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


def edge_floats(values: Array, scalars: Sequence[float], sizes: Sequence[int], limits: tuple[float, float],
                rng: np.random.Generator) -> Array:  # fmt: skip
    """Values of which every third becomes a scalar's, its negative, what is next to it, or a zero of either sign; where
    there are scalars, every sixth where a part of them begins, of as many parts as a size says."""
    steps = [abs(s) * float_limits(values.dtype).eps for s in scalars]
    table = [0.0, -0.0, *(v for s, e in zip(scalars, steps, strict=True) for v in (s, -s, s + e, s - e))]
    changed = _replaced(values, table, 3, limits, rng)
    return _replaced(changed, _beginnings(scalars, sizes, rng), 6, limits, rng)


def _replaced(
    values: Array, table: Sequence[float], every: int, limits: tuple[float, float], rng: np.random.Generator
) -> Array:
    """The values with one of so many replaced by a number of the table that the limits allow."""
    allowed = [v for v in table if limits[0] <= v <= limits[1]]
    if not allowed or not values.size:
        return values
    changed = values.reshape(-1).copy()
    places = rng.integers(0, every, changed.size) == 0
    changed[places] = np.array(allowed, values.dtype)[rng.integers(0, len(allowed), int(places.sum()))]
    return changed.reshape(values.shape)


def _beginnings(scalars: Sequence[float], sizes: Sequence[int], rng: np.random.Generator) -> list[float]:
    """Multiples and odd halves of a scalar, and where equal parts begin of what lies between two scalars."""
    found = [s * k / 2 for s in scalars for k in range(-PARTS, PARTS + 1) if k]
    for low, high in itertools.combinations(sorted(set(scalars)), 2):
        for parts in [n for n in sizes if n > 0]:
            found += [low + int(k) * (high - low) / parts for k in rng.integers(0, parts + 1, PARTS)]
    return found


def halves(values: Array, limits: tuple[float, float], rng: np.random.Generator) -> Array:
    """Values of which a half becomes the middle between two whole numbers or what is next to it, and a quarter 1, which
    leaves it as it is where it is a factor."""
    middles = np.arange(MOST_HALVES) + 0.5
    both = np.concatenate([middles, -middles]).astype(values.dtype).astype(np.float64)
    power = 2.0 ** np.floor(np.log2(np.abs(both)))
    step = np.copysign(power, both) * float_limits(values.dtype).eps
    beside = [*both, *(both + step), *(both - np.where(np.abs(both) == power, 0.5, 1.0) * step)]
    changed = _replaced(values, beside, 2, limits, rng)
    return _replaced(changed, [1.0], 4, limits, rng)


def wide_numbers(low: int, high: int, size: int) -> list[int]:
    """Numbers that 32 bits, or a float64, do not hold any more once indices up to ``size`` are added, as far as limits
    allow them; none within those of small numbers."""
    half, sign = size // 2, 1 << 31
    found = (sign - half, sign, 2 * sign - half, (1 << 53) - half, (1 << 64) - half, sign - 1, sign - size, 1 << 63)
    return [n for n in dict.fromkeys(found) if max(low, 1 << 30) <= n <= high][: len(WIDE)]


def edge_scalar(
    name: str, family: str, limits: tuple[float, float], size: int, floating: FloatLimits | None
) -> float | int | None:
    """A scalar's value in a family of edges, or 0 in a crowd's; None for one drawn as usual. ``floating``: of its
    type."""
    low, high = limits
    if family in (ZERO, CROWD_ZERO) and low <= 0 <= high:
        return 0.0 if floating else 0
    if floating and family == TINY:
        allowed = [n for n in (ABOVE * floating.tiny, -ABOVE * floating.tiny) if low <= n <= high]
        return allowed[zlib.crc32(name.encode()) % len(allowed)] if allowed else None
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


def crowded(values: Array, family: str, low: float, high: float, rng: np.random.Generator) -> Array:
    """The values with NaNs in their places: one at an end, or from each few to the next in another manner (none, one,
    two side by side, a run, every other, half, all, and among infinities where limits have none), or everywhere."""
    flat = values.reshape(-1).copy()
    none, infinite = np.zeros(flat.size, bool), np.zeros(flat.size, bool)
    if family in (FIRST_NAN, LAST_NAN, ALL_NAN):
        none[{FIRST_NAN: slice(1), LAST_NAN: slice(-1, None), ALL_NAN: slice(None)}[family]] = True
    for start in range(0, flat.size, SEGMENT) if family in (CROWD, CROWD_ZERO) else ():
        part = none[start : start + SEGMENT]
        place, manner = int(rng.integers(len(part))), int(rng.integers(8))
        half = rng.integers(0, 2, len(part)) == 1
        if manner in (1, 2, 3):
            part[place : place + (0, 1, 2, 17)[manner]] = True
        elif manner == 4:
            part[place % 2 :: 2] = True
        elif manner == 7:
            part[:] = True
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
    elif family in (CONSTANT, LOWEST):  # beside whole rows of others; nowhere above what a maximum starts from
        four = (low, low, high, low) if family == LOWEST else (high, letter, high, low)
        rows = np.array(four, dtype)[np.arange(max(count // max(row, 1), 1)) % 4]
        values = np.repeat(rows, max(row, 1))[:count]
    elif family == LONG:
        values = rng.integers(low, high, count, dtype=dtype, endpoint=True)
    else:
        lengths = rng.integers(*RUN, count // RUN[0] + 1)
        own = rng.integers(low, high, len(lengths), dtype=dtype, endpoint=True)
        turns = (np.arange(len(lengths)) + int(rng.integers(4))) % 4
        heads = np.where(turns == 3, own, np.array([low, letter, high, low], dtype)[turns])
        values = np.repeat(heads, lengths)[:count]
    return np.ascontiguousarray(values.reshape(shape))


# ---------------------------------------------------------------- twins and levels


def twins(values: Array, rng: np.random.Generator) -> Array:
    """The values with the largest of each line (the least, in every other line) at one place and every power of two
    behind it, or before it, and nowhere else."""
    row = values.shape[-1] if values.ndim else 1
    lines = values.reshape(-1, row).copy() if values.size else values
    first = int(rng.integers(4))
    for number, line in enumerate(lines if row > 1 else (), first):
        top, rest = (line.max(), line.min()) if number % 2 else (line.min(), line.max())
        line[line == top] = rest
        back = rng.integers(4) == 0
        place = int(rng.integers(row)) if number % 3 else int(rng.integers(min(row, 1 << 12)))
        apart = 1 << np.arange(row.bit_length())
        places = place - apart if back else place + apart
        line[[place, *places[(places >= 0) & (places < row)]]] = top
    made: Array = lines.reshape(values.shape)
    return made


def level(
    values: Array, family: str, limits: tuple[float, float], rng: np.random.Generator, *, upper: bool, share: float
) -> Array:
    """Values at one end of their limits, or a step within; of a cliff, at the upper end or near nought or the lower
    one, by the part of the line. ``upper``: which end, or which comes first; ``share``: of a line, up to the cliff."""
    low, high = limits
    step = 1.0 if values.dtype.kind in "iu" else (high - low) * 2.0**-10
    noise = rng.integers(0, 2, values.shape) * step
    if family in (BRINK, BRINK_APART):
        return np.asarray(np.clip(high - noise if upper else low + noise, low, high)).astype(values.dtype)
    row = values.shape[-1] if values.ndim else 1
    bright, span = (np.arange(row) < share * row) == upper, (high - low) / 16.0
    least = max(low, 0.0)
    made = np.where(bright, high - rng.random(values.shape) * span, least + rng.integers(0, 4, values.shape) * step)
    made = np.rint(made) if values.dtype.kind in "iu" else made
    return np.asarray(np.clip(made, low, high)).astype(values.dtype)
