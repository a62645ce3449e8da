"""Extremes of windows whose size and step are arguments, and their places: however the branch that keeps them is
written."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.lifting.graph import Graph
from fsr.lifting.kept import Kept
from fsr.lifting.merging import merged
from tests.lifting.lifted import computed

watched = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

HEAD = """// /// fsr
// entry = "pool"
// [sizes]
// batch = {min = 1, max = 36, timed = 32}
// steps = {min = 1, max = 1100, timed = 1000}
// width = {min = 1, max = 300, timed = 256}
// taps = {min = 1, max = 9, timed = 3}
// stride = {min = 1, max = 4, timed = 2}
// [args]
// x = {role = "in", shape = ["batch", "(steps - 1) * stride + taps", "width"]}
// y = {role = "out", shape = ["batch", "steps", "width"]}
PLACES// rows = {value = "(steps - 1) * stride + taps"}
// steps = {value = "steps"}
// width = {value = "width"}
// taps = {value = "taps"}
// stride = {value = "stride"}
// [launch]
// grid = GRID
// block = 64
// ///
__global__ void pool(PARAMS, int steps, int width, int taps, int stride, int rows) {
BODY
}
"""
PLACES = '// at = {role = "out", shape = ["batch", "steps", "width"]}\n'
A_STEP, AN_ELEMENT = '["batch", "ceil_div(steps, 64)"]', '["batch", "ceil_div(steps * width, 64)"]'
A_ROW = '["batch", "steps"]'
SPELLINGS = {
    "a thread walks over all columns of a step, and the branch divides": (
        A_STEP,
        "k0",
        """  int t = blockIdx.y * 64 + threadIdx.x;
  if (t >= steps) return;
  const float* from = x + ((size_t)blockIdx.x * rows + t * stride) * width;
  for (int c = 0; c < width; c++) {
    float best = -3.402823466e+38F;
    int where = -1;
    for (int o = 0; o < taps * width; o += width)
      if (from[o + c] > best) { best = from[o + c]; where = o / width; }
    y[((size_t)blockIdx.x * steps + t) * width + c] = best;
    at[((size_t)blockIdx.x * steps + t) * width + c] = where;
  }""",
    ),
    "a thread an element, from its first value on": (
        AN_ELEMENT,
        "k0",
        """  int n = blockIdx.y * 64 + threadIdx.x;
  if (n >= steps * width) return;
  const float* p = x + (blockIdx.x * rows + n / width * stride) * width + n % width;
  float best = *p;
  int where = 0;
  for (int k = 1; k < taps; k++) {
    p += width;
    if (best < *p) { best = *p; where = (int)((p - x) / width) - blockIdx.x * rows - n / width * stride; }
  }
  y[(size_t)blockIdx.x * steps * width + n] = best;
  at[(size_t)blockIdx.x * steps * width + n] = where;""",
    ),
    "places in the line, chosen without a branch": (
        A_ROW,
        "j * stride + k0",
        """  int first = blockIdx.y * stride;
  for (int c = threadIdx.x; c < width; c += 64) {
    float best = -1e38f;
    int where = -1;
    for (int k = first; k < first + taps; k++) {
      float v = x[(blockIdx.x * rows + k) * width + c];
      if (v > best) { where = k; best = v; }
    }
    y[(blockIdx.x * steps + blockIdx.y) * width + c] = best;
    at[(blockIdx.x * steps + blockIdx.y) * width + c] = where;
  }""",
    ),
}


def pooling(grid: str, body: str, *, places: bool = True) -> str:
    params = "const float* x, float* y, int* at" if places else "const float* x, float* y"
    text = HEAD.replace("PLACES", PLACES if places else "").replace("GRID", grid)
    return text.replace("PARAMS", params).replace("BODY", body)


@watched
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_largest_of_a_window_and_its_place(tmp_path, spelling):
    grid, place, body = SPELLINGS[spelling]
    x = "x[i, j * stride + k0, i2]"
    assert computed(tmp_path, pooling(grid, body)) == [
        f"y[i, j, i2] = max({x} for k0 in range(taps))",
        f"at[i, j, i2] = argmax(pair({x}, {place}) for k0 in range(taps))",
    ]


@watched
@pytest.mark.parametrize(
    ("begin", "step", "end", "told"),
    [
        ("-INFINITY", "s = fmaxf(s, v)", "s", ["y[i, j, i2] = max(x[i, j * stride + k0, i2] for k0 in range(taps))"]),
        (
            "0",
            "s += v",
            "s / taps",
            [
                "_sum[i, j, i2] = sum(x[i, j * stride + k0, i2] for k0 in range(taps))",
                "y[i, j, i2] = _sum[i, j, i2] / taps",
            ],
        ),
    ],
)
def test_windows_of_one_value(tmp_path, begin, step, end, told):
    body = f"""  for (int c = threadIdx.x; c < width; c += 64) {{
    float s = {begin};
    for (int k = 0; k < taps; k++) {{
      float v = x[(blockIdx.x * rows + blockIdx.y * stride + k) * width + c];
      {step};
    }}
    y[(blockIdx.x * steps + blockIdx.y) * width + c] = {end};
  }}"""
    assert computed(tmp_path, pooling(A_ROW, body, places=False)) == told


FLAT = """// /// fsr
// entry = "pool"
// [sizes]
// planes = {min = 1, max = 64, timed = 64}
// high = {min = 1, max = 200, timed = 112}
// wide = {min = 1, max = 200, timed = 112}
// side = {min = 1, max = 7, timed = 3}
// step = {min = 1, max = 3, timed = 2}
// [args]
// x = {role = "in", shape = ["planes", "(high - 1) * step + side", "(wide - 1) * step + side"]}
// y = {role = "out", shape = ["planes", "high", "wide"]}
// high = {value = "high"}
// wide = {value = "wide"}
// side = {value = "side"}
// step = {value = "step"}
// [launch]
// grid = ["ceil_div(wide, 32)", "ceil_div(high, 4)", "planes"]
// block = [32, 4]
// ///
__global__ void pool(const float* x, float* y, int high, int wide, int side, int step) {
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 4 + threadIdx.y;
  if (c >= wide || r >= high) return;
  int across = (wide - 1) * step + side, down = (high - 1) * step + side;
  const float* from = x + ((size_t)blockIdx.z * down + r * step) * across + c * step;
  float best = from[0];
  for (int a = 0; a < side; a++)
    for (int b = 0; b < side; b++)
      if (from[a * across + b] > best) best = from[a * across + b];
  y[((size_t)blockIdx.z * high + r) * wide + c] = best;
}
"""


@watched
def test_a_window_of_two_dimensions(tmp_path):
    x = "x[i, j * step + k0, i2 * step + k1]"
    assert computed(tmp_path, FLAT) == [f"y[i, j, i2] = max({x} for k0 in range(side) for k1 in range(side))"]


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
    for (int t = first; t < end; t++) if (x[t * w + c] > best) best = x[t * w + c];
    y[blockIdx.x * w + c] = best;
  }
}
"""


@watched
def test_a_window_that_reaches_over_the_edges(tmp_path):
    told = "y[i, j] = max(x[i * s + (k0 - 1), j] for k0 in range(k) if inside)"
    assert computed(tmp_path, PADDED) == [told]


# ---------------------------------------------------------------- what a comparison keeps


def value(g: Graph, n: int) -> int:
    return g.make("load", "x", (g.integer(n, "int64"),))


def test_what_is_kept_is_an_extreme_whichever_side_was_seen():
    g = Graph()
    a, b = value(g, 0), value(g, 1)
    more = g.compared("gt", a, b)
    for outcome, kept, op in ((1, a, "max"), (0, b, "max"), (1, b, "min"), (0, a, "min")):
        assert Kept(g).of(g.make("guard", more, outcome, kept)) == g.list_of(op, [a, b])


def test_a_guess_that_another_run_contradicts_is_taken_back():
    """``if (a > b) y = a; else y = c;``."""
    g = Graph()
    a, b, c = (value(g, n) for n in range(3))
    more = g.compared("gt", a, b)
    guessed = Kept(g).of(g.make("guard", more, 1, a))
    assert merged(g, guessed, g.make("guard", more, 0, c), -1) == g.make("select", more, a, c)


def test_comparisons_with_literals_that_always_came_out_alike_are_told():
    g = Graph()
    kept, far = Kept(g), g.const(1e6, "float32")
    conditions = [g.compared("gt", value(g, n), far) for n in range(2)]
    for n, c in enumerate(conditions):
        kept.of(g.make("guard", c, 0, value(g, n)))
    assert kept.one_sided == conditions
    kept.of(g.make("guard", conditions[0], 1, far))
    assert kept.one_sided == conditions[1:]
    again = g.make("guard", conditions[1], 0, value(g, 1))
    assert Kept(g, conditions[1:]).of(again) == again


def test_a_place_is_merged_with_the_sides_that_are_known_of_it():
    g = Graph()
    values = [value(g, n) for n in range(3)]
    pairs = [g.make("pair", v, g.integer(n, "int32")) for n, v in enumerate(values)]
    two, three = g.make("argmax", tuple(pairs[:2])), g.make("argmax", tuple(pairs))
    last = g.compared("gt", values[2], g.list_of("max", values[:2]))
    first = g.compared("gt", values[1], values[0])
    inner = g.make("guard", first, 0, g.integer(0, "int32"))
    assert merged(g, two, inner, -1) == two
    assert merged(g, g.make("guard", last, 0, inner), three, -1) == three
