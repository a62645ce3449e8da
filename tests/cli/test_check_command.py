"""fsr check of a kernel alone, as a user runs it: whether it stands its own contract."""

from __future__ import annotations

import re
from pathlib import Path

from tests.commandline import Command, Fsr


def test_a_kernel_is_checked_against_its_own_contract(fsr: Fsr, row_sum: Path) -> None:
    alone = fsr.json("check", row_sum, "--device", "host")
    beside = fsr.json("check", row_sum, "--against", row_sum, "--device", "host")
    assert (alone["status"], alone["entry"], alone["stage"]) == ("passed", "row_sum", "promotion")
    assert alone["tests"] == beside["tests"]
    assert alone["sizes"] == beside["sizes"]
    assert alone["sizes"].keys() == {"rows", "cols"}
    assert all(low < high for low, high in alone["sizes"].values())
    assert alone["timed_sizes"] is beside["timed_sizes"]


def test_a_kernel_that_fails_its_own_tests_is_told_of(cli: Command, row_sum: Path) -> None:
    row_sum.write_text(row_sum.read_text().replace("x[row * cols + j]", "x[row * cols + j + 1]"))
    told = cli("check", row_sum, "--device", "host")
    assert told.code == 1
    assert "the kernel fails its own tests: out-of-bounds" in told.err
    assert "kernel.cu:" in told.err


def test_both_sides_of_a_race_are_told_in_the_users_lines(cli: Command, row_sum: Path) -> None:
    text = row_sum.read_text().replace("float sum = 0.0f;", "__shared__ float s[64]; s[threadIdx.x] = x[row * cols];\n")
    text = text.replace("y[row] = sum;", "y[row] = sum + s[(threadIdx.x + 1) % blockDim.x];")
    row_sum.write_text(text.replace("for (int j", "float sum = 0; for (int j"))
    lines = row_sum.read_text().split("\n")
    first, second = (next(i for i, t in enumerate(lines, 1) if words in t) for words in ("s[64]", "blockDim.x]"))
    told = cli("check", row_sum, "--device", "host")
    assert "the kernel fails its own tests: race" in told.err
    assert {f"{row_sum}:{first}", f"{row_sum}:{second}"} <= set(re.findall(rf"{re.escape(str(row_sum))}:\d+", told.err))
