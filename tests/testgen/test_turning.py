"""Cases on both sides of what a candidate's conditions tell apart, in whatever words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.contract.load import load_contract
from fsr.contract.model import dim3
from fsr.records import Candidate
from fsr.testgen.turning import turning_cases

KERNEL = """// /// fsr
// entry = "scaled"
// [sizes]
// rows = {min = 0, max = 100000, timed = 4096}
// cols = {min = 1, max = 8192, timed = 1024}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["rows", "cols"]}
// rows = {value = "rows"}
// cols = {value = "cols"}
// [launch]
// grid = "ceil_div(rows, 32)"
// block = 32
// ///
__global__ void scaled(const float *x, float *y, int rows, int cols)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    for (int c = 0; c < cols; c++) y[r * cols + c] = 2.0f * x[r * cols + c];
}
"""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Candidate, object]:
    path = tmp_path_factory.mktemp("turning") / "scaled.cu"
    path.write_text(KERNEL)
    contract = load_contract(path)
    return Candidate(KERNEL, contract.plan), contract


def sizes_for(original, condition: str) -> list[dict[str, int]]:  # type: ignore[no-untyped-def]
    baseline, contract = original
    source = baseline.source.replace("for (int c", f"if ({condition}) return;\n    for (int c")
    return [c.size_map() for c in turning_cases(contract, replace(baseline, source=source), baseline, 3)]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("(cols ^ 1234) == 5000", lambda s: s["cols"] ^ 1234 == 5000),
        ("(cols * 2654435761u) >> 22 == 7", lambda s: (s["cols"] * 2654435761 & 0xFFFFFFFF) >> 22 == 7),
        ("rows * cols == 6000", lambda s: s["rows"] * s["cols"] == 6000),
        ("(float)rows * 0.5f > 9000.0f", lambda s: s["rows"] > 18000),
        ("cols % 1024 == 451 && blockIdx.x == 20", lambda s: s["cols"] % 1024 == 451 and s["rows"] > 640),
        ("__popc(rows) == 15", lambda s: bin(s["rows"]).count("1") == 15),
        ("blockIdx.x == 41", lambda s: s["rows"] > 41 * 32),
    ],
)  # fmt: skip
def test_a_condition_that_ordinary_sizes_do_not_meet_gets_a_case(original, condition, holds) -> None:  # type: ignore[no-untyped-def]
    assert any(holds(sizes) for sizes in sizes_for(original, condition))


def test_a_launch_has_the_blocks_that_are_told_apart(original) -> None:  # type: ignore[no-untyped-def]
    found = sizes_for(original, "cols == 3000 && gridDim.x > 9 && blockIdx.x == gridDim.x - 1")
    grid = original[1].plan.launches[0].grid
    assert any(s["cols"] == 3000 and dim3(grid, s)[0] > 9 for s in found)


def test_the_other_sizes_are_not_one_where_they_need_not_be(original) -> None:  # type: ignore[no-untyped-def]
    found = [s for s in sizes_for(original, "rows == 70001") if s["rows"] == 70001]
    assert found
    assert all(s["cols"] > 2 for s in found)  # a row of one element tells nothing of a softmax


def test_what_is_ordinary_depends_on_what_a_size_stands_for(original) -> None:  # type: ignore[no-untyped-def]
    baseline, contract = original
    tiles = replace(
        contract, args=tuple(replace(a, shape=("256 * rows", "cols")) if a.shape else a for a in contract.args)
    )
    assert any(s["rows"] > 1000 for s in sizes_for((baseline, tiles), "rows > 1000"))
    assert sizes_for(original, "rows > 1000") == []


@pytest.mark.parametrize(
    "condition",
    ["cols % 2 == 1", "x[r] > 3.0f", "r == 77", "false", " + ".join(["cols"] * 1500) + " == 5"],
    ids=["parity", "a value", "a row", "never", "very deep"],
)
def test_what_ordinary_cases_meet_or_what_depends_on_more_gets_none(original, condition) -> None:  # type: ignore[no-untyped-def]
    assert sizes_for(original, condition) == []
