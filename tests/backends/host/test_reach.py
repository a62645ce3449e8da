"""What the compiled form of a candidate may reach, however it was spelled."""

from __future__ import annotations

import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.errors import MissingToolError
from fsr.records import Candidate, CompileFailure, Image, Launch, Plan

KERNEL = "{}\n__global__ void k(float *x, int n) {{ {} }}\n"


def compiled(before: str, body: str) -> Image | CompileFailure:
    one = ("1", "1", "1")
    try:
        return HostToolchain().compile(Candidate(KERNEL.format(before, body), Plan((Launch("k", one, one, "0", ()),))))
    except MissingToolError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize(
    ("before", "body", "told"),
    [
        ('extern "C" int f(const char *) asm("system");', 'f("id");', "(asm)"),
        ('extern "C" int system(const char *);', 'system("id");', "system"),
        ("", "_Exit(0);", "_Exit"),
        ("", "auto f = random; x[0] = f();", "random"),
        ("#define C(a, b) a##b", "C(_Ex, it)(0);", "_Exit"),
        ('extern "C" char **environ;', "x[0] = environ != 0;", "environ"),
        ('extern "C" char *mmap(void *, long, int, int, int, long);', "x[0] = *mmap(0, 1, 7, 34, -1, 0);", "mmap"),
        ('#define W "rdtsc"', 'unsigned a; asm volatile("" W : "=a"(a)); x[0] = a;', "(asm)"),
        ("", 'asm volatile("syscall");', "(asm)"),
    ],
)  # fmt: skip
def test_the_c_library_and_assembler_are_out_of_reach(before: str, body: str, told: str) -> None:
    answer = compiled(before, body)
    assert isinstance(answer, CompileFailure)
    assert told in answer.log


@pytest.mark.parametrize(
    "body",
    [
        "x[0] = expf(x[1]) + powf(x[2], x[3]) + erfcf(x[4]) + normcdff(x[5]) + tgammaf(x[6]) + fmodf(x[7], 3.0f);",
        "double a, b; sincos((double)x[0], &a, &b); x[0] = a + lgamma(b) + cbrt(a) + exp10(b);",
        'printf("%f", x[0]); assert(n > 0);',
        "float a[64]; for (int i = 0; i < 64; i++) a[i] = 0; memcpy(a, x, 64); x[0] = a[n & 63];",
        "__half h = __float2half(x[0]); x[1] = __half2float(h); x[2] = __float2uint_rn(x[0]) / (unsigned __int128)n;",
        "__shared__ float s[32]; s[n & 31] = 1; __syncthreads(); atomicAdd(x, s[0]); x[1] = __shfl_sync(~0u, x[0], 1);",
    ],
)
def test_device_code_compiles(body: str) -> None:
    answer = compiled("#include <cuda_fp16.h>", body)
    assert isinstance(answer, Image), answer.log
