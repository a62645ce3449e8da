"""Threads that accumulate in several slots of one shared memory keep them in variables, where no slot is another."""

from __future__ import annotations

import pytest

from fsr.transform.details.register_promotion import RegisterPromotion
from tests.transform.conftest import subject_of

ACTION = RegisterPromotion()
HEAD = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 512, timed = 128}
// m = {min = 0, max = 64, timed = 32}
// [args]
// x = {role = "in", shape = ["n * m + 65"]}
// y = {role = "out", shape = ["n"]}
// z = {role = "out", shape = ["n"]}
// n = {value = "n"}
// m = {value = "m"}
// far = {value = 64}
// [launch]
// grid = "ceil_div(n, 64)"
// block = BLOCK
// shared_bytes = 1536
// ///
__global__ void k(const float *x, float *y, float *z, int n, int m, int far) {
  int id = blockIdx.x * 64 + threadIdx.x + blockDim.x * threadIdx.y;
"""
SIZES = ({"n": 1, "m": 0}, {"n": 70, "m": 5}, {"n": 128, "m": 33})
LOOP = """
  A = 0;
  B = -1;
  if (id < n) {
    int j = id % 2;
    while (j < m) {
      float v = x[id * m + j];
      A += v;
      B = fmaxf(B, v * v);
      j += 1;
    }
  }
  __syncthreads();
  if (id < n) { y[id] = A; z[id] = B; }
}"""
CUT = "extern __shared__ float all[];\n  float *s = (float *)all;\n  float *r = (float *)all + BY;\n"
PLACE = "  const int at = threadIdx.x + blockDim.x * threadIdx.y;"
BYTES = """extern __shared__ unsigned char all[];
  double *s = reinterpret_cast<double *>(all);
  double *r = s + blockDim.x * blockDim.y;
"""


def kernel(before: str, a: str, b: str, block: str = "64", loop: str = LOOP) -> str:
    return HEAD.replace("BLOCK", block) + before + loop.replace("A", a).replace("B", b)


KEPT = {
    "dynamic memory, cut in two": kernel(CUT.replace("BY", "far") + PLACE, "s[at]", "r[at]"),
    "blocks of two dimensions": kernel(CUT.replace("BY", "far") + PLACE, "s[at]", "r[at]", "[16, 4]"),
    "as far as a block": kernel(CUT.replace("BY", "blockDim.x"), "s[threadIdx.x]", "r[threadIdx.x]"),
    "cut from bytes": kernel(BYTES + PLACE, "s[at]", "r[at]", "[16, 4]"),
    "an address": kernel("__shared__ float s[128]; float *r = &s[64];", "s[threadIdx.x]", "r[threadIdx.x]"),
    "side by side": kernel("__shared__ float s[128];", "s[2 * threadIdx.x]", "s[2 * threadIdx.x + 1]"),
    "rows": kernel("__shared__ float s[3][64];", "s[0][threadIdx.x]", "s[2][threadIdx.x]"),
    "set right before": kernel(
        "__shared__ float s[128]; float *r = s + 64;", "s[threadIdx.x]", "r[threadIdx.x]",
        loop=LOOP.replace("if (id < n) {\n    int", "{\n    int").replace("j < m", "id < n && j < m"),
    ),
}  # fmt: skip
LEFT = {
    "the same place": kernel("__shared__ float s[64]; float *r = s;", "s[threadIdx.x]", "r[threadIdx.x]"),
    "perhaps the same": kernel("__shared__ float s[128]; float *r = s + m;", "s[threadIdx.x]", "r[threadIdx.x]"),
    "parts of each other": kernel(
        "__shared__ double s[64]; float *r = (float *)s + 1;", "s[threadIdx.x]", "r[2 * threadIdx.x]"),
    "another thread's": kernel("__shared__ float s[128];", "s[threadIdx.x]", "s[2 * threadIdx.x + 1]"),
    "a distance that was another": kernel(
        "__shared__ float s[256]; int off = 64; float *r = s + off; off = 0;", "s[threadIdx.x]",
        "r[threadIdx.x - 64 + off]"),
    "a pointer that moves": kernel(
        "__shared__ float s[256]; float *r = s + 64; r -= 64;", "s[threadIdx.x]", "r[threadIdx.x]"),
    "two memories, of which one is chosen": kernel(
        "__shared__ float s[128]; float *r = n > 3 ? s : s + 64;", "s[threadIdx.x]", "r[threadIdx.x]"),
    "everybody's": kernel(
        "__shared__ float s[128];", "s[threadIdx.x]", "s[64]"),
    "two declared": kernel(
        "extern __shared__ float s[]; extern __shared__ float r[];", "s[threadIdx.x]", "r[threadIdx.x + 64]"),
}  # fmt: skip


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_slots_that_are_apart_are_kept(runner, text):
    subject = subject_of(text)
    made = ACTION.apply(subject, next(ACTION.moves(subject)))
    loop = made.source[made.source.index("while") : made.source.index("j++")]
    assert "s[" not in loop
    assert "r[" not in loop
    runner.check(subject, made, *SIZES)
    assert runner.faults(made, subject.contract, SIZES[1]) == []


@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT)
def test_slots_that_may_be_others_stay(text):
    assert list(ACTION.moves(subject_of(text))) == []
