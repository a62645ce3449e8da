"""What is told of a compiler that ends, that takes too long, or that something else kills."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from fsr.sandbox.compilers import run_compiler

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="confinement is Linux's")
WAITS = "echo begun >> tries; exec sleep 30"
WAITS_ONCE = 'echo begun >> tries; [ "$(wc -l < tries)" -gt 1 ] || exec sleep 30; echo built'


def ran(script: str, folder: Path, timeout_s: float = 30.0) -> tuple[int | None, str]:
    return run_compiler(["/bin/sh", "-c", script], [], str(folder), timeout_s)


@pytest.fixture(name="killer")
def from_outside() -> Iterator[None]:
    """Kills every sleep that this process waits for."""
    over = threading.Event()

    def kill() -> None:
        while not over.wait(0.05):
            with suppress(psutil.Error):
                for child in psutil.Process().children(recursive=True):
                    if child.name() == "sleep":
                        child.kill()

    thread = threading.Thread(target=kill)
    thread.start()
    yield
    over.set()
    thread.join()


def test_its_status_and_both_outputs(tmp_path: Path) -> None:
    assert ran("echo one; echo two >&2; exit 3", tmp_path) == (3, "one\ntwo")


@pytest.mark.usefixtures("killer")
def test_one_that_was_killed_runs_once_more(tmp_path: Path) -> None:
    assert ran(WAITS_ONCE, tmp_path) == (0, "built")


@pytest.mark.usefixtures("killer")
def test_one_that_is_killed_again_has_said_nothing_of_the_candidate(tmp_path: Path) -> None:
    code, why = ran(WAITS, tmp_path)
    assert code is None
    assert "killed from outside" in why
    assert (tmp_path / "tries").read_text().split() == ["begun", "begun"]


def test_one_whose_time_is_over_is_stopped(tmp_path: Path) -> None:
    code, why = ran("sleep 60", tmp_path, 0.2)
    assert code is None
    assert "its time of 0.2 s was over" in why
