"""Planted faults: one slip each, in code only, named by what and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.testgen.mutants import mutants

EXAMPLES = Path(__file__).parents[2] / "examples"

SUM = """// for (i < n) in a comment
__device__ float other(float a) { return a < 1.0f ? a : 2.0f; }
__global__ void total(const float *x, float *y, int n)
{
    __shared__ float s[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int j = i; j < n; j += blockDim.x * gridDim.x) {
        sum += 0.5f * x[j];
    }
    s[threadIdx.x] = sum;
    __syncthreads();
    for (int o = blockDim.x / 2; o > 0; o /= 2) {
        if (threadIdx.x < o) s[threadIdx.x] += s[threadIdx.x + o];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(y, s[0]);
}
"""


def changed_line(mutant_source: str) -> list[str]:
    before = SUM.splitlines()
    return [line.strip() for line in mutant_source.splitlines() if line not in before]


def found(fault: str) -> list[list[str]]:
    return [changed_line(m.source) for m in mutants(SUM, "total") if m.name.startswith(fault + "@")]


def test_each_kind_of_slip_is_planted() -> None:
    assert ["for (int j = i; j <= n; j += blockDim.x * gridDim.x) {"] in found("bound")
    assert ["for (int j = i; j < n - 1; j += blockDim.x * gridDim.x) {"] in found("lost-last")
    assert [";"] in found("barrier-dropped")
    assert ["__syncthreads(); s[threadIdx.x] = sum;"] in found("barrier-early")
    assert ["float sum = 1;"] in found("initial")
    assert ["if (true) s[threadIdx.x] += s[threadIdx.x + o];"] in found("guard")
    assert ["sum += 0.5f * x[(j) + 1];"] in found("index-shifted")
    assert ["if (threadIdx.x == 0) *(y) +=  s[0];"] in found("atomic-dropped")
    assert ["#include <cuda_fp16.h>", "sum = __half2float(__float2half(sum + (0.5f * x[j])));"] in found(
        "half-accumulator"
    )
    assert [";"] in found("store-dropped")
    assert ["for (int j = i; j < n; j += blockDim.x ) {"] in found("stride")
    assert ["sum += (0.5f * 1.001f) * x[j];"] in found("constant")
    assert ["sum -= 0.5f * x[j];"] in found("operator")


def test_only_the_kernel_changes_and_only_its_code() -> None:
    for mutant in mutants(SUM, "total"):
        assert (
            "// for (i < n) in a comment\n__device__ float other(float a) { return a < 1.0f ? a : 2.0f; }"
            in mutant.source
        )
        assert mutant.source != SUM
        assert 3 < mutant.line < 20


def test_names_and_sources_are_unique_and_stable() -> None:
    first, again = mutants(SUM, "total"), mutants(SUM, "total<float>")
    assert first == again
    assert len({m.name for m in first}) == len(first) == len({m.source for m in first})


def test_axes_are_swapped_where_there_are_two() -> None:
    names = [m.name.split("@")[0] for m in mutants((EXAMPLES / "gemm.cu").read_text(), "gemm")]
    assert names.count("axis") == 4
    assert "index-swapped" in names
    assert "axis" not in [m.name.split("@")[0] for m in mutants(SUM, "total")]


def test_an_unknown_kernel_is_refused() -> None:
    with pytest.raises(ValueError, match="defines no kernel 'none'"):
        mutants(SUM, "none")
