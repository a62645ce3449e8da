"""The fiber scheduler: order, fairness and cost of threads that wait."""

from __future__ import annotations

import time

import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import open_host_device
from fsr.backends.protocol import Buffer, DeviceFault
from fsr.records import Candidate, ConcreteLaunch, Image, Launch, Plan, Role

ONE = ("1", "1", "1")
SOURCE = """
__global__ void plain(float* x) { int i = blockIdx.x * blockDim.x + threadIdx.x; x[i] = i; }
__global__ void barriers(float* x) {
  float v = 0;
  for (int i = 0; i < 100; i++) { __syncthreads(); v += i; }
  x[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
__global__ void shuffles(float* x) {
  float v = threadIdx.x;
  for (int i = 0; i < 100; i++) v = __shfl_sync(~0u, v, threadIdx.x + 1);
  x[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
__global__ void mixed(float* x) {  // lanes of a warp take turns through three kinds of waiting
  float v = threadIdx.x;
  for (int i = 0; i < 20; i++) {
    if (threadIdx.x % 2) { v += __shfl_xor_sync(0xAAAAAAAAu, v, 2); __syncwarp(0xAAAAAAAAu); }
    else v += __shfl_xor_sync(0x55555555u, v, 2);
    v = fmodf(v, 1000.0f);
    __syncthreads();
    if (threadIdx.x / 32 == i % 3) v += __popc(__activemask());
  }
  x[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
__global__ void spin(float* x) {  // lane 0 waits for what the last thread of the block does later
  __shared__ int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 0) while (atomicCAS(&flag, 1, 2) != 1) {}
  if (threadIdx.x == blockDim.x - 1) atomicExch(&flag, 1);
  __syncthreads();
  x[blockIdx.x * blockDim.x + threadIdx.x] = flag;
}
__global__ void blocks_wait(float* x) {  // every block waits for all others, its shared memory must stay its own
  __shared__ float mine[96];
  unsigned* count = (unsigned*)x;
  mine[threadIdx.x] = blockIdx.x * blockDim.x + threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicInc(count, ~0u);
    while (atomicAdd(count, 0u) < gridDim.x) {}
  }
  __syncthreads();
  if (blockIdx.x + threadIdx.x) x[blockIdx.x * blockDim.x + threadIdx.x] = mine[threadIdx.x];
}
#include <cooperative_groups.h>
__global__ void grid_waits(float* x) { cooperative_groups::this_grid().sync(); }
"""
ENTRIES = ("plain", "barriers", "shuffles", "mixed", "spin", "blocks_wait", "grid_waits")


@pytest.fixture(scope="module")
def launch():
    plan = Plan(tuple(Launch(entry, ONE, ONE, "0", ()) for entry in ENTRIES))
    image = HostToolchain().compile(Candidate(SOURCE, plan))
    assert isinstance(image, Image), image
    device = open_host_device()

    def run(entry, blocks, threads):
        initial = 0.0 if entry == "blocks_wait" else np.nan
        buffers = [Buffer("x", np.full(blocks * threads, initial, "f4"), Role.OUT)]
        one = ConcreteLaunch(entry, (blocks, 1, 1), (threads, 1, 1), 0, ("x",))
        with device.prepare(image, [one], buffers) as prepared:
            prepared.run(10.0)
            prepared.reset()
            started = time.perf_counter()
            prepared.run(10.0)
            return prepared.read()["x"], (time.perf_counter() - started) / (blocks * threads)

    yield run
    device.close()


def test_every_thread_of_every_block_runs(launch):
    x, _ = launch("plain", 50, 96)
    assert (x == np.arange(50 * 96)).all()


@pytest.mark.parametrize("threads", [1, 31, 64, 1024])
def test_barriers_in_a_loop(launch, threads):
    x, _ = launch("barriers", 3, threads)
    assert (x == 4950).all()


def test_a_ring_of_shuffles(launch):
    x, _ = launch("shuffles", 2, 64)
    lanes = np.arange(64)
    assert (x.reshape(2, 64) == lanes // 32 * 32 + (lanes + 100) % 32).all()


def test_lanes_of_different_masks_and_barriers_together(launch):
    x, _ = launch("mixed", 1, 96)
    v = np.arange(96, dtype="f4")
    for i in range(20):
        v = np.fmod(v + v[np.arange(96) ^ 2], np.float32(1000))
        v[i % 3 * 32 : i % 3 * 32 + 32] += 32
    assert (x == v).all()


def test_a_thread_that_spins_lets_the_others_move_on(launch):
    x, _ = launch("spin", 2, 128)
    assert (x == 2).all()


def test_cost_of_threads_barriers_and_shuffles(launch):
    """Ten to thirty times the figures of an idle machine (3 ns a thread, 11 ns a barrier, 11 ns a shuffle)."""
    assert min(launch("plain", 2000, 256)[1] for _ in range(3)) < 100e-9
    assert min(launch("barriers", 20, 256)[1] for _ in range(3)) / 100 < 300e-9
    assert min(launch("shuffles", 20, 256)[1] for _ in range(3)) / 100 < 300e-9


def test_blocks_that_wait_for_each_other_are_under_way_together(launch):
    x, _ = launch("blocks_wait", 40, 96)
    assert (x[1:] == np.arange(1, 40 * 96)).all()


def test_a_barrier_of_the_grid_needs_a_cooperative_launch(launch):
    with pytest.raises(DeviceFault, match="cooperative"):
        launch("grid_waits", 2, 32)
