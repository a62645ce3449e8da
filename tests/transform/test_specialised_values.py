"""specialised-values: a way for the timed numbers, the original's for any others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.source.parse import parse_kernels
from fsr.transform.details.specialised_values import SpecialisedValues

SIZES = [{"n": 40, "d": 3, "k": 5}, {"n": 7, "d": 3, "k": 5}, {"n": 9, "d": 4, "k": 5}, {"n": 33, "d": 1, "k": 7}]
PARTS = """
// /// fsr
// entry = "parts"
// [sizes]
// n = {min = 1, max = 100000, timed = 50000}
// d = {min = 1, max = 200, timed = 3}
// k = {min = 1, max = 9, timed = 5}
// [args]
// x = {role = "in", dtype = "float32", shape = ["n", "d"], low = -2, high = 2}
// w = {role = "in", dtype = "float32", shape = ["k"], low = -2, high = 2}
// y = {role = "out", dtype = "float32", shape = ["n", "d"]}
// n = {value = "n"}
// d = {value = "d"}
// taps = {value = "k"}
// [launch]
// grid = "ceil_div(n * d, 64)"
// block = 64
// ///
__global__ void parts(const float *x, const float *w, float *y, int n, unsigned d, int taps)
{
    __shared__ float held[9];
    const int t = blockIdx.x * 64 + threadIdx.x;
    if (threadIdx.x < taps) held[threadIdx.x] = w[threadIdx.x];
    __syncthreads();
    if (t >= n * d) return;
    const int row = t / d, col = t % d;
    float sum = 0;
    for (int j = 0; j < taps; ++j) sum += held[j] * x[min(row + j, n - 1) * d + col];
    y[t] = sum;
}
"""


def test_both_ways_do_the_same(subject_from, runner) -> None:
    subject, action = subject_from(PARTS), SpecialisedValues()
    moves = list(action.moves(subject))
    assert {m.param("loops") for m in moves} == {"kept", "whole"}
    for move in moves:
        changed = action.apply(subject, move)
        assert "if (d == (unsigned)3 && taps == 5)" in changed.source
        assert changed.source.count("__shared__") == 1
        runner.check(subject, changed, *SIZES)
        assert not list(
            action.moves(replace(subject, candidate=changed, kernels=parse_kernels(changed.source)))
        )  # once is enough


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("d = {min = 1, max = 200, timed = 3}", "d = 3"),
        ("const int row", "d += 0; const int row"),
    ],
    ids=["always the same", "written"],
)
def test_what_is_no_number_of_what_is_timed_stays(old: str, new: str, subject_from) -> None:
    assert old in PARTS
    subject = subject_from(PARTS.replace(old, new))
    for move in SpecialisedValues().moves(subject):
        source = SpecialisedValues().apply(subject, move).source
        assert "if (taps == 5)" in source
        assert "d ==" not in source


def _several(subject_from, n: str, d: str, k: str = "5"):
    text = PARTS.replace("timed = 50000", f"timed = {n}").replace("timed = 3", f"timed = {d}")
    return subject_from(text.replace("timed = 5}", f"timed = {k}}}"))


def test_each_timed_size_has_its_way(subject_from, runner) -> None:
    subject = _several(subject_from, "[50000, 40000, 30000]", "[3, 4, 3]", "[5, 7, 5]")
    moves = list(SpecialisedValues().moves(subject))
    assert {m.param("loops") for m in moves} == {"kept", "whole"}
    for move in moves:
        changed = SpecialisedValues().apply(subject, move)
        first, second = "if (d == (unsigned)3 && taps == 5)", "if (d == (unsigned)4 && taps == 7)"
        assert changed.source.count(first) == changed.source.count(second) == 1
        assert changed.source.count("d ==") == 2
        runner.check(subject, changed, *SIZES, {"n": 9, "d": 4, "k": 7})


@pytest.mark.parametrize("d", ["[1, 2, 3, 4, 6]", "[3, 200]"], ids=["too many", "too large"])
def test_of_too_many_ways_or_large_ones_those_that_vary_stay(d: str, subject_from) -> None:
    subject = _several(subject_from, "50000", d)
    for move in SpecialisedValues().moves(subject):
        source = SpecialisedValues().apply(subject, move).source
        assert "if (taps == 5)" in source
        assert "d ==" not in source


def test_lengths_of_data_are_no_shapes(subject_from) -> None:
    text = PARTS.replace("int j = 0; j < taps", "int j = 0; j < n").replace("t / d, col = t % d", "t, col = 0")
    assert not list(SpecialisedValues().moves(subject_from(text.replace("held[j]", "held[0]"))))


def test_memory_of_the_block_within_something_else_stays_away(subject_from) -> None:
    inside = PARTS.replace("float sum = 0;", "float sum = 0; { __shared__ int more; more = 1; sum += more; }")
    assert not list(SpecialisedValues().moves(subject_from(inside)))
