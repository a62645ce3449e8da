"""Numbers of floating point as exact fractions: rounding in every direction, from the definition of IEEE 754 alone."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

# bits of the significand, lowest and highest exponent of a normal number
FORMATS = {
    "f16": (11, -14, 15),
    "bf16": (8, -126, 127),
    "tf32": (11, -126, 127),
    "f32": (24, -126, 127),
    "f64": (53, -1022, 1023),
}


def rounded(value: Fraction, type: str, mode: str) -> float:
    """The number of a type next to a value that is not 0, by rn, rz, rm, rp or rna."""
    digits, lowest, highest = FORMATS[type]
    sign, size = (-1, -value) if value < 0 else (1, value)
    exponent = max(_exponent(size), lowest)
    step = Fraction(2) ** (exponent - digits + 1)
    whole, rest = divmod(size, step)
    half = rest * 2 - step
    up = {
        "rn": half > 0 or (half == 0 and whole % 2 == 1), "rna": half >= 0, "rz": False,
        "rm": rest > 0 and sign < 0, "rp": rest > 0 and sign > 0,
    }[mode]  # fmt: skip
    result = (whole + up) * step
    largest = (2 - Fraction(2) ** (1 - digits)) * Fraction(2) ** highest
    if result > largest:
        outwards = mode in ("rn", "rna") or (mode == "rp" and sign > 0) or (mode == "rm" and sign < 0)
        return sign * (math.inf if outwards else float(largest))
    return math.copysign(float(result), sign)


def _exponent(size: Fraction) -> int:
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    while Fraction(2) ** exponent > size:
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= size:
        exponent += 1
    return exponent


def number(bits: int, type: str) -> float:
    """A word's bits as a number."""
    if type == "bf16":
        bits, type = bits << 16, "f32"
    layout = {"f16": "<e", "f32": "<f", "f64": "<d"}[type]
    return float(struct.unpack(layout, bits.to_bytes(struct.calcsize(layout), "little"))[0])


def word(value: float, type: str) -> int:
    """A number that the type has, as bits."""
    if type == "bf16":
        return word(value, "f32") >> 16
    layout = {"f16": "<e", "f32": "<f", "f64": "<d"}[type]
    return int.from_bytes(struct.pack(layout, value), "little")


def fused(a: float, b: float, c: float, type: str, mode: str) -> float:
    """a * b + c, rounded once."""
    if not all(map(math.isfinite, (a, b, c))):
        with_infinities = [x if not math.isfinite(x) or x == 0 else math.copysign(1.0, x) for x in (a, b, c)]
        return with_infinities[0] * with_infinities[1] + with_infinities[2]
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact:
        return rounded(exact, type, mode)
    product = math.copysign(1, a) * math.copysign(1, b)
    same = product == math.copysign(1, c) and not Fraction(a) * Fraction(b) and not c
    return math.copysign(0.0, product if same else -1 if mode == "rm" else 1)


def quotient(a: float, b: float, type: str, mode: str) -> float:
    """a / b, rounded once."""
    sign = math.copysign(1, a) * math.copysign(1, b)
    if math.isnan(a) or math.isnan(b) or (a == b == 0) or (math.isinf(a) and math.isinf(b)):
        return math.nan
    if math.isinf(a) or b == 0:
        return sign * math.inf
    if math.isinf(b) or a == 0:
        return sign * 0.0
    return rounded(Fraction(a) / Fraction(b), type, mode)


def root(a: float, type: str, mode: str) -> float:
    """The square root, rounded once."""
    if math.isnan(a) or a < 0:
        return math.nan
    if a == 0 or math.isinf(a):
        return a
    exact = Fraction(a)
    scale = 4 ** (200 if type == "f32" else 1200)
    near = Fraction(math.isqrt(exact.numerator * scale // exact.denominator), math.isqrt(scale))
    if near * near != exact:
        near += Fraction(1, 2 * math.isqrt(scale))  # between two numbers, as the root is
    return rounded(near, type, mode)


def flushed(x: float) -> float:
    """A subnormal float is a zero of its sign."""
    return math.copysign(0.0, x) if abs(x) < 2.0**-126 else x
