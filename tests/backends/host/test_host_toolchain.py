"""The host toolchain: images with entries and resources, failures with lines, limits that hold."""

from __future__ import annotations

import multiprocessing
import shutil

import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.runtime import find_compiler
from fsr.emulator.elf import attached_source, read_variables
from fsr.errors import MissingToolError
from fsr.records import Candidate, CompileFailure, Image, Launch, Plan

ONE = ("1", "1", "1")
COMPILERS = [name for name in ("clang++-22", "g++") if shutil.which(name)]
GOOD = "__global__ void k(float* out) { out[threadIdx.x] = 1.0f; }"


def compile_(source, *entries, flags=(), compiler=None, **options):
    plan = Plan(tuple(Launch(entry, ONE, ONE, "0", ()) for entry in entries or ("k",)), flags=tuple(flags))
    return HostToolchain(compiler).compile(Candidate(source, plan), **options)


def failure_of(*args, **kwargs):
    failure = compile_(*args, **kwargs)
    assert isinstance(failure, CompileFailure)
    return failure


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("instrumented", [False, True])
def test_every_entry_has_a_symbol_and_its_shared_memory(compiler, instrumented):
    source = """
    __device__ float helper(float v, int i) { __shared__ float h[2]; h[i & 1] = v; __syncthreads(); return h[~i & 1]; }
    extern "C" __global__ __launch_bounds__(128, 2) void plain(float* out) {
      __shared__ float s[8]; int i = threadIdx.x; s[i] = helper(1, i); __syncthreads(); out[i] = s[7 - i];
    }
    template <int N> __global__ void tile(float* out) {
      __shared__ float t[N]; int i = threadIdx.x; t[i] = helper(1, i); __syncthreads(); out[i] = t[N - i];
    }"""
    image = compile_(source, "plain", "tile<16>", "tile<64>", compiler=compiler, instrumented=instrumented)
    assert isinstance(image, Image), image
    assert (image.kind, image.instrumented) == ("host", instrumented)
    assert len(set(image.symbols.values())) == 3
    shared = {entry: resources.static_shared_bytes for entry, resources in image.resources.items()}
    assert shared["plain"] == 8 * 4 + 8
    assert shared["tile<64>"] == 64 * 4 + 8
    assert image.compile_s > 0
    assert attached_source(image.data) == (source if instrumented else "")
    assert {"s", "t"} <= {variable.name for variable in read_variables(image.data).shared}


@pytest.mark.parametrize("compiler", COMPILERS)
def test_errors_have_the_candidates_line(compiler):
    failure = failure_of("// one\n\n__global__ void k(float* out) {\n  out[0] = nonsense;\n}", compiler=compiler)
    assert failure.line == 4
    assert "nonsense" in failure.log
    assert "candidate.cu:4" in failure.log
    assert "/fsr-host-" not in failure.log


def test_an_error_inside_a_header_is_told_at_the_line_that_caused_it():
    failure = failure_of("__global__ void k(float* out) {\n  struct S { int a; } s;\n  atomicAdd(&s, 1);\n}")
    assert failure.line == 3


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ('asm volatile("mov.u32 %0, %clusterid.x;" : "=r"(x));', "mov.u32"),
        ('asm("brkpt;");', "PTX"),
    ],
)
def test_what_a_cpu_cannot_execute_is_named_with_its_line(statement, word):
    failure = failure_of(f"__global__ void k(int* out) {{\n  int x = 0;\n  {statement}\n  out[0] = x;\n}}")
    assert failure.line == 3
    assert word in failure.log


def test_an_entry_that_does_not_exist_is_named():
    assert "missing" in failure_of(GOOD, "missing").log


def test_too_much_static_shared_memory_is_refused_as_nvcc_does():
    source = "__global__ void k(float* out) { __shared__ float s[12289]; s[threadIdx.x] = 1; out[0] = s[0]; }"
    assert "49156 bytes" in failure_of(source).log


def test_flags_that_are_not_on_the_list_are_refused():
    assert "-o/etc/passwd" in failure_of(GOOD, flags=["-o/etc/passwd"]).log


def test_macros_and_standards_from_the_plans_flags():
    source = "__global__ void k(float* out) { \n#if N > 3\n  out[0] = N;\n#else\n  undeclared();\n#endif\n}"
    assert isinstance(compile_(source, flags=["-DN=4", "--std=c++20", "--use_fast_math", "--fmad=false"]), Image)
    assert failure_of(source, flags=["-DN=2"]).line == 5


def test_kernels_named_like_functions_of_the_c_library():
    source = "__global__ void index(float* out) { out[0] = 1; } __global__ void y0(float* out) { out[0] = 2; }"
    assert isinstance(compile_(source, "index", "y0"), Image)


def test_a_compiler_bomb_is_stopped_in_time():
    bomb = "template <int N, long M> struct T : T<N - 1, 2 * M>, T<N - 1, 2 * M + 1> {};\n"
    bomb += "template <long M> struct T<0, M> {};\n"
    bomb += "__global__ void k(int* out) { out[0] = sizeof(T<30, 1>); }"
    failure = failure_of(bomb, timeout_s=1.0)  # a billion bases: the compiler would not come to an end
    assert failure.timed_out


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_compiler_reads_no_file_of_the_users(tmp_path, compiler):
    secret = tmp_path / "secret.h"
    secret.write_text("#define SECRET 7\n")
    source = f'#include "{secret}"\n__global__ void k(int* out) {{ out[0] = SECRET; }}'
    plan = Plan((Launch("k", ONE, ONE, "0", ()),))
    failure = HostToolchain(compiler).compile(Candidate(source, plan))
    assert isinstance(failure, CompileFailure)
    assert "secret.h" in failure.log
    assert failure.line == 1


def test_assembly_cannot_take_a_file_of_the_users_into_the_image(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("correct horse battery staple")
    source = f'__asm__(".pushsection .data\\n.incbin \\"{secret}\\"\\n.popsection");\n{GOOD}'
    failure = HostToolchain().compile(Candidate(source, Plan((Launch("k", ONE, ONE, "0", ()),))))
    assert isinstance(failure, CompileFailure)
    assert "secret.txt" in failure.log


def _compile_in(folder):
    plan = Plan((Launch("k", ONE, ONE, "0", ()),))
    return isinstance(HostToolchain("g++", cache_folder=folder).compile(Candidate(GOOD, plan)), Image)


def test_several_processes_fill_an_empty_cache_at_once(tmp_path):
    if "g++" not in COMPILERS:
        pytest.skip("g++ is not installed")
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(_compile_in, [tmp_path, tmp_path]) == [True, True]
    assert sorted(path.name.split("-")[0] for path in tmp_path.iterdir()) == ["header", "runtime", "units"]
    assert len(list((tmp_path / "units").iterdir())) == 1


def test_a_missing_compiler_is_told_with_what_to_install():
    with pytest.raises(MissingToolError, match="no C\\+\\+ compiler") as caught:
        HostToolchain("no-such-compiler").compile(Candidate(GOOD, Plan(())))
    assert "apt-get install" in caught.value.fix


def test_name_and_version():
    assert HostToolchain().name == "host"
    assert find_compiler().version in HostToolchain().version
    assert find_compiler().family in ("clang", "gcc")
