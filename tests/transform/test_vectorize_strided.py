"""Packs in loops that a block shares: rows of any length, and only where every thread may take any element."""

from __future__ import annotations

import pytest

from fsr.transform.vector.strided import VectorizeStrided

TEXT = """
// /// fsr
// entry = "k<64>"
// [sizes]
// rows = {min = 0, max = 4096, timed = 64}
// cols = {min = 1, max = 4096, timed = 64}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["rows", "cols"]}
// cols = {value = "cols"}
// [launch]
// grid = "rows"
// block = 64
// [tolerance]
// sum_length = "cols"
// ///
__device__ float warp_max(float v)
{
    for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_down_sync(0xffffffffu, v, o));
    return v;
}
template <int B> __device__ float block_max(float v)
{
    __shared__ float part[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    v = warp_max(v);
    if (lane == 0) part[warp] = v;
    __syncthreads();
    v = threadIdx.x < B / 32 ? part[lane] : -INFINITY;
    if (warp == 0) v = warp_max(v);
    if (threadIdx.x == 0) part[0] = v;
    __syncthreads();
    return part[0];
}
template <int B> __device__ float block_sum(float v)
{
    __shared__ float part[B];
    part[threadIdx.x] = v;
    __syncthreads();
    for (int s = B / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    return part[0];
}
template <int B> __global__ void k(const float *x, float *y, int cols)
{
    const float *row = x + blockIdx.x * cols;
    y += blockIdx.x * cols;
    float top = -INFINITY;
    for (int j = threadIdx.x; j < cols; j += B) top = fmaxf(top, row[j]);
    top = block_max<B>(top);
    float sum = 0.0f;
    for (int j = threadIdx.x; j < cols; j += blockDim.x) sum += expf(row[j] - top);
    sum = block_sum<B>(sum);
    for (int j = threadIdx.x; j < cols; j += B) y[j] = expf(row[j] - top) / sum;
}
"""
SIZES = [{"rows": 3, "cols": c} for c in (1, 3, 64, 130, 517)]


@pytest.mark.parametrize("region", ["loop:j", "loop:j#2", "loop:j#3"])
def test_rows_of_any_length_and_alignment(subject_from, apply_move, close_outputs, region):
    subject = subject_from(TEXT)
    changed = apply_move(VectorizeStrided(), subject, f"@{region}[width=4]")
    assert "fsr_pack<float, 4>" in changed.source
    close_outputs(subject, changed, SIZES, alignment=4)


@pytest.mark.parametrize(
    ("why", "old", "new"),
    [
        ("a prefix sum", "part[threadIdx.x] += part[threadIdx.x + s];", "part[threadIdx.x] -= part[threadIdx.x + s];"),
        ("a thread left out", "s = B / 2; s > 0", "s = B / 4; s > 0"),
        ("the partial sum kept", "sum = block_sum<B>(sum);", "y[0] = sum; sum = block_sum<B>(sum);"),
        ("another operator", "sum += expf(row[j] - top)", "sum = fmaxf(sum, row[j])"),
        ("the thread's number used", "sum += expf(row[j] - top)", "sum += row[j] * threadIdx.x"),
        ("another start", "j = threadIdx.x; j < cols; j += blockDim.x", "j = threadIdx.x + 1; j < cols; j += B"),
        ("another stride", "j += blockDim.x", "j += 32"),
        ("a divergent return before", "float sum = 0.0f;", "float sum = 0.0f; if (threadIdx.x == 3) return;"),
        ("a loop in a divergent branch", "for (int j = threadIdx.x; j < cols; j += blockDim.x) sum",
         "if (threadIdx.x < 9) for (int j = threadIdx.x; j < cols; j += B) sum"),
        ("a value of the thread", "sum += expf(row[j] - top)", "sum += expf(row[j] - row[threadIdx.x])"),
    ],
)  # fmt: skip
def test_the_sum_is_left_alone_with(subject_from, why, old, new):
    assert old in TEXT
    regions = {m.region for m in VectorizeStrided().moves(subject_from(TEXT.replace(old, new)))}
    assert "loop:j#2" not in regions, why


def test_an_exact_contract_keeps_sums_but_not_maxima(subject_from):
    exact = TEXT.replace('sum_length = "cols"', "exact = true")
    regions = {m.region for m in VectorizeStrided().moves(subject_from(exact))}
    assert "loop:j" in regions
    assert "loop:j#2" not in regions


PHASES = """
// /// fsr
// [sizes]
// rows = {min = 0, max = 4096, timed = 64}
// cols = {min = 1, max = 4096, timed = 64}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["rows", "cols"]}
// top = {role = "out", shape = ["rows"]}
// cols = {value = "cols"}
// [[launch]]
// entry = "k"
// grid = "rows"
// block = 64
// args = ["x", "y", "top", "cols", "work"]
// [scratch.work]
// dtype = "float32"
// count = "rows * cols"
// ///
__device__ float block_max(float v)
{
    static __shared__ float part[32];
    for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x % 32 < blockDim.x / 32.f ? part[threadIdx.x % 32] : -1e20f;
    for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
    return v;
}
__global__ void k(const float *x, float *y, float *top, int cols, float *work)
{
    __shared__ float shared_top;
    float most = 0.0f;
    for (int j = threadIdx.x; j < cols; j += blockDim.x) {
        const float v = 2.0f * x[blockIdx.x * cols + j];
        work[blockIdx.x * cols + j] = v;
        most = fmaxf(most, fabsf(v));
    }
    const float all = block_max(most);
    if (threadIdx.x == 0) {
        shared_top = all;
        top[blockIdx.x] = all;
    }
    __syncthreads();
    const float scale = 1.0f / (shared_top + 1.0f);
    for (int j = threadIdx.x; j < cols; j += blockDim.x)
        y[blockIdx.x * cols + j] = scale * work[blockIdx.x * cols + j];
}
"""


@pytest.mark.parametrize("region", ["loop:j", "loop:j#2"])
def test_a_phase_reads_what_the_same_thread_wrote(subject_from, apply_move, runner, close_outputs, region):
    subject = subject_from(PHASES)
    changed = apply_move(VectorizeStrided(), subject, f"@{region}[width=4]")
    close_outputs(subject, changed, SIZES, alignment=4)
    assert runner.faults(changed, subject.contract, {"rows": 2, "cols": 517}) == []


WAITING = """    __syncthreads();
    const float scale = 1.0f / (shared_top + 1.0f);"""


def test_threads_wait_where_elements_change_hands(subject_from, apply_move, runner, close_outputs):
    none_there = PHASES.replace(WAITING, "    const float scale = 1.0f / (all + 1.0f);")
    assert none_there != PHASES
    for text, more in ((PHASES, 0), (none_there, 1), (none_there.replace("scale * work[", "scale * x["), 0)):
        subject = subject_from(text)
        for region in ("loop:j", "loop:j#2"):
            changed = apply_move(VectorizeStrided(), subject, f"@{region}[width=4]")
            assert changed.source.count("__syncthreads();") == text.count("__syncthreads();") + more
            close_outputs(subject, changed, SIZES)
            assert runner.faults(changed, subject.contract, {"rows": 2, "cols": 517}) == []


@pytest.mark.parametrize(
    ("why", "old", "new"),
    [
        ("less than what lanes without a value say", "float most = 0.0f;", "float most = -1e30f;"),
        ("a start that is not known", "float most = 0.0f;", "float most = x[0];"),
        ("a thread's own part is seen", "y[blockIdx.x * cols + j] = scale", "y[blockIdx.x * cols + j] = most + scale"),
    ],
)
def test_phases_are_left_alone_with(subject_from, why, old, new):
    assert old in PHASES
    regions = {m.region for m in VectorizeStrided().moves(subject_from(PHASES.replace(old, new)))}
    assert "loop:j" not in regions, why
