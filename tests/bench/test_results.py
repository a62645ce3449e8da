"""Records survive runs that are killed, and several folders make one table."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.bench.results import FILE, Record, append, read
from fsr.bench.summary import summed_up
from fsr.bench.table import table
from fsr.errors import StorageError

FAST = Record(
    "fast", "maps", "improved", "measured", 60.0, times_ns={"naive": 4000.0, "winner": 1000.0, "torch": 500.0,
    "compile": 400.0}, bytes=2e8, flops=1e6, copy_bytes_per_s=4e14, flops_per_s=6e13,
)  # fmt: skip
FAILED = Record("broken", "maps", "failed", "measured", 60.0, detail="it | fell")


def test_what_was_appended_is_read_and_half_a_line_is_not(tmp_path: Path):
    append(tmp_path, FAST)
    with (tmp_path / FILE).open("a") as file:
        file.write('{"workload": "ha')
    append(tmp_path, FAILED)
    assert read([tmp_path]) == {"fast": FAST, "broken": FAILED}


def test_later_folders_win_and_an_empty_one_is_told(tmp_path: Path):
    append(tmp_path / "a", FAILED)
    append(tmp_path / "b", Record("broken", "maps", "unchanged", "measured", 60.0))
    assert read([tmp_path / "a", tmp_path / "b"])["broken"].status == "unchanged"
    with pytest.raises(StorageError, match="no results"):
        read([tmp_path / "c"])


def test_the_figures_of_a_record_and_of_all():
    assert (FAST.speedup, FAST.best_peer, FAST.against_peer) == (4.0, "compile", 0.4)
    assert FAST.copy_share == pytest.approx(0.5)
    assert FAST.memory_bound
    summary = summed_up([FAST, FAILED])
    assert summary.over_naive == pytest.approx(2.0)  # a failure leaves the user with the original
    assert (summary.failed, summary.behind, summary.compared) == (("broken",), ("fast",), 1)
    assert summary.slow == ("fast",)
    assert (summary.copy_share, summary.streaming) == (pytest.approx(0.5), 1)


def test_the_table_says_why_one_failed_and_keeps_its_columns():
    lines = table([FAST, FAILED]).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len({row.count("|") for row in rows}) == 1
    assert any("it / fell" in row for row in rows)
    assert any("0.4 (compile; torch 0.5)" in row and "0.40×" in row for row in rows)
    assert any(line.startswith("- fast: 0.40× of compile, aimed at 0.5;") for line in lines)
    assert any(line.startswith("- fast: 50 % of the copy rate;") for line in lines)
