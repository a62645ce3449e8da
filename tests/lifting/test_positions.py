"""Whole scalars of which sizes tell the limits: where in a cache, a ring or a line something is or ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from fsr.contract.flags import asked_of, at_some_places, positions_of, with_choices
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel
from tests.transform.conftest import subject_of

watched = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

KERNEL = """// /// fsr
// entry = "k"
// [sizes]
// heads = {min = 1, max = 64, timed = 32}
// steps = {min = 1, max = 4096, timed = 2048}
// [args]
// q = {role = "in", shape = ["heads", 16], low = -2, high = 2}
// cache = {role = "inout", shape = ["heads", "steps", 16], low = -2, high = 2}
// att = {role = "inout", shape = ["heads", "steps"], low = -9, high = 9}
// at = {low = 0, high = "steps - 1"}
// heads = {value = "heads"}
// steps = {value = "steps"}
// [launch]
// grid = ["ceil_div(steps, 64)", "heads"]
// block = 64
// [tolerance]
// sum_length = "steps"
// ///
__global__ void k(const float *q, float *cache, float *att, int at, int heads, int steps) {
  int t = blockIdx.x * blockDim.x + threadIdx.x, h = blockIdx.y;
BODY
}
"""
STORED = "if (t < 16) cache[(h * steps + at) * 16 + t] = q[h * 16 + t];"
SCORES = """if (t > at) return;
  float s = 0;
  for (int i = 0; i < 16; i++) s += q[h * 16 + i] * cache[(h * steps + t) * 16 + i];
  att[h * steps + t] = s;"""
SOFTMAX = """if (t > 0) return;
  float *x = att + h * steps, high = x[0], sum = 0;
  for (int i = 1; i <= at; i++) if (x[i] > high) high = x[i];
  for (int i = 0; i <= at; i++) { x[i] = expf(x[i] - high); sum += x[i]; }
  for (int i = 0; i <= at; i++) x[i] /= sum;"""
RING = """if (t >= steps) return;
  int from = t <= at ? at - t : at + steps - t;
  att[h * steps + t] = q[h * 16] + cache[(h * steps + from) * 16];"""
BEHIND = "if (t >= steps || t < at) return;\n  att[h * steps + t] = att[h * steps + t] + q[h * 16 + 1];"


def found_in(tmp_path: Path, body: str) -> list[str]:
    path = tmp_path / "k.cu"
    path.write_text(KERNEL.replace("BODY", "  " + body))
    loaded = load_kernel(path)
    found = lift(loaded.contract, loaded.baseline)
    assert found.computation is not None, found.why
    return lines(found.computation)


@watched
@pytest.mark.parametrize(
    ("body", "told"),
    [
        (STORED, "cache[i, j, i2] = (cache[i, j, i2] if j <= at - 1 else (q[i, i2] if j <= at else cache[i, j, i2]))"),
        (SCORES, "att[i, j] = (_sum[i, j] if j <= at else att[i, j])"),
        (SOFTMAX, "att[i, j] = (exp(att[i, j] - _max[i]) / _sum[i] if j <= at else att[i, j])"),
        (RING, "att[i, j] = cache[i, (at - j) % steps, 0] + q[i, 0]"),
        (BEHIND, "att[i, j] = att[i, j] + (0.0 if j <= at - 1 else q[i, 1])"),
    ],
    ids=["stored", "scores", "softmax", "ring", "behind"],
)
def test_what_a_position_decides_is_told_by_it(tmp_path: Path, body: str, told: str) -> None:
    assert told in found_in(tmp_path, body)


def test_positions_are_those_that_sizes_bound() -> None:
    contract = subject_of(KERNEL.replace("BODY", STORED)).contract
    assert [a.name for a in positions_of(contract)] == ["at"]
    assert asked_of(contract) == {"at"}
    for limits in ("{low = 0, high = 100000}", '{value = "steps - 1"}'):
        other = subject_of(KERNEL.replace("BODY", STORED).replace('{low = 0, high = "steps - 1"}', limits)).contract
        assert positions_of(other) == ()
        assert at_some_places(other, {"heads": 3, "steps": 9}) == [{}]


def test_positions_are_watched_within_their_limits_and_not_all_at_one_place() -> None:
    contract = subject_of(KERNEL.replace("BODY", STORED)).contract
    rows = with_choices(contract, [{"heads": 3, "steps": 9}, {"heads": 2, "steps": 12}, {"heads": 4, "steps": 1}])
    assert all(0 <= row["at"] < row["steps"] for row in rows)
    assert len({row["at"] for row in rows if row["steps"] == 12}) == 2
    assert at_some_places(contract, {"heads": 3, "steps": 9}) == [{"at": 0}, {"at": 4}, {"at": 8}]


PAIRS = """// /// fsr
// entry = "k"
// [sizes]
// frames = {min = 1, max = 256, timed = 256}
// n = {min = 1, max = 64, timed = 32}
// [args]
// x = {role = "in", dtype = "float32", shape = [4, 2, "frames", "n"], low = -9, high = 9}
// y = {role = "out", dtype = "float32", shape = ["n"]}
// a = {low = 0, high = 3}
// b = {low = 0, high = 3}
// p = {low = 0, high = 1}
// q = {low = 0, high = 1}
// frames = {value = "frames"}
// n = {value = "n"}
// [launch]
// grid = 1
// block = "n"
// [tolerance]
// sum_length = "frames"
// ///
__global__ void k(const float *x, float *y, int a, int b, int p, int q, int frames, int n) {
  float s = 0;
  for (int f = 0; f < frames; f++)
    s += x[((a * 2 + p) * frames + f) * n + threadIdx.x] * x[((b * 2 + q) * frames + f) * n + threadIdx.x];
  y[threadIdx.x] = s;
}
"""


def test_scalars_that_go_over_an_extent_are_positions_where_they_are_too_many_for_flags(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(PAIRS)
    contract = load_kernel(tmp_path / "k.cu").contract
    assert [a.name for a in positions_of(contract)] == ["a", "b", "p", "q"]
    rows = with_choices(contract, [{"frames": n, "n": 2} for n in range(2, 14)])
    assert all(0 <= row["a"] < row["b"] <= 3 for row in rows)  # they come in one order
    assert {(row["p"], row["q"]) for row in rows} == {(0, 0), (0, 1), (1, 0), (1, 1)}
    (tmp_path / "k.cu").write_text(
        PAIRS.replace("a = {low = 0, high = 3}", "a = {value = 1}").replace(
            "b = {low = 0, high = 3}", "b = {value = 2}"
        )
    )
    assert positions_of(load_kernel(tmp_path / "k.cu").contract) == ()  # four values together are flags


@watched
def test_what_two_of_them_choose_of_one_buffer_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(PAIRS)
    kernel = load_kernel(tmp_path / "k.cu")
    found = lift(kernel.contract, kernel.baseline, limit_s=60)
    assert found.computation is not None, found.why
    assert lines(found.computation) == ["y[i] = sum(x[a, p, k0, i] * x[b, q, k0, i] for k0 in range(frames))"]
