"""Branches of kernels that ask for the GPU are read as every GPU that fsr runs on compiles them."""

from __future__ import annotations

import pytest

from fsr.source.form import Assign, OpaqueStmt
from fsr.source.parse import parse_kernels
from fsr.source.walk import walk_stmts

HALVES = "#if __CUDA_ARCH__ >= 530\n#define HALVES\n#endif\n"
BODY = "  x[threadIdx.x] = 1;\n"
OTHER = "  x[0] = 2;\n"


def kernel(before: str, test: str, other: str = "", first: str = BODY) -> str:
    rest = f"#else\n{other}" if other else ""
    return f"{before}__global__ void k(float *x) {{\n{test}\n{first}{rest}#endif\n}}\n"


def values(text: str) -> list[str]:
    """What a kernel's statements set; none where they are verbatim."""
    body = parse_kernels(text)["k"].body
    if any(isinstance(s, OpaqueStmt) for s in walk_stmts(body)):
        return []
    return [s.value.text for s in walk_stmts(body) if isinstance(s, Assign)]


@pytest.mark.parametrize(("text", "expected"), [
    (kernel(HALVES, "#ifdef HALVES", OTHER), "1"),
    (kernel("", "#if __CUDA_ARCH__ >= 600"), "1"),
    (kernel("", "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700", OTHER), "1"),
    (kernel("", "#if __CUDA_ARCH__ < 350", BODY, OTHER), "1"),
    (kernel(HALVES.replace(">=", "<"), "#ifndef HALVES", OTHER), "1"),
])  # fmt: skip
def test_what_every_gpu_compiles_is_the_kernel(text: str, expected: str) -> None:
    assert values(text) == [expected]
    found = parse_kernels(text)["k"].span
    assert found is not None
    assert text[slice(*found)].startswith("__global__")
    assert text[slice(*found)].endswith("}")


@pytest.mark.parametrize("text", [
    kernel("", "#if __CUDA_ARCH__ >= 800", OTHER),  # some do
    kernel("", "#if __CUDA_ARCH__ >= 530 && __CUDA_ARCH_FEAT_SM90_ALL", OTHER),
    kernel("", "#if defined(GIVEN) && __CUDA_ARCH__ >= 530", OTHER),
    kernel("#ifndef HOW\n#define HOW 0\n#endif\n", "#if HOW == 0 && __CUDA_ARCH__ >= 530", OTHER),
    kernel(HALVES.replace("#define HALVES", "__device__ int f() { return 1; }"), "#if __CUDA_ARCH__ >= 530", OTHER),
])  # fmt: skip
def test_what_gpus_or_builds_decide_stays(text: str) -> None:
    assert values(text) == []
