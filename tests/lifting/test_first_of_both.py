"""Places of extremes that threads find in parts and merge, of equals the first one's."""

from __future__ import annotations

import random

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.lifting.chosen import with_selects
from fsr.lifting.graph import Graph
from tests.lifting.lifted import computed, lifted

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

HEAD = """// /// fsr
// entry = "k"
// [sizes]
// rows = {min = 1, max = 4096, timed = 256}
// n = {min = 1, max = 60000, timed = 32000}
// [args]
// x = {role = "in", shape = ["rows", "n"]}
// y = {role = "out", shape = ["rows"]}
// n = {value = "n"}
// [launch]
// grid = "rows"
// block = THREADS
// ///
#include <cuda_bf16.h>
#include <limits>
"""
BODY = """__global__ void k(const TYPE *x, int *y, int n) {
  SHARED
  const TYPE *row = x + (size_t)blockIdx.x * n;
  int t = threadIdx.x;
  float v = START; int at = BEGIN;
  for (int i = t; i < n; i += blockDim.x) { float u = (float)row[i]; if (OWN) { v = u; at = i; } }
  MERGES
}
"""
TREE = """value[t] = v; place[t] = at;
  __syncthreads();
  for (int d = THREADS / 2; d > 0; d >>= 1) {
    STEP
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = place[0];"""
STEPS = {
    "elements": """if (t < d) if (value[t + d] IS value[t] || (value[t + d] == value[t] && place[t + d] < place[t])) {
      value[t] = value[t + d]; place[t] = place[t + d]; }""",
    "variables": """if (t < d) { float o = value[t + d], m = value[t]; int p = place[t + d], q = place[t];
      if (o IS m || (o == m && p < q)) { value[t] = o; place[t] = p; } }""",
    "joined": """if (t < d && (value[t + d] IS value[t] || (value[t + d] == value[t] && place[t + d] < place[t]))) {
      place[t] = place[t + d]; value[t] = value[t + d]; }""",
}
SHUFFLES = """for (int d = 16; d > 0; d >>= 1) {
    float o = __shfl_down_sync(~0u, v, d); int p = __shfl_down_sync(~0u, at, d);
    if (o IS v || (o == v && p < at)) { v = o; at = p; }
  }
  if (t % 32 == 0) { value[t / 32] = v; place[t / 32] = at; }
  __syncthreads();
  if (t == 0) {
    for (int w = 1; w < THREADS / 32; w++)
      if (value[w] IS v || (value[w] == v && place[w] < at)) { v = value[w]; at = place[w]; }
    y[blockIdx.x] = at;
  }"""


def composed(seed: int) -> tuple[str, str, str]:
    """A kernel, what it finds, and how its elements are read."""
    chance = random.Random(seed)
    threads, largest = chance.choice([64, 128, 256, 512]), chance.random() < 0.6
    merges = SHUFFLES if chance.random() < 0.3 else TREE.replace("STEP", chance.choice(list(STEPS.values())))
    low = chance.choice(["-INFINITY", "-3.402823466e+38f", "-std::numeric_limits<float>::infinity()"])
    own = chance.choice(["u IS v", "u IS v || (u == v && i < at)"])
    text = BODY.replace("MERGES", merges).replace("OWN", own)
    text = text.replace("START", low if largest else low[1:]).replace("IS", ">" if largest else "<")
    text = text.replace("BEGIN", chance.choice(["0", "-1", "n", "0x7fffffff"]))
    dynamic = """extern __shared__ unsigned char memory[];
  float *value = reinterpret_cast<float *>(memory);
  int *place = reinterpret_cast<int *>(value + THREADS);"""
    plain = "__shared__ float value[THREADS]; __shared__ int place[THREADS];"
    carved = chance.random() < 0.4
    head = HEAD.replace("// ///\n#", f"// shared_bytes = {8 * threads}\n// ///\n#") if carved else HEAD
    text = head + text.replace("SHARED", dynamic if carved else plain)
    half = chance.random() < 0.5
    text = text.replace("TYPE", "__nv_bfloat16" if half else "float").replace("THREADS", str(threads))
    element = "float32(x[i, k0])" if half else "x[i, k0]"
    return text, "argmax" if largest else "argmin", element


@pytest.mark.parametrize("seed", range(16))
def test_the_first_of_equals_of_parts_of_a_row(tmp_path, seed):
    text, found, element = composed(seed)
    assert computed(tmp_path, text) == [f"y[i] = {found}(pair({element}, k0) for k0 in range(n))"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" || (value[t + d] == value[t] && place[t + d] < place[t])", ""),  # of equals the first thread's
        ("place[t + d] < place[t]", "place[t + d] > place[t]"),
        ("value[t + d] > value[t] ||", "value[t + d] >= value[t] ||"),
        ("if (u > v)", "if (u >= v)"),
    ],
)
def test_others_of_equals_are_no_first_ones(tmp_path, old, new):
    text = HEAD + BODY.replace("MERGES", TREE.replace("STEP", STEPS["elements"])).replace("OWN", "u > v")
    text = text.replace("SHARED", "__shared__ float value[64]; __shared__ int place[64];").replace("TYPE", "float")
    text = text.replace("START", "-INFINITY").replace("BEGIN", "0").replace("IS", ">").replace("THREADS", "64")
    assert lifted(tmp_path, text).computation is not None
    assert old in text
    assert lifted(tmp_path, text.replace(old, new)).computation is None


def test_only_what_a_branch_may_store_anyway_is_a_select():
    def told(line: str) -> bool:
        body = f"__shared__ float s[64]; int t = threadIdx.x; float v = x[t], w = 2 * v; {line}"
        text = f"__global__ void k(float *x, float *y, int n) {{ {body} }}"
        return with_selects(text) != text

    assert told("if (s[t] > v) s[t] = v;")
    assert told("if (t < n && s[t] > v) { s[t] = v; w = 1; }")
    assert told("if (v > 1 || w < 3) w = v;")
    assert not told("if (t < n) s[t] = v;")  # no data decides
    assert not told("if (v > 1) s[t] = v;")  # there may be no such element
    assert not told("if (s[t] > v) s[t] = sinf(v);")
    assert not told("if (s[t] > v) s[t] = v; else s[t] = 0;")
    assert not told("if (s[t] > v) { s[t] = v; __syncthreads(); }")
    assert not told("if (s[t] > v) s[t] += v;")
    assert not told("if (s[t] > v && t + 1 < n && s[t + 1] > v) s[t + 1] = v;")  # it may be the last one
    assert not told("if (t < 9) { v = s[t + 9]; } if (s[t] > v) s[t + 9] = v;")
    assert "&&" in with_selects("__global__ void k(float *s, int n) { if (s[0] > 1 || (n && s[1] < 2)) s[0] = 1; }")


def test_conditions_that_are_known_are_none():
    g = Graph()
    element = g.make("load", "x", (g.integer(0, "int64"),))
    asked, yes, no = g.compared("gt", element, g.const(2.0, "float32")), g.const(1.0, "bool"), g.const(0.0, "bool")
    assert (g.op("and", asked, yes), g.op("or", asked, no)) == (asked, asked)
    assert (g.op("and", no, asked), g.op("or", yes, asked)) == (no, yes)
    pairs = tuple(g.make("pair", element, g.integer(i, "int32")) for i in (3, 9))
    place = g.make("argmax", pairs)
    assert g.compared("gt", place, g.integer(2, "int32")) == yes
    assert g.compared("gt", place, g.integer(10, "int32")) == no
    assert g.terms[g.compared("gt", place, g.integer(5, "int32"))][0] == "gt"
    assert g.compared("eq", place, g.integer(10, "int32")) == no
