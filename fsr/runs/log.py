"""The append-only event log of a run.

One JSON object a line, in the order things happened. Every append is flushed to the disk before it returns,
so a kill -9 at any moment loses at most the line being written; such a torn last line is dropped on opening.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from fsr.errors import HarnessError, StorageError, UsageError
from fsr.files import Unreadable, read_file

EVENTS = "events.jsonl"


class EventLog:
    """Appends events to a run's log; at most one process at a time holds it open.

    Args:
        folder: the run's folder, created when it is missing.
        listener: told of every event once it is on the disk.

    Raises StorageError when the folder cannot be written, or another process is writing this run.
    """

    def __init__(self, folder: Path, listener: Callable[[Mapping[str, Any]], None] = lambda event: None) -> None:
        self._listener = listener
        self.folder, self.path = folder, folder / EVENTS
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a+b")
        except OSError as fault:
            raise _unwritable(self.path, fault) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise StorageError(
                "another process is writing this run", where=str(folder), fix="wait for it, or stop it first"
            ) from None
        self._drop_torn_line()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the log; further appends raise ValueError. A run in which nothing happened leaves no folder."""
        with suppress(OSError):  # what a full disk did not take was told when it was written
            self._file.close()
        with suppress(OSError):
            if not self.path.stat().st_size:
                self.path.unlink()
                self.folder.rmdir()

    def append(self, kind: str, **fields: Any) -> None:
        """Write one event durably. ``fields`` must be JSON-able. Raises StorageError when the disk is full."""
        event = {"kind": kind, "at": round(time.time(), 3), **fields}
        line = json.dumps(event, separators=(",", ":"))
        try:
            self._file.write(line.encode() + b"\n")
            self._file.flush()
            os.fdatasync(self._file.fileno())
        except OSError as fault:
            raise _unwritable(self.path, fault) from None
        self._listener(event)

    def _drop_torn_line(self) -> None:
        self._file.seek(0)
        data = self._file.read()
        whole = data.rfind(b"\n") + 1
        if whole != len(data):
            self._file.truncate(whole)
        self._file.seek(0, os.SEEK_END)


def run_folder(runs: Path, name: str) -> Path:
    """The folder of the run of that name. Raises UsageError for what can be no run's name."""
    if name in ("", ".", "..") or "/" in name or not name.isprintable() or len(name.encode(errors="replace")) > 255:
        raise UsageError(
            f"{name!r} is no name of a run", expected="one of those that `fsr runs list` shows", where=str(runs),
            fix="`fsr runs list` shows the runs",
        )  # fmt: skip
    return runs / name


def read_events(folder: Path) -> Iterator[dict[str, Any]]:
    """The events of a run, oldest first; a torn last line is left out.

    Raises UsageError when there is no such run, StorageError when it cannot be read or a line in the middle is
    damaged."""
    path = folder / EVENTS
    try:
        lines = read_file(path, None).split(b"\n")
    except Unreadable as fault:
        if fault.absent:
            raise UsageError(
                f"there is no run {folder.name!r}", where=str(folder.parent), fix="`fsr runs list` shows the runs"
            ) from None
        raise _damaged(str(path), f"cannot be read: {fault.why}") from None
    for number, line in enumerate(lines[:-1], 1):
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            raise _damaged(f"{path}:{number}", "is damaged") from None
        if not _is_event(event):
            raise _damaged(f"{path}:{number}", "is damaged")
        yield event


@contextmanager
def of_this_version(folder: Path) -> Iterator[None]:
    """Around what reads fields of events: one that is missing or of another type raises StorageError."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, HarnessError) as fault:
        raise StorageError(
            f"the run {folder.name!r} was written by another version of fsr ({type(fault).__name__}: {fault})",
            where=str(folder), fix="start a new run: fsr refine KERNEL; the cache keeps what was found",
        ) from None  # fmt: skip


def _is_event(event: object) -> bool:
    """Whether a line's value has what every event has; of an end, the result that everybody shows."""
    if not isinstance(event, dict) or not isinstance(event.get("kind"), str):
        return False
    if event["kind"] != "end":
        return True
    result = event.get("result")
    return isinstance(result, dict) and isinstance(result.get("best"), dict | None) and "evaluated" in result


def _damaged(where: str, why: str) -> StorageError:
    return StorageError(
        f"the event log of this run {why}", expected="the lines that fsr wrote", where=where, fix="start a new run"
    )


def is_written(folder: Path) -> bool:
    """Whether some process holds the log of a run open: whether it is going on."""
    try:
        if not (folder / EVENTS).is_file():  # opening a pipe would wait
            return False
        with (folder / EVENTS).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _unwritable(path: Path, fault: OSError) -> StorageError:
    return StorageError(
        f"the run's log cannot be written: {fault.strerror}",
        expected="a folder with space that you may write to",
        where=str(path),
        fix="free space or permissions there, or point FSR_HOME at another folder",
    )
