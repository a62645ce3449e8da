"""What happens in the service, told to whoever listens; one that is slow loses the oldest, and never holds up work."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

KEPT = 512


class Bus:
    """Numbered events; the last KEPT of them are kept for those who come back. Any thread may tell and listen.

    Numbers go on from ``first``: a listener of an earlier life of the service never sees one twice."""

    def __init__(self, first: int) -> None:
        self._changed = threading.Condition()
        self._events: deque[tuple[int, dict[str, Any]]] = deque(maxlen=KEPT)
        self._last = first
        self._closed = False

    def tell(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Say that something happened."""
        with self._changed:
            self._last += 1
            self._events.append((self._last, {"kind": kind, **fields}))
            self._changed.notify_all()

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self._last

    def after(self, number: int, timeout_s: float) -> list[tuple[int, dict[str, Any]]] | None:
        """The events after one, as soon as there are any; [] when there were none in time, None once it is closed."""
        with self._changed:
            if self._last <= number and not self._closed:
                self._changed.wait(timeout_s)
            if self._closed:
                return None
            return [(n, event) for n, event in self._events if n > number]

    def close(self) -> None:
        """Let all listeners go."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
