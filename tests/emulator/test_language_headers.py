"""The CUDA language headers: what people include compiles, what the CPU cannot execute is refused by name and line."""

import shutil

import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.records import Candidate, CompileFailure, Image, Launch, Plan

COMPILERS = [name for name in ("clang++-22", "g++") if shutil.which(name)]


def compiled(source: str, compiler: str | None = None) -> Image | CompileFailure:
    launch = Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", ())
    return HostToolchain(compiler).compile(Candidate(source, Plan((launch,))))


REFUSED = {
    "inline PTX": '__global__ void k() {\n  asm volatile("mbarrier.pending_count.b64 %0, %1;");\n}',
    "split barrier": (
        "#include <cooperative_groups.h>\n"
        "__global__ void k() { cooperative_groups::this_thread_block().barrier_arrive(); }"
    ),
    "a tile of more than 32 threads": (
        "#include <cooperative_groups.h>\n"
        "namespace cg = cooperative_groups;\n"
        "__global__ void k() { auto t = cg::tiled_partition<64>(cg::this_thread_block()); }"
    ),
    "texture fetch (tex1Dfetch)": "__global__ void k() { tex1Dfetch<float>(cudaTextureObject_t{0}, 0); }",
    "surface store": "__global__ void k() { surf2Dwrite(1.0f, cudaSurfaceObject_t{0}, 0, 0); }",
    "mbarrier": "__global__ void k() { __pipeline_arrive_on((unsigned long long*)0); }",
    "dynamic parallelism": "__global__ void k() { cudaDeviceSynchronize(); }",
    "<cuda/pipeline>": "#include <cuda/pipeline>\n__global__ void k() {}",
    "<cuda/barrier>": "#include <cuda/barrier>\n__global__ void k() {}",
}  # fmt: skip


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("construct", REFUSED)
def test_what_the_cpu_cannot_execute_is_refused_by_name(construct: str, compiler: str) -> None:
    failure = compiled(REFUSED[construct], compiler)
    assert isinstance(failure, CompileFailure)
    assert "fsr host device: " in failure.log
    assert construct in failure.log
    assert "is not executed on the CPU" in failure.log


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_refusal_names_the_line(compiler: str) -> None:
    failure = compiled('__global__ void k() {\n  int v = 1;\n  asm volatile("bar.sync 0; brkpt;");\n}', compiler)
    assert isinstance(failure, CompileFailure)
    assert failure.line == 3


@pytest.mark.parametrize("compiler", COMPILERS)
def test_headers_people_include_compile_together(compiler: str) -> None:
    names = (
        "cuda_runtime.h", "cuda_fp16.h", "cuda_bf16.h", "cooperative_groups.h", "cooperative_groups/reduce.h",
        "cooperative_groups/scan.h", "mma.h", "cuda_pipeline.h", "cuComplex.h",
        "math_constants.h", "device_launch_parameters.h", "cuda.h", "vector_types.h",
        "cassert", "cfloat", "climits", "cmath", "cstdint", "cstdio", "algorithm", "type_traits", "limits",
    )  # fmt: skip
    includes = "\n".join(f"#include <{name}>" for name in names)
    image = compiled(f"{includes}\n__global__ void k() {{}}\n", compiler)
    assert isinstance(image, Image), image.log


def test_a_shuffle_of_a_struct_is_refused_as_cuda_does() -> None:
    failure = compiled("__global__ void k() {\n  float4 v{};\n  v = __shfl_sync(~0u, v, 0);\n}")
    assert isinstance(failure, CompileFailure)
    assert "CUDA shuffles numbers" in failure.log


def test_fast_math_replaces_the_accurate_functions_even_in_std() -> None:
    source = "#include <cmath>\n__global__ void k(float* x) { x[0] = expf(x[0]) + std::sinf(x[1]) + powf(x[2], 2.5f); }"
    launch = Launch("k", ("1", "1", "1"), ("1", "1", "1"), "0", ())
    image = HostToolchain().compile(Candidate(source, Plan((launch,), flags=("--use_fast_math",))))
    assert isinstance(image, Image), image.log
    accurate = HostToolchain().compile(Candidate(source, Plan((launch,))))
    assert isinstance(accurate, Image)
    assert b"\0powf\0" in accurate.data
    assert b"\0powf\0" not in image.data


def test_qualifiers_in_every_position() -> None:
    source = """
    __constant__ float c[4];
    static __device__ __forceinline__ float f(const float* __restrict__ p) { return p[0]; }
    __host__ __device__ inline int g(int v) { return v + 1; }
    __device__ __noinline__ int h(int v) { return g(v); }
    struct __align__(16) S { float a[3]; };
    __global__ static void __launch_bounds__(256, 2) other(const __grid_constant__ S s, float* o) { o[0] = s.a[0]; }
    extern "C" __global__ __launch_bounds__(128) void k() {
      __shared__ __align__(16) float tile[32][33];
      tile[threadIdx.x][0] = c[0] + h(1);
      __syncthreads();
    }
    """
    assert isinstance(compiled(source), Image)
