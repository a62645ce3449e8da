"""What launches leave for one another is put in where it is read, as far as little is done twice; scratch memory of
which only the number of elements is told is seen in the order that its launches see."""

from __future__ import annotations

import pytest

from fsr.computation.computation import Buffer, Computation, Statement
from fsr.computation.expression import Affine, Fold, Load, Number, Op, affine
from fsr.computation.printing import lines
from fsr.lifting.lift import lift
from fsr.lifting.spared import spared
from fsr.runs.kernel import load_kernel

SIZES = {"n": 512, "m": 256, "k": 3}
GATED = """
// /// fsr
// [sizes]
// b = {min = 1, max = 8, timed = 4}
// s = {min = 1, max = 512, timed = 512}
// c = {min = 1, max = 512, timed = 512}
// taps = {min = 1, max = 6, timed = 3}
// [args]
// x = {role = "in", dtype = "float32", shape = ["b", "s", 3, "c"]}
// w = {role = "in", dtype = "float32", shape = ["c", "taps"]}
// y = {role = "out", dtype = "float32", shape = ["b", "s", "c"]}
// b = {value = "b", dtype = "int32"}
// s = {value = "s", dtype = "int32"}
// c = {value = "c", dtype = "int32"}
// taps = {value = "taps", dtype = "int32"}
// [scratch]
// g = {dtype = "float32", count = "b * s * c"}
// f = {dtype = "float32", count = "b * s * c"}
// [[launch]]
// entry = "gate"
// grid = "ceil_div(b * s * c, 128)"
// block = 128
// args = ["x", "g", "b", "s", "c"]
// [[launch]]
// entry = "filter"
// grid = "ceil_div(b * s * c, 128)"
// block = 128
// args = ["g", "w", "f", "b", "s", "c", "taps"]
// [[launch]]
// entry = "turn"
// grid = "ceil_div(b * s * c, 128)"
// block = 128
// args = ["f", "x", "y", "b", "s", "c"]
// ///
__global__ void gate(const float *x, float *g, int b, int s, int c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= b * s * c) return;
    int channel = i % c, at = i / c % s, batch = i / c / s;
    const float *row = x + (batch * s + at) * 3 * c;
    g[(batch * c + channel) * s + at] = row[channel] * row[c + channel];
}
__global__ void filter(const float *g, const float *w, float *f, int b, int s, int c, int taps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= b * s * c) return;
    int at = i % s, channel = i / s % c;
    float sum = 0;
    for (int t = 0; t < taps; ++t)
        if (at + t >= taps - 1) sum += g[i - at + at + t - (taps - 1)] * w[channel * taps + t];
    f[i] = sum;
}
__global__ void turn(const float *f, const float *x, float *y, int b, int s, int c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= b * s * c) return;
    int at = i % s, channel = i / s % c, batch = i / s / c;
    y[(batch * s + at) * c + channel] = f[i] * x[((batch * s + at) * 3 + 2) * c + channel];
}
"""


def test_three_launches_across_one_another_are_one_statement(tmp_path) -> None:
    (tmp_path / "k.cu").write_text(GATED)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    total, line = lines(found.computation)
    assert total.startswith("_sum[i, j, i2] = sum(w[i2, k0] * (x[i, j + k0 - taps + 1, 0, i2] * ")
    assert line == "y[i, j, i2] = _sum[i, j, i2] * x[i, j, 2, i2]"


def at(*names: str | Affine) -> tuple[Number, ...]:
    return tuple(Number(n if isinstance(n, Affine) else affine(n), "int64") for n in names)


def load(buffer: str, *names: str | Affine) -> Load:
    return Load(buffer, at(*names), "float32")


def computed(kept, value, *, kind: str = "map", x: tuple[str, ...] = ("n", "m")) -> Computation:
    domain = (("i", "n"), ("j", "m"))
    return Computation(
        ("n", "m", "k"),
        (Buffer("x", "float32", x), Buffer("y", "float32", ("n", "m")), Buffer("$t", "float32", ("n", "m"))),
        (
            Statement(kind, "$t", domain, kept, at("i", "j")),
            Statement("map", "y", domain, value, at("i", "j")),
        ),
    )


SHIFTED = Affine((("j", 1), ("l", 1)), -1)
PRODUCT = Op("prod", (load("x", "i", "j"), load("x", "i", "j")))
SUM = Fold("sum", (("l", affine("k")),), load("x", "i", SHIFTED), inside=True)


def around(extent: int | str) -> Fold:
    return Fold("sum", (("l", affine(extent)),), load("$t", "i", SHIFTED), inside=True)


@pytest.mark.parametrize(
    ("kept", "value", "told"),
    [
        (PRODUCT, around("k"), "y[i, j] = sum(x[i, j + l - 1] * x[i, j + l - 1] for l in range(k) if inside)"),
        (SUM, load("$t", "i", "j"), "y[i, j] = sum(x[i, j + k0 - 1] for k0 in range(k) if inside)"),
    ],
    ids=["a product around", "a sum read once"],
)
def test_what_costs_little_is_put_in(kept, value, told: str) -> None:
    found = spared(computed(kept, value), SIZES)
    (line,) = lines(found)
    assert line.replace("l of $t 1", "k0") == told
    assert [b.name for b in found.buffers] == ["x", "y"]


@pytest.mark.parametrize(
    ("kept", "value"),
    [
        (Op("prod", (load("x", "i", "j"), load("x", "i", affine(0)))), around(25)),
        (SUM, around("k")),
        (SUM, Op("sum", (load("$t", "i", "j"), load("$t", "i", affine(0))))),
        (SUM, load("$t", "i", affine(0))),
        (Op("exp", (load("x", "i", "j"),)), around("k")),
    ],
    ids=["read often", "sums of sums", "read twice", "read by many", "dear"],
)
def test_what_would_be_done_again_stays(kept, value) -> None:
    given = computed(kept, value)
    assert spared(given, SIZES) == given


def test_what_would_no_longer_lie_outside_stays() -> None:
    given = computed(PRODUCT, around("k"), x=("n", "m + 8"))
    assert spared(given, SIZES) == given
