"""Runs as objects: two at once in one process, one of them stopped half-way and resumed by another process."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from fsr.errors import StorageError, UsageError
from fsr.runs import lease
from fsr.runs.lease import Lease, Leases
from fsr.runs.log import read_events
from fsr.runs.options import RefineOptions
from fsr.runs.record import RunRecord
from fsr.runs.result import Result
from fsr.runs.run import Run, Stopped
from fsr.settings import Settings
from tests.commandline import ROW_SUM
from tests.runs.test_lease import FakeLock

EVALUATIONS = 5


class HostTurns(Leases):
    """Has runs take turns on the host device as they would on a GPU, and notes whose turn it was."""

    def __init__(self) -> None:
        super().__init__(FakeLock)
        self.turns: list[Lease] = []

    def lease(self, devices: Iterable[str]) -> Lease:
        return super().lease(["host"])

    def take(self, lease: Lease) -> bool:
        held = super().take(lease)
        if held and (not self.turns or self.turns[-1] is not lease):
            self.turns.append(lease)
        return held


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(str(tmp_path / "home"), str(tmp_path / "home" / "cache.db"))


def options(folder: Path, name: str, **more: Any) -> RefineOptions:
    path = folder / f"{name}.cu"
    path.write_text(ROW_SUM)
    return RefineOptions(path, "host", **{"evaluations": EVALUATIONS, "workers": 1, "use_cache": False, **more})


def told(folder: Path) -> list[dict[str, Any]]:
    return [event for event in read_events(folder) if event["kind"] == "tell"]


@pytest.mark.timeout(600)
def test_two_at_once_one_stopped_half_way_and_resumed_by_another_process(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "TURN_S", 0.2)
    turns = HostTurns()
    whole = Run(options(tmp_path, "whole"), settings=settings, leases=turns)
    half = Run(options(tmp_path, "half"), settings=settings, leases=turns)
    stopped_at, judged = threading.Event(), list[int]()

    def stop_half_way(event: Mapping[str, Any]) -> None:
        if event["kind"] == "tell" and event["id"]:  # in any order
            judged.append(event["id"])
        if len(judged) == 2 and not stopped_at.is_set():
            half.stop("half-way")
            stopped_at.set()

    half.subscribe(stop_half_way)
    whole.start()
    half.start()
    first, second = whole.wait(500), half.wait(500)
    assert stopped_at.is_set()
    assert isinstance(first, Result)
    assert isinstance(second, Result)
    assert (first.evaluated, first.interrupted) == (EVALUATIONS, False)
    assert second.interrupted
    assert second.evaluated < EVALUATIONS
    assert len(set(turns.turns)) == 2
    assert len(turns.turns) > 2  # both had several; that no two held the device at once FakeLock asserts
    assert FakeLock.held == set()
    before = told(half.folder)
    code = (
        "import json, sys, fsr\n"
        "from fsr.settings import Settings\n"
        "run = fsr.Run.resume(sys.argv[1], settings=Settings(sys.argv[2], sys.argv[3]))\n"
        "print(json.dumps(run.start().wait().to_json()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, half.name, settings.home, settings.cache], capture_output=True, text=True,
        timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    resumed = json.loads(done.stdout)
    after = told(half.folder)
    assert after[: len(before)] == before
    assert (resumed["run"], resumed["evaluated"], resumed["interrupted"]) == (half.name, EVALUATIONS, False)
    ids = [event["id"] for event in after]
    assert len(ids) == len(set(ids)) == EVALUATIONS + 1
    asked = {event["id"]: event["hash"] for event in read_events(half.folder) if event["kind"] == "ask"}
    assert len(set(asked.values())) == len(asked)


@pytest.mark.timeout(300)
def test_it_is_watched_paused_and_stopped_by_its_folder(tmp_path: Path, settings: Settings) -> None:
    run = Run(options(tmp_path, "kernel", evaluations=None), settings=settings)
    record, phases, paused = RunRecord(run.folder), list[str](), threading.Event()
    run.watch(lambda state: phases.append(state.phase))
    run.watch(lambda state: paused.set() if state.phase == "paused" else None)
    run.subscribe(lambda event: record.pause() if event["kind"] == "tell" and event["id"] == 1 else None)
    with pytest.raises(UsageError, match="no run"):
        record.stop()
    run.start()
    assert paused.wait(200)
    assert record.going_on
    assert "going on after" in record.standing()
    with pytest.raises(StorageError, match="another process is writing"):
        Run.resume(run.name, settings=settings).start().wait()
    record.stop()
    result = run.wait(200)
    assert result is not None
    assert result.interrupted
    assert run.over
    assert [phase for i, phase in enumerate(phases) if i == 0 or phases[i - 1] != phase][:3] == [
        "baseline", "search", "paused",
    ]  # fmt: skip
    assert not record.going_on
    with pytest.raises(UsageError, match="is not going on"):
        record.pause()
    kinds = [event["kind"] for event in record.follow()]
    assert (kinds[0], kinds[-1]) == ("start", "end")
    assert Result.from_json(RunRecord(run.folder).result or {}) == result


def test_one_that_is_stopped_before_its_original_was_tested_leaves_nothing(tmp_path: Path, settings: Settings) -> None:
    run = Run(options(tmp_path, "kernel"), settings=settings)
    run.stop()
    with pytest.raises(Stopped):
        run.start().wait(100)
    assert run.result is None
    assert not run.folder.exists()
    with pytest.raises(RuntimeError):
        run.start()


def test_what_is_wrong_is_raised_by_wait_and_an_unknown_run_at_once(tmp_path: Path, settings: Settings) -> None:
    run = Run(RefineOptions(tmp_path / "absent.cu", "host"), settings=settings)
    with pytest.raises(UsageError, match=r"absent\.cu|cannot be read"):
        run.start().wait(100)
    with pytest.raises(UsageError, match="no run 'nobody'"):
        Run.resume("nobody", settings=settings)
    assert Run(options(tmp_path, "kernel"), settings=settings).wait(0.0) is None
