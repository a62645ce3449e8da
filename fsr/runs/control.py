"""How a run is told to stop, to pause and to go on: by its own process, or by a file in its folder by any other."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

REQUEST = "request"
STOP, PAUSE, GO_ON = "stop", "pause", "go on"


class StopNow(Exception):  # noqa: N818  # not an error: somebody asked for it
    """Raised where a run notices that it is to end at once, without a verdict."""


class Control:
    """The wishes that a run looks at between two steps; any thread may express one.

    A first ``stop`` ends the search, and the best so far is judged; a second one ends the run at once. ``folder``:
    where other processes leave their requests, None for nowhere."""

    def __init__(self, folder: Path | None = None) -> None:
        self._path = None if folder is None else folder / REQUEST
        self._changed = threading.Condition()
        self._stops = 0
        self._paused = False
        self.why = ""
        if self._path is not None:
            with suppress(OSError):  # one that was left for an earlier life of the run
                self._path.unlink()

    def stop(self, why: str = "stopped") -> None:
        """End the search; asked again, end at once. ``why``: who wishes it, in words."""
        with self._changed:
            self._stops += 1
            self._paused = False
            self.why = self.why or why
            self._changed.notify_all()

    def pause(self) -> None:
        """Ask for nothing new until ``go_on``."""
        with self._changed:
            self._paused = not self._stops
            self._changed.notify_all()

    def go_on(self) -> None:
        """End a pause."""
        with self._changed:
            self._paused = False
            self._changed.notify_all()

    @property
    def stopped(self) -> bool:
        """Whether the search is to end."""
        return self._stops > 0

    @property
    def paused(self) -> bool:
        """Whether nothing new is to be begun."""
        return self._paused

    def check(self) -> None:
        """Read what other processes ask for. Raises StopNow when the run is to end at once."""
        if self._path is not None:
            try:
                word = self._path.read_text(encoding="ascii")
                self._path.unlink()
            except OSError:
                word = ""
            {STOP: lambda: self.stop(f"{STOP} was asked for"), PAUSE: self.pause, GO_ON: self.go_on}.get(
                word, lambda: None
            )()
        if self._stops > 1:
            raise StopNow(self.why)

    def wait(self, seconds: float) -> None:
        """Sleep, or until something is asked for in this process."""
        with self._changed:
            self._changed.wait(seconds)


def request(folder: Path, word: str) -> None:
    """Leave STOP, PAUSE or GO_ON for the process that runs in this folder, which looks several times a second."""
    draft = folder / f".{REQUEST}.{os.getpid()}.{threading.get_ident()}"
    draft.write_text(word, encoding="ascii")
    draft.replace(folder / REQUEST)
