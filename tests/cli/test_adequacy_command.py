"""fsr check --adequacy, as a user runs it."""

from __future__ import annotations

from pathlib import Path

from tests.commandline import Fsr


def test_the_tests_of_a_kernel_are_measured(fsr: Fsr, row_sum: Path) -> None:
    told = fsr.json("check", row_sum, "--adequacy", "--mutants", "8", "--seed", "3", "--device", "host")
    assert told["status"] == "adequate"
    assert told["killed"] + told["equivalent"] + told["not_compiled"] == told["mutants"] == 8
    assert told["score"] == 1.0
    assert all(one["why"] and one["diff"] for one in told["equivalents"])
