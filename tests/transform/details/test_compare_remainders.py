"""compare-remainders: the same numbers, of whatever types and signs, in every function of the file."""

from __future__ import annotations

import pytest

from fsr.transform.details.compare_remainders import CompareRemainders

ACTION = CompareRemainders()
TEXT = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096, timed = 1024}
// [args]
// x = {role = "in", shape = ["n"], dtype = "int32", low = -9, high = 9}
// y = {role = "out", shape = ["n"], dtype = "int64"}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
#define SIDE 8
struct Grid { int n; };
inline __device__ int wrapped(int i, int n) { return (i + n) % n; }
__global__ void k(const int *x, long long *y, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return; /* (i + n) % n */
  int a = x[i]; unsigned u = i; long long w = a; Grid g = {n}; unsigned char c = i;
  y[i] = BODY;
}"""


@pytest.mark.parametrize(
    ("body", "which", "new"),
    [
        ("wrapped(i - 1, n)", "sums", "fsr_remainder((i + n), n)"),
        ("x[(i + 1) % n] + (i + n - 1) % n * 3", "sums", "fsr_remainder((i + n - 1), n) * 3"),
        ("(a - 3) % n + (a * 5) % n", "all", "fsr_remainder((a * 5), n)"),
        ("(u + n) % g.n - (w - 7) % n", "sums", "fsr_remainder((u + n), g.n) - fsr_remainder((w - 7), n)"),
        ("(a + u) % n", "sums", "fsr_remainder((a + u), n)"),
        ("(c + 300) % n + (w + 1) % u", "sums", "fsr_remainder((c + 300), n)"),
        ("a < i % n ? 1 : 2", "all", "a < fsr_remainder(i, n) ?"),
    ],
)
def test_remainders_are_the_same(body: str, which: str, new: str, subject_from, runner) -> None:
    subject = subject_from(TEXT.replace("BODY", body.replace("% u", "% (u + 1)") if "% u" in body else body))
    (move,) = (m for m in ACTION.moves(subject) if m.param("which") == which)
    changed = ACTION.apply(subject, move)
    assert new in changed.source
    assert "/* (i + n) % n */" in changed.source
    runner.check(subject, changed, {"n": 1}, {"n": 5}, {"n": 70}, {"n": 300})


def test_constants_of_templates_and_helpers_stay(subject_from) -> None:
    helper = "template <int N> __device__ int f(int i) { return (i + 1) % N; }\n"
    helper += "__device__ int fsr_at(int i, int n) { return (i + 1) % n; }\n"
    plain = TEXT.replace("return (i + n) % n;", "return i;").replace("__global__ void k", helper + "__global__ void k")
    assert list(ACTION.moves(subject_from(plain.replace("BODY", "f<3>(i) + fsr_at(i, n)")))) == []


@pytest.mark.parametrize(
    "body", ["(i + 1) % 7", "(i + 1) % SIDE", "a * i % n", "x[i] % n", "(i + 1) % x[0]", "wrapped(i, n) % 5", "a"]
)
def test_what_is_known_or_may_mean_something_else_stays(body: str, subject_from) -> None:
    plain = TEXT.replace("return (i + n) % n;", "return i;")
    assert list(ACTION.moves(subject_from(plain.replace("BODY", body)))) == []
