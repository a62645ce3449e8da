"""What a worker is at while it tests the original, for the process that waits: at which sizes its time goes.

A worker answers once, at the end. Until then it says in a file of the run's folder what it runs now and what took most
so far, so that a user who waits knows which sizes to lower.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fsr.records import Sizes

SOON_S = 5.0  # from when on it is worth a file


class Telling:
    """Of one worker. ``file``: '' where nobody reads it."""

    def __init__(self, file: str) -> None:
        self._file, self._began = file, time.monotonic()
        self._spent = dict[Sizes, float]()
        self._inside = False

    @contextmanager
    def at(self, sizes: Sizes) -> Iterator[None]:
        """Note what is done inside as work at some sizes; within other such work it is part of that."""
        if self._inside or not self._file or not sizes:
            yield
            return
        started, self._inside = time.monotonic(), True
        if started - self._began > SOON_S:
            self._write(sizes)
        try:
            yield
        finally:
            self._inside = False
            self._spent[sizes] = self._spent.get(sizes, 0.0) + time.monotonic() - started

    def _write(self, sizes: Sizes) -> None:
        most = max(self._spent, key=lambda one: self._spent[one], default=sizes)
        told = {
            "at": sizes, "since": time.time(), "before": self._spent.get(sizes, 0.0),
            "most": most, "spent": self._spent.get(most, 0.0),
        }  # fmt: skip
        part = Path(f"{self._file}.part")
        with suppress(OSError):  # it only tells
            part.write_text(json.dumps(told))
            part.replace(self._file)


def told_in(file: str) -> tuple[Sizes, float] | None:
    """The sizes that took longest so far, what runs now included, and how many seconds; None where nothing is said."""
    try:
        told = json.loads(Path(file).read_text())
    except (OSError, ValueError):
        return None
    now = told["before"] + max(0.0, time.time() - told["since"])
    sizes, seconds = (told["at"], now) if now > told["spent"] else (told["most"], told["spent"])
    return tuple((str(name), int(value)) for name, value in sizes), seconds
