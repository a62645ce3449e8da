"""Dynamic shared memory with a size: what is taken out, and where it stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.source.dynamic_shared import without_sizes
from fsr.source.file import KernelFile
from fsr.source.pieces import scan


@pytest.mark.parametrize(
    ("text", "opened"),
    [
        ("extern __shared__ float s[256];", "extern __shared__ float s[];"),
        ("__shared__ extern uint32_t s[16 + (N * 16)];", "__shared__ extern uint32_t s[];"),
        ("extern __shared__ __align__(16) float s[2][N];", "extern __shared__ __align__(16) float s[][N];"),
        ("extern __shared__ float s[N\n * 2];", "extern __shared__ float s[\n];"),
        ("extern __shared__ std::pair<int, T> s[4];", "extern __shared__ std::pair<int, T> s[4];"),  # a comma: left
    ],
)
def test_the_first_extent_goes(text: str, opened: str) -> None:
    assert without_sizes(f"void f() {{\n{text} s[0] = 1;\n}}") == f"void f() {{\n{opened} s[0] = 1;\n}}"


@pytest.mark.parametrize(
    "text",
    [
        "extern __shared__ float s[];",
        "__shared__ float s[4]; extern float t[3];",
        "extern __shared__ float s[4], t[4];",
        "extern __shared__ float s[4]; int n = sizeof(s) / sizeof(s[0]);",
        "extern __shared__ float s[4]; for (auto &x : s) x = 0;",
        "// extern __shared__ float s[4];",
    ],
)
def test_everything_else_stays(text: str) -> None:
    assert without_sizes(text) == text


def test_the_size_of_an_element_takes_no_array() -> None:
    text = "extern __shared__ float s[4]; int n = sizeof(s[0]);"
    assert without_sizes(text) == text.replace("s[4]", "s[]")


def test_a_unit_has_it_open_and_the_file_keeps_its_own() -> None:
    text = "__global__ void k(float *p) { extern __shared__ float s[64]; s[0] = p[0]; p[0] = s[0]; }\n"
    file = KernelFile(scan(Path("k.cu"), text))
    unit = file.cut("k")
    assert "s[];" in unit.text
    assert file.splice(unit, unit.text) == text
