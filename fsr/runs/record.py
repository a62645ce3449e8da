"""A run as its folder tells it: of this process or another, going on or long over."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from fsr.errors import FsrError, UsageError
from fsr.report.words import ratio_text
from fsr.runs.control import GO_ON, PAUSE, STOP, request
from fsr.runs.log import is_written, of_this_version, read_events, run_folder

FOLLOW_S = 0.2


class RunRecord:
    """Reads and steers the run in a folder; raises UsageError where there is none."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, folder.name

    @classmethod
    def named(cls, name: str, runs: Path) -> RunRecord:
        """The run of that name in a folder of runs. Raises UsageError for what can be no run's name."""
        return cls(run_folder(runs, name))

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """Its events as they were when first asked for, oldest first. Raises StorageError for a damaged log."""
        return list(read_events(self.folder))

    @property
    def result(self) -> dict[str, Any] | None:
        """The object of its end; None for one that has not come to it."""
        ends = [event["result"] for event in self.events if event["kind"] == "end"]
        return ends[-1] if ends else None

    @property
    def told(self) -> int:
        """Outcomes so far, the original's among them."""
        return Counter(event["kind"] for event in self.events)["tell"]

    @property
    def going_on(self) -> bool:
        """Whether a process works on it now."""
        return is_written(self.folder)

    def standing(self) -> str:
        """How it stands or how it ended, in words."""
        try:
            with of_this_version(self.folder):
                result = self.result
                if result is not None and not self.going_on:
                    speed = f" {ratio_text(result['best']['speedup'])} ({result['basis']})" if result["best"] else ""
                    return f"{result['status']}{speed}, {result['evaluated']} evaluated"
        except FsrError as fault:  # one bad run hides no other
            return fault.what
        return f"{'going on' if self.going_on else 'cut off'} after {self.told} outcomes"

    def follow(self) -> Iterator[dict[str, Any]]:
        """Its events, those to come among them, until it has ended or nobody works on it any more."""
        seen = 0
        while True:
            going_on = self.going_on
            events = list(read_events(self.folder))
            yield from events[seen:]
            if not going_on:
                return
            seen = len(events)
            time.sleep(FOLLOW_S)

    def stop(self) -> None:
        """Ask for its end: the best so far is judged. Raises UsageError when nobody works on it."""
        self._request(STOP)

    def pause(self) -> None:
        """Ask it to begin nothing new, and to leave its device to others. Raises UsageError likewise."""
        self._request(PAUSE)

    def go_on(self) -> None:
        """End its pause. Raises UsageError likewise."""
        self._request(GO_ON)

    def _request(self, word: str) -> None:
        if not self.going_on:
            next(read_events(self.folder), None)  # says so when there is no such run at all
            raise UsageError(
                f"the run {self.name!r} is not going on", where=str(self.folder),
                fix=f"fsr runs show {self.name} says how it ended",
            )  # fmt: skip
        request(self.folder, word)


def records(runs: Path) -> list[RunRecord]:
    """All runs of a home, newest first."""
    return [RunRecord(path) for path in sorted(runs.iterdir(), reverse=True) if path.is_dir()] if runs.is_dir() else []
