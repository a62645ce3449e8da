"""fewer-blocks where points add to the block's memory at places that data tells: bins of a block's own, whatever bins
are made of, which go to memory once in the end."""

from __future__ import annotations

import pytest

from fsr.transform.fewer.action import FewerBlocks
from tests.transform.test_fewer_blocks import START, check, kernel

BINS = f"""__shared__ T bins[32]; if (threadIdx.x < 32) bins[threadIdx.x] = 0; __syncthreads(); {START}
    if (i < n) atomicAdd(&bins[(int)(x[i] * 5) & 31], T(1)); __syncthreads();
    if (t < 32) atomicAdd(&to[t], bins[t]);"""
KERNELS = {
    "bins": BINS,
    "weights": BINS.replace("T(1)", "x[i] * T(2)"),
    "none where none fell": BINS.replace("atomicAdd(&to[t], bins[t])", "if (bins[t] != 0) atomicAdd(&to[t], bins[t])"),
    "two arrays": BINS.replace("__shared__ T bins[32];", "__shared__ T bins[32]; __shared__ int any[32];")
    .replace("bins[threadIdx.x] = 0;", "{ bins[threadIdx.x] = 0; any[threadIdx.x] = 0; }")
    .replace("if (i < n) ", "if (i < n) atomicOr(any + (i & 31), 3); if (i < n) ")
    .replace("bins[t]);", "bins[t]); if (t < 32) atomicOr((int *)&to[t + 32], any[t]);"),
    "a loop of points": BINS.replace(
        "if (i < n) atomicAdd", "for (int j = i; j < n; j += gridDim.x * blockDim.x) atomicAdd"
    ).replace("x[i]", "x[j]"),
    "the largest": BINS.replace("bins[threadIdx.x] = 0", "bins[threadIdx.x] = -9").replace("atomicAdd", "atomicMax"),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_a_block_counts_several_blocks_points(name: str, subject_from, runner) -> None:
    check(kernel(KERNELS[name], type_="int", exact="exact = true"), subject_from, runner)


def test_weights_of_floats_are_added_in_another_order(subject_from, runner) -> None:
    check(kernel(KERNELS["weights"]), subject_from, runner)
    assert not list(FewerBlocks().moves(subject_from(kernel(KERNELS["weights"], exact="exact = true"))))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("bins[threadIdx.x] = 0", "bins[threadIdx.x] = 1"),
        ("bins[threadIdx.x] = 0", "bins[threadIdx.x] = blockIdx.x"),
        ("atomicAdd(&bins[(int)(x[i] * 5) & 31], T(1))", "bins[(int)(x[i] * 5) & 31] += 1"),
        ("atomicAdd(&bins[(int)(x[i] * 5) & 31], T(1))", "y[i] = atomicAdd(&bins[(int)(x[i] * 5) & 31], T(1))"),
        ("atomicAdd(&bins[(int)(x[i] * 5) & 31], T(1))", "atomicAdd(&bins[bins[i & 31] & 31], T(1))"),
        ("atomicAdd(&bins[(int)(x[i] * 5) & 31], T(1))", "{ atomicAdd(&bins[i & 31], T(1)); y[i] = bins[3]; }"),
        ("T(1));", "T(1)); if (i < n) atomicMax(&bins[i & 31], T(2));"),
        ("T(1));", "T(bins[0]));"),
        ("atomicAdd(&to[t], bins[t])", "atomicMax(&to[t], bins[t])"),
        ("atomicAdd(&to[t], bins[t])", "atomicAdd(&to[t], bins[t] * bins[t])"),
        ("atomicAdd(&to[t], bins[t])", "to[t] = bins[t]"),
        ("if (t < 32) atomicAdd", "if (bins[t & 31] > 4) atomicAdd"),
        ("__syncthreads();\n    if (t < 32)", "if (i >= n) return; __syncthreads();\n    if (t < 32)"),
    ],
)  # fmt: skip
def test_nothing_is_offered_where_it_would_show(old: str, new: str, subject_from) -> None:
    text = kernel(BINS, type_="int")
    assert old in text
    assert list(FewerBlocks().moves(subject_from(text)))
    assert not list(FewerBlocks().moves(subject_from(text.replace(old, new))))


PARTS = f"""extern __shared__ char memory[]; T *bins = (T *)memory; DEAR
    for (int b = threadIdx.x; b < 32; b += blockDim.x) {{ bins[b] = 0; heavy[b] = 0; counts[b] = 0; }}
    __syncthreads(); {START}
    if (i < n) {{ int b = (int)(x[i] * 5) & 31; atomicAdd(&bins[b], x[i]); atomicAdd(heavy + b, x[i] * 0.5);
        atomicAdd(&counts[b], 1u); }}
    __syncthreads();
    if (t < 32) {{ atomicAdd(&to[t], bins[t] + T(heavy[t])); atomicAdd((unsigned *)&to[t + 32], counts[t]); }}"""
CUTS = {
    "one behind the other": "double *heavy = (double *)(bins + 32); unsigned *counts = (unsigned *)&heavy[32];",
    "all from the beginning": "double *heavy = (double *)(memory + 128); unsigned *counts = (unsigned *)memory + 96;",
    "lengths of the launch": "double *heavy = (double *)(bins + m * 2 + 32); "
    "unsigned *counts = (unsigned *)(heavy + 32 + m);",
}


@pytest.mark.parametrize("cut", CUTS)
def test_what_pointers_cut_out_of_the_launchs_memory_are_arrays_of_their_own(cut: str, subject_from, runner) -> None:
    check(kernel(PARTS.replace("DEAR", CUTS[cut]), shared='"512 + 1024 * m"'), subject_from, runner)


@pytest.mark.parametrize(
    "cut",
    [
        "double *heavy = (double *)bins; unsigned *counts = (unsigned *)(heavy + 32);",
        "double *heavy = (double *)(bins + 32); unsigned *counts = (unsigned *)(memory + 128);",
        "double *heavy = (double *)(bins + 32); unsigned *counts = (unsigned *)(heavy + 32 + threadIdx.x);",
        "double *heavy = (double *)(bins + 32); unsigned *counts = (unsigned *)(heavy + 32); counts += 2;",
    ],
    ids=["two types at the beginning", "two types at one place", "a thread's own", "moved on"],
)
def test_none_where_one_cannot_be_told_from_the_other(cut: str, subject_from) -> None:
    text = kernel(PARTS.replace("DEAR", cut), shared='"1024 + 4 * n"')
    assert not list(FewerBlocks().moves(subject_from(text)))
