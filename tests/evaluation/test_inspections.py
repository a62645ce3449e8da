"""What promotion's tools said of a candidate reaches its evidence."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fsr.backends.backend import ToolReport
from fsr.contract.load import load_contract
from fsr.evaluation import inspecting
from fsr.evaluation.testing import CaseFailure
from fsr.records import Candidate, Case, Fault

EXAMPLE = Path(__file__).parents[2] / "examples" / "saxpy.cu"
CONTRACT = load_contract(EXAMPLE)
CANDIDATE = Candidate(EXAMPLE.read_text(), CONTRACT.plan)
CASES = [Case("held-out 0", (("n", 100),), "normal", 1), Case("held-out 1", (("n", 300),), "normal", 2)]
MEMCHECK, RACECHECK = ToolReport("memcheck", True), ToolReport("racecheck", False, note="no tool here")


class Session:
    """Of a session, what the inspections use."""

    contract = CONTRACT

    def __init__(self, *, on_host: bool = False, race: Fault | None = None, said: str = "silent") -> None:
        backend = SimpleNamespace(sanitizes=not on_host)
        self.spec = SimpleNamespace(predicted=on_host, backend=backend, baseline=CANDIDATE)
        self.recorder = lambda: SimpleNamespace(watching_toolchain=lambda: None)
        self.launches = lambda case: True
        self.watched = (CaseFailure(CASES[0], fault=race) if race else None), said


def inspected(monkeypatch: pytest.MonkeyPatch, session: Session, *reports: ToolReport) -> Any:
    monkeypatch.setattr(inspecting, "_sanitized", lambda *arguments: list(reports))
    monkeypatch.setattr(inspecting, "_images", lambda *arguments: (None, None))
    monkeypatch.setattr(inspecting, "watch", lambda *arguments: session.watched)
    binaries = SimpleNamespace(run=object())
    with inspecting.inspecting(session, CANDIDATE, binaries, CASES) as inspected:  # type: ignore[arg-type]
        return inspected()


def test_silent_tools_are_named_and_missing_ones_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    failure, said = inspected(monkeypatch, Session(), MEMCHECK, RACECHECK)
    assert failure is None
    assert said == {"recorder": "silent", "memcheck": "silent", "racecheck": "not available: no tool here"}


def test_the_recorder_that_cannot_work_here_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    failure, said = inspected(monkeypatch, Session(said="not available: no C++ compiler was found"), MEMCHECK)
    assert failure is None
    assert said == {"recorder": "not available: no C++ compiler was found", "memcheck": "silent"}


def test_on_the_host_device_the_recorder_alone_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    _, said = inspected(monkeypatch, Session(on_host=True), MEMCHECK)
    assert said == {"recorder": "silent"}


def test_what_a_tool_found_is_the_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    race = Fault("race", "two writes", 7)
    failure, said = inspected(monkeypatch, Session(), MEMCHECK, ToolReport("racecheck", True, (race,)))
    assert failure is not None
    assert failure.evidence()["kind"] == "race"
    assert "racecheck" not in said
    failure, _ = inspected(monkeypatch, Session(race=race), MEMCHECK)
    assert failure is not None
    assert failure.evidence() | {"line": 7} == failure.evidence()


def test_tools_begin_before_they_are_asked_and_have_ended_with_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    began, ended, may_end = threading.Event(), threading.Event(), threading.Event()

    def sanitized(*arguments: Any) -> list[ToolReport]:
        began.set()
        may_end.wait(20)
        ended.set()
        return [MEMCHECK]

    monkeypatch.setattr(inspecting, "_sanitized", sanitized)
    monkeypatch.setattr(inspecting, "_images", lambda *arguments: (None, None))
    with inspecting.inspecting(Session(), CANDIDATE, SimpleNamespace(run=object()), CASES):  # type: ignore[arg-type]
        assert began.wait(20), "beside the tests"
        may_end.set()  # a test failed, so that nobody asks
    assert ended.is_set(), "nothing is in the way of what is timed next"
