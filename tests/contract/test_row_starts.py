"""Which arrays of a contract say where rows begin."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.contract.row_starts import row_starts
from fsr.runs.kernel import load_kernel

TEXT = """// /// fsr
// entry = "k"
// [sizes]
// rows = {min = 1, max = 1000, timed = 1000}
// nnz = {min = 1, max = 1000, timed = 1000}
// [args]
// at = {shape = SHAPE, SAID}
// x = {role = "in", shape = ["nnz"]}
// y = {role = "out", shape = ["rows"]}
// [launch]
// grid = "ceil_div(rows, 256)"
// block = 256
// ///
__global__ void k(const TYPE *at, const float *x, float *y) { y[threadIdx.x] = x[at[threadIdx.x]]; }
"""
ROWS = '["rows + 1"]'


def told(folder: Path, said: str, shape: str = ROWS, kind: str = "int") -> list[tuple[str, str, bool]]:
    (folder / "k.cu").write_text(TEXT.replace("SAID", said).replace("SHAPE", shape).replace("TYPE", kind))
    found = row_starts(load_kernel(folder / "k.cu").contract)
    return [(s.dtype, s.total, s.ends) for s in found]


def test_offsets_and_what_ascends_to_an_extent(tmp_path: Path) -> None:
    assert told(tmp_path, 'role = "in", offsets = "nnz"') == [("int32", "nnz", True)]
    ascending = 'role = "in", low = 0, high = "nnz", sorted = true'
    assert told(tmp_path, ascending) == [("int32", "nnz", False)]
    assert told(tmp_path, ascending, kind="unsigned") == [("uint32", "nnz", False)]


@pytest.mark.parametrize(
    "said",
    [
        'role = "in", low = 0, high = "nnz"',  # in any order
        'role = "in", low = 1, high = "nnz", sorted = true',
        'role = "in", low = 0, high = "nnz - 1", sorted = true',  # places of entries
        'role = "in", low = 0, high = "nnz", sorted = true, unique = true',
    ],
)
def test_others_are_none(tmp_path: Path, said: str) -> None:
    assert told(tmp_path, said) == []


def test_lines_of_several_dimensions_are_none(tmp_path: Path) -> None:
    assert told(tmp_path, 'role = "in", offsets = "nnz"', '["rows", "rows + 1"]') == []
