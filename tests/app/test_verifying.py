"""Winners from elsewhere are served once they were verified here, with files and evidence of this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fsr.app import verifying
from fsr.app.checking import Asked, Judged, Judgement
from fsr.app.verifying import verify
from fsr.cache.bundle import Bundle
from fsr.cache.digest import text_digest
from fsr.cache.entry import Entry
from fsr.cache.key import CacheKey
from fsr.cache.lookup import find
from fsr.cache.quarantine import held, take_in
from fsr.cache.store import Store
from fsr.errors import BaselineError
from fsr.evaluation.spec import SessionSpec
from fsr.identity import to_json
from fsr.records import DeviceInfo
from fsr.runs.kernel import load_kernel
from fsr.runs.options import RefineOptions
from tests.commandline import ROW_SUM

FASTER = {"kind": "faster", "speedup": 2.0, "ci95": [1.9, 2.1]}
HERE = DeviceInfo("nvidia", "NVIDIA H200", "sm_90", 132, driver="580.1")


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.cu"
    path.write_text(ROW_SUM)
    return path


def sent(kernel: Path) -> Entry:
    """What somebody else signed: a right candidate, and files that hold something else."""
    read = load_kernel(kernel)
    candidate = replace(read.baseline, source=read.baseline.source.replace("sum += x", "sum += 1.0f * x"))
    key = CacheKey(text_digest(kernel.read_bytes()), (), "row_sum", "c", (), "nvrtc", "theirs", "1.0", 1)
    files = {"kernel.fsr.cu": "something else"}
    stored: Any = to_json(candidate)
    return Entry(key, "measured", {"arch": "sm_90"}, files, {"best": {"speedup": 99.0}}, stored)


def judged(kernel: Path, **changes: Any) -> Judged:
    read = load_kernel(kernel)
    told = {"verdict": FASTER, "status": "passed", "basis": "measured", "outcome": "correct", "stage": "promotion"}
    judgement = Judgement(entry="row_sum", device={}, tests={"cases": 9, "passed": 9}, evidence={}, seconds=1.0,
                          **(told | changes))  # fmt: skip
    return Judged(judgement, SessionSpec(read.contract, read.baseline, "host", "sm_90", 0), HERE)


def run(
    store: Store, kernel: Path, monkeypatch: pytest.MonkeyPatch, answer: object, gpu: str = HERE.name
) -> list[tuple[str, str]]:
    def judge(kernel: object, candidate: object, options: object, asked: Asked) -> object:
        assert asked.timed
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(verifying, "judge_candidate", judge)
    monkeypatch.setattr(verifying, "gpu_name", lambda device: gpu)
    return [(one.state, one.why) for one in verify(store, kernel, RefineOptions(kernel))]


def test_what_holds_here_is_served_with_files_made_here(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "cache.db"
    with Store(database) as store:
        take_in(store, Bundle("s", "ann", 1, (sent(kernel),)))
        assert run(store, kernel, monkeypatch, judged(kernel)) == [("served", "2.00 times as fast, measured here")]
        assert list(held(store)) == []
        ((_, entry),) = store.entries()
        assert entry is not None
        hit = find(kernel, database, device=entry.device)
        assert hit is not None
        (text,) = hit.files.values()
        assert "sum += 1.0f * x" in text
        assert "something else" not in text
        assert entry.evidence["best"]["speedup"] == 2.0
        slower = judged(kernel, verdict={**FASTER, "kind": "slower", "speedup": 0.5})
        here = str(entry.device["name"])
        assert run(store, kernel, monkeypatch, slower, here) == [("removed", "not faster here: 0.50 times")]
        assert list(store.entries()) == []


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"status": "failed", "outcome": "wrong"}, "removed"), ({"verdict": {**FASTER, "kind": "same"}}, "removed"),
        ({"verdict": {**FASTER, "kind": "ambiguous"}}, "left"), ({"verdict": None}, "left"),
        ({"basis": "predicted"}, "left"),
    ],
)  # fmt: skip
def test_nothing_else_leaves_quarantine_to_be_served(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], state: str
) -> None:
    with Store(tmp_path / "cache.db") as store:
        take_in(store, Bundle("s", "ann", 1, (sent(kernel),)))
        ((got, _),) = run(store, kernel, monkeypatch, judged(kernel, **changes))
        assert got == state
        assert list(store.entries()) == []
        assert len(list(held(store))) == (state == "left")


def test_what_cannot_be_judged_is_left_and_no_candidate_leaves_quarantine(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(tmp_path / "cache.db") as store:
        take_in(store, Bundle("s", "ann", 1, (sent(kernel),)))
        assert run(store, kernel, monkeypatch, BaselineError("it crashed")) == [("left", "it crashed")]
        take_in(store, Bundle("s", "ann", 2, (replace(sent(kernel), candidate={}),)))
        ((state, why),) = run(store, kernel, monkeypatch, BaselineError("it crashed"))
        assert state == "removed"
        assert "cannot be read" in why


def test_a_winner_that_is_served_goes_for_what_it_does_alone(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for a form that this version does not know, what the host device lacks, a GPU that is not here, a fault of
    the judging."""
    here = replace(sent(kernel), device={"arch": "sm_90", "name": HERE.name})
    wrong, lacks = ({"status": "failed", "outcome": outcome} for outcome in ("wrong", "compile_failed"))
    with Store(tmp_path / "cache.db") as store:
        store.publish(replace(here, candidate={}))
        ((state, why),) = run(store, kernel, monkeypatch, judged(kernel))
        assert (state, "not tested" in why) == ("left", True)
        store.publish(here)
        ((state, why),) = run(store, kernel, monkeypatch, judged(kernel, **wrong), gpu="NVIDIA B200")
        assert (state, HERE.name in why) == ("left", True)
        told = run(store, kernel, monkeypatch, judged(kernel, basis="predicted", **lacks), gpu="")
        assert [state for state, _ in told] == ["left"]
        with pytest.raises(ValueError, match="of fsr's own"):
            run(store, kernel, monkeypatch, ValueError("of fsr's own"))
        assert len(list(store.entries())) == 1
        told = run(store, kernel, monkeypatch, judged(kernel, basis="predicted", **wrong), gpu="")
        assert [state for state, _ in told] == ["removed"]
