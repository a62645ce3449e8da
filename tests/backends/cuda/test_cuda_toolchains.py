"""NVRTC and nvcc, held to the same checks: what compiles, what is reported, what is refused."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from fsr.backends.cuda import compiler, nvcc, nvrtc
from fsr.backends.toolchain import Toolchain
from fsr.errors import MissingToolError
from fsr.records import Candidate, CompileFailure, Image, Launch, Plan
from fsr.sandbox import compilers

ONE = ("1", "1", "1")


def candidate(source: str, *entries: str, flags: tuple[str, ...] = ()) -> Candidate:
    return Candidate(source, Plan(tuple(Launch(entry, ONE, ONE, "0", ()) for entry in entries), (), flags))


@pytest.fixture(scope="module", params=["nvrtc", "nvcc"])
def toolchain(request: pytest.FixtureRequest) -> Toolchain:
    make = {"nvrtc": nvrtc.NvrtcToolchain, "nvcc": nvcc.NvccToolchain}[request.param]
    try:
        return make("sm_90")
    except MissingToolError as missing:
        pytest.skip(str(missing))


MIXED = """#include <cuda_fp16.h>
#include <cstdint>
template <int N, typename T> __global__ void reverse(T* x) {
  __shared__ T s[N];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[N - 1 - threadIdx.x];
}
namespace ns {
__global__ void halve(__half* x, uint32_t n) { if (threadIdx.x < n) x[threadIdx.x] = __float2half(0.5f); }
}
extern "C" __global__ void plain(float* x) { x[0] = std::max(x[1], INFINITY); }
"""


def compiled(toolchain: Toolchain, it: Candidate, **options: bool) -> Image:
    image = toolchain.compile(it, **options)
    assert isinstance(image, Image), image.log
    return image


def test_templates_namespaces_and_c_names_get_their_symbols_and_resources(toolchain: Toolchain) -> None:
    image = compiled(toolchain, candidate(MIXED, "reverse<128, float>", "reverse<64, double>", "ns::halve", "plain"))
    assert image.data.startswith(b"\x7fELF")
    assert image.symbols["reverse<128, float>"] == "_Z7reverseILi128EfEvPT0_"
    assert image.symbols["reverse<64, double>"] == "_Z7reverseILi64EdEvPT0_"
    assert image.symbols["ns::halve"].startswith("_ZN2ns5halve")
    assert image.symbols["plain"] == "plain"
    assert image.resources["reverse<128, float>"].static_shared_bytes == 512
    assert image.resources["reverse<64, double>"].static_shared_bytes == 512
    registers = image.resources["plain"].registers
    assert registers is not None
    assert 4 <= registers <= 64
    assert (image.kind, image.arch, image.instrumented) == ("cubin", "sm_90", False)
    assert image.compile_s > 0


def test_a_local_array_indexed_at_run_time_is_reported_as_local_memory(toolchain: Toolchain) -> None:
    source = """__global__ void k(float* x, int n) {
      float a[200];
      for (int i = 0; i < 200; i++) a[i] = x[i];
      for (int i = 0; i < n; i++) x[i] = a[(int)x[i]];
    }"""
    resources = compiled(toolchain, candidate(source, "k")).resources["k"]
    assert resources.local_bytes == 800
    assert resources.spill_bytes == 0


def test_spills_are_reported_when_registers_are_capped(toolchain: Toolchain) -> None:
    source = """__global__ void k(const float* __restrict__ x, float* y) {
      float a[96];
      #pragma unroll
      for (int i = 0; i < 96; i++) a[i] = x[i * 1024 + threadIdx.x];
      #pragma unroll
      for (int r = 0; r < 4; r++)
        #pragma unroll
        for (int i = 0; i < 96; i++) a[i] = a[i] * a[(i * 7 + r) % 96] + a[95 - i];
      #pragma unroll
      for (int i = 0; i < 96; i++) y[i * 1024 + threadIdx.x] = a[i];
    }"""
    resources = compiled(toolchain, candidate(source, "k", flags=("--maxrregcount=32",))).resources["k"]
    assert resources.registers == 32
    assert resources.spill_bytes is not None
    assert resources.spill_bytes > 0


def test_resources_are_found_behind_any_number_of_warnings(toolchain: Toolchain) -> None:
    unused = "\n".join(f"  int never_looked_at_again_{i} = {i};" for i in range(300))
    image = compiled(toolchain, candidate(f"__global__ void k(float* y) {{\n{unused}\n  y[0] = 1.0f;\n}}", "k"))
    assert image.resources["k"].registers
    assert len(image.log) == nvrtc.LOG_CHARS


@pytest.mark.parametrize("since", [(0, 0), (99, 0)], ids=["built in", "by address"])
def test_offsets_of_members_are_constants_for_any_version(
    toolchain: Toolchain, since: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvrtc, "OFFSETOF_SINCE", since)
    if isinstance(toolchain, nvrtc.NvrtcToolchain) and since == (0, 0) and toolchain._compiler.version < (13, 4):
        pytest.skip("this NVRTC has no such built-in")
    source = """struct M { int a; struct { char c; double b[2]; } in; };
__global__ void k(float *x, M m) { static_assert(__builtin_offsetof(M, in.b[1]) == %d, "no"); x[0] = m.in.b[1]; }
"""
    compiled(toolchain, candidate(source % 24, "k"))
    assert isinstance(toolchain.compile(candidate(source % 16, "k")), CompileFailure)


def test_an_error_names_its_line_in_the_candidate(toolchain: Toolchain) -> None:
    source = "#include <math.h>\n__global__ void k(float* x) {\n  x[0] = missing;\n}\n"
    failure = toolchain.compile(candidate(source, "k", flags=("-DN=3", "-DM")))
    assert isinstance(failure, CompileFailure)
    assert failure.line == 3
    assert "missing" in failure.log
    assert not failure.timed_out


def test_macros_from_flags_reach_the_code(toolchain: Toolchain) -> None:
    source = "__global__ void k(float* x) { __shared__ volatile float s[N]; s[0] = x[0]; x[1] = s[0]; }"
    image = compiled(toolchain, candidate(source, "k", flags=("-DN=(32*4)", "--use_fast_math", "--fmad=false")))
    assert image.resources["k"].static_shared_bytes == 512


@pytest.mark.parametrize(
    "flag",
    ["-o/tmp/x", "--include-path=/etc", "-I/etc", "--pre-include=/etc/passwd", "-DX=`id`", "-DX=$(id)", "-DX=\"a\"",
     "-DX=1\n#include </etc/passwd>", "--maxrregcount=0", "--ptxas-options=--output-file=x", "-ccbin=sh",
     "-DX=1\\"],
)  # fmt: skip
def test_flags_off_the_list_are_refused(toolchain: Toolchain, flag: str) -> None:
    failure = toolchain.compile(candidate("__global__ void k() {}", "k", flags=(flag,)))
    assert isinstance(failure, CompileFailure)
    assert "may not carry" in failure.log


@pytest.mark.parametrize("entry", ["absent", "helper", "k<3>"])
def test_an_entry_that_is_no_kernel_is_a_failure(toolchain: Toolchain, entry: str) -> None:
    source = "__device__ int helper(int x) { return x; }\n__global__ void k(int* x) { x[0] = helper(1); }\n"
    assert isinstance(toolchain.compile(candidate(source, entry)), CompileFailure)


def test_a_plan_without_launches_is_a_failure(toolchain: Toolchain) -> None:
    failure = toolchain.compile(candidate("__global__ void k() {}"))
    assert isinstance(failure, CompileFailure)
    assert "launches nothing" in failure.log


def test_line_information_is_added_on_request_and_changes_no_resources(toolchain: Toolchain) -> None:
    it = candidate(MIXED, "plain")
    with_lines, without = compiled(toolchain, it, instrumented=True), compiled(toolchain, it)
    assert with_lines.instrumented
    assert len(with_lines.data) > len(without.data)
    assert with_lines.resources == without.resources


def test_a_compile_that_outlasts_its_time_is_stopped_and_says_so(toolchain: Toolchain) -> None:
    source = """template <int N> struct S { __device__ static float f(float x) {
      return S<N - 1>::f(x * 1.5f + N) + S<N - 2>::f(x - N); } };
    template <> struct S<0> { __device__ static float f(float x) { return x; } };
    template <> struct S<1> { __device__ static float f(float x) { return x * x; } };
    __global__ void k(float* x) { x[0] = S<28>::f(x[1]); }"""
    failure = toolchain.compile(candidate(source, "k"), timeout_s=0.05)
    assert isinstance(failure, CompileFailure)
    assert failure.timed_out


def test_version_names_the_compiler(toolchain: Toolchain) -> None:
    name, number = toolchain.version.split()
    assert name == toolchain.name
    assert int(number.split(".")[0]) >= 11


def test_the_host_headers_people_include_are_no_obstacle() -> None:
    source = """#include <cuda_runtime.h>
#include <cstdint>
#include <cmath>
#include <limits>
#include <iostream>
#include <type_traits>
template <typename T> __device__ T top() { return std::numeric_limits<T>::max(); }
__global__ void k(float* x, int64_t n) {
  static_assert(std::is_same_v<float, float>, "");
  if (n > INT_MAX || !std::isfinite(x[1])) return;
  x[0] = std::sqrt(x[1]) + std::pow(x[2], 2.0f) + (float)M_PI + top<float>() + FLT_MAX + fabsf(NAN) + std::abs(-2);
  printf("%d", 1);
  assert(n > 0);
}"""
    try:
        toolchain = nvrtc.NvrtcToolchain()
    except MissingToolError as missing:
        pytest.skip(str(missing))
    assert "k" in compiled(toolchain, candidate(source, "k")).symbols


@pytest.mark.parametrize("standard", [(), ("--std=c++14",), ("--std=c++20",)])
def test_what_older_sources_are_written_in_is_no_obstacle(standard: tuple[str, ...]) -> None:
    """Storage classes and types of theirs, which nvcc takes, under a standard of theirs."""
    source = """#include <sys/types.h>
#include <type_traits>
__global__ void k(const float* x, u_int32_t* y, __const__ u_char* z) {
  register int i = threadIdx.x;
  static_assert(std::is_integral<u_int>::value && !std::is_integral<float>::value, "");
  y[i] = (u_int32_t)x[i] + z[i];
}"""
    try:
        toolchain = nvrtc.NvrtcToolchain()
    except MissingToolError as missing:
        pytest.skip(str(missing))
    one = candidate(source, "k")
    assert "k" in compiled(toolchain, replace(one, plan=replace(one.plan, flags=standard))).symbols


def test_cooperative_groups_and_integer_types_go_together() -> None:
    source = """#include <cooperative_groups.h>
#include <cstdint>
namespace cg = cooperative_groups;
__global__ void k(float* x, uint64_t n) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  x[0] = tile.shfl_down(x[threadIdx.x], 1) + (float)(n + UINT64_MAX + INT_MAX);
}"""
    try:
        toolchain = nvrtc.NvrtcToolchain()
    except MissingToolError as missing:
        pytest.skip(str(missing))
    assert "k" in compiled(toolchain, candidate(source, "k")).symbols


def test_without_nvrtc_nvcc_is_chosen_and_without_both_the_fix_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "find_nvrtc", lambda: None)
    if shutil.which("nvcc"):
        assert compiler.cuda_toolchain("sm_80").name == "nvcc"
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: None)
    with pytest.raises(MissingToolError, match=r"neither NVRTC nor nvcc") as caught:
        compiler.cuda_toolchain("sm_80")
    assert "pip install" in caught.value.fix


def bomb(levels: int) -> Candidate:
    """A macro that doubles itself: 2 to the power of ``levels`` additions."""
    doubling = "\n".join(f"#define M{i} M{i - 1} M{i - 1}" for i in range(1, levels + 1))
    return candidate(f"#define M0 +1\n{doubling}\n__global__ void k(int* x) {{ x[0] = M{levels}; }}\n", "k")


def test_no_compiler_takes_more_memory_than_it_may(toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "MEMORY_BYTES", 400 << 20)
    monkeypatch.setattr(nvrtc, "MEMORY_BYTES", 400 << 20)
    nvrtc._compiler.cache_clear()
    small = type(toolchain)("sm_90")
    failure = small.compile(bomb(23))
    assert isinstance(failure, CompileFailure)
    assert not failure.timed_out
    assert "memory" in failure.log.lower()
    assert isinstance(small.compile(candidate("__global__ void k(int* x) { x[0] = 1; }", "k")), Image)
    nvrtc._compiler.cache_clear()


def test_no_compiler_reads_what_is_not_the_toolkits(toolchain: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "secret.h").write_text("#error hunter2\n")
    failure = toolchain.compile(candidate(f'#include "{tmp_path}/secret.h"\n__global__ void k(int* x) {{}}', "k"))
    assert isinstance(failure, CompileFailure)
    assert "hunter2" not in failure.log


def test_a_compiler_that_was_killed_is_started_again() -> None:
    try:
        toolchain = nvrtc.NvrtcToolchain()
    except MissingToolError as missing:
        pytest.skip(str(missing))
    it = candidate("__global__ void k(int* x) { x[0] = 1; }", "k")
    assert isinstance(toolchain.compile(it), Image)
    child = toolchain._compiler._child
    assert child is not None
    os.kill(child.pid, signal.SIGKILL)
    assert isinstance(toolchain.compile(it), Image)


def test_nvrtc_is_preferred() -> None:
    if nvrtc.find_nvrtc() is None:
        pytest.skip("NVRTC is not installed")
    assert compiler.cuda_toolchain("sm_80").name == "nvrtc"
