"""A proposer that takes its time, in a thread of its own: nothing waits for it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable

from fsr.search.proposal import Trial
from fsr.search.proposers.protocol import Suggestion, View

Think = Callable[[View], Iterable[Suggestion]]
"""Shown the search as it is, gives suggestions, as slowly as it likes; called again when it has given all."""

AHEAD = 4  # suggestions that wait to be taken; the view that they were made from grows old


class Background:
    """Args: name, as a proposer's; think, called in the thread with the newest view, and again as soon as there is
    something new to see. What it raises is raised by the next ``suggest``."""

    def __init__(self, name: str, think: Think) -> None:
        self.name = name
        self._think = think
        self._ready: queue.Queue[Suggestion] = queue.Queue(AHEAD)
        self._news = threading.Condition()
        self._view: View | None = None
        self._seen = -1  # trials in the view that was thought about last
        self._fault: Exception | None = None
        self._closed = False
        self._thread: threading.Thread | None = None

    @property
    def thinking(self) -> bool:
        """Whether a suggestion is ready, or thought about."""
        with self._news:
            return not self._closed and self._fault is None and (not self._ready.empty() or self._stale())

    def suggest(self, view: View) -> Suggestion | None:
        """A suggestion that is ready, or None; the view is what is thought about next."""
        with self._news:
            if self._fault is not None:
                raise self._fault
            self._view = view
            self._news.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=f"proposer {self.name}", daemon=True)
                self._thread.start()
        try:
            return self._ready.get_nowait()
        except queue.Empty:
            return None

    def asked(self, proposal: int, suggestion: Suggestion) -> None:
        """Nothing: what is thought next depends on the view alone."""

    def told(self, trial: Trial, parent: Trial | None) -> None:
        """Nothing: the next view holds it."""

    def close(self) -> None:
        """Ask the thread to end; one that is still thinking ends with the process at the latest."""
        with self._news:
            self._closed = True
            self._news.notify()

    def _stale(self) -> bool:
        """Whether there is something that was not thought about to its end."""
        return self._view is None or len(self._view.trials) != self._seen

    def _work(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._closed or self._stale())
                if self._closed:
                    return
                view = self._view
            assert view is not None
            try:
                for suggestion in self._think(view):
                    if not self._put(suggestion):
                        return
            except Exception as fault:
                self._fault = fault
                return
            with self._news:
                self._seen = len(view.trials)

    def _put(self, suggestion: Suggestion) -> bool:
        """Whether it could be left before the run was over."""
        while not self._closed:
            try:
                self._ready.put(suggestion, timeout=0.2)
            except queue.Full:
                continue
            return True
        return False
