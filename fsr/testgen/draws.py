"""How the elements of an array are drawn: a formula of the element's number, so that any device can draw any part.

Random words come from SplitMix64 with the element's number as its counter (Steele, Lea, Flood, "Fast splittable
pseudorandom number generators", OOPSLA 2014). From there on there is integer arithmetic, single multiplications and
additions in float64, and correctly rounded conversions, so that NumPy here and fsr's own kernel on a GPU
(fsr/backends/cuda/testing.cu) give the same bits; a test holds them to that.

Random parts repeat after 2^20 elements, rotated and with their signs flipped: arrays of any length at memcpy speed.
"""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fsr.hardware.dtypes import is_float, numpy_dtype

Array = np.ndarray[Any, Any]

BLOCK_BITS = 20
BLOCK = 1 << BLOCK_BITS
TABLE, PLANTED = 8, 4  # entries at most
_GOLDEN, _SECOND, _FLIP = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7
_MASK = 2**64 - 1
_TYPES = {"float16": 0, "bfloat16": 1, "float32": 2, "float64": 3}
NORMAL_UNIT = 2.0**-15  # the sum of four 16-bit words, centred: its deviation is 37837 = 1.1547 * 2^15


class Kind(enum.IntEnum):
    """What an element is before its row's offset: the names of the formulas."""

    NORMAL = 0  # b + a * (four uniform words, centred; deviation 1.1547)
    UNIFORM = 1  # b + a * [0, 1)
    EXPONENTS = 2  # either sign, a significand of 52 random bits, an exponent of a to a + b - 1
    CHOICE = 3  # one of the table, at random
    CYCLE = 4  # the table over and over
    RAMP = 5  # from a to b over the whole array, never turning back
    PAIRS = 6  # as NORMAL; the second half is minus the first times 1 + c
    GRID = 7  # b + a * (a whole number of -c to c)
    INTEGER = 8  # low + [0, span); a span of 0 is all 64 bits
    STEPS = 9  # from low to low + span - 1 over the whole array, or down where a is negative
    BITS = 10  # the table's one entry as it is, in the element's width


@dataclass(frozen=True, slots=True)
class Draw:
    """The formula of ``count`` elements. ``row``: elements a row; each row is offset by an entry of the table of its
    own choosing (0: none). ``planted``: elements that are something else. ``bounds``: floating values are bent to lie
    within, ``finite`` replaces what is no number by 1. Integers are 64-bit words, cut to the element's width."""

    kind: Kind
    key: int
    count: int
    a: float = 0.0
    b: float = 0.0
    c: float = 0.0
    low: int = 0
    span: int = 0
    row: int = 0
    table: tuple[float | int, ...] = ()
    planted: tuple[tuple[int, float | int], ...] = ()
    bounds: tuple[float, float] = (-np.inf, np.inf)
    finite: bool = False
    narrow: str = ""  # drawn as this floating type and stored as float64

    def values(self, dtype: np.dtype[Any]) -> Array:
        """All elements, one-dimensional."""
        if self.narrow:
            return replace(self, narrow="").values(numpy_dtype(self.narrow)).astype(np.float64)
        if self.kind is Kind.BITS:
            unsigned: Any = np.dtype(f"u{dtype.itemsize}")
            return np.full(self.count, int(self.table[0]) & (2 ** (8 * dtype.itemsize) - 1), unsigned).view(dtype)
        plain = self.row == 0 and self.kind not in (Kind.RAMP, Kind.STEPS, Kind.PAIRS, Kind.CYCLE)
        if self.count <= BLOCK or not plain:
            return self._part(0, self.count, dtype)
        return self._repeated(dtype)

    def at(self, places: Array, dtype: np.dtype[Any]) -> Array:
        """The elements at these places (uint64), one-dimensional; as in :meth:`values`."""
        if self.narrow:
            return replace(self, narrow="").at(places, numpy_dtype(self.narrow)).astype(np.float64)
        if self.kind is Kind.BITS:
            return replace(self, count=len(places)).values(dtype)
        result = np.empty(len(places), dtype)
        for at in range(0, len(places), 1 << 16):
            i = places[at : at + (1 << 16)]
            values = self._floats(i) if is_float(dtype) else self._integers(i)
            result[at : at + len(i)] = self._cast(values, dtype)
        return result

    def parameters(self, dtype: np.dtype[Any]) -> bytes:
        """What the kernel on a device takes: struct Draw of testing.cu."""
        dtype = numpy_dtype(self.narrow) if self.narrow else dtype
        floating = is_float(dtype)
        kind = _TYPES[dtype.name] if floating else 4
        words = (self.key, self.count, self.row, int(self.kind), len(self.table), len(self.planted), kind,
                 dtype.itemsize, self.low & _MASK, self.span, int(self.finite), int(bool(self.narrow)))  # fmt: skip
        table = [_word(v, floating) for v in self.table] + [0] * (TABLE - len(self.table))
        places = [p for p, _ in self.planted] + [0] * (PLANTED - len(self.planted))
        planted = [_word(v, floating) for _, v in self.planted] + [0] * (PLANTED - len(self.planted))
        if self.kind is Kind.BITS:
            table[0] = int(self.table[0])
        return struct.pack(
            f"<{len(words)}Q5d{TABLE + 2 * PLANTED}Q",
            *words, self.a, self.b, self.c, *self.bounds, *table, *places, *planted,
        )  # fmt: skip

    # ------------------------------------------------------------ parts

    def _repeated(self, dtype: np.dtype[Any]) -> Array:
        base = Draw(self.kind, self.key, BLOCK, self.a, self.b, self.c, self.low, self.span, 0, self.table, (),
                    self.bounds, self.finite)._part(0, BLOCK, dtype)  # fmt: skip
        doubled, result = np.concatenate([base, base]), np.empty(self.count, dtype)
        for number, start in enumerate(range(0, self.count, BLOCK)):
            part = result[start : start + BLOCK]
            word = _turn(self.key, number)
            part[...] = doubled[word & (BLOCK - 1) :][: len(part)]
            if word >> 63 and self._flips(dtype):
                np.negative(part, out=part)
        for place, value in self.planted:
            result[place] = self._cast(self._bent(np.array([value])) if is_float(dtype) else np.array([value]), dtype)[
                0
            ]
        return result

    def _flips(self, dtype: np.dtype[Any]) -> bool:
        symmetric = (self.kind is Kind.NORMAL and self.b == 0) or self.kind is Kind.EXPONENTS
        return symmetric and is_float(dtype) and self.bounds == (-np.inf, np.inf)

    def _part(self, start: int, stop: int, dtype: np.dtype[Any]) -> Array:
        result = np.empty(stop - start, dtype)
        for at in range(start, stop, 1 << 16):  # what stays in a cache
            i = np.arange(at, min(at + (1 << 16), stop), dtype=np.uint64)
            values = self._floats(i) if is_float(dtype) else self._integers(i)
            result[at - start : at - start + len(i)] = self._cast(values, dtype)
        return result

    def _cast(self, values: Array, dtype: np.dtype[Any]) -> Array:
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            if is_float(dtype) and dtype.itemsize < 4:
                return values.astype(np.float32).astype(dtype)
            return values.astype(dtype) if is_float(dtype) else values.astype(np.uint64).astype(dtype)

    def _sources(self, i: Array) -> tuple[Array, Array]:
        """The number whose random words an element uses, and whether its sign is flipped."""
        if self.count <= BLOCK:
            return i, np.zeros(len(i), bool)
        words = mixed(self.key ^ _FLIP, i >> np.uint64(BLOCK_BITS))
        return (i + words) & np.uint64(BLOCK - 1), words >> np.uint64(63) == 1

    def _floats(self, i: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            source, flipped = self._sources(i)
            values = self._base(i, source)
            if self._flips(np.dtype(np.float64)):
                values = np.where(flipped, -values, values)
            if self.row and self.kind is not Kind.CHOICE:
                rows = mixed(self.key ^ _SECOND, i // np.uint64(self.row)) % np.uint64(len(self.table))
                values = np.asarray(self.table, np.float64)[rows] + values
            for place, value in self.planted:
                values[i == place] = value
            return self._bent(values)

    def _base(self, i: Array, source: Array) -> Array:
        words = mixed(self.key, source)
        match self.kind:
            case Kind.NORMAL:
                return self.b + self.a * _centred(words)
            case Kind.PAIRS:
                half = np.uint64(self.count // 2)
                second = (i >= half) & (i < half + half)
                values = self.a * _centred(mixed(self.key, np.where(second, i - half, i)))
                return np.where(second, -(values * (1.0 + self.c)), values)
            case Kind.UNIFORM:
                return self.b + self.a * _unit(words)
            case Kind.EXPONENTS:
                exponents = mixed(self.key ^ _SECOND, source) % np.uint64(int(self.b)) + np.uint64(int(self.a) + 1023)
                sign, fraction = words & np.uint64(1 << 63), words & np.uint64((1 << 52) - 1)
                return np.asarray(sign | exponents << np.uint64(52) | fraction).view(np.float64)
            case Kind.GRID:
                whole = (words % np.uint64(2 * int(self.c) + 1)).astype(np.int64) - int(self.c)
                return self.b + self.a * whole.astype(np.float64)
            case Kind.RAMP:
                share = (i.astype(np.float64) + _unit(words)) / float(self.count)
                return np.asarray(self.a + (self.b - self.a) * share)
            case Kind.CYCLE:
                return np.asarray(self.table, np.float64)[i % np.uint64(len(self.table))]
        return np.asarray(self.table, np.float64)[words % np.uint64(len(self.table))]

    def _integers(self, i: Array) -> Array:
        source, _ = self._sources(i)
        words = mixed(self.key, source)
        table = np.array([_word(v, False) for v in self.table] or [0], np.uint64)
        match self.kind:
            case Kind.CHOICE:
                values = table[words % np.uint64(len(table))]
            case Kind.CYCLE:
                values = table[i % np.uint64(len(table))]
            case Kind.STEPS:
                step = max(self.span // max(self.count, 1), 1)
                at = np.uint64(self.count - 1) - i if self.a < 0 else i
                offset = np.minimum(at * np.uint64(step) + words % np.uint64(step), np.uint64(self.span - 1))
                values = offset + np.uint64(self.low & _MASK)
            case _:
                values = (words % np.uint64(self.span) if self.span else words) + np.uint64(self.low & _MASK)
        for place, value in self.planted:
            values[i == place] = _word(value, False)
        return values

    def _bent(self, values: Array) -> Array:
        """Values bent into the bounds, so that variety stays: reflected at one; between two wrapped, and at a lower one
        that is not negative reflected, so that what is small of either sign stays small."""
        low, high = self.bounds
        if self.finite and not np.isfinite(values).all():
            values = np.where(np.isfinite(values), values, 1.0)
        if low == -np.inf and high == np.inf:
            return values
        if high == np.inf:
            return low + np.abs(values - low) if low > 0 else np.maximum(np.abs(values), low)
        if low == -np.inf:
            return high - np.abs(values - high)
        if _within(values, low, high):  # as they mostly do: nothing is bent
            return values
        if low >= 0:  # what is small of either sign stays so
            values = np.abs(values)
            values = np.where(values < low, low + (low - values), values)
        finite = np.isfinite(values)
        outside = finite & ~((values >= low) & (values <= high))
        bent = np.where(finite, np.minimum(np.maximum(values, low), high), values)
        if high <= low:  # a remainder by next to nothing takes a step for each bit between the exponents
            bent[finite] = low
        elif outside.any():
            rest = np.fmod(values[outside] - low, high - low)
            wrapped = low + np.where(rest < 0, rest + (high - low), rest)
            bent[outside] = np.minimum(np.maximum(wrapped, low), high)
        return bent


def _within(values: Array, low: float, high: float) -> bool:
    """Whether all lie strictly between the bounds; not so with a NaN."""
    return len(values) > 0 and bool(values.min() > low and values.max() < high)


def mixed(key: int, i: Array) -> Array:
    """SplitMix64's word number ``i`` (uint64) of the stream ``key``."""
    z = (i + np.uint64(1)) * np.uint64(_GOLDEN) + np.uint64(key & _MASK)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def word(key: int, number: int) -> int:
    """One word of :func:`mixed`."""
    return int(mixed(key, np.array([number], np.uint64))[0])


def _turn(key: int, block: int) -> int:
    return word(key ^ _FLIP, block)


def _unit(words: Array) -> Array:
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _centred(words: Array) -> Array:
    """Four uniform 16-bit words, summed and centred, and below their last bit the words' product's high bits."""
    parts = [(words >> np.uint64(s)) & np.uint64(0xFFFF) for s in (0, 16, 32, 48)]
    total = (parts[0] + parts[1] + parts[2] + parts[3]).astype(np.int64) - 131070
    low = (words * np.uint64(_SECOND)) >> np.uint64(44)  # 20 bits: no value is exact in a shorter type
    whole = (total << np.int64(20)) + low.astype(np.int64)
    return np.asarray(whole.astype(np.float64) * (NORMAL_UNIT * 2.0**-20))


def _word(value: float | int, floating: bool) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0]) if floating else int(value) & _MASK
