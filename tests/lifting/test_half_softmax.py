"""Rows of a causal softmax of 16-bit values, as people write it: every step rounded, the first row of one element."""

from __future__ import annotations

import pytest

from fsr.computation.expression import Case, Fold, distinct
from fsr.computation.types import type_of
from fsr.runs.kernel import load_kernel
from fsr.search.proposal import Rules, Space
from fsr.transform.registry import all_actions
from tests.lifting.lifted import lifted

KERNEL = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 512, timed = 512}
// [args]
// x = {role = "inout", shape = [4, "n", "n"], dtype = "DTYPE"}
// [launch]
// grid = "4 * n"
// block = 64
// ///
#include <HEADER>
__global__ void k(TYPE *x, int n) {
  __shared__ TYPE most[64];
  __shared__ float part[64];
  const int t = threadIdx.x, row = blockIdx.x % n;
  TYPE *line = x + (size_t)blockIdx.x * n;
  TYPE own = NARROW(-INFINITY);
  for (int i = t; i < n; i += 64) {
    if (i > row) line[i] = NARROW(-INFINITY);
    own = LARGER(own, line[i]);
  }
  most[t] = own;
  __syncthreads();
  for (int d = 32; d > 0; d /= 2) {
    if (t < d) most[t] = LARGER(most[t], most[t + d]);
    __syncthreads();
  }
  float sum = 0.0f;
  for (int i = t; i < n; i += 64) {
    const float power = expf(WIDE(line[i]) - WIDE(most[0]));
    sum += power;
    line[i] = NARROW(power);
  }
  part[t] = sum;
  __syncthreads();
  for (int d = 32; d > 0; d /= 2) {
    if (t < d) part[t] += part[t + d];
    __syncthreads();
  }
  for (int i = t; i < n; i += 64) line[i] = NARROW(WIDE(line[i]) / part[0]);
}
"""
TYPES = {
    "float16": ("cuda_fp16.h", "__half", "__float2half", "__half2float"),
    "bfloat16": ("cuda_bf16.h", "__nv_bfloat16", "__float2bfloat16", "__bfloat162float"),
}


def _written(dtype: str, larger: str) -> str:
    header, type_, narrow, wide = TYPES[dtype]
    named = {"DTYPE": dtype, "HEADER": header, "TYPE": type_, "NARROW": narrow, "WIDE": wide, "LARGER": larger}
    text = KERNEL
    for name, value in named.items():
        text = text.replace(name, value)
    return text


@pytest.mark.parametrize(("dtype", "larger"), [("float16", "__hmax"), ("bfloat16", "__hmax_nan")])
def test_the_row_of_one_element_is_as_the_others(tmp_path, dtype, larger):
    found = lifted(tmp_path, _written(dtype, larger))
    assert found.computation is not None, found.why
    values = [s.value for s in found.computation.statements]
    folds = {e for v in values for e in distinct(v) if isinstance(e, Fold)}
    assert {f.op for f in folds} == {"max", "sum"}
    assert {type_of(f) for f in folds} == {"float32"}  # rounding keeps the order: the maximum is rounded alone
    cases = {e for v in values for e in distinct(v) if isinstance(e, Case)}
    assert len(cases) == 1  # behind the diagonal or not; none for the first row


def test_rows_in_place_are_offered_by_rows(tmp_path):
    found = lifted(tmp_path, _written("float16", "__hmax"))
    kernel = load_kernel(tmp_path / "k.cu")
    space = Space(Rules(kernel.contract, False, "sm_90", found.computation), all_actions())
    assert any(m.action == "fold-rows" for _, m in space.moves(kernel.baseline))
