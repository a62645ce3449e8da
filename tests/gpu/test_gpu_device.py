"""The CUDA device on a real GPU: conformance, containment, limits, timing, throughput."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path

import numpy as np
import pytest
from device_conformance import DeviceConformance, given, int32, launch
from gpu_bench import GpuBench, image_of, start_lost

from fsr.backends.cuda.compiler import cuda_toolchain
from fsr.backends.cuda.device import CudaDevice
from fsr.backends.cuda.prepared import CudaPrepared
from fsr.backends.protocol import DeviceFault
from fsr.records import Candidate, Image, Launch, Plan, Role, ScalarValue

COPY4 = """
__global__ void copy4(const float4* __restrict__ x, float4* __restrict__ y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
template <int N, typename T> __global__ void add(T* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += (T)N;
}
extern "C" __global__ void large_shared(float* y, int n) {
  extern __shared__ float s[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = (float)i;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = s[n - 1 - i];
}
extern "C" __global__ void __launch_bounds__(128) narrow(float* y) { y[threadIdx.x] = 1.0f; }
"""
ENTRIES = ("copy4", "add<7, float>", "add<-2, double>", "large_shared", "narrow")


class TestGpuConformance(DeviceConformance):
    @pytest.fixture
    def bench(self, cuda: CudaDevice) -> GpuBench:
        return GpuBench(cuda)


def test_identity_is_complete(cuda: CudaDevice) -> None:
    info = cuda.info
    assert info.vendor == "nvidia"
    assert info.arch.startswith("sm_")
    assert info.driver
    for value in (info.sm_count, info.memory_bytes, info.sm_clock_mhz, info.l2_bytes, info.max_shared_bytes):
        assert value is not None
        assert value > 0


def test_templates_launch_by_their_expression(cuda: CudaDevice) -> None:
    image = image_of(cuda, COPY4, *ENTRIES)
    for entry, dtype, by in (("add<7, float>", np.float32, 7), ("add<-2, double>", np.float64, -2)):
        y = np.arange(100, dtype=dtype)
        add = launch(entry, "y", int32(100), grid=2)
        with cuda.prepare(image, [add], [given("y", y, Role.INOUT)]) as prepared:
            prepared.run()
            assert np.array_equal(prepared.read()["y"], y + by)


def test_shared_memory_to_the_opt_in_limit(cuda: CudaDevice) -> None:
    image, most = image_of(cuda, COPY4, *ENTRIES), cuda.info.max_shared_bytes
    assert most is not None
    n = most // 4
    out = [given("y", np.full(n, np.nan, np.float32), Role.OUT)]
    with cuda.prepare(image, [launch("large_shared", "y", int32(n), block=256, shared=4 * n)], out) as prepared:
        prepared.run()
        assert np.array_equal(prepared.read()["y"], np.arange(n, dtype=np.float32)[::-1])
    with pytest.raises(DeviceFault, match="shared memory") as caught:
        cuda.prepare(image, [launch("large_shared", "y", int32(n), block=256, shared=4 * n + 1024)], out)
    assert (caught.value.fault.kind, caught.value.fatal) == ("launch", False)


def test_launch_bounds_limit_the_block(cuda: CudaDevice) -> None:
    out = [given("y", np.zeros(512, np.float32), Role.OUT)]
    with pytest.raises(DeviceFault, match="at most 128") as caught:
        cuda.prepare(image_of(cuda, COPY4, *ENTRIES), [launch("narrow", "y", block=512)], out)
    assert caught.value.fault.kind == "launch"


def test_out_of_memory_is_a_fault_and_leaves_the_device_usable(cuda: CudaDevice, tmp_path: Path) -> None:
    image, most = image_of(cuda, COPY4, *ENTRIES), cuda.info.memory_bytes
    assert most is not None
    sparse = tmp_path / "larger-than-the-device"  # takes no disk and no memory: it is refused before it is read
    with sparse.open("wb") as file:
        file.truncate(most + (1 << 30))
    big = given("y", np.memmap(sparse, np.uint8, "r"), Role.OUT)
    with pytest.raises(DeviceFault) as caught:
        cuda.prepare(image, [launch("narrow", "y")], [big])
    assert (caught.value.fault.kind, caught.value.fatal) == ("memory", False)
    small = given("y", np.zeros(64, np.float32), Role.OUT)
    with cuda.prepare(image, [launch("narrow", "y")], [small]) as prepared:
        prepared.run()
        assert prepared.read()["y"].sum() == 64


def test_a_hanging_process_can_be_killed_and_the_next_one_works(cuda: CudaDevice) -> None:
    process = start_lost("spin", 0.3, "linger")
    assert process.stdout
    with process.stdout:
        kind, fatal, _ = json.loads(process.stdout.readline())
        assert (kind, fatal) == ("hang", True)
        started = time.monotonic()
        process.kill()
        process.wait(timeout=10)
        assert time.monotonic() - started < 5
    test_templates_launch_by_their_expression(cuda)


def test_an_illegal_access_costs_its_process_only(cuda: CudaDevice) -> None:
    process = start_lost("store_at", 5.0)
    output, _ = process.communicate(timeout=60)
    kind, fatal, detail = json.loads(output.splitlines()[-1])
    assert (kind, fatal) == ("crash", True)
    assert "illegal" in detail, "the driver's own words"
    test_templates_launch_by_their_expression(cuda)


def copy_plan(cuda: CudaDevice, mebibytes: int, block: int = 256) -> tuple[CudaPrepared, int]:
    n = mebibytes * (1 << 20) // 16
    x = np.random.default_rng(1).standard_normal(4 * n, np.float32)
    x.flags.writeable = False
    buffers = [given("x", x, Role.IN), given("y", np.zeros_like(x), Role.OUT)]
    plan = [launch("copy4", "x", "y", int32(n), grid=-(-n // block), block=block)]
    return cuda.prepare(image_of(cuda, COPY4, *ENTRIES), plan, buffers), 2 * 16 * n


def test_a_copy_kernel_reaches_the_copy_bandwidth_and_does_not_exceed_it(cuda: CudaDevice) -> None:
    prepared, moved = copy_plan(cuda, 512)
    with prepared:
        median_ns = statistics.median(prepared.time_ns() for _ in range(15))
        assert prepared.violations() == []
    rate = moved / (median_ns * 1e-9)
    print(f"copy kernel {rate / 1e12:.3f} TB/s, device copy {cuda.copy_bandwidth() / 1e12:.3f} TB/s")
    assert 0.5 <= rate / cuda.copy_bandwidth() <= 1.05


def test_the_same_kernel_takes_the_same_time(cuda: CudaDevice) -> None:
    (first, _), (second, _) = copy_plan(cuda, 64), copy_plan(cuda, 64)
    with first, second:
        pairs = [(first.time_ns(), second.time_ns()) for _ in range(40)]
    ratio = statistics.median(a for a, _ in pairs) / statistics.median(b for _, b in pairs)
    print(f"A/A ratio {ratio:.4f}")
    assert 0.97 <= ratio <= 1.03


def test_a_short_kernel_takes_no_longer_in_a_batch_than_alone(cuda: CudaDevice) -> None:
    prepared, moved = copy_plan(cuda, 4)
    with prepared:
        alone = statistics.median(prepared.time_ns() for _ in range(15))
        batched = statistics.median(prepared.time_batch_ns(32) for _ in range(9))
        assert prepared.violations() == []
    print(f"alone {alone:.0f} ns, batched {batched:.0f} ns")
    assert 0.25 * alone <= batched <= 1.1 * alone
    assert moved / (batched * 1e-9) <= 3 * cuda.copy_bandwidth(), "at most what the L2 can give"


def test_work_per_candidate_is_milliseconds(cuda: CudaDevice) -> None:
    """Prepare, run, check, read, four timed runs: what a candidate costs the GPU's owner beside its kernels."""
    image = image_of(cuda, COPY4, *ENTRIES)
    x = np.random.default_rng(2).standard_normal(1 << 20, np.float32)
    y = np.full_like(x, np.nan)
    x.flags.writeable = y.flags.writeable = False
    plan = [launch("copy4", "x", "y", int32(1 << 18), grid=1 << 10, block=256)]
    held, started = cuda.pool.used_bytes, time.perf_counter()
    rounds = 200
    for _ in range(rounds):
        with cuda.prepare(image, plan, [given("x", x, Role.IN), given("y", y, Role.OUT)]) as prepared:
            prepared.run()
            assert prepared.violations() == []
            assert prepared.read()["y"][-1] == x[-1]
            for _ in range(4):
                prepared.time_ns()
    each_ms = (time.perf_counter() - started) / rounds * 1e3
    print(f"{each_ms:.2f} ms a candidate")
    assert each_ms < 25
    assert cuda.pool.used_bytes <= held + (160 << 20), "the flush and the kept inputs, nothing more"


def test_compile_prepare_run_reaches_a_useful_rate_in_one_process(cuda: CudaDevice) -> None:
    toolchain = cuda_toolchain(cuda.info.arch)
    one = ("1", "1", "1")
    started, count = time.perf_counter(), 30
    for number in range(count):
        source = f"__global__ void k(float* y) {{ y[threadIdx.x] = {number}.0f + threadIdx.x; }}"
        image = toolchain.compile(Candidate(source, Plan((Launch("k", one, one, "0", ()),))))
        assert isinstance(image, Image)
        with cuda.prepare(image, [launch("k", "y")], [given("y", np.zeros(64, np.float32), Role.OUT)]) as prepared:
            prepared.run()
            assert prepared.read()["y"][3] == number + 3
            prepared.time_ns()
    rate = count / (time.perf_counter() - started)
    print(f"{rate:.1f} candidates a second with compiling, {toolchain.version}")
    assert rate > (8 if toolchain.name == "nvrtc" else 0.8)


def test_the_clock_is_read_around_samples(cuda: CudaDevice) -> None:
    clock = cuda.sm_clock_mhz()
    assert clock is None or 100 <= clock <= 4000


def test_half_precision_scalars_and_buffers_arrive(cuda: CudaDevice) -> None:
    source = """#include <cuda_bf16.h>
#include <cuda_fp16.h>
extern "C" __global__ void k(__half a, __nv_bfloat16 b, float* y) {
  y[0] = __half2float(a); y[1] = __bfloat162float(b);
}"""
    args = (ScalarValue("float16", 1.5), ScalarValue("bfloat16", -3.0), "y")
    with cuda.prepare(
        image_of(cuda, source, "k"), [launch("k", *args)], [given("y", np.zeros(2, np.float32), Role.OUT)]
    ) as prepared:
        prepared.run()
        assert prepared.read()["y"].tolist() == [1.5, -3.0]
