"""Names of pointers in heads of functions are the pointers that they stand for."""

from __future__ import annotations

import pytest

from fsr.source.file import KernelFile
from fsr.source.parse import parse_kernels
from fsr.source.pointers import with_plain_pointers
from fsr.source.signature import signature

HEAD = "typedef float real;\n"
KERNEL = """__global__ void k(IN x,
                  OUT y,
                  int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
"""


@pytest.mark.parametrize(
    "declared",
    [
        "typedef const real* __restrict__ IN;\ntypedef real *OUT;\n",
        "using IN = const real *__restrict__;\nusing OUT = real*;\n",
        "#define IN const real * __restrict__\n#define OUT real *\n",
    ],
)
def test_whatever_gives_the_name(declared):
    file = KernelFile.from_text(HEAD + declared + KERNEL, "k.cu")
    x, y, n = signature(file, "k").params
    assert [(p.dtype, p.pointer, p.const) for p in (x, y)] == [("float32", True, True), ("float32", True, False)]
    lines = (HEAD + declared + KERNEL).splitlines()
    assert [lines[p.line - 1].split()[-1] for p in (y, n)] == ["y,", "n)"]


def test_a_const_before_the_name_is_the_pointers():
    assert with_plain_pointers("__device__ void f(const P a, P b, int c);", {"P": "real *"}) == (
        "__device__ void f(real * const a, real * b, int c);"
    )


@pytest.mark.parametrize(
    "text", ["__device__ void f(P *a, Q<P> b, int P);", "__device__ void g(int a) { P b = a; }", "void host(P a);"]
)
def test_what_is_more_than_the_name_stays(text):
    assert with_plain_pointers(text, {"P": "real *"}) == text


def test_actions_see_pointers():
    file = KernelFile.from_text(HEAD + "typedef const real *IN;\ntypedef real *OUT;\n" + KERNEL, "k.cu")
    kernel = parse_kernels(file.find("k").text)["k"]
    assert [p.is_pointer for p in kernel.params] == [True, True, False]
