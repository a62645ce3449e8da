"""The event log survives what kills its writer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fsr.errors import StorageError, UsageError
from fsr.runs.log import EVENTS, EventLog, read_events


def test_events_come_back_in_order(tmp_path: Path) -> None:
    with EventLog(tmp_path / "run") as log:
        log.append("ask", id=1)
        log.append("tell", id=1, outcome={"status": "wrong"})
    events = list(read_events(tmp_path / "run"))
    assert [(e["kind"], e["id"]) for e in events] == [("ask", 1), ("tell", 1)]
    assert events[1]["outcome"] == {"status": "wrong"}
    assert events[0]["at"] <= events[1]["at"]


def test_a_torn_last_line_is_dropped_and_writing_goes_on(tmp_path: Path) -> None:
    with EventLog(tmp_path) as log:
        log.append("ask", id=1)
    with (tmp_path / EVENTS).open("ab") as file:
        file.write(b'{"kind":"tell","id":1,"outc')
    assert [e["kind"] for e in read_events(tmp_path)] == ["ask"]
    with EventLog(tmp_path) as log:
        log.append("ask", id=2)
    assert [e["id"] for e in read_events(tmp_path)] == [1, 2]


def test_damage_in_the_middle_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / EVENTS).write_text('{"kind":"ask"}\nnonsense\n{"kind":"ask"}\n')
    with pytest.raises(StorageError, match="damaged") as caught:
        list(read_events(tmp_path))
    assert caught.value.where.endswith(f"{EVENTS}:2")


def test_a_run_that_is_being_written_is_refused(tmp_path: Path) -> None:
    with EventLog(tmp_path), pytest.raises(StorageError, match="another process is writing"):
        EventLog(tmp_path)
    EventLog(tmp_path).close()


def test_an_unknown_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run 'absent'"):
        list(read_events(tmp_path / "absent"))


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        EventLog(tmp_path / "file" / "run")


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    log = EventLog(tmp_path)
    with Path("/dev/full").open("ab", buffering=0) as full, log:
        held, log._file = log._file, full  # type: ignore[assignment]  # any binary file will do
        with pytest.raises(StorageError, match="No space left"):
            log.append("ask", id=1)
        log._file = held


def test_what_append_returned_from_survives_sigkill(tmp_path: Path) -> None:
    code = (
        "import sys, os, signal; from pathlib import Path; from fsr.runs.log import EventLog\n"
        "log = EventLog(Path(sys.argv[1]))\n"
        "for i in range(50): log.append('tell', id=i)\n"
        "print('done', flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (-9, "done\n")
    assert [e["id"] for e in read_events(tmp_path)] == list(range(50))
