"""Stop, pause and go on: from a thread, and from another process by a file."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from fsr.runs.control import GO_ON, PAUSE, STOP, Control, StopNow, request


def test_a_first_stop_ends_the_search_and_a_second_one_the_run() -> None:
    control = Control()
    control.check()
    control.stop("Ctrl-C")
    control.check()
    assert control.stopped
    control.stop("a deadline")
    with pytest.raises(StopNow, match="Ctrl-C"):
        control.check()


def test_requests_of_other_processes_are_taken_once(tmp_path: Path) -> None:
    control = Control(tmp_path)
    request(tmp_path, PAUSE)
    control.check()
    assert control.paused
    request(tmp_path, GO_ON)
    control.check()
    assert not control.paused
    request(tmp_path, STOP)
    control.check()
    control.check()
    assert control.stopped
    assert list(tmp_path.iterdir()) == []


def test_a_request_to_an_earlier_life_does_not_count(tmp_path: Path) -> None:
    request(tmp_path, STOP)
    control = Control(tmp_path)
    control.check()
    assert not control.stopped


def test_nonsense_in_the_file_is_no_request(tmp_path: Path) -> None:
    control = Control(tmp_path)
    request(tmp_path, "dance")
    control.check()
    assert (control.stopped, control.paused) == (False, False)


def test_stopping_ends_a_pause_and_wakes_who_waits() -> None:
    control = Control()
    control.pause()
    threading.Timer(0.05, control.stop).start()
    control.wait(3600)  # longer than any test may take
    assert (control.stopped, control.paused) == (True, False)
    control.pause()
    assert not control.paused
