"""Online softmax by pairs of a maximum and a sum, whose merges ask whether a part is empty: a softmax all the same."""

from __future__ import annotations

import itertools

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.lifting.decided import Decided
from fsr.lifting.graph import Graph
from tests.lifting.lifted import computed, lifted

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

KERNEL = """// /// fsr
// entry = "k"
// [sizes]
// rows = {min = 1, max = 4096, timed = 4096}
// n = {min = 1, max = 50304, timed = 32000}
// [args]
// x = {role = "in", shape = ["rows", "n"], dtype = "DTYPE"FINITE}
// y = {role = "out", shape = ["rows"]}
// [launch]
// grid = "rows"
// block = 256
// ///
#include <cuda_fp16.h>
__device__ float wide(float v) { return v; }
__device__ float wide(__half v) { return __half2float(v); }
struct P { float m, s; };
__device__ P merge(P a, P b) { MERGE }
__global__ void k(const TYPE *x, float *y, int rows, int n) {
  const TYPE *r = x + (size_t)blockIdx.x * n;
  const int t = threadIdx.x;
  P a{-INFINITY, 0.0f};
  for (int i = t; i < n; i += 256) a = merge(a, P{wide(r[i]), 1.0f});
  SHARED
  if (t == 0) y[blockIdx.x] = a.s == 0.0f ? -INFINITY : a.m + logf(a.s);
}
"""
TYPES = {"float32": "float", "float16": "__half"}
MERGES = {
    "guarded powers": """float m = fmaxf(a.m, b.m);
      float p = a.m == -INFINITY ? 0.0f : expf(a.m - m), q = b.m == -INFINITY ? 0.0f : expf(b.m - m);
      return P{m, a.s * p + b.s * q};""",
    "guarded smaller": """bool first = a.m > b.m;
      P large = first ? a : b, small = first ? b : a;
      return P{large.m, large.s + (small.m == -INFINITY ? 0.0f : small.s * expf(small.m - large.m))};""",
    "a maximum that is used": """float m = fmaxf(a.m, b.m), used = m == -INFINITY ? 0.0f : m;
      return P{m, a.s * expf(a.m - used) + b.s * expf(b.m - used)};""",
    "an empty part is left": """if (b.s == 0.0f) return a;
      if (a.s == 0.0f) return b;
      float m = fmaxf(a.m, b.m);
      return P{m, a.s * expf(a.m - m) + b.s * expf(b.m - m)};""",
    "larger than the least": """float m = a.m > b.m ? a.m : b.m;
      return P{m, a.s * (a.m > -INFINITY ? expf(a.m - m) : 0.0f) + b.s * (b.m > -INFINITY ? expf(b.m - m) : 0.0f)};""",
}
WAYS = {
    "shuffles": """__shared__ P part[8];
      for (int d = 16; d > 0; d /= 2) a = merge(a, P{__shfl_xor_sync(~0u, a.m, d), __shfl_xor_sync(~0u, a.s, d)});
      if (t % 32 == 0) part[t / 32] = a;
      __syncthreads();
      a = t < 8 ? part[t] : P{-INFINITY, 0.0f};
      for (int d = 4; d > 0; d /= 2) a = merge(a, P{__shfl_xor_sync(~0u, a.m, d), __shfl_xor_sync(~0u, a.s, d)});""",
    "tree": """__shared__ P part[256];
      part[t] = a;
      __syncthreads();
      for (int d = 128; d > 0; d /= 2) {
        if (t < d) part[t] = merge(part[t], part[t + d]);
        __syncthreads();
      }
      a = part[0];""",
}


def _written(merge: str, way: str, dtype: str, finite: str = "") -> str:
    named = {"DTYPE": dtype, "FINITE": finite, "TYPE": TYPES[dtype], "MERGE": MERGES[merge], "SHARED": WAYS[way]}
    text = KERNEL
    for name, value in named.items():
        text = text.replace(name, value)
    return text


@pytest.mark.parametrize(("merge", "way", "dtype"), [
    (merge, way, tuple(TYPES)[n % 3 % 2]) for n, (merge, way) in enumerate(itertools.product(MERGES, WAYS))
])  # fmt: skip
def test_merges_that_ask_whether_a_part_is_empty(tmp_path, merge, way, dtype):
    element = "float32(x[i, k0])" if dtype == "float16" else "x[i, k0]"
    assert computed(tmp_path, _written(merge, way, dtype)) == [
        f"_max[i] = max({element} for k0 in range(n))",
        f"_sum[i] = sum(exp({element} - _max[i]) for k0 in range(n))",
        "y[i] = _max[i] + log(_sum[i])",
    ]


def test_elements_that_may_be_infinite_are_asked(tmp_path):
    found = lifted(tmp_path, _written("guarded powers", "tree", "float32", ", finite = false"), 10)
    assert found.computation is None


def _loads(g: Graph, count: int) -> list[int]:
    return [g.make("load", "x", (g.integer(i, "int64"),)) for i in range(count)]


def _powers(g: Graph, some: list[int], largest: int) -> list[int]:
    return [g.exponential(g.list_of("sum", [k, g.negated(largest)])) for k in some]


def test_a_sum_is_positive_that_has_the_power_of_every_element_of_the_maximum():
    g = Graph()
    x = _loads(g, 4)
    largest = g.list_of("max", x)
    whole, part = (g.list_of("sum", _powers(g, some, largest)) for some in (x, x[:3]))
    zero = g.const(0.0, "float32")
    assert Decided(g).is_positive(whole)
    assert not Decided(g).is_positive(part)
    assert not Decided(g).is_positive(g.exponential(x[0]))  # it may be too small for a number
    assert not Decided(g).is_positive(g.list_of("sum", [whole, x[0]]))
    assert not Decided(g).is_positive(g.list_of("prod", [x[0], x[0]]))
    assert not Decided(g).is_positive(g.op("float16", whole))
    for name, outcome in {"gt": 1.0, "ge": 1.0, "ne": 1.0, "eq": 0.0, "lt": 0.0, "le": 0.0}.items():
        assert g.compared(name, whole, zero) == g.const(outcome, "bool")
    for name, outcome in {"gt": 0.0, "ge": 0.0, "ne": 1.0, "eq": 0.0, "lt": 1.0, "le": 1.0}.items():
        assert g.compared(name, zero, whole) == g.const(outcome, "bool")
    assert g.terms[g.compared("eq", part, zero)][0] == "eq"
    g.infinite, unsure = {"x"}, Decided(g)
    assert not unsure.is_positive(whole)  # infinity less infinity is no number


def test_a_side_of_a_branch_says_nothing_of_the_other():
    g = Graph()
    x = _loads(g, 2)
    condition = g.compared("gt", x[0], g.const(1.0, "float32"))
    assert not Decided(g).is_positive(g.guard(condition, True, g.const(1.0, "float32")))
    assert not Decided(g).is_within(g.guard(condition, True, x[1]))


def test_a_maximum_of_finite_elements_is_no_bound():
    g = Graph()
    x, low, high = _loads(g, 3), g.const(float("-inf"), "float32"), g.const(float("inf"), "float32")
    largest = g.list_of("max", x)
    assert g.compared("eq", largest, low) == g.const(0.0, "bool")
    assert g.compared("eq", g.make("fabs", largest), high) == g.const(0.0, "bool")
    assert g.terms[g.compared("eq", g.make("fabs", x[0]), high)][0] == "eq"  # asked for its own sake
    assert g.terms[g.compared("eq", g.list_of("sum", x[:2]), low)][0] == "eq"  # it may overflow
    other = Graph()
    other.infinite = {"x"}
    low = other.const(float("-inf"), "float32")
    assert other.terms[other.compared("eq", other.list_of("max", _loads(other, 3)), low)][0] == "eq"
