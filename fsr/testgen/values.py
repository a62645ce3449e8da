"""From a case to concrete arrays and scalars: reproducible, within the contract's constraints, outputs poisoned."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fsr.contract.model import Argument, Constraints, Contract
from fsr.errors import ContractError
from fsr.expressions import evaluate, evaluate_int
from fsr.hardware.dtypes import bits_of, float_limits, is_float, numpy_dtype
from fsr.records import Case, Role, ScalarValue
from fsr.testgen import families

Array = np.ndarray[Any, Any]

BLOCK = 1 << 20  # longer arrays repeat one random block, rotated and with its sign flipped: random at memcpy speed
SMALLEST_POSITIVE = 1e-3  # a 'positive' argument is often divided by
FREE_INTEGERS = 4096  # range of an unconstrained signed integer: sums of products must not overflow


@dataclass(frozen=True, slots=True)
class CaseData:
    """What a launch of one case starts from: a C-contiguous array for every buffer argument (of an aliased
    group only the first) and the value of every scalar argument."""

    arrays: Mapping[str, Array]
    scalars: Mapping[str, ScalarValue]


def build(contract: Contract, case: Case, poison_seed: int = 0) -> CaseData:
    """The data of a case: equal for equal cases, apart from outputs, which hold the poison of ``poison_seed``.

    Raises ContractError when constraints cannot be met (an empty range, too few distinct values).
    """
    sizes = case.size_map()
    primary = _primary(contract, case)
    arrays: dict[str, Array] = {}
    for argument in contract.buffers():
        if argument.name in case.aliased[1:]:
            continue
        shape = contract.shape(argument, sizes)
        if _is_pure_output(contract, case, argument):
            arrays[argument.name] = poison(np.empty(shape, numpy_dtype(argument.dtype)), poison_seed)
            continue
        rng = _generator(case.seed, argument.name)
        follows = argument.name == primary or rng.random() < 0.5
        family = case.family if follows else "normal"
        arrays[argument.name] = _fill(argument, shape, sizes, family, rng)
    scalars = {a.name: _scalar(a, sizes, case) for a in contract.args if a.role is Role.SCALAR}
    return CaseData(arrays, scalars)


def poison(array: Array, seed: int) -> Array:
    """Fill an array in place with a pattern that no kernel computes: a NaN with a payload of its own for floating
    types, odd bytes for others; another seed gives another pattern. Returns the array."""
    rng = np.random.default_rng([seed, 0x9015])
    bits = array.view(np.uint8) if array.dtype.itemsize not in (1, 2, 4, 8) else bits_of_in_place(array)
    width = 8 * bits.dtype.itemsize
    if is_float(array.dtype):
        limits = float_limits(array.dtype)
        mantissa = round(-math.log2(limits.eps))
        exponent = ((1 << (width - 1 - mantissa)) - 1) << mantissa
        bits[...] = exponent | (1 << (mantissa - 1)) | int(rng.integers(1, 1 << (mantissa - 1)) - 1 or 1)
    else:
        byte = int(rng.integers(0x81, 0xFE))
        bits[...] = int.from_bytes(bytes((byte + 0x11 * i) % 251 + 2 for i in range(width // 8)), "little")
    return array


def bits_of_in_place(array: Array) -> Array:
    """A writable view of a C-contiguous array as unsigned integers of its element size."""
    return array.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[array.dtype.itemsize])


def same_bits(a: Array, b: Array) -> Array:
    """Where two arrays of one dtype hold the same bits, as booleans of their shape."""
    return np.asarray(bits_of(a) == bits_of(b))


def outputs(contract: Contract, case: Case) -> tuple[str, ...]:
    """The names of the buffers that the kernel writes, an aliased group under its first name."""
    written = [a.name for a in contract.buffers() if a.role is not Role.IN]
    if case.aliased and any(name in case.aliased for name in written):
        written = [case.aliased[0], *(n for n in written if n not in case.aliased)]
    return tuple(written)


def _primary(contract: Contract, case: Case) -> str:
    """The input that follows the family for sure; each of the others does with a chance of one half."""
    inputs = [a for a in contract.buffers() if a.role is not Role.OUT and a.value is None]
    floating = [a for a in inputs if is_float(numpy_dtype(a.dtype))] or inputs
    if not floating:
        return ""
    return floating[int(_generator(case.seed, "primary").integers(len(floating)))].name


def _is_pure_output(contract: Contract, case: Case, argument: Argument) -> bool:
    """Whether nobody reads the argument's initial values; memory shared with an input is an input."""
    shared = argument.name in case.aliased and any(contract.argument(n).role is not Role.OUT for n in case.aliased)
    return argument.role is Role.OUT and not shared


def _generator(seed: int, name: str) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=[seed % 2**64, zlib.crc32(name.encode())]))


def _fill(
    argument: Argument, shape: tuple[int, ...], sizes: Mapping[str, int], family: str, rng: np.random.Generator
) -> Array:
    dtype = numpy_dtype(argument.dtype)
    if argument.value is not None:  # a buffer that always arrives with one value, a cleared counter say
        return np.full(shape, evaluate(argument.value, sizes), dtype=dtype)
    count = math.prod(shape)
    if is_float(dtype):
        values = _floats(argument, dtype, count, sizes, family, rng)
    else:
        values = _integers(argument, dtype, count, sizes, family, rng)
    array = values.reshape(shape)
    if argument.constraints.sorted and len(shape) > 1:
        array = np.sort(array, axis=-1)
    return np.ascontiguousarray(array)


def _floats(
    argument: Argument,
    dtype: np.dtype[Any],
    count: int,
    sizes: Mapping[str, int],
    family: str,
    rng: np.random.Generator,
) -> Array:
    limits, wanted = float_limits(dtype), argument.constraints
    low, high = _float_bounds(argument, sizes)
    if wanted.unique:
        low, high = max(low, -1.0), min(high, max(low, -1.0) + 2.0)
        order = _distinct(count, count, rng)
        values: Array = (low + (high - low) * (order + 0.5) / max(count, 1)).astype(dtype)
        return np.sort(values) if wanted.sorted else values
    make = (families.FLOAT | families.NON_FINITE).get(family, families.FLOAT["normal"])
    block = _constrained(np.asarray(make(rng, min(count, BLOCK), limits)), wanted, low, high).astype(dtype)
    if wanted.sorted:
        return _stretched(np.sort(block), count)
    flip = math.isinf(low) and math.isinf(high)
    return _tiled(block, count, rng, flip_signs=flip)


def _float_bounds(argument: Argument, sizes: Mapping[str, int]) -> tuple[float, float]:
    wanted = argument.constraints
    low = float(evaluate(wanted.low, sizes)) if wanted.low is not None else -math.inf
    high = float(evaluate(wanted.high, sizes)) if wanted.high is not None else math.inf
    if wanted.nonnegative:
        low = max(low, 0.0)
    if wanted.positive:
        low = max(low, min(SMALLEST_POSITIVE, high))
    if low > high:
        raise _empty(argument, low, high, sizes)
    return low, high


def _constrained(values: Array, wanted: Constraints, low: float, high: float) -> Array:
    """Bend values into [low, high]: reflected when one-sided, wrapped when two-sided, so that variety stays."""
    if math.isinf(low) and math.isinf(high):
        return values
    finite = np.isfinite(values)
    if math.isinf(high):
        bent = low + np.abs(np.where(finite, values, 1.0) - low) if low > 0 else np.maximum(np.abs(values), low)
    elif math.isinf(low):
        bent = high - np.abs(values - high)
    else:
        safe = np.where(finite, values, low)
        inside = (safe >= low) & (safe <= high)
        wrapped = low + np.mod(safe - low, max(high - low, np.finfo(np.float64).tiny))
        bent = np.clip(np.where(inside, safe, wrapped), low, high)
    return bent if wanted.finite else np.where(finite, bent, np.abs(values) if low >= 0 else values)


def _integers(
    argument: Argument,
    dtype: np.dtype[Any],
    count: int,
    sizes: Mapping[str, int],
    family: str,
    rng: np.random.Generator,
) -> Array:
    low, high = integer_bounds(argument, sizes)
    if count == 0:
        return np.empty(0, dtype=dtype)
    if low > high:
        raise _empty(argument, low, high, sizes)
    wanted = argument.constraints
    if wanted.unique:
        if high - low + 1 < count:
            raise _empty(argument, low, high, sizes, f"for {count} distinct elements")
        values = (low + _distinct(count, high - low + 1, rng)).astype(dtype)
        return np.sort(values) if wanted.sorted else values
    block = families.integer_values(family, rng, min(count, BLOCK), low, high).astype(dtype)
    return _stretched(np.sort(block), count) if wanted.sorted else _tiled(block, count, rng, flip_signs=False)


def integer_bounds(argument: Argument, sizes: Mapping[str, int]) -> tuple[int, int]:
    """The inclusive range an integer argument is drawn from. Unconstrained signed types of 32 bits and more stay
    small, since overflow in the kernel's own arithmetic would be undefined."""
    dtype, wanted = numpy_dtype(argument.dtype), argument.constraints
    if dtype.kind == "b":
        return 0, 1
    limits = np.iinfo(dtype)
    wide = dtype.kind == "i" and dtype.itemsize >= 4
    low = evaluate_int(wanted.low, sizes) if wanted.low is not None else None
    high = evaluate_int(wanted.high, sizes) if wanted.high is not None else None
    if low is None:
        low = min(-FREE_INTEGERS, high if high is not None else 0) if wide else int(limits.min)
    if wanted.nonnegative or wanted.positive:
        low = max(low, 1 if wanted.positive else 0)
    if high is None:
        high = low + 2 * FREE_INTEGERS if wide else int(limits.max)
    return max(low, int(limits.min)), min(high, int(limits.max))


def _empty(argument: Argument, low: float, high: float, sizes: Mapping[str, int], why: str = "") -> ContractError:
    return ContractError(
        f"no value fits the constraints of {argument.name!r}: low {low}, high {high} {why}".rstrip(),
        expected="low <= high for every size within the ranges",
        where=f"sizes {dict(sizes)}",
        fix="correct low and high of the argument, or the minimum of the sizes they mention",
    )


def _distinct(count: int, span: int, rng: np.random.Generator) -> Array:
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


def _stretched(ordered: Array, count: int) -> Array:
    """A sorted block made ``count`` long by repeating each element."""
    if len(ordered) >= count:
        return ordered
    return np.repeat(ordered, -(-count // len(ordered)))[:count]


def _tiled(block: Array, count: int, rng: np.random.Generator, *, flip_signs: bool) -> Array:
    if len(block) >= count:
        return block
    result = np.empty(count, dtype=block.dtype)
    doubled = np.concatenate([block, block])
    for start in range(0, count, len(block)):
        part = result[start : start + len(block)]
        offset = int(rng.integers(len(block)))
        part[...] = doubled[offset : offset + len(part)]
        if flip_signs and rng.random() < 0.5:
            np.negative(part, out=part)
    return result


def _scalar(argument: Argument, sizes: Mapping[str, int], case: Case) -> ScalarValue:
    dtype = numpy_dtype(argument.dtype)
    if argument.value is not None:
        value = evaluate(argument.value, sizes)
        return ScalarValue(argument.dtype, float(value) if is_float(dtype) else int(value))
    rng = _generator(case.seed, argument.name)
    if is_float(dtype):
        family = case.family if case.family in ("uniform", "zeros", "ones", "negated") else "normal"
        return ScalarValue(argument.dtype, float(_floats(argument, dtype, 1, sizes, family, rng)[0]))
    low, high = integer_bounds(argument, sizes)
    if low > high:
        raise _empty(argument, low, high, sizes)
    choice = {"zeros": low, "limits": high}.get(
        case.family, int(rng.integers(low, high, dtype=np.int64, endpoint=True))
    )
    return ScalarValue(argument.dtype, choice)
