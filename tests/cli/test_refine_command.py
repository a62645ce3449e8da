"""`fsr refine` from end to end on the host device: what it answers, writes, remembers and keeps."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.commandline import LARGE_ROW_SUM, Fsr

pytestmark = pytest.mark.xdist_group("refine_command")

FIELDS = {
    "status", "entry", "run", "basis", "device", "baseline", "best", "tests", "evaluated", "rejected", "output",
    "seconds",
}  # fmt: skip


class Twice(NamedTuple):
    """``once``: the home as the first run left it."""

    fsr: Fsr
    kernel: Path
    first: Any
    second: Any
    once: Path


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Twice:
    """A kernel refined twice in one home."""
    folder = tmp_path_factory.mktemp("twice")
    kernel = folder / "kernel.cu"
    kernel.write_text(LARGE_ROW_SUM)  # on which something is won soon
    fsr = Fsr(folder / "home")
    first = fsr.refine(kernel, "--evaluations", 8)
    once = shutil.copytree(fsr.home, folder / "once")
    return Twice(fsr, kernel, first, fsr.refine(kernel, "--evaluations", 2, "-o", folder / "again.cu"), once)


def test_the_answer_is_the_object_that_scripts_read(twice: Twice) -> None:
    told = twice.first
    assert set(told) >= FIELDS
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    assert [name for name in (*told, *told["best"]) if f"`{name}`" not in page] == []
    assert (told["status"], told["entry"], told["basis"], told["evaluated"]) == ("improved", "row_sum", "predicted", 8)
    assert told["device"]["vendor"] == "host"
    assert told["device"]["target"] == "sm_90"
    best = told["best"]
    low, high = best["speedup_ci95"]
    assert 1 < low <= best["speedup"] <= high
    assert best["median_ns"] < told["baseline"]["median_ns"]
    assert best["actions"]
    assert "@row_sum" in best["actions"][0]
    assert told["tests"]["cases"] == told["tests"]["passed"] > 20


def test_the_output_says_what_it_is_and_holds_the_evidence(twice: Twice) -> None:
    output = twice.kernel.with_name("kernel.fsr.cu")
    assert twice.first["output"] == str(output)
    text = output.read_text()
    assert "predicted" in text
    assert "row_sum" in text
    evidence = json.loads(output.with_suffix(".json").read_text())
    assert evidence["best"]["candidate"] == twice.first["best"]["candidate"]
    assert twice.kernel.read_text() == LARGE_ROW_SUM


def test_the_output_passes_check(twice: Twice) -> None:
    told = twice.fsr.json("check", twice.first["output"], "--against", twice.kernel, "--device", "host")
    assert told["status"] == "passed"
    assert told["tests"]["cases"] == told["tests"]["passed"] > 20


def test_a_second_run_starts_from_the_winner_and_the_failures(twice: Twice) -> None:
    start, *events = twice.fsr.events(twice.second["run"])
    assert start["given"]["actions"] == twice.first["best"]["actions"]
    asked = {event["hash"]: event["origin"] for event in events if event["kind"] == "ask"}
    assert asked[twice.first["best"]["candidate"]] == "given"
    assert twice.second["status"] == "improved"
    assert twice.second["best"]["speedup"] >= twice.first["best"]["speedup"] * 0.99


def test_a_predicted_winner_is_not_served_to_builds(twice: Twice) -> None:
    done = twice.fsr.run("lookup", twice.kernel)
    assert done.returncode == 3
    assert "predicted" in twice.fsr.run("cache", "list").stdout


def test_remembered_failures_are_not_tried_again(twice: Twice, tmp_path: Path) -> None:
    """What an earlier run left behind as failed is known to the next, which proposes other things."""
    from fsr.cache.store import Store

    fsr, first = Fsr(twice.once), twice.first
    tried = {e["hash"] for e in fsr.events(first["run"]) if e["kind"] == "ask"} - {first["best"]["candidate"]}
    with Store(fsr.home / "cache.db") as store:
        context = next(iter(store.entries()))[0]["context"]
        for candidate in tried:
            store.remember_failure(context, candidate, "wrong", {})
    second = fsr.refine(twice.kernel, "--evaluations", 8, "-o", tmp_path / "out.cu")
    asked = {e["hash"] for e in fsr.events(second["run"]) if e["kind"] == "ask" and e["id"] != 0}
    assert not asked & tried


def test_keep_launch_keeps_grid_block_and_arguments(fsr: Fsr, row_sum: Path) -> None:
    told = fsr.refine(row_sum, "--evaluations", 3, "--keep-launch", "--no-cache")
    assert told["status"] in ("improved", "unchanged")
    assert not row_sum.with_name("kernel.fsr.cuh").exists()
    if told["best"] is not None:
        (launch,) = told["best"]["plan"]["launches"]
        assert (launch["grid"][0], launch["block"][0]) == ("ceil_div(rows, 64)", "64")
        assert launch["args"] == ["x", "y", "rows", "cols"]
        assert launch["entry"] == "row_sum"
    assert not (fsr.home / "cache.db").exists()


def started(fsr: Fsr, *arguments: object) -> subprocess.Popen[str]:
    """A run to be interrupted. Its coverage is not measured: Ctrl-C inside the tracer, while it holds its lock, leaves
    the process waiting for that lock for good."""
    environment = {name: value for name, value in fsr.environment().items() if not name.startswith("COV")}
    return subprocess.Popen(
        fsr.command(*arguments), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=listen_to_ctrl_c,
    )  # fmt: skip


def listen_to_ctrl_c() -> None:
    """A test run in the background of a shell ignores Ctrl-C, and so would what it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for(fsr: Fsr, kind: str, count: int, within_s: float = 200) -> str:
    """The name of the only run, once its log holds that many events of a kind."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        for folder in (fsr.home / "runs").glob("*"):
            log = folder / "events.jsonl"
            if log.is_file() and log.read_text().count(f'"kind":"{kind}"') >= count:
                return folder.name
        time.sleep(0.02)
    raise AssertionError(f"no {count} events of kind {kind}")


def wait_for_a_clear_gain(fsr: Fsr, within_s: float = 200) -> None:
    """Until a candidate is told that is faster by more than a prediction may err, 1.5x. Which of the first dozen
    that is depends on what ends first."""
    run = wait_for(fsr, "tell", 1)
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        times = [e["outcome"]["timing"]["median_ns"] for e in fsr.events(run) if e["kind"] == "tell"]
        if min(times) < times[0] / 1.52:
            return
        time.sleep(0.05)
    raise AssertionError(f"no candidate was clearly faster: {times}")


@pytest.mark.timeout(500)
def test_control_c_keeps_the_best_so_far(fsr: Fsr, row_sum: Path) -> None:
    process = started(fsr, "refine", row_sum, "--device", "host", "--budget", "5m", "--json")
    wait_for_a_clear_gain(fsr)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=150)
    assert process.returncode == 0, err
    told = json.loads(out)
    assert told["interrupted"] is True
    assert told["status"] == "improved", told
    assert Path(told["output"]).is_file()
    assert told["seconds"] < 150
    assert "Traceback" not in err


def test_control_c_before_anything_was_found_leaves_nothing(fsr: Fsr, row_sum: Path) -> None:
    process = started(fsr, "refine", row_sum, "--device", "host", "--json")
    time.sleep(0.7)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=200)
    # Where the signal strikes inside exec(), as in making a dataclass, Python ends by it: 130 in a shell all the same.
    assert process.returncode in (130, -signal.SIGINT), (out, err)
    assert "Traceback" not in err
    assert "interrupted" in err
    assert [path.name for path in row_sum.parent.iterdir() if path != fsr.home] == ["kernel.cu"]


def test_resume_goes_on_where_a_run_was_cut_off(fsr: Fsr, row_sum: Path) -> None:
    # Which candidates come next depends on which answers stood when it was cut off: those of a small kernel may end at
    # an ambiguous 1.5x.
    row_sum.write_text(LARGE_ROW_SUM)
    process = started(fsr, "refine", row_sum, "--device", "host", "--budget", "5m", "--evaluations", 10, "--json")
    run = wait_for(fsr, "tell", 3)
    process.kill()
    process.communicate(timeout=150)
    before = [event for event in fsr.events(run) if event["kind"] == "tell"]
    assert "cut off after" in fsr.run("runs", "list").stdout
    assert f"--resume {run}" in fsr.run("runs", "show", run).stdout
    told = fsr.json("refine", "--resume", run)
    after = [event for event in fsr.events(run) if event["kind"] == "tell"]
    assert after[: len(before)] == before
    assert (told["run"], told["evaluated"], told["status"]) == (run, 10, "improved")
    assert "improved" in fsr.run("runs", "show", run).stdout
    assert fsr.json("runs", "list")["runs"][0]["status"] == "improved"
    changed = fsr.run("refine", "--resume", "no-such-run")
    assert changed.returncode == 2
    assert "no-such-run" in changed.stderr
