"""Waiting until a save, a checkout, a build is over before anything is read."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

QUIET_S = 0.3  # editors that save in several steps take less between two of them
MOST_S = 5.0  # where something is written all the time, what is quiet itself is taken after this long


class Settling:
    """Paths that something happened to, given out once it is over.

    All at once, when nothing happened to any for QUIET_S: a checkout writes kernels and their headers one after the
    other. Where that does not come, those that were quiet themselves, MOST_S after the first. Not for several threads
    at once."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._last: dict[str, float] = {}
        self._first = self._latest = 0.0

    def note(self, path: str) -> None:
        """Something happened to a path."""
        self._latest = self._clock()
        if not self._last:
            self._first = self._latest
        self._last[path] = self._latest

    @property
    def waiting(self) -> list[str]:
        """The paths that are not settled yet."""
        return list(self._last)

    @property
    def overdue(self) -> bool:
        """Whether something waits for longer than it should."""
        return bool(self._last) and self._clock() - self._first >= MOST_S

    @property
    def wait_s(self) -> float | None:
        """How long until something may be due; None while nothing waits."""
        if not self._last:
            return None
        now = self._clock()
        return max(
            0.0, min(self._latest + QUIET_S, max(self._first + MOST_S, min(self._last.values()) + QUIET_S)) - now
        )

    def due(self) -> list[str]:
        """The paths that are settled, each once; they are forgotten here."""
        now = self._clock()
        if not self._last:
            return []
        if now - self._latest >= QUIET_S:
            settled = list(self._last)
        elif now - self._first >= MOST_S:
            settled = [path for path, at in self._last.items() if now - at >= QUIET_S]
        else:
            return []
        for path in settled:
            del self._last[path]
        self._first = min(self._last.values(), default=now)
        return settled
