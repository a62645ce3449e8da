"""unroll-functions: loops of constant length in functions of the file get a pragma, all others stay."""

from __future__ import annotations

import pytest

from fsr.transform.details.function_loops import UnrollFunctions

TEXT = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096, timed = 1024}
// [args]
// x = {role = "in", shape = ["n"], dtype = "uint32"}
// y = {role = "out", shape = ["n"], dtype = "uint32"}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
#define ROUNDS 24
__device__ unsigned mix(unsigned v, int some) {
  unsigned m[16], i, j;
  for (i = 0, j = 1; i < 4; ++i, j += 2) { m[i] = v + j; }
  for ( ; i <= 15; ++i)
    m[i] = m[i - 1] * 3 + m[i - 4];
  if (some) for (int r = 0; r < 3; r++) v += r;
  for (int r = 0; r < some; r++) v ^= m[r & 15];
  for (int r = 0; r < ROUNDS; r++) { v = v * 31 + m[r & 15]; for (int q = 0; q < 2; q++) v ^= v >> 7; }
  for (int r = 0; r < 1000; r++) v += r;
  return v;
}
__global__ void k(const unsigned *x, unsigned *y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) { y[i] = 0; for (int t = 0; t < 2; ++t) y[i] += mix(x[i], t); }
}"""


def test_loops_of_functions_are_unrolled(subject_from, runner) -> None:
    subject, action = subject_from(TEXT), UnrollFunctions()
    (move,) = action.moves(subject)
    changed = action.apply(subject, move)
    lines = changed.source.split("\n")
    unrolled = [lines[at + 1].strip() for at, line in enumerate(lines) if line.strip() == "#pragma unroll"]
    assert [text.split(";")[1].strip() for text in unrolled] == ["i < 4", "i <= 15", "r < 3", "r < ROUNDS", "q < 2"]
    runner.check(subject, changed, {"n": 70}, {"n": 1})
    assert not list(action.moves(subject_from(changed.source.join([TEXT.split("#define")[0], ""]))))


@pytest.mark.parametrize("bound", ["some", "1000", "1", "2 * some"])
def test_other_lengths_stay(bound: str, subject_from) -> None:
    head, body = TEXT.split("__device__")
    loop = f"for (int r = 0; r < {bound}; ++r) v += r;"
    plain = f"{head}__device__ unsigned mix(unsigned v, int some) {{ {loop} return v; }}\n"
    assert not list(UnrollFunctions().moves(subject_from(plain + "__global__" + body.split("__global__")[1])))


GIVEN = """// /// fsr
// entry = "k<2, 5>"
// [sizes]
// n = {min = 1, max = 4096, timed = 1024}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__device__ void settle(float *v, int count, int passes) {
  for (int i = 0; i < count - 1; i++)
    for (int j = 0; j < count - 1 - i; j++) if (v[j] > v[j + 1]) { float t = v[j]; v[j] = v[j + 1]; v[j + 1] = t; }
  for (int p = 0; p < passes; p++) v[p] += 1.0f;
}
template <int R> __device__ float one(float v) { for (int r = -R; r <= R; ++r) v += r; return v; }
template <int R, int W> __global__ void k(const float *x, float *y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x, at = 0;
  float v[W * W];
  if (i >= n) return;
  for (int r = -R; r <= R; ++r) {
    for (int c = -R; c <= R; c++) { v[at++] = x[(i + r * c + n) % n]; }
  }
  for (int t = 0; t < 4; ++t) y[i] = one<3>(x[i]);
  for (int t = 0; t < n; ++t) v[t % W] += 1.0f;
  settle(v, W, n % 3);
  y[i] += v[R];
}"""


def _unrolled(text: str) -> list[str]:
    lines = text.split("\n")
    return [lines[at + 1].strip().split(";")[1].strip() for at, line in enumerate(lines) if "#pragma" in line]


def test_what_calls_give_is_constant(subject_from, runner) -> None:
    subject, action = subject_from(GIVEN), UnrollFunctions()
    (move,) = action.moves(subject)
    changed = action.apply(subject, move)
    assert _unrolled(changed.source) == ["i < count - 1", "j < count - 1 - i", "r <= R", "r <= R", "c <= R"]
    runner.check(subject, changed, {"n": 70}, {"n": 7})


@pytest.mark.parametrize("change", [
    ("settle(v, W, n % 3);", "settle(v, W, n % 3); settle(v, n % 4, 0);"),  # another length elsewhere
    ("settle(v, W, n % 3);", "settle(v, n % 4, n % 3);"),
    ("int passes) {", "int passes) { count += passes;"),
])  # fmt: skip
def test_what_is_not_constant_at_every_call_stays(change: tuple[str, str], subject_from) -> None:
    subject, action = subject_from(GIVEN.replace(*change)), UnrollFunctions()
    (move,) = action.moves(subject)
    assert _unrolled(action.apply(subject, move).source) == ["r <= R", "r <= R", "c <= R"]


def test_unrolling_makes_no_more_than_a_compiler_has_time_for(subject_from) -> None:
    subject, action = subject_from(GIVEN.replace("k<2, 5>", "k<2, 100>")), UnrollFunctions()
    (move,) = action.moves(subject)
    assert "i < count - 1" not in _unrolled(action.apply(subject, move).source)
