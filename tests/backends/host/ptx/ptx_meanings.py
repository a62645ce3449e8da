"""What instructions mean, written from the PTX ISA in Python's own integers and exact fractions: a table of cases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ptx_exact import word

ALL = 0xFFFFFFFFFFFFFFFF


@dataclass(frozen=True)
class Case:
    """``text``: a template over %0 (the result) and its operands; ``types``: of the result and of each operand;
    ``meaning``: from the operands' values to the result's. ``ulp``: how far results of floating point may be off."""

    text: str
    types: tuple[str, ...]
    meaning: Callable[..., float]
    ulp: float = 0


def width(type: str) -> int:
    return int("".join(c for c in type.replace("x2", "") if c.isdigit())) * (2 if "x2" in type else 1)


def signed(x: int, bits: int) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def clamp(x: int, type: str) -> int:
    bits = width(type)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if type[0] == "s" else (0, (1 << bits) - 1)
    return min(max(x, low), high)


def case(instruction: str, types: str, meaning: Callable[..., float], ulp: float = 0) -> Case:
    kinds = tuple(types.split())
    return Case(f"{instruction} {', '.join(f'%{n}' for n in range(len(kinds)))};", kinds, meaning, ulp)


def integers() -> Iterator[Case]:
    for t in ("u16", "s16", "u32", "s32", "u64", "s64"):
        n = width(t)
        two, three = f"{t} {t} {t}", f"{t} {t} {t} {t}"
        yield case(f"add.{t}", two, lambda a, b: a + b)
        yield case(f"sub.{t}", two, lambda a, b: a - b)
        yield case(f"mul.lo.{t}", two, lambda a, b: a * b)
        yield case(f"mul.hi.{t}", two, lambda a, b, n=n: (a * b) >> n)
        yield case(f"mad.lo.{t}", three, lambda a, b, c: a * b + c)
        yield case(f"mad.hi.{t}", three, lambda a, b, c, n=n: ((a * b) >> n) + c)
        yield case(f"min.{t}", two, min)
        yield case(f"max.{t}", two, max)
        yield case(f"sad.{t}", three, lambda a, b, c: abs(a - b) + c)
        divided = f"or.b{n} t, %2, 1; div.{t} %0, %1, t;"
        yield Case(f"{{ .reg .b{n} t; {divided} }}", (t, t, t), lambda a, b, t=t, n=n: truncated(a, as_type(b | 1, t)))
        left = f"or.b{n} t, %2, 1; rem.{t} %0, %1, t;"
        yield Case(
            f"{{ .reg .b{n} t; {left} }}", (t, t, t),
            lambda a, b, t=t: a - truncated(a, as_type(b | 1, t)) * as_type(b | 1, t),
        )  # fmt: skip
        if t[0] == "s":
            yield case(f"abs.{t}", f"{t} {t}", abs)
            yield case(f"neg.{t}", f"{t} {t}", lambda a: -a)
        if n < 64:
            wide = f"{t[0]}{2 * n}"
            yield case(f"mul.wide.{t}", f"{wide} {t} {t}", lambda a, b: a * b)
            yield case(f"mad.wide.{t}", f"{wide} {t} {t} {wide}", lambda a, b, c: a * b + c)
    yield case("add.sat.s32", "s32 s32 s32", lambda a, b: clamp(a + b, "s32"))
    yield case("sub.sat.s32", "s32 s32 s32", lambda a, b: clamp(a - b, "s32"))
    yield case("mad.hi.sat.s32", "s32 s32 s32 s32", lambda a, b, c: clamp(((a * b) >> 32) + c, "s32"))
    yield case("mul24.lo.u32", "u32 u32 u32", lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF))
    yield case("mul24.lo.s32", "s32 s32 s32", lambda a, b: signed(a, 24) * signed(b, 24))
    yield case("mul24.hi.s32", "s32 s32 s32", lambda a, b: (signed(a, 24) * signed(b, 24)) >> 16)
    yield from carries()


def as_type(x: int, type: str) -> int:
    return signed(x, width(type)) if type[0] == "s" else x & ((1 << width(type)) - 1)


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def carries() -> Iterator[Case]:
    wide = "{ .reg .b32 a, b, c, d; mov.b64 {a, b}, %1; mov.b64 {c, d}, %2; ONE TWO mov.b64 %0, {a, b}; }"
    for one, two, meaning in (
        ("add.cc.u32 a, a, c;", "addc.u32 b, b, d;", lambda a, b: a + b),
        ("sub.cc.u32 a, a, c;", "subc.u32 b, b, d;", lambda a, b: a - b),
        ("mad.lo.cc.u32 a, a, c, d;", "madc.hi.u32 b, b, d, a;", None),
    ):
        text = wide.replace("ONE", one).replace("TWO", two)

        def mixed(x: int, y: int) -> int:
            a, b, c, d = x & 0xFFFFFFFF, x >> 32, y & 0xFFFFFFFF, y >> 32
            total = (a * c & 0xFFFFFFFF) + d
            low, carry = total & 0xFFFFFFFF, total >> 32
            return low | (((b * d >> 32) + low + carry & 0xFFFFFFFF) << 32)

        yield Case(text, ("u64", "u64", "u64"), meaning or mixed)


def bits_and_shifts() -> Iterator[Case]:
    for t in ("b16", "b32", "b64"):
        n = width(t)
        yield case(f"and.{t}", f"{t} {t} {t}", lambda a, b: a & b)
        yield case(f"or.{t}", f"{t} {t} {t}", lambda a, b: a | b)
        yield case(f"xor.{t}", f"{t} {t} {t}", lambda a, b: a ^ b)
        yield case(f"not.{t}", f"{t} {t}", lambda a: ~a)
        yield case(f"cnot.{t}", f"{t} {t}", lambda a: int(a == 0))
        yield case(f"shl.{t}", f"{t} {t} u32", lambda a, s, n=n: a << s if s < n else 0)
        yield case(f"shr.u{n}", f"u{n} u{n} u32", lambda a, s, n=n: a >> s if s < n else 0)
        yield case(f"shr.s{n}", f"s{n} s{n} u32", lambda a, s, n=n: a >> min(s, n))
    for t in ("b32", "b64"):
        n = width(t)
        yield case(f"popc.{t}", f"u32 {t}", lambda a: bin(a).count("1"))
        yield case(f"clz.{t}", f"u32 {t}", lambda a, n=n: n - a.bit_length())
        yield case(f"brev.{t}", f"{t} {t}", lambda a, n=n: int(f"{a:0{n}b}"[::-1], 2))
        yield case(f"bfi.{t}", f"{t} {t} {t} u32 u32", lambda a, b, p, k, n=n: inserted(a, b, p & 255, k & 255, n))
    for t in ("u32", "s32", "u64", "s64"):
        n = width(t)
        yield case(f"bfe.{t}", f"{t} {t} u32 u32", lambda a, p, k, t=t: extracted(a, p & 255, k & 255, t))
        yield case(f"bfind.{t}", f"u32 {t}", lambda a: (~a if a < 0 else a).bit_length() - 1)
        yield case(f"bfind.shiftamt.{t}", f"u32 {t}", lambda a, n=n: shift_amount(a, n))
    for side, end in (("l", "clamp"), ("l", "wrap"), ("r", "clamp"), ("r", "wrap")):
        yield case(f"shf.{side}.{end}.b32", "b32 b32 b32 u32", lambda a, b, c, s=side, e=end: funnel(a, b, c, s, e))
    for table in (0x96, 0xE8, 0xCA, 0x1B, 0, 255):
        text = f"lop3.b32 %0, %1, %2, %3, {table:#x};"
        yield Case(text, ("b32",) * 4, lambda a, b, c, m=table: looked_up(a, b, c, m))
    yield case("prmt.b32", "b32 b32 b32 b32", lambda a, b, c: permuted(a, b, [c >> 4 * i & 15 for i in range(4)]))
    for mode, picks in _PERMUTATIONS.items():
        yield case(f"prmt.b32.{mode}", "b32 b32 b32 b32", lambda a, b, c, p=picks: permuted(a, b, p[c & 3]))
    for mode in ("clamp", "wrap"):
        yield case(f"szext.{mode}.u32", "u32 u32 u32", lambda a, b, m=mode: a & ((1 << count(b, m)) - 1))
        yield case(f"szext.{mode}.s32", "s32 s32 u32", lambda a, b, m=mode: low_bits(a, count(b, m)))
    yield case("bmsk.clamp.b32", "b32 u32 u32", lambda a, b: (((1 << min(b, 32)) - 1) << a) if a < 32 else 0)
    yield case("bmsk.wrap.b32", "b32 u32 u32", lambda a, b: ((1 << (b & 31)) - 1) << (a & 31))
    for a in ("u32", "s32"):
        for b in ("u32", "s32"):
            sums = "s32" if "s32" in (a, b) else "u32"
            yield case(
                f"dp4a.{a}.{b}", f"{sums} {a} {b} {sums}", lambda x, y, c, a=a, b=b: c + dot((x, a, 8), (y, b, 0), 4)
            )
            for part, first in (("lo", 0), ("hi", 2)):
                yield case(
                    f"dp2a.{part}.{a}.{b}", f"{sums} {a} {b} {sums}",
                    lambda x, y, c, a=a, b=b, f=first: c + dot((x, a, 16), (y, b, f), 2),
                )  # fmt: skip


# PTX ISA, prmt: source byte of each destination byte (from the lowest) by selector.
_PERMUTATIONS = {
    "f4e": [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]],
    "b4e": [[0, 7, 6, 5], [1, 0, 7, 6], [2, 1, 0, 7], [3, 2, 1, 0]],
    "rc8": [[0] * 4, [1] * 4, [2] * 4, [3] * 4],
    "ecl": [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3], [3, 3, 3, 3]],
    "ecr": [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]],
    "rc16": [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3]],
}


def count(b: int, mode: str) -> int:
    return min(b, 32) if mode == "clamp" else b & 31


def inserted(a: int, b: int, place: int, length: int, bits: int) -> int:
    for i in range(length):
        if place + i < bits:
            b = b & ~(1 << (place + i)) | (a >> i & 1) << (place + i)
    return b


def extracted(a: int, place: int, length: int, type: str) -> int:
    bits, a = width(type), a & ((1 << width(type)) - 1)
    sign = a >> min(place + length - 1, bits - 1) & 1 if type[0] == "s" and length else 0
    return sum((a >> (place + i) & 1 if i < length and place + i < bits else sign) << i for i in range(bits))


def shift_amount(a: int, bits: int) -> int:
    place = (~a if a < 0 else a).bit_length() - 1
    return -1 if place < 0 else bits - 1 - place


def funnel(a: int, b: int, c: int, side: str, end: str) -> int:
    n = c & 31 if end == "wrap" else min(c, 32)
    both = b << 32 | a
    return both << n >> 32 if side == "l" else both >> n


def looked_up(a: int, b: int, c: int, table: int) -> int:
    return sum((table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i for i in range(32))


def permuted(a: int, b: int, picks: list[int]) -> int:
    data = (b << 32 | a).to_bytes(8, "little")
    chosen = [(255 if data[p & 7] >> 7 else 0) if p & 8 else data[p & 7] for p in picks]
    return int.from_bytes(bytes(chosen), "little")


def low_bits(a: int, bits: int) -> int:
    return signed(a, bits) if bits else 0


def dot(left_word: tuple[int, str, int], right_word: tuple[int, str, int], times: int) -> int:
    (x, a, wide), (y, b, first), total = left_word, right_word, 0
    for i in range(times):
        left, right = x >> wide * i & ((1 << wide) - 1), y >> 8 * (i + first) & 255
        total += (signed(left, wide) if a == "s32" else left) * (signed(right, 8) if b == "s32" else right)
    return total


def choices() -> Iterator[Case]:
    whole = {
        "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
        "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    }  # fmt: skip
    for t in ("u16", "s16", "u32", "s32", "u64", "s64", "f32", "f64", "f16"):
        for op, holds in whole.items():
            if t[0] == "f":
                ordered = lambda a, b, f=holds: not math.isnan(a) and not math.isnan(b) and f(a, b)  # noqa: E731
                unordered = lambda a, b, f=holds: math.isnan(a) or math.isnan(b) or f(a, b)  # noqa: E731
                yield compared(f"setp.{op}.{t}", t, ordered)
                yield compared(f"setp.{op}u.{t}", t, unordered)
            else:
                yield compared(f"setp.{op}.{t}", t, holds)
    for op, same in (("lo", "lt"), ("ls", "le"), ("hi", "gt"), ("hs", "ge")):
        yield compared(f"setp.{op}.u32", "u32", whole[same])
    yield compared("setp.num.f32", "f32", lambda a, b: a == a and b == b)
    yield compared("setp.nan.f64", "f64", lambda a, b: a != a or b != b)
    both = "{ .reg .pred p, q, r; setp.gt.u32 r, %1, 7; setp.lt.and.s32 p|q, %1, %2, !r; "
    yield Case(both + "selp.b32 %0, 1, 0, p; @q add.u32 %0, %0, 2; }", ("b32", "b32", "b32"), lambda a, b: _both(a, b))
    yield Case("set.gt.u32.s32 %0, %1, %2;", ("b32", "s32", "s32"), lambda a, b: 0xFFFFFFFF if a > b else 0)
    yield Case("set.le.f32.f32 %0, %1, %2;", ("f32", "f32", "f32"), lambda a, b: 1.0 if a <= b else 0.0)
    yield case("slct.u32.s32", "u32 u32 u32 s32", lambda a, b, c: a if c >= 0 else b)
    yield case("slct.f32.f32", "f32 f32 f32 f32", lambda a, b, c: a if c >= 0 else b)
    tests = {
        "finite": math.isfinite, "infinite": math.isinf, "number": lambda a: not math.isnan(a),
        "notanumber": math.isnan, "normal": lambda a: math.isfinite(a) and abs(a) >= 2.0**-126,
        "subnormal": lambda a: 0 < abs(a) < 2.0**-126,
    }  # fmt: skip
    for name, holds in tests.items():
        text = f"{{ .reg .pred p; testp.{name}.f32 p, %1; selp.u32 %0, 1, 0, p; }}"
        yield Case(text, ("b32", "f32"), lambda a, f=holds: int(f(a)))


def compared(instruction: str, type: str, holds: Callable[[float, float], bool]) -> Case:
    text = f"{{ .reg .pred p; {instruction} p, %1, %2; selp.u32 %0, 1, 0, p; }}"
    return Case(text, ("b32", type, type), lambda a, b: int(holds(a, b)))


def _both(a: int, b: int) -> int:
    less, free = signed(a, 32) < signed(b, 32), not a > 7
    return (less and free) + 2 * (not less and free)


def moves() -> Iterator[Case]:
    yield Case("mov.b64 %0, {%1, %2};", ("b64", "b32", "b32"), lambda a, b: b << 32 | a)
    yield Case(
        "{ .reg .b16 l, h; mov.b32 {l, h}, %1; mov.b32 %0, {h, l}; }",
        ("b32", "b32"),
        lambda a: a >> 16 | (a & 0xFFFF) << 16,
    )
    yield Case("{ .reg .b32 h; mov.b64 {_, h}, %1; mov.u32 %0, h; }", ("b32", "b64"), lambda a: a >> 32)
    yield Case("mov.b32 %0, 0f40490FDB;", ("b32", "b32"), lambda a: 0x40490FDB)
    yield Case("mov.f32 %0, -1.5;", ("f32", "b32"), lambda a: -1.5)
    yield Case("mov.b32 %0, %1;", ("b32", "f32"), lambda a: 0x7FC00000 if math.isnan(a) else word(a, "f32"))
    yield Case("add.s32 %0, %1, -3;", ("s32", "s32"), lambda a: a - 3)
    yield Case("and.b32 %0, %1, 0xF0F0F0F0U;", ("b32", "b32"), lambda a: a & 0xF0F0F0F0)
    loop = "{ .reg .pred p; .reg .u32 n; mov.u32 n, 0; and.b32 %0, %1, 15; AGAIN: add.u32 n, n, %0; sub.s32 %0, %0, 1; "
    loop += "setp.ge.s32 p, %0, 0; @p bra AGAIN; mov.u32 %0, n; }"
    yield Case(loop, ("b32", "b32"), lambda a: (a & 15) * ((a & 15) + 1) // 2)
