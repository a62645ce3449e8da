"""What a person sees of a run while it goes on and when it ends."""

from __future__ import annotations

import io
import re
import time
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from fsr.report import terminal
from fsr.report.terminal import (
    Display,
    adequacy_text,
    check_summary,
    progress_line,
    progress_table,
    spread_of,
    summary,
    waiting,
)
from fsr.report.words import duration_text, ratio_text, time_text

SEARCHED = {
    "status": "improved", "entry": "softmax", "run": "20260101-120000-softmax-0001", "basis": "measured",
    "device": {"name": "NVIDIA H200", "arch": "sm_90"}, "baseline": {"median_ns": 1_520_000.0},
    "best": {
        "median_ns": 81_000.0, "speedup": 18.77, "speedup_ci95": [18.5, 19.0], "speedup_back_to_back": 17.1,
        "actions": ["row-per-warp@softmax[threads=128]", "vectorize@x[4]"], "roofline_fraction": 0.86,
        "roofline": {"fraction": 0.86, "drained_fraction": 0.43, "kept_bytes": 5e7},
        "bottlenecks": [{"name": "latency", "share": 0.6, "evidence": "8 of 64 warps run", "code": "y[i] = x[j];"}],
    },
    "tests": {"cases": 77, "passed": 77}, "evaluated": 120, "rejected": {"compile_failed": 2, "slow": 90},
    "why": "the fastest of 120", "defects": {},
    "files": {"source": "softmax.fsr.cu", "launcher": "softmax.fsr.cuh"}, "notes": ["a note"], "interrupted": False,
    "seconds": 312.0,
}  # fmt: skip


def state(**changes: Any) -> Any:
    timing = SimpleNamespace(basis=SimpleNamespace(value="predicted"), median_ns=9000.0)
    best = SimpleNamespace(
        time_ns=3000.0,
        outcome=SimpleNamespace(timing=SimpleNamespace(samples_ns=(2900.0, 3000.0, 3100.0))),
        proposal=SimpleNamespace(candidate=SimpleNamespace(actions=("unroll@k[4]", "vectorize@x[4]"))),
    )
    given = {
        "run": "r1", "entry": "k", "budget_s": 60.0, "phase": "search", "elapsed_s": 12.0, "told": 9,
        "device_busy": 0.87, "baseline": SimpleNamespace(outcome=SimpleNamespace(timing=timing)), "best": best,
        "rejected": {"compile_failed": 2}, "rate": 1.25, "speedup": 3.0, "shares": {},
    }  # fmt: skip
    return SimpleNamespace(**given | changes)


def shown(renderable: Any) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(renderable)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_the_table_says_how_the_run_stands():
    text = shown(progress_table(state()))
    for words in ("48 s left", "9 µs (predicted)", "3.00x", "± 3.3 %", "unroll@k[4] → vectorize@x[4]",
                  "2 compile failed", "1.2 a second", "87 %", "run r1"):  # fmt: skip
        assert words in text


def test_before_the_baseline_is_known_nothing_is_claimed():
    text = shown(progress_table(state(baseline=None, best=None, phase="baseline")))
    assert "testing and timing the original" in text
    assert "x]" not in text
    line = progress_line(state(baseline=None, best=None, speedup=None, phase="baseline"))
    assert line == "fsr: k: baseline, 12 s"


def test_progress_in_a_pipe_is_a_line_now_and_then(capsys, monkeypatch):
    now = 100.0
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now)
    with Display(Console(file=io.StringIO(), force_terminal=False)) as display:
        for phase, at in (("search", 100.0), ("search", 101.0), ("search", 120.0), ("promotion", 120.1)):
            now = at
            display.show(state(phase=phase))
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(":")[2].split(",")[0].strip() for line in err.splitlines()] == ["search", "search", "promotion"]
    assert "best 3.00x (predicted), 9 evaluated" in err


def test_progress_in_a_terminal_is_live():
    file = io.StringIO()
    with Display(Console(file=file, force_terminal=True, width=100)) as display:
        display.show(state())
    assert "3.00x" in file.getvalue()


def test_the_summary_of_a_win():
    text = summary(SEARCHED)
    for words in ("improved: softmax is 18.8x as fast [18.50, 19.00] (measured, NVIDIA H200)", "1.52 ms", "81 µs",
                  "17.1x when launched back to back",
                      "86 % of this device's copy rate", "43 % without the outputs that the L2 may keep",
                      "latency, 60 %: 8 of 64 warps run (y[i] = x[j];)", "vectorize@x[4]", "77 of 77 passed",
                  "120; rejected: 2 compile failed, 90 slow", "softmax.fsr.cuh", "a note", "5 min 12 s"):  # fmt: skip
        assert words in text


def test_a_plan_is_called_by_its_kernels():
    for kernels, said in [
        (["softmax"], "improved: softmax is"),
        (["flux", "step"], "improved: the plan of flux and step is"),
        (["a", "b", "c", "d", "e"], "improved: the plan of a, b, c and more is"),
    ]:
        assert summary(SEARCHED | {"kernels": kernels}).startswith(said)


def test_the_summary_of_an_honest_unchanged_and_of_an_interruption():
    changes = {"best": None, "status": "unchanged", "files": {}, "rejected": {}, "interrupted": True}
    text = summary(SEARCHED | changes | {"why": "nothing applied", "defects": {"tile-permute": {"not compiled": 2}}})
    assert "why        nothing applied" in text
    assert (
        "refused    candidates that fsr made with tile-permute (2 not compiled): a fault of fsr, none of your kernel"
    ) in text
    assert text.startswith("unchanged: nothing faster than softmax was proven (measured, NVIDIA H200)")
    assert "rejected: none" in text
    assert "fsr refine --resume 20260101-120000-softmax-0001" in text
    predicted = SEARCHED | {"basis": "predicted", "device": {"name": "a CPU", "target": "sm_90"}}
    assert "(predicted, sm_90)" in summary(predicted)


def test_the_summary_of_a_check():
    failed = {
        "status": "failed", "stage": "tests", "tests": {"cases": 40, "passed": 7},
        "evidence": {"case": "sizes 3", "detail": "y[4] is 1, expected 2", "line": None},
    }  # fmt: skip
    text = check_summary(failed)
    assert text.startswith("failed: 7 of 40 cases, stage tests")
    assert "y[4] is 1, expected 2" in text
    assert "line" not in text
    verdict = {"kind": "FASTER", "speedup": 2.0, "ci95": [1.9, 2.1], "basis": "measured"}
    passed = check_summary(failed | {"status": "passed", "verdict": verdict})
    assert "FASTER: 2.00x [1.90, 2.10] (measured)" in passed
    assert "expected 2" not in passed
    assert "  note: 3 of 36 test cases" in check_summary(failed | {"notes": ("3 of 36 test cases: one takes 1.5 s",)})
    sizes = {"status": "passed", "sizes": {"n": [1, 1000000], "k": [4, 4]}, "timed_sizes": True}
    assert check_summary(failed | sizes) == "passed: 7 of 40 cases, at n = 1 to 1000000, k = 4 (timed sizes included)"
    left = {"sizes": [{"n": 3000000, "k": 4}], "all": True, "why": ["no block is judged alone"]}
    untested = check_summary(failed | sizes | {"timed_sizes": False, "timed_left": left}).splitlines()
    assert untested == [
        "passed: 7 of 40 cases, at n = 1 to 1000000, k = 4",
        "  not tested: the timed sizes n = 3000000, k = 4: no block is judged alone; a GPU runs them whole",
    ]
    some = check_summary(failed | sizes | {"timed_sizes": False, "timed_left": {**left, "all": False}})
    assert "  not tested: of the timed sizes n = 3000000, k = 4: no block is judged alone" in some
    several = {"sizes": [{"n": 1}, {"n": 2}, {"n": 3}], "all": True, "why": ["slow", "large", "slow"]}
    text = check_summary(failed | sizes | {"timed_sizes": False, "timed_left": several})
    assert text.splitlines()[1:] == [
        "  not tested: of the timed sizes n = 1; n = 3: slow; a GPU runs them whole",
        "  not tested: of the timed sizes n = 2: large; a GPU runs them whole",
    ]
    assert "at the timed sizes some blocks: a whole launch takes too long" in check_summary(
        failed | sizes | {"timed_sizes": False, "timed_blocks": True}
    )
    assert check_summary(failed | sizes | {"sizes": {}}) == "passed: 7 of 40 cases, every stage"
    assert check_summary(failed | sizes | {"status": "failed"}).startswith("failed: 7 of 40 cases, stage tests")


def test_a_check_is_told_whole_and_only_evidence_is_cut_between_words():
    told = {"status": "passed", "stage": "promotion", "tests": {"cases": 9, "passed": 9}, "evidence": {}}
    why = "because " + "of all that was looked at nothing was found, " * 20 + "so that it ends here"
    sizes = {f"size{n}": [1, 1000 + n] for n in range(40)}
    left = {"sizes": [{name: high for name, (_, high) in sizes.items()}], "all": True, "why": [why]}
    text = check_summary(told | {"sizes": sizes, "timed_sizes": False, "timed_left": left, "notes": (why,)})
    assert "size39 = 1 to 1039\n" in text
    assert text.count(why) == 2
    long = {"detail": "word " * 400}
    line = check_summary(told | {"status": "failed", "evidence": long}).splitlines()[1]
    assert line.endswith("word ... (--json has all of it)")
    assert len(line) < 300


def test_waiting_is_told_now_and_then_where_nobody_sees_it_move(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with waiting("testing k.cu"):
        pass
    assert capsys.readouterr().err == ""  # done before there was anything to tell
    monkeypatch.setattr(terminal, "PLAIN_EVERY_S", 0.02)
    with waiting("testing k.cu") as tell:
        time.sleep(0.1)
        tell("k: testing, 31 cases passed")
        time.sleep(0.1)
    lines = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"fsr: testing k\.cu, \S+ \S+", lines[0])
    assert re.fullmatch(r"fsr: k: testing, 31 cases passed, \S+ \S+", lines[-1])
    time.sleep(0.06)
    assert capsys.readouterr().err == ""


def test_what_takes_its_time_says_so_in_a_terminal_only():
    for shown in (True, False):
        written = io.StringIO()
        with waiting("testing a[b].cu", Console(file=written, force_terminal=shown, width=80)):
            pass
        assert ("testing a[b].cu" in written.getvalue()) == shown


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (time_text(842), "842 ns"), (time_text(12_300), "12.3 µs"), (time_text(1.52e6), "1.52 ms"),
        (time_text(2.1e9), "2.1 s"), (ratio_text(1.04), "1.04x"), (ratio_text(12.34), "12.3x"),
        (duration_text(-3), "0 s"), (duration_text(59.6), "1 min 0 s"), (duration_text(200), "3 min 20 s"),
        (spread_of((5.0,)), ""),
    ],
)  # fmt: skip
def test_figures_in_words(told, words):
    assert told == words


def test_faults_that_the_tests_did_not_find_are_named():
    told = {"tried": 60, "killed": 51, "survived": 7, "survivors": [
        {"name": f"drop-fence@{n}", "why": "differs within rounding", "diff": ""} for n in range(7)]}  # fmt: skip
    lines = adequacy_text(told)
    assert lines[0].split(maxsplit=1) == ["adequacy", "the tests find 51 of 58 faults planted in it"]
    assert "drop-fence@4 (differs within rounding)" in lines[5]
    assert lines[6].strip() == "and 2 more: best.adequacy of --json"
    assert adequacy_text({}) == adequacy_text({"tried": 0}) == []
