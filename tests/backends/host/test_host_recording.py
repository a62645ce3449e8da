"""What the recorder sees: faults of wrong kernels, silence for right ones, and what each line costs a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.protocol import Buffer, DeviceFault
from fsr.records import Candidate, ConcreteLaunch, Image, Launch, Plan, Role, ScalarValue
from tests.backends.host.conftest import launch_of

ONE = ("1", "1", "1")


def site(profile, line, kind, launch=0):
    found = [s for s in profile.launches[launch].sites if s.line == line and s.kind == kind]
    assert len(found) == 1, profile.launches[launch].sites
    return found[0]


def kinds(profile):
    return [(fault.kind, fault.line) for fault in profile.faults]


REDUCE = """__global__ void k(const float* x, float* out) {
  __shared__ float s[128];
  s[threadIdx.x] = x[blockIdx.x * 128 + threadIdx.x];
  BARRIER
  for (int d = 64; d > 0; d /= 2) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}"""


@pytest.mark.parametrize("compiler", ["clang++-22", "g++"])
def test_a_right_reduction_is_silent_and_a_missing_barrier_is_a_race(record, compiler):
    args = {"x": np.ones(512, "f4"), "out": np.zeros(4, "f4")}
    right = record(REDUCE.replace("BARRIER", "__syncthreads();"), "k", 4, 128, compiler=compiler, **args)
    assert right.faults == ()
    launch = right.launches[0]
    assert (launch.blocks, launch.sampled_blocks, launch.shared_bytes) == (4, 4, 512)
    assert launch.barriers == 4 * 4 * 8  # 4 blocks, 4 warps, 1 + 7 barriers
    assert launch.warp_instructions > 4 * 4 * 8
    assert site(right, 3, "read").lanes == 512
    assert site(right, 9, "read").requests == 4
    wrong = record(REDUCE.replace("BARRIER", ""), "k", 4, 128, compiler=compiler, **args)
    assert "race" in {fault.kind for fault in wrong.faults}
    assert {line for kind, line in kinds(wrong) if kind == "race"} <= {3, 6}


@pytest.mark.parametrize("stride", [1, 2, 8])
def test_sectors_of_strided_global_accesses(record, stride):
    source = "__global__ void k(const float* x, float* out, int m) {\n  out[threadIdx.x] = x[threadIdx.x * m];\n}"
    profile = record(source, "k", 1, 64, x=np.zeros(64 * stride, "f4"), out=np.zeros(64, "f4"), m=stride)
    assert profile.faults == ()
    read, write = site(profile, 2, "read"), site(profile, 2, "write")
    assert (read.requests, read.lanes, read.bytes, read.buffer, read.space) == (2, 64, 4, "x", "global")
    assert read.sectors == read.unique_sectors == 8 * stride
    assert write.sectors == 8


@pytest.mark.parametrize(("index", "words"), [("5", 1), ("threadIdx.x / 8", 2), ("threadIdx.x * 4", 64)])
@pytest.mark.parametrize(
    ("table", "constant"), [("__constant__ unsigned char", True), ("__device__ unsigned char", False)]
)
def test_words_of_constant_memory_are_read_one_after_the_other(record, index, words, table, constant):
    source = f"""{table} T[256] = {{1, 2, 3}};
    __global__ void k(int* out) {{
      out[threadIdx.x] = T[{index}];
    }}"""
    read = site(record(source, "k", 1, 64, out=np.zeros(64, "i4")), 3, "read")
    assert (read.space, read.requests) == ("constant", 2)
    assert read.wavefronts == (max(words, 2) if constant else 2)


@pytest.mark.parametrize("compiler", ["clang++-22", "g++"])
def test_local_memory_has_a_line_for_each_element_that_lanes_are_at(record, compiler):
    source = """__global__ void k(const int* x, int* out) {
      int a[8] = {}, b[2] = {};TOLD
      for (int i = 0; i < 4; i++) {
        a[x[threadIdx.x] + i] += i;
      }
      b[x[0]] = 3;
      out[threadIdx.x] = a[x[threadIdx.x]] + b[x[1]];
    }"""
    args = {"x": (np.arange(64) % 4).astype("i4"), "out": np.zeros(64, "i4")}
    told = record(source.replace("TOLD", " fsr_note_local(a, sizeof(a));"), "k", 1, 64, compiler=compiler, **args)
    for kind in ("read", "write"):
        (found,) = [s for s in told.launches[0].sites if s.space == "local" and s.kind == kind and s.line == 4]
        assert (found.requests, found.lanes, found.lines, found.buffer) == (8, 256, 32, "local memory")
    assert {s.line for s in told.launches[0].sites if s.space == "local"} == {4, 7}
    plain = record(source.replace("TOLD", ""), "k", 1, 64, compiler=compiler, **args)
    assert {s.space for s in plain.launches[0].sites} == {"global"}


@pytest.mark.parametrize(("pad", "ways"), [(0, 32), (1, 1)])
def test_bank_conflicts_of_a_transposed_tile(record, pad, ways):
    source = f"""__global__ void k(const float* x, float* out) {{
      __shared__ float tile[32][32 + {pad}];
      tile[threadIdx.y][threadIdx.x] = x[threadIdx.y * 32 + threadIdx.x];
      __syncthreads();
      out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
    }}"""
    profile = record(source, "k", 1, (32, 32, 1), x=np.zeros(1024, "f4"), out=np.zeros(1024, "f4"))
    assert profile.faults == ()
    assert site(profile, 3, "write").wavefronts == 32
    read = next(s for s in profile.launches[0].sites if s.line == 5 and s.space == "shared")
    assert (read.requests, read.wavefronts, read.buffer) == (32, 32 * ways, "tile")


def test_vector_loads_count_as_one_wide_access_and_scalar_ones_do_not(record):
    source = """__global__ void k(const float4* x, float* out) {
      float4 v = x[threadIdx.x];
      out[threadIdx.x] = v.x + v.y * v.z - v.w;
    }
    __global__ void scalar(const float* x, float* out) {
      out[threadIdx.x] = x[threadIdx.x * 4] + x[threadIdx.x * 4 + 1];
    }"""
    args = {"x": np.zeros(256, "f4"), "out": np.zeros(64, "f4")}
    wide = site(record(source, "k", 1, 64, **args), 2, "read")
    assert (wide.bytes, wide.requests, wide.sectors) == (16, 2, 32)
    narrow = site(record(source, "scalar", 1, 64, **args), 6, "read")
    assert (narrow.bytes, narrow.requests) == (4, 4)


def test_atomics_are_told_apart_and_their_collisions_counted(record):
    source = """__global__ void k(int* bins) {
      atomicAdd(&bins[threadIdx.x % 4], 1);
    }"""
    profile = record(source, "k", 8, 64, io_bins=np.zeros(4, "i4"))
    assert profile.faults == ()
    atomic = site(profile, 2, "atomic")
    assert (atomic.requests, atomic.lanes, atomic.serial, atomic.max_same_address) == (16, 512, 128, 128)
    assert {s.kind for s in profile.launches[0].sites} == {"atomic"}


def test_counts_are_scaled_from_sampled_blocks(record):
    source = """__global__ void k(const float* x, float* out, float* io_sum, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) out[i] = x[i] + x[0];
      if (threadIdx.x == 0) atomicAdd(io_sum, 1.0f);
    }"""
    n = 256 * 1000 - 5
    args = {"x": np.zeros(n, "f4"), "out": np.zeros(n, "f4"), "io_sum": np.zeros(1, "f4"), "n": n}
    profile = record(source, "k", 1000, 256, budget=20_000, **args)
    launch = profile.launches[0]
    assert profile.faults == ()
    assert 10 < launch.sampled_blocks < 100
    assert site(profile, 3, "write").lanes == pytest.approx(n, rel=1e-6)
    assert site(profile, 3, "write").unique_sectors == pytest.approx(n / 8, rel=0.02)
    assert site(profile, 4, "atomic").max_same_address == pytest.approx(1000, rel=0.02)
    assert launch.warp_instructions == pytest.approx(
        record(source, "k", 1000, 256, **args).launches[0].warp_instructions, rel=0.02
    )


@pytest.mark.parametrize("heavy", [0, 999])
def test_a_first_or_last_block_with_most_of_the_work_stands_for_itself(record, heavy):
    source = f"""__global__ void k(float* out, int n) {{
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      out[i] = 1.0f;
      if (blockIdx.x == {heavy}) for (int j = n + threadIdx.x; j < 2 * n; j += blockDim.x) out[j] = 1.0f;
    }}"""
    n = 64 * 1000
    args = {"out": np.zeros(2 * n, "f4"), "n": n}
    sampled, whole = (record(source, "k", 1000, 64, budget=b, **args).launches[0] for b in (3_000, 10_000_000))
    assert sampled.sampled_blocks < whole.sampled_blocks == 1000
    assert sampled.warp_instructions == pytest.approx(whole.warp_instructions, rel=0.1)
    written = [sum(s.lanes for s in launch.sites if s.kind == "write") for launch in (sampled, whole)]
    assert written == pytest.approx([2 * n, 2 * n], rel=0.02)


def test_data_that_all_blocks_share_is_not_scaled(record):
    source = (
        "__global__ void k(const float* w, float* out) {\n  out[blockIdx.x * 32 + threadIdx.x] = w[threadIdx.x];\n}"
    )
    profile = record(source, "k", 500, 32, budget=1000, w=np.zeros(32, "f4"), out=np.zeros(16000, "f4"))
    assert site(profile, 2, "read").unique_sectors == 4
    assert site(profile, 2, "read").sectors == pytest.approx(2000)


# ---------------------------------------------------------------- faults


@pytest.mark.parametrize("compiler", ["clang++-22", "g++"])
def test_one_element_too_far_is_found_exactly(record, compiler):
    source = """__global__ void k(const float* x, float* out, int n) {
      int i = threadIdx.x;
      if (i <= n)
        out[0] = x[i];
    }"""
    profile = record(source, "k", 1, 64, x=np.zeros(32, "f4"), out=np.zeros(1, "f4"), n=32, compiler=compiler)
    (fault,) = profile.faults
    assert (fault.kind, fault.line) == ("out-of-bounds", 4)
    assert "'x'[32], which has 32 elements" in fault.detail
    assert "thread 32" in fault.detail


def test_overruns_inside_shared_memory(record):
    source = """__global__ void k(float* out, int n) {
      __shared__ float a[32], b[32];
      b[threadIdx.x] = 1;
      a[threadIdx.x + n] = 2;
      __syncthreads();
      out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
    }"""
    profile = record(source, "k", 1, 32, out=np.zeros(32, "f4"), n=1)
    assert ("out-of-bounds", 4) in kinds(profile)
    dynamic = """__global__ void k(float* out) { extern __shared__ float s[]; int t = threadIdx.x;
      s[t] = 1;
      if (s[t] < 0) out[0] = 1;
    }"""
    assert kinds(record(dynamic, "k", 1, 32, 124, out=np.zeros(1, "f4"))) == [("out-of-bounds", 2)]
    assert record(dynamic, "k", 1, 31, 124, out=np.zeros(1, "f4")).faults == ()


def test_reads_of_what_nobody_wrote(record):
    source = """__global__ void k(float* out, float* tmp) {
      __shared__ float s[32];
      if (threadIdx.x < 31) s[threadIdx.x] = 1;
      __syncthreads();
      float v = s[threadIdx.x];
      v += tmp[threadIdx.x];
      out[threadIdx.x] += v;
    }"""
    profile = record(source, "k", 1, 32, out=np.zeros(32, "f4"), tmp=np.zeros(32, "f4"))
    assert sorted(kinds(profile)) == [("uninitialised", 6), ("uninitialised", 7), ("unset", 5)]
    assert any("'s' byte 124" in fault.detail for fault in profile.faults)


def test_blocks_that_race_on_global_memory(record):
    source = """__global__ void k(float* io_x, float* out) {
      int i = blockIdx.x * 32 + threadIdx.x;
      io_x[i] = io_x[(i + 32) % 128];
      out[threadIdx.x] = blockIdx.x;
      if (threadIdx.x == 0) out[32] = 5;
    }"""
    profile = record(source, "k", 4, 32, io_x=np.arange(128, dtype="f4"), out=np.zeros(33, "f4"))
    assert {("race", 3), ("race", 4)} == set(kinds(profile))  # line 5: all write the same value


def test_a_write_over_what_others_still_read(record):
    source = """__global__ void k(float* out) {
      __shared__ float s[64];
      s[threadIdx.x] = threadIdx.x;
      for (int i = 0; i < 3; i++) {
        __syncthreads();
        float v = s[(threadIdx.x + 1) % 64];
        BARRIER
        s[threadIdx.x] = v + 1;
      }
      out[threadIdx.x] = s[threadIdx.x];
    }"""
    out = np.zeros(64, "f4")
    assert record(source.replace("BARRIER", "__syncthreads();"), "k", 1, 64, out=out).faults == ()
    assert ("race", 8) in kinds(record(source.replace("BARRIER", ""), "k", 1, 64, out=out))


WARP = """__global__ void k(float* out) {
  __shared__ float s[64];
  int lane = threadIdx.x % 32; float* w = s + threadIdx.x / 32 * 32;
  w[lane] = threadIdx.x;
  SYNC
  out[threadIdx.x] = w[lane ^ 1];
}"""


@pytest.mark.parametrize("sync", ["__syncwarp();", "__syncwarp(3u << (lane & ~1));"])
def test_warp_level_synchronisation_orders_its_lanes(record, sync):
    assert record(WARP.replace("SYNC", sync), "k", 1, 64, out=np.zeros(64, "f4")).faults == ()


@pytest.mark.parametrize("sync", ["", "__syncwarp(1u << lane);", "lane = __shfl_sync(~0u, lane, lane);"])
def test_lanes_of_a_warp_race_without_it(record, sync):
    assert ("race", 6) in kinds(record(WARP.replace("SYNC", sync), "k", 1, 64, out=np.zeros(64, "f4")))


def test_order_passes_from_lane_to_lane(record):
    source = """__global__ void k(float* out) {
      __shared__ float s[4];
      int t = threadIdx.x;
      if (t < 3) s[t] = t;
      if (t < 2) __syncwarp(3u);
      if (t == 1 || t == 2) __syncwarp(6u);
      if (t == 2) out[0] = s[0];
    }"""
    assert record(source, "k", 1, 32, out=np.zeros(1, "f4")).faults == ()


def test_the_last_block_may_read_what_fences_and_atomics_hand_over(record):
    source = """__global__ void k(const float* x, float* tmp, unsigned* zero_count, float* out) {
      __shared__ bool last;
      if (threadIdx.x == 0) {
        tmp[blockIdx.x] = x[blockIdx.x];
        FENCE
        last = atomicAdd(zero_count, 1u) == gridDim.x - 1;
      }
      __syncthreads();
      if (last && threadIdx.x == 0) {
        float sum = 0;
        for (int i = 0; i < gridDim.x; i++) sum += tmp[i];
        out[0] = sum;
      }
    }"""
    args = {"x": np.ones(8, "f4"), "tmp": np.zeros(8, "f4"), "zero_count": np.zeros(1, "u4"), "out": np.zeros(1, "f4")}
    assert record(source.replace("FENCE", "__threadfence();"), "k", 8, 32, **args).faults == ()
    assert kinds(record(source.replace("FENCE", ""), "k", 8, 32, **args)) == [("race", 11)]


def test_a_shared_histogram_needs_its_barriers(record):
    source = """__global__ void k(const int* x, int* out) {
      __shared__ int h[16];
      if (threadIdx.x < 16) h[threadIdx.x] = 0;
      __syncthreads();
      atomicAdd(&h[x[threadIdx.x]], 1);
      BARRIER
      if (threadIdx.x < 16) out[threadIdx.x] = h[threadIdx.x];
    }"""
    args = {"x": np.arange(128, dtype="i4") % 16, "out": np.zeros(16, "i4")}
    assert record(source.replace("BARRIER", "__syncthreads();"), "k", 1, 128, **args).faults == ()
    assert "race" in {kind for kind, _ in kinds(record(source.replace("BARRIER", ""), "k", 1, 128, **args))}


def test_neighbouring_bytes_of_different_threads_do_not_race(record):
    source = """__global__ void k(const char* x, char* out) {
      __shared__ char s[64];
      s[threadIdx.x] = x[threadIdx.x];
      __syncthreads();
      out[threadIdx.x] = s[63 - threadIdx.x];
    }"""
    assert record(source, "k", 2, 64, x=np.zeros(64, "i1"), out=np.zeros(64, "i1")).faults == ()


def test_constant_memory_and_device_variables(record):
    source = """__constant__ float w[2] = {1.0f, 2.0f};
    __device__ int calls;
    __global__ void k(float* out, int n) {
      out[threadIdx.x] = w[n];
      atomicAdd(&calls, 1);
    }"""
    profile = record(source, "k", 1, 32, out=np.zeros(32, "f4"), n=1)
    assert profile.faults == ()
    constant = site(profile, 4, "read")
    assert (constant.space, constant.buffer) == ("constant", "w")
    assert site(profile, 5, "atomic").buffer == "calls"


def test_divergent_barriers_end_the_recording_with_a_fault(record):
    source = "__global__ void k() {\n  if (threadIdx.x < 32) __syncthreads();\n  else\n    __syncthreads();\n}"
    profile = record(source, "k", 1, 64)
    assert [fault.kind for fault in profile.faults] == ["divergent-barrier"]


# ---------------------------------------------------------------- plans


def test_launches_after_a_sampled_one_see_all_of_its_results(host):
    source = """
    __global__ void index(int* tmp, int n) { int i = blockIdx.x * 32 + threadIdx.x; if (i < n) tmp[i] = n - 1 - i; }
    __global__ void gather(const float* x, const int* tmp, float* out, int n) {
      int i = blockIdx.x * 32 + threadIdx.x; if (i < n) out[i] = x[tmp[i]];
    }"""
    n = 3200
    plan = Plan((Launch("index", ONE, ONE, "0", ()), Launch("gather", ONE, ONE, "0", ())))
    image = HostToolchain().compile(Candidate(source, plan), instrumented=True)
    assert isinstance(image, Image)
    size = ScalarValue("int32", n)
    launches = [
        ConcreteLaunch("index", (100, 1, 1), (32, 1, 1), 0, ("tmp", size)),
        ConcreteLaunch("gather", (100, 1, 1), (32, 1, 1), 0, ("x", "tmp", "out", size)),
    ]
    buffers = [
        Buffer("x", np.zeros(n, "f4"), Role.IN), Buffer("tmp", np.full(n, 1 << 30, "i4"), None),
        Buffer("out", np.zeros(n, "f4"), Role.OUT),
    ]  # fmt: skip
    profile = host.record(image, launches, buffers, access_budget=500)
    assert profile.faults == ()
    assert [launch.entry for launch in profile.launches] == ["index", "gather"]
    assert all(launch.sampled_blocks < 50 for launch in profile.launches)


def test_some_repetitions_stand_for_all(host):
    source = "__global__ void k(float* y, float* s, int t) { y[t] = s[(t + 1) % 2]; s[t % 2] = t; }"
    image = HostToolchain().compile(Candidate(source, Plan((Launch("k", ONE, ONE, "0", ()),))), instrumented=True)
    assert isinstance(image, Image)
    buffers = [Buffer("y", np.zeros(64, "f4"), Role.OUT), Buffer("s", np.zeros(2, "f4"), None)]

    def recorded(*steps: tuple[int, int]):
        launches = [
            ConcreteLaunch("k", (1, 1, 1), (1, 1, 1), 0, ("y", "s", ScalarValue("int32", t)), times)
            for t, times in steps
        ]
        return host.record(image, launches, buffers)

    found = recorded((0, 1), (30, 62))
    assert [launch.times for launch in found.launches] == [1, 62]
    assert found.faults == (), "the step before wrote what this one reads"
    assert [fault.kind for fault in recorded((0, 1), (30, 1)).faults] == ["uninitialised"]


def test_a_hang_while_recording(host):
    source = "__global__ void k(volatile int* x) { while (x[0] == 0) {} }"
    image = HostToolchain().compile(Candidate(source, Plan((Launch("k", ONE, ONE, "0", ()),))), instrumented=True)
    assert isinstance(image, Image)
    launch = ConcreteLaunch("k", (1, 1, 1), (1, 1, 1), 0, ("x",))
    with pytest.raises(DeviceFault) as caught:
        host.record(image, [launch], [Buffer("x", np.zeros(1, "i4"), Role.IN)], timeout_s=0.3)
    assert caught.value.fault.kind == "hang"


def test_coverage_tells_which_lines_a_run_went_through(host):
    source = """__device__ float half_of(float v) { return v * 0.5f; }
__global__ void k(const float *x, float *out, int n) {
  int i = threadIdx.x;
  float v = x[i];
  for (int j = 0; j < n; j++)
    v = half_of(v) + x[j];
  if (v > 100.0f)
    out[i] = -1.0f;
  else
    out[i] = v;
}
"""
    plan = Plan((Launch("k", ("1", "1", "1"), ("1", "1", "1"), "0", ()),))
    image = host.covering_toolchain().compile(Candidate(source, plan), instrumented=True)
    ran = {}
    for name, value in (("few", 1.0), ("large", 400.0)):
        args = {"x": np.full(32, value, "f4"), "out": np.zeros(32, "f4"), "n": 3}
        launch, buffers = launch_of("k", 1, 32, 0, args)
        seen = host.cover(image, [launch], buffers)
        ran[name] = {seen.parts[part][1] for part in seen.ran}
        assert seen.ran <= seen.parts.keys()
    assert {line for _, line in seen.parts.values()} <= set(range(1, 12))
    assert 8 in ran["large"] - ran["few"]
    assert 10 in ran["few"] - ran["large"]
    assert {*ran["few"]} & {*ran["large"]} >= {6}
