"""Tensor cores and asynchronous copies on the CPU: what is recorded of them, and what wrong use of them leads to."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.protocol import Buffer, DeviceFault
from fsr.evaluation.orders import ORDERS
from fsr.records import Candidate, ConcreteLaunch, FaultKind, Image, Launch, Plan, Role

PIPELINE = """#include <cuda_pipeline.h>
__global__ void k(const float* x, float* out) {
  __shared__ float stage[2][64];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&stage[0][t], x + t, 4);
  __pipeline_commit();
  for (int s = 0; s < 4; ++s) {
    BEFORE
    __syncthreads();
    if (s + 1 < 4) __pipeline_memcpy_async(&stage[(s + 1) % 2][t], x + 64 * (s + 1) + t, 4);
    __pipeline_commit();
    out[64 * s + t] = stage[s % 2][63 - t];
    BEHIND
  }
}"""
WAIT = "__pipeline_wait_prior(0);"
X = np.arange(256, dtype="f4") + 1


def pipelined(run, before, behind="", **more):
    source = PIPELINE.replace("BEFORE", before).replace("BEHIND", behind)
    return run(source, "k", 1, 64, x=X, out=np.zeros(256, "f4"), **more)


def test_a_copy_is_there_after_its_wait_and_not_before(run):
    right = X.reshape(4, 64)[:, ::-1].ravel()
    assert (pipelined(run, WAIT)["out"] == right).all()
    assert np.isnan(pipelined(run, "__pipeline_wait_prior(1);")["out"]).any()


def test_asynchronous_copies_are_accesses_that_barriers_must_order(record):
    right = pipelined(record, WAIT)
    assert right.faults == ()
    sites = {(s.line, s.space, s.kind): s for s in right.launches[0].sites}
    copied = sites[10, "global", "read"]
    assert (copied.requests, copied.lanes, copied.sectors) == (6, 192, 24)
    assert sites[10, "shared", "write"].requests == 6
    unordered = PIPELINE.replace("BEFORE\n    __syncthreads();", WAIT).replace("BEHIND", "")
    late = record(unordered, "k", 1, 64, x=X, out=np.zeros(256, "f4"))
    assert FaultKind.RACE in {fault.kind for fault in late.faults}


def test_refilling_what_others_still_read_is_a_race(record):
    source = PIPELINE.replace("(s + 1) % 2", "0").replace("s % 2", "0").replace("BEFORE", WAIT).replace("BEHIND", "")
    profile = record(source, "k", 1, 64, x=X, out=np.zeros(256, "f4"))
    assert (FaultKind.RACE, 10) in {(fault.kind, fault.line) for fault in profile.faults}


WRONG = {
    "__pipeline_memcpy_async(tile + 1, x, 8);": "no multiple",
    "__pipeline_memcpy_async(tile, x, 12);": "4, 8 or 16",
    "__pipeline_memcpy_async(out, x, 4);": "from global to shared",
    "load_matrix_sync(a, (const __half*)tile + 1, 16);": "no multiple",
    "load_matrix_sync(a, (const __half*)tile, 17);": "no multiple",
    "if (threadIdx.x < 16) mma_sync(c, a, b, c);": "fewer than the 32 lanes",
}
HEAD = """#include <mma.h>
#include <cuda_pipeline.h>
using namespace nvcuda::wmma;
__global__ void k(const float* x, float* out, int which) {
  __shared__ __align__(32) float tile[256];
  fragment<matrix_a, 16, 16, 16, __half, row_major> a; fragment<matrix_b, 16, 16, 16, __half, row_major> b;
  fragment<accumulator, 16, 16, 16, float> c;"""
WRONGS = HEAD + "".join(f"\n  if (which == {n}) {{ {call} }}" for n, call in enumerate(WRONG)) + "\n}"


@pytest.mark.parametrize("call", WRONG)
def test_wrong_use_stops_the_kernel_with_its_line(run, call):
    which = list(WRONG).index(call)
    with pytest.raises(DeviceFault, match=WRONG[call]) as stopped:
        run(WRONGS, "k", 1, 32, x=np.zeros(64, "f4"), out=np.zeros(64, "f4"), which=which)
    assert stopped.value.fault.line == 8 + which


PRODUCT = """#include <mma.h>
using namespace nvcuda;
__global__ void k(const __half* x, float* out) {
  __shared__ __align__(32) __half tile[16 * PITCH];
  for (int i = threadIdx.x; i < 256; i += 32) tile[i / 16 * PITCH + i % 16] = x[i];
  ORDER
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::LAYOUT> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(c, 0.0f);
  wmma::load_matrix_sync(a, tile, PITCH);
  wmma::load_matrix_sync(b, tile, PITCH);
  wmma::mma_sync(c, a, b, c);
  wmma::store_matrix_sync(out, c, 16, wmma::mem_row_major);
}"""


def product(pitch=24, order="__syncthreads();", layout="row_major"):
    return PRODUCT.replace("PITCH", str(pitch)).replace("ORDER", order).replace("LAYOUT", layout)


@pytest.mark.parametrize("layout", ["row_major", "col_major"])
def test_a_product_is_recorded_as_what_a_gpu_does(record, layout):
    halves = np.arange(256, dtype="f2")
    profile = record(product(layout=layout), "k", 1, 32, x=halves, out=np.zeros(256, "f4"))
    assert profile.faults == ()
    launch = profile.launches[0]
    assert launch.tensor_operations == 2 * 16**3
    assert launch.shuffles == 0
    assert launch.warp_instructions < 250  # products and loads of matrices are an instruction each
    loads = {s.line: s for s in launch.sites if s.space == "shared" and s.kind == "read"}
    assert loads[11].requests == loads[12].requests == loads[11].wavefronts == loads[12].wavefronts == 4
    store = next(s for s in launch.sites if s.line == 14)
    assert (store.bytes, store.requests, store.sectors) == (8, 4, 32)
    if layout == "col_major":
        return
    packed = record(product(16, layout=layout), "k", 1, 32, x=halves, out=np.zeros(256, "f4"))
    conflicts = {s.line: s.wavefronts for s in packed.launches[0].sites if s.space == "shared" and s.kind == "read"}
    assert conflicts[11] == conflicts[12] == 8


def test_a_tile_that_nothing_orders_before_a_load_is_a_race(record):
    profile = record(product(order=""), "k", 1, 32, x=np.ones(256, "f2"), out=np.zeros(256, "f4"))
    assert (FaultKind.RACE, 11) in {(fault.kind, fault.line) for fault in profile.faults}


@cache
def watched_image(source):
    launch = Launch("k", ("1", "1", "1"), ("1", "1", "1"), "0", ())
    image = HostToolchain(watched=True).compile(Candidate(source, Plan((launch,))))
    assert isinstance(image, Image), image
    return image


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.seed)
def test_right_products_and_pipelines_are_silent_in_every_order(host, order):
    pipeline = PIPELINE.replace("BEFORE", WAIT).replace("BEHIND", "")
    for source, threads, x, right in (
        (product(), 32, np.ones(256, "f2"), np.full(256, 16, "f4")),
        (pipeline, 64, X, X.reshape(4, 64)[:, ::-1].ravel()),
    ):
        buffers = [Buffer("x", x, Role.IN), Buffer("y", np.zeros(256, "f4"), Role.OUT)]
        one = ConcreteLaunch("k", (1, 1, 1), (threads, 1, 1), 0, ("x", "y"))
        faults, arrays = host.watch(watched_image(source), [one], buffers, order)
        assert faults == ()
        assert (arrays["y"] == right).all()


WARPGROUP = """#include <cuda_fp16.h>
#include <cuda_pipeline.h>
__device__ unsigned long long described(const void* at) {
  return (unsigned long long)__cvta_generic_to_shared(at) >> 4 | 64ull << 32 | 1ull << 62;
}
__global__ void k(const __half* x, float* out, int which) {
  extern __shared__ __align__(1024) unsigned char tiles[];
  int t = threadIdx.x;
  float d[4] = {};
  for (int i = t; i < 576; i += 128)
    __pipeline_memcpy_async(tiles + i / 8 * 128 + (i % 8 ^ i / 8 % 8) * 16, x + i * 8, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  if (which != 1) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (which != 2) asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  unsigned long long a = described(tiles) + (which == 3 ? 4096 : 0), b = described(tiles + 8192);
  for (int step = 0; step < 8; step += 2)
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a + step), "l"(b + step));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  if (which == 5 && t == 77) tiles[77] += 1;
  __syncthreads();
  if (which != 6) asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; i++) out[(t / 32 * 16 + t % 32 / 4 + i / 2 * 8) * 8 + t % 4 * 2 + i % 2] = d[i];
}"""
LEFT_OUT = {
    1: (19, "without fence.proxy.async"),
    2: (19, "without wgmma.fence"),
    3: (19, "beyond the block's shared memory"),
    5: (24, "written before it was waited for"),
}


def warpgroup(run, which):
    halves = ((np.arange(4608) * 37 % 101 - 50) / 8).astype("f2")
    got = run(WARPGROUP, "k", 1, 128, x=halves, out=np.zeros((64, 8), "f4"), which=which, shared=9216)
    return got, halves[:4096].reshape(64, 64).astype("f4") @ halves[4096:].reshape(8, 64).astype("f4").T


def test_sums_of_a_warpgroup_are_there_after_their_wait(run):
    got, want = warpgroup(run, 0)
    assert (got["out"] == want).all()
    assert np.isnan(warpgroup(run, 6)[0]["out"]).all()


WAYS = WARPGROUP.replace(
    """    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a + step), "l"(b + step));
""",
    """ {
    if (which == 7)
      asm volatile("{\\n.reg .pred p;\\nsetp.ne.b32 p, %6, 0;\\n"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16\\n{ %0,%1, %2,  %3 },\\n %4, %5, p, %7, %8, %9, %10;\\n}\\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "l"(a + step), "l"(b + step), "r"(step), "n"(1), "n"(-1), "n"(0), "n"(0));
    unsigned r[4]; const __half* rows = x + (t / 32 * 16 + t % 32 / 4) * 64 + step * 8 + t % 4 * 2;
    for (int i = 0; i < 4; i++) r[i] = *(const unsigned*)(rows + i % 2 * 8 * 64 + i / 2 * 8);
    if (which == 8)
      asm volatile("{ .reg .pred p; setp.ne.b32 p, %9, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, p, 1, 1, 0; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "l"(b + step), "r"(1));
  }
""",
)


def test_sums_may_begin_anew_and_factors_lie_in_registers(run):
    halves = ((np.arange(4608) * 37 % 101 - 50) / 8).astype("f2")
    left, right = halves[:4096].reshape(64, 64).astype("f4"), halves[4096:].reshape(8, 64).astype("f4").T
    assert "which == 8" in WAYS
    for which, want in ((7, -(left @ right)), (8, left @ right)):
        source = WAYS.replace("float d[4] = {};", "float d[4] = {};" if which == 8 else "float d[4] = {9, 9, 9, 9};")
        got = run(source, "k", 1, 128, x=halves, out=np.zeros((64, 8), "f4"), which=which, shared=9216)
        assert (got["out"] == want).all(), which


@pytest.mark.parametrize("which", LEFT_OUT)
def test_what_a_warpgroup_leaves_out_stops_the_kernel(run, which):
    line, told = LEFT_OUT[which]
    with pytest.raises(DeviceFault, match=told) as stopped:
        warpgroup(run, which)
    assert stopped.value.fault.line == line


def test_products_of_a_warpgroup_are_recorded_as_what_a_gpu_does(record):
    profile = warpgroup(record, 0)[0]
    assert profile.faults == ()
    launch = profile.launches[0]
    assert launch.tensor_operations == pytest.approx(0.62 * 2 * 64 * 8 * 64)
    assert launch.shuffles == 0
