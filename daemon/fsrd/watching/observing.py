"""What the operating system says about folders, through watchdog; only hints: what is true is read from the disk."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch
from watchdog.observers.polling import PollingObserver

from fsr.cache.connection import NETWORK_FILE_SYSTEMS, file_system

POLL_S = 2.0
NO_CHANGE = frozenset({"opened", "closed_no_write"})
LOG = logging.getLogger(__name__)

Notice = Callable[[str, bool, bool], None]
"""Called with a path, whether it is a folder, and whether somebody has it open and writes, in a thread of the observer.
Where folders are looked at now and then, nobody is known to write."""


class Observing:
    """Observes folders, each by its own means; ``notice`` is called with what something happened to."""

    def __init__(self, notice: Notice) -> None:
        self._handlers = {polling: _Handler(notice, closes=not polling) for polling in (False, True)}
        self._observers: dict[bool, BaseObserver] = {}
        self._watches: dict[str, tuple[BaseObserver, ObservedWatch, int]] = {}

    def follow(self, folder: str, *, recursive: bool, polling: bool | None = None) -> None:
        """Observe a folder, once; one that is another by that name than before, anew."""
        try:
            number = os.stat(folder).st_ino
        except OSError:
            self.leave(folder)
            return
        if folder in self._watches:
            if self._watches[folder][2] == number:
                return
            self.leave(folder)
        network = file_system(Path(folder)) in NETWORK_FILE_SYSTEMS
        wanted = network if polling is None else polling
        try:
            self._watch(folder, number, recursive=recursive, polling=wanted)
        except OSError as fault:  # too many folders for inotify(7)
            if wanted:
                LOG.warning("%s cannot be watched: %s", folder, fault)
                return
            LOG.warning("%s is looked at every %g s: %s (fs.inotify.max_user_watches)", folder, POLL_S, fault)
            self._watch(folder, number, recursive=recursive, polling=True)

    def _watch(self, folder: str, number: int, *, recursive: bool, polling: bool) -> None:
        if polling not in self._observers:
            self._observers[polling] = PollingObserver(timeout=POLL_S) if polling else Observer()
            self._observers[polling].start()
        observer = self._observers[polling]
        self._watches[folder] = (
            observer,
            observer.schedule(self._handlers[polling], folder, recursive=recursive),
            number,
        )

    def stale(self) -> list[str]:
        """Observed folders that are no more, or another by that name."""

        def number(folder: str) -> int | None:
            try:
                return os.stat(folder).st_ino
            except OSError:
                return None

        return [folder for folder, (_, _, known) in self._watches.items() if number(folder) != known]

    def leave(self, folder: str) -> None:
        """Observe it no longer."""
        if folder in self._watches:
            observer, watch, _ = self._watches.pop(folder)
            try:
                observer.unschedule(watch)
            except (KeyError, OSError):  # it ended by itself when the folder went
                LOG.debug("%s was not observed any more", folder)

    def followed(self) -> set[str]:
        """The folders that are observed."""
        return set(self._watches)

    def close(self) -> None:
        """Observe nothing any more."""
        self._watches.clear()
        for observer in self._observers.values():
            observer.stop()
        for observer in self._observers.values():
            observer.join(5.0)
        self._observers.clear()


class _Handler(FileSystemEventHandler):
    """closes: it is told when a file that was written is closed."""

    def __init__(self, notice: Notice, *, closes: bool) -> None:
        self._notice, self._closes = notice, closes

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.event_type in NO_CHANGE or (event.is_directory and event.event_type == "modified"):
            return
        writes = self._closes and event.event_type == "modified"
        for path in (event.src_path, event.dest_path):
            if path:
                self._notice(os.fsdecode(path), event.is_directory, writes)
