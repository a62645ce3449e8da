"""Instructions on the host device against what the PTX ISA says of them, on values at the edges of their types."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from ptx_exact import number, word
from ptx_meanings import Case, as_type, bits_and_shifts, choices, integers, moves, width
from ptx_numbers import conversions, floats, halves

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.protocol import Buffer
from fsr.evaluation.orders import ORDERS
from fsr.records import Candidate, ConcreteLaunch, Image, Launch, Plan, Role

GROUPS = {
    "integers": integers, "bits": bits_and_shifts, "floats": floats, "halves": halves, "conversions": conversions,
    "choices": choices, "moves": moves,
}  # fmt: skip

LANES = 256
_WORDS = (
    0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x1234, 0x7FFF, 0x8000, 0xFFFF, 0xFF00FF00,
    0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x55555555, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 0x123456789ABCDEF0,
)  # fmt: skip
_NUMBERS = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.5, 1e-3, 65504.0, 65519.99, 65520.0, 1e30, -1e30, math.inf,
    -math.inf, math.nan, 2.0**-24, 2.0**-25, 2.0**-126, 2.0**-127, -(2.0**-149), 255.5, -128.5, 2147483647.0,
    2147483648.0, -2147483649.0, 4294967295.0, 4294967296.0, 2.0**63, -(2.0**63) - 2049, 2.0**64, 3.4028234e38,
    1 + 2.0**-11, 1 + 2.0**-10, 1 + 2.0**-8, 1 + 3 * 2.0**-9, 0.1, 100.25, 1e-310, 1.7e308, -6.0, 17.0,
)  # fmt: skip
_HOLDERS = {8: "unsigned char", 16: "unsigned short", 32: "unsigned", 64: "unsigned long long"}


def draws(type: str, seed: str) -> list[int]:
    """Words of a type: its edges, mixed, then any."""
    chance, bits = random.Random(f"{type} {seed}"), width(type)
    if "f" not in type:
        edges = [x & ((1 << bits) - 1) for x in _WORDS]
        return [chance.choice(edges) if chance.random() < 0.7 else chance.getrandbits(bits) for _ in range(LANES)]
    if "x2" in type:
        low, high = draws(type[:-2], seed + "l"), draws(type[:-2], seed + "h")
        return [a | b << 16 for a, b in zip(low, high, strict=True)]
    return [_float(chance, type) for _ in range(LANES)]


def _float(chance: random.Random, type: str) -> int:
    value = chance.choice(_NUMBERS) if chance.random() < 0.7 else chance.gauss(0, 1) * 2.0 ** chance.randint(-20, 20)
    with np.errstate(all="ignore"):
        if type == "bf16":
            return int(np.float32(value).view(np.uint32)) >> 16
        narrow = np.array(value).astype({"f16": np.float16, "f32": np.float32, "f64": np.float64}[type])
    return int(narrow.view(f"u{narrow.itemsize}"))


def source(cases: list[Case]) -> str:
    """One kernel of all cases; operands are words of 64 bits, by case, operand and thread."""
    lines = ["__global__ void k(const unsigned long long* x, unsigned long long* out) {", "  unsigned t = threadIdx.x;"]
    return "\n".join([*lines, *(_block(n, case) for n, case in enumerate(cases)), "}"])


def _block(at: int, case: Case) -> str:
    inputs = [_operand(t, f"x[{(at * 4 + n) * LANES} + t]") for n, t in enumerate(case.types[1:])]
    kind, held, back = _held(case.types[0])
    statement = f'asm volatile("{case.text}" : "={kind}"(d) : {", ".join(inputs)});'
    return f"  {{ {held} d; {statement} out[{at * LANES} + t] = {back}; }}"


def _operand(type: str, text: str) -> str:
    kind, _, _ = _held(type)
    if kind in "fd":
        bits = f"__int_as_float((int){text})" if kind == "f" else f"__longlong_as_double((long long){text})"
        return f'"{kind}"({bits})'
    return f'"{kind}"(({_HOLDERS[max(width(type), 16)]}){text})'


def _held(type: str) -> tuple[str, str, str]:
    if type == "f32":
        return "f", "float", "(unsigned)__float_as_int(d)"
    if type == "f64":
        return "d", "double", "(unsigned long long)__double_as_longlong(d)"
    bits = max(width(type), 16)
    return {16: "h", 32: "r", 64: "l"}[bits], _HOLDERS[bits], "d"


def same(case: Case, got: int, values: list[int]) -> bool:
    type, *of = case.types
    if "x2" in type:
        parts = [[v >> s & 0xFFFF for v in values] for s in (0, 16)]
        one = Case(case.text, tuple(t[:-2] for t in case.types), case.meaning, case.ulp)
        return all(same(one, got >> s & 0xFFFF, part) for s, part in zip((0, 16), parts, strict=True))
    want = case.meaning(*[number(v, t) if "f" in t else as_type(v, t) for v, t in zip(values, of, strict=True)])
    if "f" not in type:
        bits = max(width(type), 16)
        # A result narrower than its register is extended by its sign.
        return got == as_type(int(want), type) & ((1 << bits) - 1)
    found = number(got, type)
    if math.isnan(want) or math.isnan(found):
        return math.isnan(want) and math.isnan(found)
    if not case.ulp:
        return got == word(want, type)
    near = math.isfinite(found) and math.isfinite(want)
    return abs(found - want) <= case.ulp * spacing(want, type) if near else found == want


def spacing(value: float, type: str) -> float:
    """The distance of a type's numbers near a value."""
    digits = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}[type]
    return max(2.0 ** (math.frexp(value)[1] - digits), 2.0 ** ({"f16": -24, "f64": -1074}.get(type, -149)))


def wrongs(cases: list[Case], drawn: list[list[list[int]]], out: np.ndarray) -> list[str]:
    """The first wrong result of each case."""
    found = []
    for at, (case, operands) in enumerate(zip(cases, drawn, strict=True)):
        for lane in range(LANES):
            values, got = [operand[lane] for operand in operands], int(out[at * LANES + lane])
            if not same(case, got, values):
                found.append(f"{case.text} of {[hex(v) for v in values]} gives {got:#x}")
                break
    return found


@pytest.mark.parametrize("group", GROUPS)
def test_every_instruction_means_what_the_manual_says(run, host, group):
    cases = list(GROUPS[group]())
    drawn = [[draws(t, f"{c.text} {n}") for n, t in enumerate(c.types[1:])] for c in cases]
    x = np.zeros((len(cases), 4, LANES), np.uint64)
    for at, operands in enumerate(drawn):
        for n, values in enumerate(operands):
            x[at, n] = values
    arrays = {"x": x.ravel(), "out": np.zeros(len(cases) * LANES, np.uint64)}
    assert wrongs(cases, drawn, run(source(cases), "k", 1, LANES, **arrays)["out"]) == []
    # Watched, where other code is made of it, and what C++ leaves undefined would be told.
    image = HostToolchain(watched=True).compile(
        Candidate(source(cases), Plan((Launch("k", *[("1",) * 3] * 2, "0", ()),)))
    )
    assert isinstance(image, Image), image
    buffers = [Buffer("x", arrays["x"], Role.IN), Buffer("out", arrays["out"], Role.OUT)]
    launch = ConcreteLaunch("k", (1, 1, 1), (LANES, 1, 1), 0, ("x", "out"))
    faults, after = host.watch(image, [launch], buffers, ORDERS[0])
    assert faults == ()
    assert wrongs(cases, drawn, after["out"]) == []
