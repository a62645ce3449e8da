"""`fsr runs`: past runs, finished, cut off and damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fsr.errors import EXIT_FAILED, EXIT_USAGE
from fsr.runs.log import EventLog
from tests.commandline import Fsr

RESULT = {
    "status": "improved", "entry": "k", "run": "20260101-120000-k-0001", "basis": "predicted",
    "device": {"name": "CPU", "target": "sm_90"}, "baseline": {"median_ns": 9000.0},
    "best": {
        "median_ns": 3000.0, "speedup": 3.0, "speedup_ci95": [2.5, 3.5], "actions": ["unroll@k[4]"],
        "roofline_fraction": None,
    },
    "tests": {"cases": 40, "passed": 40}, "evaluated": 7, "rejected": {"wrong": 2}, "files": {"source": "k.fsr.cu"},
    "why": "", "defects": {}, "notes": [], "interrupted": False, "seconds": 12.0,
}  # fmt: skip


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs: one that ended, and a later one that was cut off."""
    folder = tmp_path / "home" / "runs"
    with EventLog(folder / str(RESULT["run"])) as log:
        log.append("start")
        log.append("end", result=RESULT)
    with EventLog(folder / "20260102-120000-k-0002") as log:
        log.append("start")
        log.append("tell", id=0)
        log.append("tell", id=1)
    return folder


def test_no_runs(cli):
    assert "no runs in" in cli("runs", "list").out
    assert json.loads(cli("runs", "list", "--json").out) == {"runs": []}


def test_list_has_the_newest_first_and_how_each_ended(cli, runs):
    first, second = cli("runs", "list").out.splitlines()
    assert first.split()[0] == "20260102-120000-k-0002"
    assert "cut off after 2 outcomes" in first
    assert "improved 3.00x (predicted), 7 evaluated" in second
    rows = json.loads(cli("runs", "list", "--json").out)["runs"]
    assert [row["status"] for row in rows] == [None, "improved"]


def test_show(cli, runs):
    told = cli("runs", "show", RESULT["run"]).out
    assert "k is 3.00x as fast [2.50, 3.50] (predicted, sm_90)" in told
    assert "2 refused by the tests" in told
    cut_off = cli("runs", "show", "20260102-120000-k-0002").out
    assert "fsr refine --resume 20260102-120000-k-0002" in cut_off
    assert json.loads(cli("runs", "show", RESULT["run"], "--json").out)["result"] == RESULT


def test_a_run_that_is_not_there(cli, runs):
    told = cli("runs", "show", "nobody")
    assert told.code == EXIT_USAGE
    assert "fsr runs list" in told.err


def test_a_log_damaged_in_the_middle(cli, runs):
    path = runs / str(RESULT["run"]) / "events.jsonl"
    path.write_bytes(b"{broken\n" + path.read_bytes())
    told = cli("runs", "show", RESULT["run"])
    assert told.code == EXIT_FAILED
    assert f"{path}:1" in told.err
    listed = cli("runs", "list")
    assert listed.code == 0
    assert "cut off after 2 outcomes" in listed.out
    assert "damaged" in listed.out


@pytest.mark.parametrize("group", ["cache", "daemon", "runs"])
def test_a_group_alone_shows_its_help_in_whole_sentences(fsr: Fsr, group: str) -> None:
    alone, asked = fsr.run(group), fsr.run(group, "--help")
    assert (alone.returncode, alone.stdout, asked.returncode) == (2, "", 0)
    assert alone.stderr == asked.stdout
    described = asked.stdout.partition("Commands:")[2]
    assert len(described.splitlines()) > 5
    assert not [line for line in described.splitlines() if line.endswith("...")]
