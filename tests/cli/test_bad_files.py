"""Files that are no kernels, logs, databases or plans: each one message, in this process and at once."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fsr.errors import EXIT_FAILED, EXIT_USAGE
from tests.commandline import ROW_SUM, Command

RESULT = {
    "status": "improved", "entry": "k", "run": "r", "basis": "predicted", "device": {"target": "sm_90"},
    "baseline": {"median_ns": 2.0}, "tests": {"cases": 1, "passed": 1}, "evaluated": 3, "rejected": {}, "defects": {},
    "files": {}, "notes": [], "interrupted": False, "seconds": 1.0, "why": "",
    "best": {"speedup": 2.0, "speedup_ci95": [1.5, 2.5], "median_ns": 1.0, "actions": ["a"]},
}  # fmt: skip


def refusal(told: Any, codes: tuple[int, ...]) -> str:
    assert told.code in codes, told
    assert told.out == ""
    assert told.err.startswith("fsr: ")
    assert "a fault of fsr" not in told.err
    assert "Traceback" not in told.err
    assert "\n  next: " in told.err
    assert len(told.err.splitlines()) <= 24
    return str(told.err)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda p: os.mkfifo(p), "a named pipe"),
        (lambda p: p.symlink_to("/dev/zero"), "a device"),
        (lambda p: p.symlink_to(p.name), "symbolic links"),
        (lambda p: p.write_text("/" * (9 << 20)), "more than"),
        (
            lambda p: p.write_text("// /// fsr\n// a = " + "[" * 5000 + "\n// ///\n__global__ void k(float *x) {}"),
            "nested 5001 deep",
        ),
    ],
)
def test_a_kernel_that_is_no_text_to_read(
    cli: Command, tmp_path: Path, make: Callable[[Path], Any], words: str
) -> None:
    path = tmp_path / "kernel.cu"
    make(path)
    assert words in refusal(cli("contract", path), (EXIT_USAGE, EXIT_FAILED))


def log_of(tmp_path: Path, *events: dict[str, Any]) -> None:
    folder = tmp_path / "home" / "runs" / "r"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text("".join(json.dumps(e) + "\n" for e in events))


@pytest.mark.parametrize(
    "changes",
    [{"device": 3}, {"best": {"speedup": "2"}}, {"best": {"speedup": None}}, {"tests": []}, {"notes": 7},
     {"files": "x"}, {"seconds": "1"}, {"baseline": None, "best": None}, {"rejected": {"wrong": []}}],
)  # fmt: skip
def test_a_log_whose_result_is_of_other_types(cli: Command, tmp_path: Path, changes: dict[str, Any]) -> None:
    log_of(tmp_path, {"kind": "start", "at": 1.0}, {"kind": "end", "at": 2.0, "result": RESULT | changes})
    told = cli("runs", "show", "r")
    if told.code:
        assert "another version of fsr" in refusal(told, (EXIT_FAILED,))
    assert cli("runs", "list").code == 0, "one bad run hides no other"


def test_a_whole_log_is_shown(cli: Command, tmp_path: Path) -> None:
    log_of(tmp_path, {"kind": "start", "at": 1.0}, {"kind": "end", "at": 2.0, "result": RESULT})
    told = cli("runs", "show", "r")
    assert told.code == 0
    assert "improved: k is 2" in told.out


@pytest.mark.parametrize("first", [{"kind": "start", "at": "soon"}, {"kind": "start", "options": [], "at": 1}])
def test_a_run_that_cannot_be_resumed(cli: Command, tmp_path: Path, first: dict[str, Any]) -> None:
    log_of(tmp_path, first, {"kind": "ask", "at": 2})
    assert "another version of fsr" in refusal(cli("refine", "--resume", "r"), (EXIT_FAILED,))


@pytest.mark.parametrize("version", [-1, -(2**31), 99])
@pytest.mark.parametrize("command", [("cache", "list"), ("cache", "prune", "--older-than", "1")])
def test_a_cache_of_a_schema_that_no_fsr_wrote(
    cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, command: tuple[str, ...]
) -> None:
    path = tmp_path / "cache.db"
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA user_version={version}")
    monkeypatch.setenv("FSR_CACHE", str(path))
    assert f"has schema {version}" in refusal(cli(*command), (EXIT_FAILED,))


def test_a_plan_with_more_scratch_than_there_is_memory_in_the_world(cli: Command, tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(ROW_SUM)
    (tmp_path / "candidate.cu").write_text(ROW_SUM)
    launch = {"entry": "row_sum", "grid": ["2", "1", "1"], "block": ["64", "1", "1"], "shared_bytes": "0",
              "args": ["x", "y", "rows", "cols"]}  # fmt: skip
    plan = {"launches": [launch], "flags": [], "scratch": [{"name": "s", "dtype": "int8", "count": "2 ** 62"}]}
    (tmp_path / "candidate.json").write_text(json.dumps({"best": {"plan": plan}}))
    told = cli("check", tmp_path / "candidate.cu", "--against", tmp_path / "kernel.cu", "--device", "host")
    assert "the scratch buffer s has" in refusal(told, (EXIT_USAGE,))
