"""Kernels whose files call CUDA's own words otherwise: qualifiers, ids, barriers, nothing at all."""

from __future__ import annotations

import pytest

from fsr.source.emit import emit_kernel
from fsr.source.file import KernelFile
from fsr.source.macros import expand, spelled_otherwise
from fsr.source.parse import parse_kernels
from fsr.source.signature import signature
from fsr.source.walk import contains_barrier, contains_opaque

WORDS = """
#define KERNEL __global__
#define VAR
#define REAL double
#define RESTRICT __restrict__
#define LOCAL __shared__
#define FENCE __syncthreads()
#define SYNC FENCE
#define TX threadIdx.x
#define SIZE 128
#define FMA(x, y, z) (z = fma(x, y, z))
#define LOAD() LOCAL REAL t[SIZE]; t[TX] = i < n ? a[i] : 0; SYNC;
"""
KERNEL = """
KERNEL void k(VAR const REAL* RESTRICT a, VAR REAL* RESTRICT b, int n) {
    const int i = blockIdx.x * SIZE + TX;
    LOAD()
    REAL s = t[0];
    FMA(t[TX], s, s);
    if (i < n) b[i] = s;
    SYNC;
}
"""


def test_words_of_cuda_are_read_as_what_they_stand_for() -> None:
    (kernel,) = parse_kernels(WORDS + KERNEL).values()
    assert not contains_opaque(kernel.body)
    assert contains_barrier(kernel.body)
    text = emit_kernel(kernel)
    assert "__shared__ REAL t[SIZE];" in text
    assert "blockIdx.x * SIZE + threadIdx.x" in text
    assert text.count("__syncthreads();") == 2
    assert not {"TX", "SYNC", "LOCAL", "FENCE", "VAR"} & set(text.replace("(", " ").replace("[", " ").split())


def test_parameters_have_the_types_behind_the_words() -> None:
    found = signature(KernelFile.from_text(WORDS + KERNEL), "k")
    assert [(p.name, p.dtype) for p in found.params] == [("a", "float64"), ("b", "float64"), ("n", "int32")]


@pytest.mark.parametrize(
    ("macro", "stands"),
    [
        ("#define N 128", False),
        ("#define T float", False),
        ("#define TX threadIdx.x", True),
        ("#define TX (threadIdx.x)", True),
        ("#define ID (blockIdx.x * blockDim.x + threadIdx.x)", False),
        ("#define W __syncwarp(0xff)", True),
        ("#define V const volatile", True),
        ("#define V __shared__\n#define V extern", False),  # whichever holds
        ("#define F(x) __syncthreads()", False),
        ("#define A V\n#define V __shared__", True),
    ],
)
def test_which_macros_are_words_of_cuda(macro: str, stands: bool) -> None:
    assert bool(spelled_otherwise(macro)) is stands


def test_members_keep_their_names() -> None:
    known = spelled_otherwise("#define TX threadIdx.x\n#define V\n")
    assert expand("a.TX = p->TX + TX; V int V2;", known) == "a.TX = p->TX + threadIdx.x;  int V2;"
