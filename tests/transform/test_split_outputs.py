"""split-outputs: blocks of their own for what makes each output, and none where one output is made by another."""

from __future__ import annotations

import pytest

from fsr.transform.launch.split_outputs import SplitOutputs

SIZES = [{"n": n, "m": m} for n, m in [(1, 1), (3, 2), (5, 9)]]


def kernel(body: str, *, grid: str = '"n"', before: str = "") -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 64, timed = 16}}
// m = {{min = 1, max = 300, timed = 128}}
// [args]
// x = {{role = "in", dtype = "float32", shape = ["n", "m", 32], low = -2, high = 2}}
// p = {{role = "inout", dtype = "float32", shape = ["n", "m", 32], low = -2, high = 2}}
// q = {{role = "inout", dtype = "float32", shape = ["n", "m", 32], low = -2, high = 2}}
// s = {{role = "inout", dtype = "float32", shape = ["n", 32], low = -2, high = 2}}
// m = {{value = "m"}}
// [launch]
// grid = {grid}
// block = 32
// ///
{before}
__global__ void k(const float *x, float *p, float *q, float *s, int m)
{{
{body}
}}
"""


SWEEPS = """
    const int b = blockIdx.x, t = threadIdx.x;
    x += b * m * 32;
    __shared__ float row[32];
    float state[4] = {0}, other[4] = {0}, all = 0;
    for (int i = 0; i < m; ++i) {
        __syncthreads();
        row[t] = x[i * 32 + t];
        __syncthreads();
        const float k = row[31 - t];
        float one = 0;
        for (int j = 0; j < 4; ++j) {
            float &cell = state[j];
            one += cell * k;
            all += one * row[j];
            cell = cell * 0.5f + row[(t + j) % 32];
        }
        p[(b * m + i) * 32 + t] += one;
    }
    s[b * 32 + t] = all;
    for (int j = 0; j < 4; ++j) state[j] = 0;
    for (int i = m - 1; i >= 0; --i) {
        __syncthreads();
        row[t] = x[i * 32 + t] + 1;
        __syncthreads();
        float k = 1;
        for (int j = 0; j < 4; ++j) {
            other[j] = other[j] * 0.25f + row[j];
            state[j] += other[j] * k;
            k += state[j];
        }
        q[(b * m + i) * 32 + t] = k;
    }
"""
LEAVES = """
    const int b = blockIdx.x, t = threadIdx.x;
    if (t >= m) return;
    float sum = 0, most = x[b * m * 32 + t];
    int place = 0;
    for (int i = 0; i < m; ++i) {
        const float v = x[(b * m + i) * 32 + t];
        if (v < -1.5f) break;
        if (v > most) { most = v; place = i; }
        sum += v * v;
    }
    p[b * m * 32 + t] = sum;
    q[b * m * 32 + t] = most;
    atomicAdd(&s[b * 32 + t], place);
"""


@pytest.mark.parametrize("text", [kernel(SWEEPS), kernel(LEAVES)], ids=["sweeps", "leaves"])
def test_all_outputs_are_what_they_were(text: str, subject_from, runner) -> None:
    subject, action = subject_from(text), SplitOutputs()
    moves = list(action.moves(subject))
    assert moves
    for move in moves:
        changed = action.apply(subject, move)
        assert changed.plan.launches[0].grid[1] == str(move.param("parts"))
        runner.check(subject, changed, *SIZES)


def test_a_sweep_that_makes_another_output_goes(subject_from, apply_move) -> None:
    changed = apply_move(SplitOutputs(), subject_from(kernel(SWEEPS)), "[parts=2]").source
    q = changed[changed.index("// makes q") :].split("// makes")[1]
    assert "other[j] * 0.25f" in q
    assert "x[i * 32 + t];" not in q  # the first sweep
    assert "all" not in q
    both = changed[changed.index("// makes p, s") :].split("// makes")[1]  # s is made by what p is
    assert "cell * 0.5f" in both
    assert "other" not in both


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("q[(b * m + i) * 32 + t] = k;", "q[(b * m + i) * 32 + t] = k + p[(b * m + i) * 32 + t];"),
        ("float one = 0;", "float one = q[(b * m + i) * 32 + t];"),
        ("const float k = row[31 - t];", "const float k = elsewhere(row);"),
        ("const float k = row[31 - t];", "const float k = row[31 - t] + gridDim.y; unsigned *z = &gridDim.x;"),
        ("        __syncthreads();\n        float k = 1;", "        __syncwarp();\n        float k = 1;"),
    ],
    ids=["made by another", "read before it is written", "elsewhere", "ids as a whole", "warps wait"],
)
def test_outputs_stay_together_where_they_have_to(old: str, new: str, subject_from) -> None:
    assert old in SWEEPS
    assert not list(SplitOutputs().moves(subject_from(kernel(SWEEPS.replace(old, new)))))


def test_full_grids_and_grids_of_three_axes_stay(subject_from) -> None:
    assert not list(SplitOutputs().moves(subject_from(kernel(SWEEPS, grid='["n", 2, 2]'))))
    full = kernel(SWEEPS).replace("max = 64, timed = 16", "max = 90000, timed = 90000")
    assert not list(SplitOutputs().moves(subject_from(full)))


def test_barriers_of_a_loop_that_goes_leave_one(subject_from, apply_move) -> None:
    body = """
    const int b = blockIdx.x, t = threadIdx.x;
    __shared__ float row[32], other[32];
    row[t] = x[b * m * 32 + t];
    float sum = 0;
    for (int i = 0; i < m; ++i) {
        __syncthreads();
        other[t] = x[(b * m + i) * 32 + t];
        __syncthreads();
        for (int j = 0; j < 32; ++j) sum += other[j] * row[j];
    }
    p[b * m * 32 + t] = sum;
    float twice = 0;
    for (int i = 0; i < m; ++i) for (int j = 0; j < 32; ++j) twice += row[j] * i;
    q[b * m * 32 + t] = twice;
"""
    changed = apply_move(SplitOutputs(), subject_from(kernel(body)), "[parts=2]").source
    q = changed[changed.index("// makes q") :].split("// makes")[1]
    assert q.index("row[t] =") < q.index("__syncthreads()") < q.index("twice +=")


def test_how_far_a_loop_went_is_not_lost_with_what_it_did(subject_from, runner) -> None:
    body = """
    const int b = blockIdx.x, t = threadIdx.x;
    int i;
    float sum = 0;
    for (i = 0; i < m; ++i) {
        for (int j = 0; j < 32; ++j) sum += x[(b * m + i) * 32 + j] * t;
        if (x[(b * m + i) * 32 + t] > 3) break;
    }
    p[b * m * 32 + t] = sum;
    for (int k = 0; k < 8; ++k) for (int j = 0; j < 32; ++j) q[b * m * 32 + t] += (i + k) % 3;
"""
    subject, action = subject_from(kernel(body)), SplitOutputs()
    moves = list(action.moves(subject))
    assert moves
    for move in moves:
        runner.check(subject, action.apply(subject, move), *SIZES)
