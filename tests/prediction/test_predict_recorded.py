"""Kernels recorded on the host device: variants whose order on a GPU is common knowledge come out in that order."""

import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import HostDevice
from fsr.backends.protocol import Buffer
from fsr.hardware.gpus import H200
from fsr.prediction.predict import Prediction, predict
from fsr.records import Candidate, CompileFailure, ConcreteLaunch, Launch, Plan, Role, ScalarValue

ROWS, COLUMNS = 4096, 256

ROW_PER_THREAD = """
__global__ void k(const float* x, float* out, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int c = 0; c < columns; c++) sum += x[row * columns + c];
  for (int c = 0; c < columns; c++) out[row * columns + c] = x[row * columns + c] / sum;
}
"""
ROW_PER_WARP = """
__global__ void k(const float* x, float* out, int rows, int columns) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int c = lane; c < columns; c += 32) sum += x[row * columns + c];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  for (int c = lane; c < columns; c += 32) out[row * columns + c] = x[row * columns + c] / sum;
}
"""
TRANSPOSE = """
__global__ void k(const float* x, float* out, int rows, int columns) {
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[c * rows + r + j] = x[(r + j) * columns + c];
}
"""
TRANSPOSE_TILED = """
__global__ void k(const float* x, float* out, int rows, int columns) {
  __shared__ float tile[32][PITCH];
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = x[(r + j) * columns + c];
  __syncthreads();
  c = blockIdx.x * 32 + threadIdx.y, r = blockIdx.y * 32 + threadIdx.x;
  for (int j = 0; j < 32; j += 8) out[(c + j) * rows + r] = tile[threadIdx.x][threadIdx.y + j];
}
"""
ATOMIC_EACH = """
__global__ void k(const float* x, float* out, int rows, int columns) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(out, x[i]);
}
"""
ATOMIC_PER_WARP = """
__global__ void k(const float* x, float* out, int rows, int columns) {
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * columns; i += gridDim.x * blockDim.x) sum += x[i];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}
"""


@pytest.fixture(scope="module")
def predicted():
    device, toolchain = HostDevice(), HostToolchain()
    x = np.arange(ROWS * COLUMNS, dtype=np.float32)

    def run(source: str, grid: tuple[int, int, int], block: tuple[int, int, int], dtype=np.float32) -> Prediction:
        plan = Plan((Launch("k", ("1", "1", "1"), ("1", "1", "1"), "0", ()),))
        image = toolchain.compile(Candidate(source, plan), instrumented=True)
        assert not isinstance(image, CompileFailure), image.log
        args = ("x", "out", ScalarValue("int32", ROWS), ScalarValue("int32", COLUMNS))
        buffers = [Buffer("x", x, Role.IN), Buffer("out", np.zeros_like(x, dtype), Role.INOUT)]
        profile = device.record(image, [ConcreteLaunch("k", grid, block, 0, args)], buffers, access_budget=200_000)
        assert not profile.faults
        return predict(profile, image.resources, H200, 2.0 * x.nbytes)

    yield run
    device.close()


def test_a_row_per_warp_beats_a_row_per_thread(predicted) -> None:
    slow = predicted(ROW_PER_THREAD, (ROWS // 128, 1, 1), (128, 1, 1))
    fast = predicted(ROW_PER_WARP, (ROWS // 4, 1, 1), (128, 1, 1))
    assert slow.time_ns > 3 * fast.time_ns
    assert slow.binds in ("latency", "uncoalesced")


def test_transposes_come_in_their_known_order(predicted) -> None:
    grid, block = (COLUMNS // 32, ROWS // 32, 1), (32, 8, 1)
    naive = predicted(TRANSPOSE, grid, block)
    conflicted = predicted(TRANSPOSE_TILED.replace("PITCH", "32"), grid, block)
    padded = predicted(TRANSPOSE_TILED.replace("PITCH", "33"), grid, block)
    assert naive.binds == "uncoalesced"
    assert conflicted.binds == "shared-conflicts"
    assert padded.time_ns < conflicted.time_ns
    assert padded.time_ns < naive.time_ns


def test_one_atomic_a_warp_beats_one_a_thread(predicted) -> None:
    each = predicted(ATOMIC_EACH, (ROWS * COLUMNS // 256, 1, 1), (256, 1, 1))
    per_warp = predicted(ATOMIC_PER_WARP, (132, 1, 1), (256, 1, 1))
    assert each.binds == "atomics"
    assert each.time_ns > 10 * per_warp.time_ns


def test_integers_added_at_one_address_are_told_apart(predicted) -> None:
    grid, block = (ROWS * COLUMNS // 256, 1, 1), (256, 1, 1)
    counted = ATOMIC_EACH.replace("float* out", "int* out").replace("atomicAdd(out, x[i])", "atomicAdd(out, x[i] > 0)")
    floats, integers = predicted(ATOMIC_EACH, grid, block), predicted(counted, grid, block, np.int32)
    scattered = predicted(counted.replace("atomicAdd(out", "atomicAdd(out + threadIdx.x % 2"), grid, block, np.int32)
    assert floats.time_ns > 20 * integers.time_ns
    assert scattered.time_ns > 10 * integers.time_ns


def test_a_grid_of_few_blocks_is_bound_by_latency(predicted) -> None:
    few = predicted(ATOMIC_PER_WARP, (8, 1, 1), (256, 1, 1))
    many = predicted(ATOMIC_PER_WARP, (264, 1, 1), (256, 1, 1))
    assert few.binds == "latency"
    assert few.time_ns > 4 * many.time_ns
