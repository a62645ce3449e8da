"""fsr check of a kernel alone, as a user runs it: whether it stands its own contract."""

from __future__ import annotations

from pathlib import Path

from tests.commandline import Command, Fsr


def test_a_kernel_is_checked_against_its_own_contract(fsr: Fsr, row_sum: Path) -> None:
    alone = fsr.json("check", row_sum, "--device", "host")
    beside = fsr.json("check", row_sum, "--against", row_sum, "--device", "host")
    assert (alone["status"], alone["entry"], alone["stage"]) == ("passed", "row_sum", "promotion")
    assert alone["tests"] == beside["tests"]


def test_a_kernel_that_fails_its_own_tests_is_told_of(cli: Command, row_sum: Path) -> None:
    row_sum.write_text(row_sum.read_text().replace("x[row * cols + j]", "x[row * cols + j + 1]"))
    told = cli("check", row_sum, "--device", "host")
    assert told.code == 1
    assert "the kernel fails its own tests: out-of-bounds" in told.err
    assert "kernel.cu:" in told.err
