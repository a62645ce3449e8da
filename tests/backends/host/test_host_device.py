"""Kernels run on the host device and give what a GPU would; what a right kernel does not do is a fault."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import open_host_device
from fsr.backends.protocol import Buffer, DeviceFault
from fsr.errors import HarnessError
from fsr.records import Candidate, ConcreteLaunch, Image, Launch, Plan, Role, ScalarValue

SAXPY = """
__global__ void saxpy(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
"""
ONE = ("1", "1", "1")


def image_of(source, *entries, instrumented=False):
    plan = Plan(tuple(Launch(entry, ONE, ONE, "0", ()) for entry in entries))
    image = HostToolchain().compile(Candidate(source, plan), instrumented=instrumented)
    assert isinstance(image, Image), image
    return image


def fault_of(call, *args, **kwargs):
    with pytest.raises(DeviceFault) as caught:
        call(*args, **kwargs)
    return caught.value.fault


def test_saxpy_with_a_tail(run):
    n = 1000
    x, y = np.arange(n, dtype="f4"), np.ones(n, "f4")
    assert (run(SAXPY, "saxpy", 4, 256, n=n, a=2.0, x=x, io_y=y)["io_y"] == 2 * x + 1).all()


def test_three_dimensional_grid_and_block(run):
    source = """
    __global__ void where(int* out) {
      int bx = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
      int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
      int size = blockDim.x * blockDim.y * blockDim.z;
      out[bx * size + t] = bx * 1000 + threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z;
    }"""
    out = run(source, "where", (2, 3, 2), (4, 3, 2), out=np.full(12 * 24, -1, "i4"))["out"]
    want = [b * 1000 + x + 10 * y + 100 * z for b in range(12) for z in range(2) for y in range(3) for x in range(4)]
    assert out.tolist() == want


@pytest.mark.parametrize("threads", [32, 33, 256, 1000, 1024])
def test_block_reduction_with_barriers_in_dynamic_shared_memory(run, threads):
    source = """
    __global__ void total(const float* x, float* out) {
      extern __shared__ float s[];
      unsigned t = threadIdx.x;
      s[t] = x[blockIdx.x * blockDim.x + t];
      for (unsigned k = 1; k < blockDim.x; k *= 2) {
        __syncthreads();
        float v = t >= k ? s[t - k] : 0.f;
        __syncthreads();
        s[t] += v;
      }
      if (t == blockDim.x - 1) out[blockIdx.x] = s[t];
    }"""
    x = np.arange(3 * threads, dtype="f4") % 7
    out = run(source, "total", 3, threads, threads * 4, x=x, out=np.zeros(3, "f4"))["out"]
    assert (out == x.reshape(3, -1).sum(1)).all()


def test_threads_that_leave_early_do_not_hold_up_the_barrier(run):
    source = """
    __global__ void k(int* out) {
      __shared__ int s[64];
      if (threadIdx.x >= 40) return;
      s[threadIdx.x] = threadIdx.x;
      __syncthreads();
      out[threadIdx.x] = s[39 - threadIdx.x];
    }"""
    assert run(source, "k", 1, 64, out=np.zeros(40, "i4"))["out"].tolist() == list(range(39, -1, -1))


def test_barriers_that_count_and_vote(run):
    source = """
    __global__ void k(int* out) {
      int t = threadIdx.x;
      out[t] = __syncthreads_count(t % 3 == 0) * 100 + __syncthreads_and(t < 69) * 10 + __syncthreads_or(t == 68);
    }"""
    assert (run(source, "k", 1, 70, out=np.zeros(70, "i4"))["out"] == 2400 + 1).all()


def test_shuffles_votes_and_partial_masks(run):
    source = """
    __global__ void k(int* out) {
      int lane = threadIdx.x % 32, v = threadIdx.x;
      int sum = v;
      for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
      unsigned even = __ballot_sync(0xffffffffu, lane % 2 == 0);
      int half = 0;
      if (lane < 16) half = __shfl_sync(0x0000ffffu, v, 3); else half = __shfl_sync(0xffff0000u, v, 20);
      out[threadIdx.x] = sum + (even == 0x55555555u) * 10000 + half * 100000;
    }"""
    out = run(source, "k", 1, 64, out=np.zeros(64, "i4"))["out"]
    for t in range(64):
        warp = t // 32 * 32
        assert out[t] == sum(range(warp, warp + 32)) + 10000 + 100000 * (warp + (3 if t % 32 < 16 else 20))


def test_active_mask_is_what_converges(run):
    source = "__global__ void k(unsigned* out) { if (threadIdx.x % 2) out[threadIdx.x] = __activemask(); }"
    out = run(source, "k", 1, 32, out=np.zeros(32, "u4"))["out"]
    assert set(out[1::2].tolist()) == {0xAAAAAAAA}
    assert not out[::2].any()


def test_a_spin_lock_between_threads_of_a_block_makes_progress(run):
    source = """
    __global__ void k(int* io_lock, int* io_count) {
      for (bool done = false; !done;) {
        if (atomicCAS(io_lock, 0, 1) != 0) continue;
        *io_count += 1;
        __syncwarp(1u << (threadIdx.x % 32));
        atomicExch(io_lock, 0);
        done = true;
      }
    }"""
    assert run(source, "k", 2, 64, io_lock=np.zeros(1, "i4"), io_count=np.zeros(1, "i4"))["io_count"] == [128]


def test_entries_that_are_templates_in_namespaces(run):
    source = """
    namespace ns { template <int N, typename T> __global__ void k(T* out, int a) { out[threadIdx.x] = N * a + 0.5; } }
    """
    assert run(source, "ns::k<4, double>", 1, 2, out=np.zeros(2), a=3)["out"].tolist() == [12.5, 12.5]


def test_shared_memory_is_not_zero_at_the_start_of_a_block(run):
    source = """
    __global__ void k(float* out) {
      __shared__ float s[4]; extern __shared__ float d[];
      out[threadIdx.x] = s[threadIdx.x] + d[threadIdx.x]; s[threadIdx.x] = d[threadIdx.x] = 0;
    }"""
    out = run(source, "k", 3, 4, 16, out=np.zeros(4, "f4"))["out"]
    assert np.isnan(out).all() or ((out == out[0]).all() and out[0] != 0)


def test_bfloat16_buffers(run):
    source = "__global__ void k(const __nv_bfloat16* x, __nv_bfloat16* out) { out[threadIdx.x] = x[threadIdx.x]; }"
    x = np.arange(8).astype(ml_dtypes.bfloat16)
    out = run("#include <cuda_bf16.h>\n" + source, "k", 1, 8, x=x, out=np.zeros_like(x))["out"]
    assert out.dtype == x.dtype
    assert (out == x).all()


def test_a_quick_division_does_not_fuse_with_the_sum_behind_it(run):
    """As on the device, where it is one instruction: its quotient is rounded before the sum sees it."""
    source = "__global__ void k(const float* x, float* out) { out[0] = __fdividef(x[0], 3.0f) + x[1]; }"
    quotient = np.float32(7.0) * (np.float32(1.0) / np.float32(3.0))
    x = np.array([7.0, -quotient], "f4")
    assert run(source, "k", 1, 1, x=x, out=np.ones(1, "f4"))["out"][0] == 0.0


# ---------------------------------------------------------------- faults


@pytest.mark.parametrize(("write", "word"), [(False, "read"), (True, "write")])
def test_an_access_far_outside_names_buffer_line_and_thread(run, write, word):
    body = "y[i * 5000] = x[i];" if write else "y[i] = x[i * 5000];"
    source = f"__global__ void k(const float* x, float* y) {{\n  int i = threadIdx.x;\n  {body}\n}}"
    fault = fault_of(run, source, "k", 1, 64, x=np.zeros(64, "f4"), io_y=np.zeros(64, "f4"))
    assert fault.kind == "out-of-bounds"
    assert fault.line == 3
    assert word in fault.detail
    assert ("'io_y'[5000]" if write else "'x'[5000]") in fault.detail
    assert "thread 1" in fault.detail


def test_an_access_far_behind_shared_memory_says_so(run):
    source = """
    extern __shared__ float s[];
    __global__ void k(float *io_y) { s[threadIdx.x * 1500] = 1.0f; io_y[threadIdx.x] = s[threadIdx.x * 1500]; }
    """
    fault = fault_of(run, source, "k", 1, 8, shared=256, io_y=np.zeros(8, "f4"))
    assert "write to byte 6000 of dynamic shared memory, of which the launch has 256 " in fault.detail


def test_the_device_goes_on_after_a_crash(host, run):
    source = "__global__ void k(int* p) { ((volatile int*)0)[threadIdx.x] = 1; }"
    assert fault_of(run, source, "k", 1, 1, io_p=np.zeros(1, "i4")).kind == "out-of-bounds"
    x = np.ones(4, "f4")
    assert (run(SAXPY, "saxpy", 1, 4, n=4, a=1.0, x=x, io_y=x)["io_y"] == 2).all()


def test_a_prepared_plan_survives_another_ones_crash(host):
    image = image_of(SAXPY, "saxpy")
    x, y = np.ones(8, "f4"), np.ones(8, "f4")
    buffers = [Buffer("x", x, Role.IN), Buffer("y", y, Role.INOUT)]
    launch = ConcreteLaunch(
        "saxpy", (1, 1, 1), (8, 1, 1), 0, (ScalarValue("int32", 8), ScalarValue("float32", 1), "x", "y")
    )
    crash = image_of("__global__ void k() { __trap(); ((volatile int*)0)[0] = 1; }", "k")
    with host.prepare(image, [launch], buffers) as prepared:
        prepared.run()
        with host.prepare(crash, [ConcreteLaunch("k", (1, 1, 1), (1, 1, 1), 0, ())], []) as other:
            assert fault_of(other.run).kind == "trap"
        os.kill(host._child.pid, signal.SIGKILL)
        with pytest.raises(DeviceFault):
            prepared.run()
        prepared.run()
        assert (prepared.read()["y"] == 3).all()
        prepared.reset()
        assert (prepared.read()["y"] == 1).all()


def test_small_writes_outside_are_guard_violations_and_inputs_must_stay(host):
    source = "__global__ void k(int* x, int* out) { x[3] = 7; out[-1] = 1; out[4] = 2; }"
    buffers = [Buffer("x", np.zeros(4, "i4"), Role.IN), Buffer("out", np.zeros(4, "i4"), Role.OUT)]
    with host.prepare(
        image_of(source, "k"), [ConcreteLaunch("k", (1, 1, 1), (1, 1, 1), 0, ("x", "out"))], buffers
    ) as p:
        p.run()
        found = {(fault.kind, fault.detail) for fault in p.violations()}
        assert ("input-changed", "input 'x' was changed, first at element 3") in found
        assert any(kind == "guard" and "before 'out'" in detail for kind, detail in found)
        assert ("guard", "byte 1 behind 'out' was written") in found
        p.reset()
        assert p.violations() == []


def test_divergent_barriers(run):
    source = """__global__ void k() {
      if (threadIdx.x < 32) {
        __syncthreads();
      } else {
        __syncthreads();
      }
    }"""
    fault = fault_of(run, source, "k", 1, 64)
    assert fault.kind == "divergent-barrier"
    assert "lines 3 and 5" in fault.detail


def test_waiting_for_lanes_that_never_come_is_a_deadlock(run):
    source = """__global__ void k(int* out) {
      if (threadIdx.x < 16) out[0] = __shfl_sync(0xffffffffu, 1, 0);
      else __syncthreads();
    }"""
    fault = fault_of(run, source, "k", 1, 32, out=np.zeros(1, "i4"))
    assert fault.kind == "divergent-barrier"
    assert "deadlock" in fault.detail
    assert fault.line == 2


def test_a_mask_without_the_caller(run):
    fault = fault_of(run, "__global__ void k() { __syncwarp(1u); }", "k", 1, 32)
    assert fault.kind == "divergent-barrier"
    assert "mask" in fault.detail


def test_a_hang_is_stopped_in_time(host):
    source = "__global__ void k(volatile int* x) { while (x[0] == 0) {} }"
    launch = ConcreteLaunch("k", (1, 1, 1), (1, 1, 1), 0, ("x",))
    with host.prepare(image_of(source, "k"), [launch], [Buffer("x", np.zeros(1, "i4"), Role.IN)]) as prepared:
        assert fault_of(prepared.run, 0.3).kind == "hang"  # the kernel itself never ends


def test_division_by_zero_and_runaway_recursion_are_crashes(run):
    divide = "__global__ void k(int* x) { x[0] = 5 / x[0]; }"
    assert "division" in fault_of(run, divide, "k", 1, 1, io_x=np.zeros(1, "i4")).detail
    deep = """
    __device__ __noinline__ int f(int* x, int n) {
      volatile int a[64]; a[n % 64] = x[0];
      return f(x, n + 1) + a[0];
    }
    __global__ void k(int* x) { x[1] = f(x, 0); }"""
    fault = fault_of(run, deep, "k", 1, 1, io_x=np.zeros(2, "i4"))
    assert fault.kind == "crash"
    assert "256 KiB" in fault.detail


def test_writes_behind_shared_memory(run):
    static = "__global__ void k(int n) { __shared__ int s[8]; s[threadIdx.x + n] = 1; if (s[n] == 5) __trap(); }"
    assert fault_of(run, static, "k", 1, 16, n=20).kind == "out-of-bounds"
    dynamic = "__global__ void k(int n) { extern __shared__ int s[]; s[threadIdx.x + n] = 1; if (s[n] == 5) __trap(); }"
    assert fault_of(run, dynamic, "k", 1, 8, 32, n=1).kind == "out-of-bounds"
    assert fault_of(run, dynamic, "k", 1, 8, 32, n=2000).kind == "out-of-bounds"


# ---------------------------------------------------------------- launches that are refused


@pytest.mark.parametrize(
    ("grid", "block", "shared", "args", "word"),
    [
        (1, 1025, 0, {"out": np.zeros(1, "f4")}, "1025"),
        (1, (32, 33, 1), 0, {"out": np.zeros(1, "f4")}, "1056 threads"),
        (1, (1, 1, 65), 0, {"out": np.zeros(1, "f4")}, "block"),
        ((1, 65536, 1), 1, 0, {"out": np.zeros(1, "f4")}, "grid"),
        (0, 1, 0, {"out": np.zeros(1, "f4")}, "grid"),
        (1, 1, 232_449, {"out": np.zeros(1, "f4")}, "232449 bytes"),
        (1, 1, 0, {}, "0 arguments for 1"),
        (1, 1, 0, {"x": 3}, "pointer"),
    ],
)  # fmt: skip
def test_launches_beyond_the_limits_are_refused(run, grid, block, shared, args, word):
    fault = fault_of(run, "__global__ void k(float* out) { out[0] = 1; }", "k", grid, block, shared, **args)
    assert fault.kind == "launch"
    assert word in fault.detail


def test_scalars_of_the_wrong_type_are_refused(run):
    source = "__global__ void k(double a, float* out) { out[0] = a; }"
    assert fault_of(run, source, "k", 1, 1, a=1.5, out=np.zeros(1, "f4")).kind == "launch"
    source = "__global__ void k(int a, float* out) { out[0] = a; }"
    fault = fault_of(run, source, "k", 1, 1, a=1.5, out=np.zeros(1, "f4"))
    assert "floating point" not in fault.detail
    assert "float32" in fault.detail


def test_buffers_that_do_not_fit(host):
    huge = np.lib.stride_tricks.as_strided(np.zeros(1, "u1"), (1 << 46,), (0,))
    launch = ConcreteLaunch("saxpy", (1, 1, 1), (1, 1, 1), 0, ())
    assert fault_of(host.prepare, image_of(SAXPY, "saxpy"), [launch], [Buffer("x", huge, Role.IN)]).kind == "memory"


# ---------------------------------------------------------------- memory and processes


@pytest.mark.parametrize("alignment", [1, 4, 16, 128, 256])
def test_buffers_lie_at_exactly_their_alignment(host, alignment):
    source = "__global__ void k(unsigned long long* out, char* p) { out[0] = (unsigned long long)p; }"
    buffers = [Buffer("out", np.zeros(1, "u8"), Role.OUT), Buffer("p", np.zeros(100, "i1"), Role.IN, alignment)]
    launch = ConcreteLaunch("k", (1, 1, 1), (1, 1, 1), 0, ("out", "p"))
    with host.prepare(image_of(source, "k"), [launch], buffers) as prepared:
        prepared.run()
        address = int(prepared.read()["out"][0])
    assert address % alignment == 0
    assert alignment == 256 or address % (2 * alignment) != 0


def test_zeroed_scratch_is_cleared_in_every_run_and_launches_share_it(host):
    source = """
    __global__ void add(int* s) { atomicAdd(s, 1); }
    __global__ void copy(const int* s, int* out) { out[0] = s[0]; }"""
    buffers = [Buffer("s", np.full(1, 99, "i4"), None, zeroed=True), Buffer("out", np.zeros(1, "i4"), Role.OUT)]
    launches = [
        ConcreteLaunch("add", (5, 1, 1), (32, 1, 1), 0, ("s",)),
        ConcreteLaunch("copy", (1, 1, 1), (1, 1, 1), 0, ("s", "out")),
    ]
    with host.prepare(image_of(source, "add", "copy"), launches, buffers) as prepared:
        for _ in range(2):
            prepared.run()
            assert prepared.read()["out"] == [160]
        assert set(prepared.read()) == {"out"}


def test_the_child_is_confined_before_candidates_run(tmp_path, monkeypatch):
    (tmp_path / "confine_for_test.py").write_text(
        "import resource\ndef go():\n    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("SECRET_TOKEN", "do-not-pass-on")
    device = open_host_device(contain="confine_for_test:go")
    try:
        assert device.generation == 1
        process = Path(f"/proc/{device._child.pid}")
        status, limits = (process / "status").read_text(), (process / "limits").read_text()
        assert "NoNewPrivs:\t1" in status
        assert any(line.split()[:4] == ["Max", "open", "files", "40"] for line in limits.splitlines())
        assert b"do-not-pass-on" not in (process / "environ").read_bytes()
    finally:
        device.close()


def test_a_child_that_cannot_be_confined_is_not_used():
    device = open_host_device(contain="no_such_module:go")
    with pytest.raises(HarnessError, match="did not start"):
        device.prepare(image_of(SAXPY, "saxpy"), [], [])


def test_the_child_ends_with_the_device():
    device = open_host_device()
    device.prepare(image_of(SAXPY, "saxpy"), [], []).close()
    pid = device._child.pid
    device.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_identity_and_foreign_images(host):
    assert host.info.vendor == "host"
    assert host.info.max_shared_bytes == 232_448
    assert host.sm_clock_mhz() is None
    with pytest.raises(HarnessError, match="cubin"):
        host.prepare(Image("cubin", "sm_90", b"", {}, {}), [], [])
    with pytest.raises(HarnessError, match="instrumented"):
        host.record(image_of(SAXPY, "saxpy"), [], [])


def test_a_child_whose_owner_was_killed_leaves_without_a_word():
    ours, theirs = socket.socketpair()
    ours.close()  # as the kernel does for a killed process: the child's first answer finds nobody
    with theirs, tempfile.TemporaryFile() as fault_file:
        fault_file.truncate(1 << 16)
        numbers = [str(fault_file.fileno()), "", str(theirs.fileno())]
        command = [sys.executable, "-m", "fsr.backends.host.server", *numbers]
        done = subprocess.run(
            command, pass_fds=[theirs.fileno(), fault_file.fileno()], capture_output=True, text=True, timeout=280,
            check=False, env={k: v for k, v in os.environ.items() if not k.startswith("COV")},
        )  # fmt: skip  # coverage cannot write where the child may not
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("kind", "real", "s"), [("Float", "float", "f"), ("Double", "double", "")])
def test_complex_numbers_as_cudas_header_has_them(run, kind: str, real: str, s: str) -> None:
    source = f"""#include <cuComplex.h>
__global__ void k(const {real} *a, const {real} *b, {real} *out) {{
  int i = threadIdx.x;
  cu{kind}Complex x = make_cu{kind}Complex(a[2 * i], a[2 * i + 1]), y = make_cu{kind}Complex(b[2 * i], b[2 * i + 1]);
  cu{kind}Complex r[5] = {{cuCadd{s}(x, y), cuCsub{s}(x, y), cuCmul{s}(x, y), cuCdiv{s}(x, y),
                          cuConj{s}(cuCfma{s}(x, y, x))}};
  for (int n = 0; n < 5; n++) {{
    out[(n * 32 + i) * 2] = cuCreal{s}(r[n]);
    out[(n * 32 + i) * 2 + 1] = cuCimag{s}(r[n]);
  }}
  out[320 + i] = cuCabs{s}(x);
}}
"""
    dtype = np.float32 if s else np.float64
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(64).astype(dtype) for _ in "ab")
    x, y = (v[0::2].astype(np.float64) + 1j * v[1::2].astype(np.float64) for v in (a, b))
    out = run(source, "k", 1, 32, a=a, b=b, out=np.zeros(352, dtype))["out"].astype(np.float64)
    got = (out[0:320:2] + 1j * out[1:320:2]).reshape(5, 32)
    want = np.stack([x + y, x - y, x * y, x / y, np.conj(x * y + x)])
    np.testing.assert_allclose(got, want, rtol=2e-5 if s else 1e-13, atol=1e-6 if s else 1e-14)
    np.testing.assert_allclose(out[320:], np.abs(x), rtol=1e-6)
