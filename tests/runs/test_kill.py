"""kill -9 at 20 random moments: of the run, of a worker, of a compiler. A run that is resumed finishes, no outcome
is lost or told twice, and nothing wrong is left in the cache."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from fsr.cache.store import Store
from tests.commandline import ROW_SUM, Fsr

pytestmark = pytest.mark.timeout(900)  # a machine that others load takes its time

RUNS_KILLED, WORKERS_KILLED, COMPILERS_KILLED = 8, 6, 6
EVALUATIONS = 8
ARGUMENTS: tuple[object, ...] = ("--device", "host", "--budget", "5m", "--evaluations", EVALUATIONS, "--json")
LONGEST_S = 2.5  # between kills: a run here takes several times that, of which the search begins after 2 s


def started(fsr: Fsr, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        fsr.command(*arguments), env=fsr.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def events_of(fsr: Fsr, run: str | None) -> list[dict[str, Any]]:
    """The whole lines of a run's log; none for a run that never began."""
    path = fsr.home / "runs" / str(run) / "events.jsonl"
    if run is None or not path.is_file():
        return []
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def begun(fsr: Fsr) -> str | None:
    """The run whose search has begun."""
    found = [path.name for path in sorted((fsr.home / "runs").glob("*")) if events_of(fsr, path.name)]
    return found[-1] if found else None


def told(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["kind"] == "tell"]


@pytest.fixture
def row_sum(tmp_path: Path) -> Path:
    """Few long rows: whatever else was lost, a candidate that is left is clearly faster, and soon executed."""
    path = tmp_path / "kernel.cu"
    few = ROW_SUM.replace("max = 256, timed = 128", "max = 32, timed = 32")
    path.write_text(few.replace("max = 128, timed = 64", "max = 1024, timed = 1024"))
    return path


def right(fsr: Fsr, kernel: Path, run: str, result: dict[str, Any]) -> None:
    """What holds of every finished run: each outcome once, the winner true, the cache without a wrong entry."""
    tells = [event["id"] for event in told(events_of(fsr, run))]
    asks = [event["id"] for event in events_of(fsr, run) if event["kind"] == "ask"]
    assert len(tells) == len(set(tells)) == result["evaluated"] + 1
    assert len(asks) == len(set(asks))
    assert set(tells) <= set(asks)
    assert result["status"] == "improved"
    check = fsr.json("check", result["output"], "--against", kernel, "--device", "host")
    assert check["status"] == "passed"
    with Store(fsr.home / "cache.db") as store:
        entries = [entry for _, entry in store.entries()]
        assert entries
        assert all(entry is not None and entry.basis == "predicted" for entry in entries)
        # No candidate of this kernel fails by itself: a failure that is remembered would be a kill's.
        assert store.failures(next(iter(store.entries()))[0]["context"]) == {}


def test_the_run_is_killed(fsr: Fsr, row_sum: Path) -> None:
    chance, run, before = random.Random(20), None, list[dict[str, Any]]()
    for _ in range(RUNS_KILLED):
        process = started(fsr, "refine", *(["--resume", run] if run else [row_sum]), *ARGUMENTS)
        with suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0.05, LONGEST_S))
        process.kill()
        _, err = process.communicate(timeout=200)
        assert process.returncode in (0, -signal.SIGKILL), err
        run = run or begun(fsr)
        after = told(events_of(fsr, run))
        assert after[: len(before)] == before
        before = after
    result = fsr.json("refine", "--resume", run) if run else fsr.json("refine", row_sum, *ARGUMENTS[:-1])
    assert told(events_of(fsr, result["run"]))[: len(before)] == before
    assert result["evaluated"] == EVALUATIONS
    right(fsr, row_sum, result["run"], result)


def test_the_run_is_killed_before_its_original_was_told(fsr: Fsr, tmp_path: Path) -> None:
    """Killed when it had only started, and when its original was asked for: what one run had logged by then."""
    row_sum = tmp_path / "kernel.cu"
    row_sum.write_text(ROW_SUM)  # short rows: what wins is not at issue, and no final takes its time
    arguments: list[object] = ["--device", "host", "--budget", "5m", "--evaluations", 1, "--json"]
    run = fsr.json("refine", row_sum, *arguments)["run"]
    log = fsr.home / "runs" / run / "events.jsonl"
    whole = log.read_bytes().splitlines(keepends=True)
    for lines in (1, 2):
        log.write_bytes(b"".join(whole[:lines]))
        result = fsr.json("refine", "--resume", run)
        assert result["evaluated"] == 1
        tells = [event["id"] for event in told(events_of(fsr, run))]
        assert tells == [0, 1]
        assert [event["id"] for event in events_of(fsr, run) if event["kind"] == "ask"] == [0, 1]


def workers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    found = []
    with suppress(psutil.Error):
        for child in psutil.Process(process.pid).children():
            with suppress(psutil.Error):
                if "fsr.workers.child" in child.cmdline():
                    found.append(child)
    return found


def compilers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Processes that compile now, and the workers that wait for them."""
    found = []
    for worker in workers_of(process):
        with suppress(psutil.Error):
            for child in worker.children(recursive=True):
                if any("clang" in word or "g++" in word or "cc1plus" in word for word in child.cmdline()[:1]):
                    found += [child, worker]
    return found


@pytest.mark.parametrize(
    ("victims", "kills"), [(workers_of, WORKERS_KILLED), (compilers_of, COMPILERS_KILLED)], ids=["worker", "compiler"]
)
def test_processes_of_a_run_are_killed(
    fsr: Fsr, row_sum: Path, victims: Callable[[subprocess.Popen[str]], list[psutil.Process]], kills: int
) -> None:
    """The run goes on by itself; where it was lost all the same, it is resumed."""
    chance = random.Random(kills)
    arguments: list[object] = ["refine", row_sum, *ARGUMENTS]
    done, result = 0, None
    while done < kills:
        process = started(fsr, *arguments, "--no-cache" if result else "--seed", *([] if result else [1]))
        time.sleep(chance.uniform(0.3, 1.5))
        while process.poll() is None and done < kills:
            alive = victims(process)
            if not alive:
                time.sleep(0.01)
                continue
            with suppress(psutil.Error):
                chance.choice(alive).kill()
                done += 1
            time.sleep(chance.uniform(0.1, 1.0))
        out, err = process.communicate(timeout=400)
        assert "Traceback" not in err
        if process.returncode == 0 and result is None:
            result = json.loads(out)
    if result is None:
        run = begun(fsr)
        result = fsr.json("refine", "--resume", run) if run else fsr.json(*arguments[:-1])
    right(fsr, row_sum, result["run"], result)
