"""share-loop in kernels of structures: elements with members, functions that return them in braces, counters in one,
and flags that are set by an exchange; kernels are composed, and some must be refused."""

from __future__ import annotations

import random

import numpy as np
import pytest

from fsr.transform.lanes.action import LANES, ShareLoop

TEXT = """
// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096, timed = 1024}
// m = {min = 0, max = 4096, timed = 128}
// [args]
// p = {role = "in", shape = ["n * m + 1", 3]}
// ptr = {role = "in", dtype = "int32", shape = ["n + 1"]}
// y = {role = "inout", shape = ["n"]}
// r = {role = "inout", shape = ["n", 2]}
// work = {role = "inout", shape = [1, 3]}
// error = {role = "inout", shape = [1]}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// [tolerance]
// sum_length = "m"
// ///
struct Vec { float x, y, z; };
struct Pair { float value; float first; };
struct Work { unsigned long long turns; unsigned long long near; unsigned long long rows; };
__device__ Vec less(const Vec &a, Vec b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
__device__ Pair pair_of(Vec v) {
    float f = 0.0f;
    if (v.x < 2.0f) { f = v.x + v.y; } else if (v.y < 1.0f) f = v.z;
    return {f, 2.0f * (f > 1.0f ? f : 1.0f)};
}
__device__ Vec third(const Vec *p, int at) { return {p[at].z, p[at].x, 0.0f}; }
__global__ void k(const Vec *p, const int *ptr, float *y, Pair *r, Work *work, int *error, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const Vec own = {p[i % 5 % n].x, 1.0f, p->y};
    float sum = 0.0f, most = 0.0f;
    unsigned long long turns = 0;
    for (int e = ptr[i]; e < ptr[i + 1]; ++e) {
        BODY
    }
    BEHIND
}
"""
BODIES = [
    "const Vec d = less(own, p[e]); sum += d.x + d.y * d.z;",
    "const Pair q = pair_of(p[e]); sum += q.value; most = fmaxf(most, q.first);",
    "const Vec d = third(p, e); const Vec t = less(d, own); sum += t.x * t.y;",
    "turns++;",
    "if (p[e].x > 1.0f) { atomicAdd(&work->near, 1ull); }",
    "if ((p + e)->y > 1.0f) { sum += (p + e)->z; turns += 2; }",
]
BEHIND = [
    "y[i] = sum; if (y[i] > 2.0f) { atomicAdd(&work->rows, 1ull); }",
    "r[i].value = sum; r[i].first = most;",
    "(r + i)->first = sum + most;",
    "if (!isfinite(sum) || sum > 5.0f) { atomicExch(error, 3); }",
    "atomicAdd(&work->turns, turns);",
    "atomicAdd(&work[0].turns, turns);",
]
SIZES = [{"n": n, "m": m} for n, m in [(1, 0), (3, 5), (33, 4), (70, 37)]]


def given(sizes: dict[str, int]) -> dict[str, np.ndarray]:
    n, m = sizes["n"], sizes["m"]
    lengths = np.random.default_rng(n + m).integers(0, m + 1, size=n)
    return {"ptr": np.concatenate([[0], np.cumsum(lengths)]), "work": np.zeros((1, 3)), "error": np.zeros(1)}


def composed(seed: int) -> str:
    rng = random.Random(seed)
    body, behind = rng.sample(BODIES, rng.randint(1, 4)), rng.sample(BEHIND, rng.randint(1, 4))
    return TEXT.replace("BODY", "{" + "} {".join(body) + "}").replace("BEHIND", "\n".join([*behind, "y[i] += sum;"]))


@pytest.mark.parametrize("seed", range(16))
def test_lanes_give_what_the_thread_gave(seed, subject_from, runner):
    subject = subject_from(composed(seed))
    moves = list(ShareLoop().moves(subject))
    assert {m.param("lanes") for m in moves} == set(LANES)
    few = random.Random(seed).sample(moves, 2)
    for sizes in SIZES:
        want = runner.outputs(subject.candidate, subject.contract, sizes, given=given(sizes))
        for move in few:
            got = runner.outputs(ShareLoop().apply(subject, move), subject.contract, sizes, given=given(sizes))
            for name in want:
                np.testing.assert_allclose(got[name], want[name], 2e-4, 1e-4, err_msg=f"{move.name} {name} {sizes}")
    changed = ShareLoop().apply(subject, few[0])
    told = runner.outputs(changed, subject.contract, SIZES[2], given=given(SIZES[2]), instrumented=True)
    assert [str(f) for f in told["faults"]] == []


@pytest.mark.parametrize(
    "turn",
    [
        "atomicExch(error, e);",  # that of the last turn stays
        "turns += atomicExch(error, e);",
        "atomicExch(&work->near, 1ull * e);",
        "if (work->near < 3) { atomicAdd(&work->near, 1ull); }",
        "if (r->first > 1.0f) { r->value += p[e].x; }",
        "work->near += 1;",
        "r[i].value = p[e].x;",
        "Pair q = pair_of(p[e]); q = {sum, q.first}; y[i] = q.value; sum += q.first;",
        "atomicAdd(&work->near, 1ull); atomicMax(&work->near, 2ull);",
    ],
)
def test_no_move_where_turns_depend_on_one_another(turn, subject_from):
    text = TEXT.replace("BEHIND", "y[i] = sum;").replace("BODY", f"sum += p[e].x; {turn}")
    assert list(ShareLoop().moves(subject_from(text))) == []
