"""How a candidate file says its launch to `fsr check`, and what is told where its run ends in a fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.app import checking
from fsr.app.checking import judge, judge_own, load_candidate
from fsr.errors import ContractError
from fsr.runs.kernel import load_kernel
from fsr.runs.options import RefineOptions
from tests.commandline import ROW_SUM

OWN = ROW_SUM.replace('"ceil_div(rows, 64)"', '"ceil_div(rows, 32)"').replace("block = 64", "block = 32")


def written(tmp_path: Path, candidate: str, kernel: str = ROW_SUM) -> tuple[Path, Path]:
    (tmp_path / "kernel.cu").write_text(kernel)
    (tmp_path / "candidate.cu").write_text(candidate)
    return tmp_path / "kernel.cu", tmp_path / "candidate.cu"


def test_a_candidate_is_launched_as_its_own_contract_says(tmp_path: Path) -> None:
    kernel, candidate = written(tmp_path, OWN)
    plan = load_candidate(candidate, load_kernel(kernel, None)).plan
    assert (plan.launches[0].grid[0], plan.launches[0].block[0]) == ("ceil_div(rows, 32)", "32")
    assert judge(candidate, RefineOptions(kernel, "host"), timed=False).status == "passed"


def test_lines_at_the_top_come_before_its_contract(tmp_path: Path) -> None:
    kernel, candidate = written(tmp_path, "// grid: 1 if rows > 0 else 0\n// block: 256\n" + OWN)
    assert load_candidate(candidate, load_kernel(kernel, None)).plan.launches[0].grid == (
        "1 if rows > 0 else 0", "1", "1",
    )  # fmt: skip


def test_a_launch_of_its_own_must_hold_at_every_size(tmp_path: Path) -> None:
    kernel, candidate = written(tmp_path, OWN.replace("block = 32", 'block = "cols * 32"'))
    with pytest.raises(ContractError) as refused:
        load_candidate(candidate, load_kernel(kernel, None))
    assert "candidate.cu" in refused.value.where


@pytest.mark.parametrize("far", [100_000_000, 300_000_000, 700_000_000, -200_000_000])
def test_a_fault_at_one_of_several_timed_sizes_is_the_candidates(tmp_path: Path, far: int) -> None:
    """Wherever it lands: among the stacks of the host device's threads, too, which take gigabytes of addresses."""
    several = ROW_SUM.replace("timed = 128", "timed = [128, 96]")
    beyond = several.replace("x[row * cols + j]", f"x[row * cols + j + (rows == 128 && cols == 64 ? {far} : 0)]")
    kernel, candidate = written(tmp_path, beyond, several)
    told = judge(candidate, RefineOptions(kernel, "host"), timed=False)
    assert told.status == "failed"
    assert told.evidence["kind"] == "out-of-bounds"


@pytest.mark.parametrize(("few", "told"), [(10_000, 1), (1, 0)])
def test_few_tests_are_told_of(tmp_path: Path, few: int, told: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A grid of thousands of blocks whatever the sizes leaves time for some ten, with nothing that showed it."""
    monkeypatch.setattr(checking, "FEW", few)
    kernel, _ = written(tmp_path, OWN)
    found = judge_own(RefineOptions(kernel, "host"))
    assert found.status == "passed"
    assert sum("tests had time" in note for note in found.notes) == told
