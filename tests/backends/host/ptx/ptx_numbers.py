"""What instructions on numbers of floating point mean, by exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

from ptx_exact import flushed, fused, quotient, root, rounded, word
from ptx_meanings import Case, case, clamp, width


def floats() -> Iterator[Case]:
    for t in ("f32", "f64"):
        for mode in ("rn", "rz", "rm", "rp"):
            two = f"{t} {t} {t}"
            yield case(f"add.{mode}.{t}", two, lambda a, b, t=t, m=mode: fused(a, 1.0, b, t, m))
            yield case(f"sub.{mode}.{t}", two, lambda a, b, t=t, m=mode: fused(a, 1.0, -b, t, m))
            yield case(f"mul.{mode}.{t}", two, lambda a, b, t=t, m=mode: product(a, b, t, m))
            yield case(f"fma.{mode}.{t}", f"{two} {t}", lambda a, b, c, t=t, m=mode: fused(a, b, c, t, m))
            yield case(f"div.{mode}.{t}", two, lambda a, b, t=t, m=mode: quotient(a, b, t, m))
            yield case(f"rcp.{mode}.{t}", f"{t} {t}", lambda a, t=t, m=mode: quotient(1.0, a, t, m))
            yield case(f"sqrt.{mode}.{t}", f"{t} {t}", lambda a, t=t, m=mode: root(a, t, m))
        yield case(f"min.{t}", f"{t} {t} {t}", smaller)
        yield case(f"max.{t}", f"{t} {t} {t}", lambda a, b: -smaller(-a, -b))
        yield case(f"abs.{t}", f"{t} {t}", abs)
        yield case(f"neg.{t}", f"{t} {t}", lambda a: -a)
        yield case(f"copysign.{t}", f"{t} {t} {t}", lambda a, b: math.copysign(b, a))
    one = "f32 f32"
    yield case("add.f32", f"{one} f32", lambda a, b: fused(a, 1.0, b, "f32", "rn"))
    yield case("add.ftz.f32", f"{one} f32", lambda a, b: flushed(fused(flushed(a), 1.0, flushed(b), "f32", "rn")))
    yield case("mul.ftz.f32", f"{one} f32", lambda a, b: flushed(product(flushed(a), flushed(b), "f32", "rn")))
    yield case("add.sat.f32", f"{one} f32", lambda a, b: saturated(fused(a, 1.0, b, "f32", "rn")))
    yield case("fma.rn.sat.f32", f"{one} f32 f32", lambda a, b, c: saturated(fused(a, b, c, "f32", "rn")))
    yield case(
        "min.NaN.f32",
        f"{one} f32",
        lambda a, b: math.nan if math.isnan(a + b) and not (math.isinf(a) and math.isinf(b)) else smaller(a, b),
    )
    yield case("max.ftz.f32", f"{one} f32", lambda a, b: -smaller(-flushed(a), -flushed(b)))
    yield from approximations()


def approximations() -> Iterator[Case]:
    one = "f32 f32"
    yield case("rcp.approx.ftz.f32", one, lambda a: flushed(quotient(1.0, flushed(a), "f32", "rn")), 1)
    yield case("sqrt.approx.f32", one, lambda a: root(a, "f32", "rn"), 1)
    yield case(
        "rsqrt.approx.f32",
        one,
        lambda a: 1 / math.sqrt(a) if a > 0 else math.copysign(math.inf, a) if a == 0 else math.nan,
        2,
    )
    yield case("div.full.f32", f"{one} f32", lambda a, b: quotient(a, b, "f32", "rn"), 2)
    yield case("ex2.approx.ftz.f32", one, lambda a: flushed(2.0**a if a < 129 else math.inf) if a == a else a, 2)
    yield case("lg2.approx.f32", one, lambda a: math.log2(a) if a > 0 else -math.inf if a == 0 else math.nan, 2)
    yield case("tanh.approx.f32", one, math.tanh, 2)


def inverse_root(a: float) -> float:
    return 1 / math.sqrt(a) if a > 0 else math.copysign(math.inf, a) if a == 0 else math.nan


def product(a: float, b: float, type: str, mode: str) -> float:
    sign = math.copysign(1, a) * math.copysign(1, b)
    return fused(a, b, math.copysign(0.0, sign), type, mode) if math.isfinite(a) and math.isfinite(b) else a * b


def smaller(a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    return a if a < b or (a == b and math.copysign(1, a) < 0) else b


def saturated(x: float) -> float:
    return 0.0 if math.isnan(x) or x <= 0 else min(x, 1.0)


def halves() -> Iterator[Case]:
    for t in ("f16", "bf16"):
        pair = f"{t}x2"
        meanings = {
            "add{rn}": (2, lambda a, b, t=t: fused(a, 1.0, b, t, "rn")),
            "sub{rn}": (2, lambda a, b, t=t: fused(a, 1.0, -b, t, "rn")),
            "mul{rn}": (2, lambda a, b, t=t: product(a, b, t, "rn")),
            "fma.rn": (3, lambda a, b, c, t=t: fused(a, b, c, t, "rn")),
            "fma.rn.relu": (3, lambda a, b, c, t=t: relu(fused(a, b, c, t, "rn"))),
            "min": (2, smaller), "max": (2, lambda a, b: -smaller(-a, -b)), "abs": (1, abs), "neg": (1, lambda a: -a),
        }  # fmt: skip
        for name, (operands, meaning) in meanings.items():
            root = name.replace("{rn}", ".rn" if t == "bf16" else "")
            yield case(f"{root}.{t}", " ".join([t] * (operands + 1)), meaning)
            yield case(f"{root}.{pair}", " ".join([pair] * (operands + 1)), meaning)
    yield case("add.sat.f16x2", "f16x2 f16x2 f16x2", lambda a, b: saturated(fused(a, 1.0, b, "f16", "rn")))
    yield case("mul.ftz.f16", "f16 f16 f16", lambda a, b: flushed16(product(flushed16(a), flushed16(b), "f16", "rn")))
    yield case("ex2.approx.f16x2", "f16x2 f16x2", lambda a: a if a != a else 2.0**a if a < 17 else math.inf, 1)
    yield case("tanh.approx.bf16x2", "bf16x2 bf16x2", math.tanh, 1)


def flushed16(x: float) -> float:
    return math.copysign(0.0, x) if abs(x) < 2.0**-14 else x


def relu(x: float) -> float:
    return x if math.isnan(x) else x if x > 0 else 0.0


def conversions() -> Iterator[Case]:
    for to in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
        for of in ("f32", "f64", "f16"):
            for mode, turn in (("rni", round), ("rzi", math.trunc), ("rmi", math.floor), ("rpi", math.ceil)):
                yield case(f"cvt.{mode}.{to}.{of}", f"{to} {of}", lambda a, to=to, of=of, f=turn: whole(a, to, of, f))
        for of in ("u16", "s16", "u32", "s32", "u64", "s64"):
            yield case(f"cvt.{to}.{of}", f"{to} {of}", lambda a: a)
            if not (
                clamp(limit(of, 0), to) == limit(of, 0) and clamp(limit(of, 1), to) == limit(of, 1)
            ):  # PTX has no others
                yield case(f"cvt.sat.{to}.{of}", f"{to} {of}", lambda a, to=to: clamp(a, to))
        for t in ("f32", "f64", "f16"):
            for mode in ("rn", "rz", "rm", "rp"):
                yield case(
                    f"cvt.{mode}.{t}.{to}", f"{t} {to}", lambda a, t=t, m=mode: rounded(Fraction(a), t, m) if a else 0.0
                )
    for to, of in (("f16", "f32"), ("f16", "f64"), ("f32", "f64"), ("bf16", "f32")):
        for mode in ("rn", "rz") if to == "bf16" else ("rn", "rz", "rm", "rp"):
            yield case(f"cvt.{mode}.{to}.{of}", f"{to} {of}", lambda a, t=to, m=mode: narrowed(a, t, m))
    for to, of in (("f32", "f16"), ("f64", "f16"), ("f64", "f32"), ("f32", "bf16")):
        yield case(f"cvt.{to}.{of}", f"{to} {of}", lambda a: a)
    for mode, turn in (("rni", round), ("rzi", math.trunc), ("rmi", math.floor), ("rpi", math.ceil)):
        yield case(
            f"cvt.{mode}.f32.f32", "f32 f32", lambda a, f=turn: math.copysign(f(a), a) if math.isfinite(a) else a
        )
    yield case("cvt.rn.relu.f16.f32", "f16 f32", lambda a: relu(narrowed(a, "f16", "rn")))
    yield case("cvt.sat.f32.f32", "f32 f32", saturated)
    yield case("cvt.rn.sat.f32.f64", "f32 f64", lambda a: saturated(narrowed(a, "f32", "rn")))
    yield case("cvt.rna.tf32.f32", "b32 f32", lambda a: tf32(a, "rna"))
    yield case("cvt.rn.tf32.f32", "b32 f32", lambda a: tf32(a, "rn"))
    for t in ("f16", "bf16"):
        for mode in ("rn", "rz"):
            yield case(f"cvt.{mode}.{t}x2.f32", "b32 f32 f32", lambda a, b, t=t, m=mode: packed(a, b, t, m))


def limit(type: str, which: int) -> int:
    """The lowest or the highest of an integer type."""
    return clamp((1 << 70) * (1 if which else -1), type)


def of_integer(a: int, type: str, mode: str) -> float:
    return rounded(Fraction(a), type, mode) if a else 0.0


def turned(a: float, turn: Callable[[float], int]) -> float:
    return math.copysign(turn(a), a) if math.isfinite(a) else a


def whole(a: float, to: str, of: str, turn: Callable[[float], int]) -> int:
    if math.isnan(a):
        return 1 << (width(to) - 1) if of == "f64" or width(to) == 64 else 0
    if math.isinf(a):
        return clamp(1 << 70 if a > 0 else -(1 << 70), to)
    return clamp(turn(a), to)


def narrowed(a: float, type: str, mode: str) -> float:
    return rounded(Fraction(a), type, mode) if math.isfinite(a) and a else a


def tf32(a: float, mode: str) -> int:
    return 0x7FFFFFFF if math.isnan(a) else word(narrowed(a, "tf32", mode), "f32")


def packed(a: float, b: float, type: str, mode: str) -> int:
    words = [0x7FFF if math.isnan(x) else word(narrowed(x, type, mode), type) for x in (b, a)]
    return words[1] << 16 | words[0]
