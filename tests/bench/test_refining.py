"""A refinement of a benchmark starts from no cache; what it cannot tell is a failure, in the words it printed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fsr.bench import refining
from fsr.bench.refining import Refining, refine


@pytest.fixture
def asked(tmp_path: Path) -> Refining:
    return Refining("host", "sm_90", 5.0, 3, tmp_path / "home", tmp_path)


def runs(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(Refining, "command", lambda self, kernel: [sys.executable, "-c", code])


def test_the_command_starts_from_no_cache_and_no_model(asked: Refining, tmp_path: Path):
    words = asked.command(Path("k.cu"))
    assert words[1:5] == ["-m", "fsr", "refine", "k.cu"]
    assert {"--no-cache", "--json", "none", "5s", str(tmp_path / "k.fsr.cu")} <= set(words)


def test_what_it_tells_comes_back_and_its_home_is_its_own(asked: Refining, tmp_path: Path, monkeypatch):
    runs(monkeypatch, "import os, json; print(json.dumps({'status': 'unchanged', 'home': os.environ['FSR_HOME']}))")
    assert refine(asked, Path("k.cu"), tmp_path / "log") == {"status": "unchanged", "home": str(tmp_path / "home")}


def test_a_failure_says_what_it_printed(asked: Refining, tmp_path: Path, monkeypatch):
    runs(monkeypatch, "import sys; sys.exit('fsr: the budget is too small')")
    told = refine(asked, Path("k.cu"), tmp_path / "log")
    assert told["status"] == "failed"
    assert "exit code 1: fsr: the budget is too small" in told["detail"]


def test_one_that_does_not_end_is_killed(asked: Refining, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(refining, "GRACE_S", -4.5)
    runs(monkeypatch, "import time; time.sleep(60)")
    assert "not finished" in refine(asked, Path("k.cu"), tmp_path / "log")["detail"]
