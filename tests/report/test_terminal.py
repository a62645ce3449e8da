"""What a person sees of a run: progress as a line and as a table, and the summary at the end."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from types import SimpleNamespace as Named
from typing import Any

import pytest
from rich.console import Console

from fsr.records import Basis, Outcome, Status, Timing
from fsr.report.terminal import Display, check_summary, progress_line, progress_table, spread_of, summary
from fsr.report.words import duration_text, ratio_text, time_text


def right(time_ns: float, *samples: float) -> Outcome:
    return Outcome(Status.CORRECT, "tests", timing=Timing(Basis.MEASURED, time_ns, samples or (time_ns,)))


@dataclass
class State:
    """A run half-way."""

    run: str = "20260101-k-1234"
    entry: str = "softmax"
    budget_s: float = 60.0
    phase: str = "searching"
    elapsed_s: float = 24.6
    told: int = 120
    device_busy: float = 0.875
    baseline: Any = field(default_factory=lambda: Named(outcome=right(1e6)))
    best: Any = field(
        default_factory=lambda: Named(
            time_ns=5e4,
            outcome=right(5e4, 49e3, 51e3),
            proposal=Named(candidate=Named(actions=("rows:warp", "launch:256"))),
        )
    )
    rejected: dict[str, int] = field(default_factory=lambda: {"compile_failed": 3, "wrong": 1})
    rate: float = 4.88
    speedup: float | None = 20.0


def table_text(state: State) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(progress_table(state))
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_the_line_says_phase_time_and_best() -> None:
    assert progress_line(State()) == "fsr: softmax: searching, 25 s, best 20.0x (measured), 120 evaluated"
    assert progress_line(State(speedup=None)) == "fsr: softmax: searching, 25 s"


def test_the_table_holds_all_that_the_user_watches() -> None:
    text = table_text(State())
    for told in (
        "searching, 35 s left", "1 ms (measured)", "50 µs", "20.0x", "± 2.0 %", "rows:warp → launch:256",
        "120 (4.9 a second)", "3 compile failed, 1 wrong", "88 %", "20260101-k-1234",
    ):  # fmt: skip
        assert told in text


def test_the_table_before_anything_is_known() -> None:
    text = table_text(State(baseline=None, best=None, speedup=None))
    assert "testing and timing the original" in text
    assert "rejected" not in text


def test_without_a_terminal_a_line_comes_when_the_phase_changes(capsys: pytest.CaptureFixture[str]) -> None:
    with Display(Console(file=io.StringIO())) as display:
        display.show(State())
        display.show(State(told=121))  # nothing to say so soon
        display.show(State(phase="proving the winner"))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[2].split(",")[0] for line in lines] == ["searching", "proving the winner"]


def test_in_a_terminal_the_table_is_live() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with Display(console) as display:
        display.show(State())
    assert "best so far" in console.file.getvalue()  # type: ignore[attr-defined]


RESULT: dict[str, Any] = {
    "status": "improved", "entry": "softmax", "run": "r1", "basis": "measured", "device": {"name": "NVIDIA H200"},
    "baseline": {"median_ns": 1e6}, "tests": {"cases": 31, "passed": 31}, "evaluated": 120,
    "rejected": {"compile_failed": 3}, "files": {"output": "softmax.fsr.cu"}, "notes": ["one note"],
    "interrupted": False, "seconds": 61.2,
    "best": {
        "median_ns": 5e4, "speedup": 20.0, "speedup_ci95": [19.5, 20.4], "actions": ["rows:warp"],
        "roofline_fraction": 0.81, "speedup_back_to_back": 17.0,
    },
}  # fmt: skip


def test_the_summary_of_a_win() -> None:
    text = summary(RESULT)
    assert text.startswith("improved: softmax is 20.0x as fast [19.50, 20.40] (measured, NVIDIA H200)")
    for told in (
        "winner     50 µs", "in a loop  17.0x", "roofline   81 %", "rows:warp", "31 of 31 passed",
        "120; rejected: 3 compile failed", "written    softmax.fsr.cu", "note       one note", "r1, 1 min 1 s",
    ):  # fmt: skip
        assert told in text
    assert "interrupted" not in text


def test_the_summary_of_an_interrupted_run_without_a_win() -> None:
    changes = {"best": None, "interrupted": True, "basis": "predicted", "device": {"name": "CPU", "target": "sm_90"}}
    text = summary(RESULT | changes)
    assert text.startswith("unchanged: nothing faster than softmax was proven (predicted, sm_90)")
    assert "fsr refine --resume r1" in text


def test_the_summary_of_a_check() -> None:
    wrong = {
        "status": "wrong", "tests": {"cases": 5, "passed": 2}, "stage": "tests",
        "evidence": {"case": "prime", "kind": None, "got": "nan"},
    }  # fmt: skip
    lines = check_summary(wrong).splitlines()
    assert lines[0] == "wrong: 2 of 5 cases, stage tests"
    assert [line.split() for line in lines[1:]] == [["case", "prime"], ["got", "nan"]]
    verdict = {"kind": "faster", "speedup": 1.5, "ci95": [1.4, 1.6], "basis": "measured"}
    passed = {"status": "passed", "tests": {"cases": 5, "passed": 5}, "stage": "promotion", "verdict": verdict}
    assert check_summary(passed).splitlines()[1] == "  faster: 1.50x [1.40, 1.60] (measured)"


def test_numbers_as_people_read_them() -> None:
    assert [time_text(t) for t in (842, 12_300, 1.52e6, 2.1e9)] == ["842 ns", "12.3 µs", "1.52 ms", "2.1 s"]
    assert [ratio_text(r) for r in (1.037, 12.34)] == ["1.04x", "12.3x"]
    assert [duration_text(s) for s in (-1, 41.6, 200)] == ["0 s", "42 s", "3 min 20 s"]
    assert spread_of((100.0,)) == ""
