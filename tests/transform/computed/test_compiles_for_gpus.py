"""Kernels that are written from what is computed compile for a GPU, whose compiler is stricter than the host's."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.backends.cuda.nvrtc import NvrtcToolchain, find_nvrtc
from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.evaluation.batches import images
from fsr.lifting.lift import lift
from fsr.records import CompileFailure
from fsr.runs.kernel import load_kernel
from fsr.source.parse import parse_kernels
from fsr.transform.computed.action import FROM_COMPUTATION
from fsr.transform.protocol import Subject

pytestmark = [
    pytest.mark.skipif(find_nvrtc() is None, reason="no NVRTC"),
    pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer"),
]
SUITE = Path(__file__).parents[3] / "benchmarks" / "suite"
LEAST = 3  # moves: of each family the first, the last, one between

HEAD = """// /// fsr
// entry = "k"
// [sizes]
// rows = {min = 1, max = 4096, timed = 1024}
// groups = {min = 1, max = 64, timed = 32}
// n = "32 * groups"
// [args]
ARGS
// [launch]
// grid = "GRID"
// block = 128
// [tolerance]
// sum_length = "n"
// ///
#include <cuda_bf16.h>
"""
QUANTISE = """__global__ void k(const __nv_bfloat16 *x, signed char *q, float *scale, int n) {
  __shared__ float most[128];
  const __nv_bfloat16 *row = x + (size_t)blockIdx.x * n;
  float own = 0.0f;
  for (int i = threadIdx.x; i < n; i += 128) own = fmaxf(own, fabsf(__bfloat162float(row[i])));
  most[threadIdx.x] = own;
  __syncthreads();
  for (int d = 64; d > 0; d >>= 1) {
    if (threadIdx.x < d) most[threadIdx.x] = fmaxf(most[threadIdx.x], most[threadIdx.x + d]);
    __syncthreads();
  }
  const float s = most[0] > 0.0f ? most[0] / 127.0f : 1.0f;
  if (threadIdx.x == 0) scale[blockIdx.x] = s;
  for (int i = threadIdx.x; i < n; i += 128) {
    int v = __float2int_rn(__bfloat162float(row[i]) * (1.0f / s));
    if (v > 127) v = 127;
    if (v < -127) v = -127;
    q[(size_t)blockIdx.x * n + i] = (signed char)v;
  }
}
"""
WEIGHTS = """__global__ void k(const __nv_bfloat16 *a, const unsigned char *w, const float *s,
                  __nv_bfloat16 *y, int rows, int n) {
  int at = blockIdx.x * 128 + threadIdx.x, i = at / 64, j = at % 64;
  if (i >= rows) return;
  float sum = 0.0f;
  for (int k = 0; k < n; k++) {
    int bits = k & 1 ? w[j * (n / 2) + k / 2] >> 4 : w[j * (n / 2) + k / 2] & 15;
    sum += __bfloat162float(a[i * n + k]) * (s[j * (n / 32) + k / 32] * (bits - 8));
  }
  y[at] = __float2bfloat16(sum);
}
"""
WRITTEN = {
    "quantised rows": (QUANTISE, "rows", """x = {role = "in", shape = ["rows", "n"]}
q = {role = "out", shape = ["rows", "n"]}
scale = {role = "out", shape = ["rows"]}"""),
    "weights of four bits": (WEIGHTS, "ceil_div(rows * 64, 128)", """a = {role = "in", shape = ["rows", "n"]}
w = {role = "in", shape = [64, "n // 2"]}
s = {role = "in", shape = [64, "groups"], low = 0.001, high = 0.1}
y = {role = "out", shape = ["rows", 64]}"""),
}  # fmt: skip
FROM_SUITE = ("norm/softmax_block_tree", "reduction/argmax_rows", "norm/layer_norm_grad", "movement/channels_last")


@pytest.mark.parametrize("name", [*WRITTEN, *FROM_SUITE])
def test_every_family_compiles(tmp_path: Path, name: str) -> None:
    path = SUITE / f"{name}.cu"
    if name in WRITTEN:
        body, grid, args = WRITTEN[name]
        told = "\n".join(f"// {line}" for line in args.splitlines())
        path = tmp_path / "k.cu"
        path.write_text(HEAD.replace("ARGS", told).replace("GRID", grid) + body)
    kernel = load_kernel(path)
    found = lift(kernel.contract, kernel.baseline, limit_s=30.0)
    assert found.computation is not None, found.why
    kernels = parse_kernels(kernel.baseline.source)
    subject = Subject(kernel.baseline, kernels, kernel.contract, target="sm_90", computation=found.computation)
    made = {}
    for action in FROM_COMPUTATION:
        moves = list(action.moves(subject))
        for move in {m.name: m for m in (*moves[:1], *moves[len(moves) // 2 :][:1], *moves[-1:])}.values():
            made[move.name] = action.apply(subject, move)
    assert len(made) >= LEAST
    built = images(NvrtcToolchain("sm_90"), list(made.values()))
    outcomes = zip(made, (built[i] for i in range(len(made))), strict=True)
    failed = {name: found.log[:300] for name, found in outcomes if isinstance(found, CompileFailure)}
    assert not failed
