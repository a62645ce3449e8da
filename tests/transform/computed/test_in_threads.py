"""Windows whose size and step are arguments, folded by the thread that has the result."""

from __future__ import annotations

import pytest

from fsr.computation.expression import Affine, Case, Expr, Fold, Load, Number, Op
from tests.transform.computed.test_families import FAMILY, at, check, computed, over
from tests.transform.conftest import subject_of

POOL = """// /// fsr
// entry = "pool"
// [sizes]
// batch = {min = 1, max = 36, timed = 32}
// steps = {min = 1, max = 1100, timed = 1000}
// width = {min = 1, max = 300, timed = 256}
// taps = {min = 1, max = 100, timed = TIMED}
// stride = {min = 1, max = 4, timed = 2}
// [args]
// x = {role = "in", shape = ["batch", "(steps - 1) * stride + taps", "width"]}
// y = {role = "out", shape = ["batch", "steps", "width"]}
// at = {role = "out", shape = ["batch", "steps", "width"]}
// rows = {value = "(steps - 1) * stride + taps"}
// steps = {value = "steps"}
// width = {value = "width"}
// taps = {value = "taps"}
// stride = {value = "stride"}
// [launch]
// grid = ["batch", "ceil_div(steps, 64)"]
// block = 64
// ///
__global__ void pool(const float* x, float* y, KIND* at, int steps, int width, int taps, int stride, int rows) {
  int t = blockIdx.y * 64 + threadIdx.x;
  if (t >= steps) return;
  for (int c = 0; c < width; c++) {
    const float* from = x + (blockIdx.x * rows + t * stride) * width + c;
    float best = -INFINITY, sum = 0;
    KIND where = 0;
    for (int k = 0; k < taps; k++) {
      sum += from[k * width];
      if (from[k * width] > best) { best = from[k * width]; where = PLACE; }
    }
    y[(blockIdx.x * steps + t) * width + c] = VALUE;
    at[(blockIdx.x * steps + t) * width + c] = where;
  }
}
"""
SIZES = ("batch", "steps", "width", "taps", "stride")
MANY = [(2, 5, 8, 3, 2), (3, 4, 7, 5, 1), (1, 1, 1, 1, 3), (2, 9, 66, 2, 4)]


def number(text: str, dtype: str = "int64") -> Number:
    return Number(Affine(((text, 1),)), dtype)


STEP = Op("prod", (number("stride"), number("j")))
VALUE = Load("x", (*at("i"), Op("sum", (STEP, number("k0"))), *at("i2")), "float32")


def pool(value: str, kind: str, place: str, timed: int = 3) -> str:
    text = POOL.replace("VALUE", value).replace("KIND", kind).replace("PLACE", place)
    return text.replace("TIMED", str(timed))


@pytest.mark.parametrize(
    ("kind", "dtype", "text", "place"),
    [
        ("long", "int64", "k", number("k0")),
        ("int", "int32", "t * stride + k", Op("int32", (Op("sum", (STEP, number("k0"))),))),
    ],
)
def test_the_largest_of_a_window_and_its_place(runner, kind, dtype, text, place):
    values: dict[str, Expr] = {
        "y": over("max", "taps", VALUE),
        "at": over("argmax", "taps", Op("pair", (VALUE, place))),
    }
    subject = computed(subject_of(pool("best", kind, text)), values, SIZES)
    moves = check(runner, subject, "fold-in-threads", MANY)
    assert {dict(m.params)["pack"] for m in moves} == {8 // {"int64": 4, "int32": 2}[dtype], *(1, 2)}
    check(runner, subject, "fold-in-threads", [(2, 5, 8, 3, 2)], most=1, alignment=4)


def test_a_mean_beside_a_place(runner):
    mean = Op("div", (over("sum", "taps", VALUE), number("taps", "float32")))
    values = {"y": mean, "at": over("argmax", "taps", Op("pair", (VALUE, number("k0", "int32"))))}
    subject = computed(subject_of(pool("sum / taps", "int", "k")), values, SIZES)
    check(runner, subject, "fold-in-threads", [(2, 5, 8, 4, 2), (3, 4, 7, 2, 1)], most=1)


def test_long_windows_are_left_to_warps():
    values = {
        "y": over("max", "taps", VALUE),
        "at": over("argmax", "taps", Op("pair", (VALUE, number("k0", "int32")))),
    }
    subject = computed(subject_of(pool("best", "int", "k", timed=100)), values, SIZES)
    assert not list(FAMILY["fold-in-threads"].moves(subject))


FLAT = """// /// fsr
// entry = "pool"
// [sizes]
// high = {min = 1, max = 200, timed = 112}
// wide = {min = 1, max = 200, timed = 112}
// side = {min = 1, max = 7, timed = 3}
// step = {min = 1, max = 3, timed = 2}
// [args]
// x = {role = "in", shape = ["(high - 1) * step + side", "(wide - 1) * step + side"]}
// y = {role = "out", shape = ["high", "wide"]}
// high = {value = "high"}
// wide = {value = "wide"}
// side = {value = "side"}
// step = {value = "step"}
// [launch]
// grid = ["ceil_div(wide, 32)", "ceil_div(high, 4)"]
// block = [32, 4]
// ///
__global__ void pool(const float* x, float* y, int high, int wide, int side, int step) {
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 4 + threadIdx.y;
  if (c >= wide || r >= high) return;
  int across = (wide - 1) * step + side;
  float best = -INFINITY;
  for (int a = 0; a < side; a++)
    for (int b = 0; b < side; b++) best = fmaxf(best, x[(r * step + a) * across + c * step + b]);
  y[r * wide + c] = best;
}
"""


def test_a_window_of_two_dimensions_whose_elements_lie_apart(runner):
    def along(dim: str, by: str) -> Expr:
        return Op("sum", (Op("prod", (number("step"), number(dim))), number(by)))

    x = Load("x", (along("i", "k0"), along("j", "k1")), "float32")
    side = Affine((("side", 1),))
    value = Fold("max", (("k0", side), ("k1", side)), x)
    subject = computed(subject_of(FLAT), {"y": value}, ("high", "wide", "side", "step"))
    moves = check(runner, subject, "fold-in-threads", [(5, 9, 3, 2), (4, 4, 2, 3), (1, 1, 1, 1)])
    assert {dict(m.params)["pack"] for m in moves} == {1}, "neighbours are a step apart"


PADDED = """// /// fsr
// entry = "pool"
// [sizes]
// n = {min = 1, max = 1000, timed = 1000}
// w = {min = 1, max = 300, timed = 64}
// k = {min = 1, max = 7, timed = 3}
// s = {min = 1, max = 9, timed = 2}
// [args]
// x = {role = "in", shape = ["n * s + 1", "w"]}
// y = {role = "out", shape = ["n", "w"]}
// n = {value = "n"}
// w = {value = "w"}
// k = {value = "k"}
// s = {value = "s"}
// [launch]
// grid = "n"
// block = 64
// ///
__global__ void pool(const float* x, float* y, int n, int w, int k, int s) {
  int first = max((int)blockIdx.x * s - 1, 0), end = min((int)blockIdx.x * s - 1 + k, s * n + 1);
  for (int c = threadIdx.x; c < w; c += 64) {
    float best = -INFINITY;
    for (int t = first; t < end; t++) best = fmaxf(best, x[t * w + c]);
    y[blockIdx.x * w + c] = best;
  }
}
"""


def test_a_window_that_reaches_over_the_edges(runner):
    """Within the buffer at every point that counts, as the original reads nothing beyond it either."""
    row = Op("sum", (Op("prod", (number("s"), number("i"))), Number(Affine((("k0", 1),), -1), "int64")))
    value = Fold("max", (("k0", Affine((("k", 1),))),), Load("x", (row, number("j")), "float32"), True)
    subject = computed(subject_of(PADDED), {"y": value}, ("n", "w", "k", "s"))
    check(runner, subject, "fold-in-threads", [(5, 8, 3, 2), (4, 7, 5, 1), (3, 66, 7, 4), (1, 1, 2, 1)])


DECIMATED = """// /// fsr
// entry = "decimate"
// [sizes]
// outs = {min = 1, max = 20000, timed = 9000}
// rate = {min = 1, max = 16, timed = 10}
// channels = {min = 1, max = 8, timed = 4}
// samples = "outs * rate"
// [args]
// x = {role = "in", shape = ["channels", "samples", 2], low = -1, high = 1}
// w = {role = "in", shape = [96, 2], low = -1, high = 1}
// y = {role = "out", shape = ["channels", "outs", 2]}
// rate = {value = "rate"}
// samples = {value = "samples"}
// [launch]
// grid = ["outs", "channels"]
// block = 1
// ///
__global__ void decimate(const float2* x, const float2* w, float2* y, int rate, int samples) {
  float2 sum = make_float2(0, 0);
  for (int k = 0; k < 96 && blockIdx.x * rate + k < samples; k++) {
    float2 s = x[blockIdx.y * samples + blockIdx.x * rate + k];
    sum.x += s.x * w[k].x - s.y * w[k].y;
    sum.y += s.x * w[k].y + s.y * w[k].x;
  }
  y[blockIdx.y * gridDim.x + blockIdx.x] = sum;
}
"""


def _sum_of(*pairs: tuple[int, int, int], shift: int = 0) -> Fold:
    """Products of taps' and samples' components; of which sign, and of which components."""
    at_ = Op("sum", (Op("prod", (number("rate"), number("j"))), Number(Affine((("k0", 1),), shift), "int64")))

    def one(sign: int, tap: int, part: int) -> Expr:
        c, p = (Number(Affine((), n), "int64") for n in (tap, part))
        found = Op("prod", (Load("w", (number("k0"), c), "float32"), Load("x", (number("i"), at_, p), "float32")))
        return found if sign > 0 else Op("neg", (found,))

    terms = tuple(one(*p) for p in pairs)
    return Fold("sum", (("k0", Affine((), 96)),), terms[0] if len(terms) == 1 else Op("sum", terms), True)


def _decimated(shift: int = 0, timed: int = 9000):
    real = Op("sum", (_sum_of((1, 0, 0)), _sum_of((-1, 1, 1), shift=shift)))
    value = Case(Affine((("i2", 1),)), Affine(), real, _sum_of((1, 1, 0), (1, 0, 1)))
    subject = subject_of(DECIMATED.replace("timed = 9000", f"timed = {timed}"))
    return computed(subject, {"y": value}, ("outs", "rate", "channels"))


def test_complex_samples_are_summed_by_the_thread_that_has_the_result(runner):
    """A point makes both components, of sums that stop where the samples do: so many terms that no register tile or
    warp has them."""
    moves = check(runner, _decimated(), "fold-in-threads", [(5, 3, 2), (40, 4, 1), (1, 1, 1), (70, 16, 3)])
    assert {dict(m.params)["pack"] for m in moves} == {1}


def test_sums_that_stop_elsewhere_are_none_of_one_box():
    assert not list(FAMILY["fold-in-threads"].moves(_decimated(shift=1)))


def test_long_padded_windows_of_few_results_stay():
    assert not list(FAMILY["fold-in-threads"].moves(_decimated(timed=100)))
