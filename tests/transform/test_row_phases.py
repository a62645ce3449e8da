"""Rows of a block in several phases, whose later ones read what the same thread wrote: kept in registers, and scratch
memory that nobody else sees is not written; in the styles of libraries."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from fsr.transform.instantiated import instantiated, kernels_of
from fsr.transform.rows.action import ROW_PER_BLOCK
from fsr.transform.rows.block_rows import block_row_kernel

TEXT = """
// /// fsr
// [sizes]
// rows = {min = 0, max = 4096, timed = 64}
// cols = {min = 1, max = 4096, timed = 256}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["rows", "cols"]}
// top = {role = "out", shape = ["rows"]}
// cols = {value = "cols"}
// [[launch]]
// entry = "k<float, true>"
// grid = "rows"
// block = 64
// args = ["x", "y", "top", "cols", "work"]
// [scratch.work]
// dtype = "float32"
// count = "rows * cols"
// ///
template <typename T> __device__ T block_max(T v)
{
    static __shared__ T part[32];
    for (int o = 16; o > 0; o >>= 1) v = max(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    if ((threadIdx.x & 0x1f) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    v = (threadIdx.x < (blockDim.x / 32.f)) ? part[threadIdx.x & 0x1f] : -1e20f;
    for (int o = 16; o > 0; o >>= 1) v = max(v, __shfl_xor_sync(0xffffffffu, v, o, 32));
    return v;
}
__device__ float doubled(const float &v) { return v + v; }
template <typename T, bool kTop>
__global__ void k(const T *x, T *y, T *top, int cols, T *work = nullptr)
{
    if constexpr (kTop) {
        __shared__ float s_top;
        float most = 0.0f;
        int j = threadIdx.x;
        while (j < cols) {
            const float v = doubled(x[blockIdx.x * cols + j]);
            work[blockIdx.x * cols + j] = v;
            most = max(most, fabsf(v));
            j += blockDim.x;
        }
        const float all = block_max<float>(most);
        if (threadIdx.x == 0) { s_top = all; top[blockIdx.x] = all; }
        __syncthreads();
        for (int i = threadIdx.x; i < cols; i += blockDim.x)
            y[blockIdx.x * cols + i] = work[blockIdx.x * cols + i] / (s_top + 1.0f);
    } else {
        for (int i = threadIdx.x; i < cols; i += blockDim.x) y[blockIdx.x * cols + i] = 0.0f;
    }
}
__global__ void more(const float *work, float *top, int rows) { if (threadIdx.x < rows) top[threadIdx.x] += work[0]; }
"""
STORE = re.compile(r"work\[[^]]*\]\)? = ")
SIZES = [{"rows": 3, "cols": c} for c in (1, 3, 64, 130, 256, 517)]
SECOND = """// [[launch]]
// entry = "more"
// grid = "1"
// block = 32
// args = ["work", "top", "min(rows, 32)"]
// [scratch.work]"""


def fast_way(text):
    """What is done for rows of packs."""
    return text[text.rfind("__global__ void __launch") :].partition("} else")[0]


@pytest.fixture
def phases(subject_from):
    """The subject of a text as a run sees it: templates instantiated, branches that are never taken left out."""

    def made(text):
        subject = subject_from(text)
        candidate = instantiated(subject.candidate)
        return replace(subject, candidate=candidate, kernels=kernels_of(candidate.source))

    return made


def test_what_a_phase_left_stays_in_registers_and_scratch_is_not_written(phases, apply_move, runner, close_outputs):
    subject = phases(TEXT)
    for ending in ("[threads=128,cache=register,width=4]", "[threads=128,cache=none,width=4]"):
        changed = apply_move(ROW_PER_BLOCK, subject, ending)
        close_outputs(subject, changed, SIZES, alignment=4)
        assert runner.faults(changed, subject.contract, {"rows": 2, "cols": 256}) == []
        assert bool(STORE.search(fast_way(changed.source))) is ("cache=none" in ending)


def test_scratch_that_another_launch_reads_is_written(phases, apply_move):
    subject = phases(TEXT.replace("// [scratch.work]", SECOND))
    changed = apply_move(ROW_PER_BLOCK, subject, "[threads=128,cache=register,width=4]")
    assert STORE.search(fast_way(changed.source))


@pytest.mark.parametrize(
    ("why", "old", "new"),
    [
        ("a start below what lanes without a value say", "float most = 0.0f;", "float most = -1e30f;"),
        ("a start that is not known", "float most = 0.0f;", "float most = -top[0];"),
        ("whole numbers beside a float", "float most = 0.0f;", "int most = 0;"),
        ("the thread's own part is seen", "s_top = all;", "s_top = most;"),
        ("a function that writes through its argument", "const float &v) { return", "float &v) { v = 1.0f; return"),
        ("elements of other threads", "/ (s_top + 1.0f)", "/ (s_top + work[blockIdx.x * cols + threadIdx.x])"),
    ],
)
def test_rows_are_left_alone_with(phases, why, old, new):
    assert old in TEXT
    subject = phases(TEXT.replace(old, new))
    assert block_row_kernel(subject, subject.kernels["k"]) is None, why
