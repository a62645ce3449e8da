"""Watches folders in a thread of its own and tells which kernels have a new content."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from fsrd.watching.checkout import being_written
from fsrd.watching.content import Content
from fsrd.watching.folder import Folder
from fsrd.watching.index import Changes, Index
from fsrd.watching.observing import Observing
from fsrd.watching.settling import QUIET_S, Settling

CHECK_S = 2.0  # for folders that were replaced by others of their name
GIT_S = 0.05  # between two looks at a checkout that goes on
RESCAN_S = 60.0  # for what the operating system did not tell: its queue has an end
RESCAN_SHARE = 0.002  # of the time, where scanning takes long
FAULT_S = 0.5  # after a fault
MANY_EVENTS = 2000  # in one batch: some may have been lost
LOG = logging.getLogger(__name__)

Told = Callable[[Changes, bool], None]
"""Called with what changed, and whether the kernels were found by the first look (rather than saved just now)."""


class Watcher:
    """Tells of every kernel of the folders once at the start, and from then on of those whose content changed.

    ``told`` is called in the watcher's thread; where it raises, the same is told again in a moment. ``events`` counts
    what was noticed; ``fault`` says, in words, what keeps it from telling just now."""

    def __init__(self, folders: Sequence[Folder], told: Told) -> None:
        self._folders, self._told = tuple(folders), told
        self._index = Index(folders)
        self._observing = Observing(self._notice)
        self._settling = Settling()
        self._noticed: SimpleQueue[tuple[str, bool, bool] | None] = SimpleQueue()
        self._tops: set[str] = set()
        self._written: set[str] = set()  # files that somebody has open and writes
        self._thread = threading.Thread(target=self._work, name="watching", daemon=True)
        self._next_check = self._next_rescan = 0.0
        self._untold: list[tuple[Changes, bool]] = []
        self.fault = ""
        self.events = 0
        self.ready = threading.Event()

    def start(self) -> Watcher:
        """Begin; ``ready`` is set after the first look."""
        self._thread.start()
        return self

    def close(self) -> None:
        """End; nothing is told afterwards."""
        self._noticed.put(None)
        if self._thread.ident is not None:
            self._thread.join(30.0)
        self._observing.close()

    @property
    def kernels(self) -> int:
        """How many kernels there are."""
        return len(self._index.kernels)

    @property
    def alive(self) -> bool:
        """Whether it works."""
        return self._thread.is_alive()

    def contents(self) -> dict[str, Content]:
        """All kernels, with what they consisted of when last looked at."""
        return dict(self._index.kernels)

    def content(self, kernel: str) -> Content | None:
        """What a kernel consisted of when last looked at; None for one that is not watched."""
        return self._index.kernels.get(kernel)

    # ------------------------------------------------------------ events

    def _notice(self, path: str, folder: bool, writes: bool) -> None:
        """Something happened to a path. In a thread of watchdog, which holds a lock that following a folder needs."""
        self._noticed.put((path, folder, writes))

    def _take(self, path: str, folder: bool, writes: bool) -> None:
        whole = folder or os.path.islink(path) or path in self._index.links.values()
        if whole or self._index.concerns(path):
            self.events += 1
            self._settling.note(path)
            (self._written.add if writes else self._written.discard)(path)
            if whole:
                self._tops.add(path)

    def _drained(self) -> bool:
        """Wait until something happens or is due, and take what there is; whether to go on."""
        wait_s = self._settling.wait_s
        try:
            item = self._noticed.get(timeout=CHECK_S if wait_s is None else min(CHECK_S, wait_s + 0.005))
            while item is not None:
                self._take(*item)
                item = self._noticed.get_nowait()
        except Empty:
            return True
        return False

    # ------------------------------------------------------------ the thread

    def _work(self) -> None:
        try:
            self._try(self._begin)
        finally:
            self.ready.set()
        while self._drained():
            self._try(self._turn)

    def _try(self, step: Callable[[], None]) -> None:
        """One step; a fault is logged and looked into again with the next check, for nobody else watches."""
        try:
            step()
        except Exception as fault:
            words = str(fault) or type(fault).__name__
            if words != self.fault:
                LOG.exception("a fault while watching")
            self.fault, self._next_rescan = words, 0.0
            time.sleep(FAULT_S)

    def _begin(self) -> None:
        self._next_rescan = time.monotonic() + RESCAN_S
        self._observe()  # before the first look: what changes meanwhile is noticed
        self._tell(self._index.scan(first=True), True)
        self._observe()

    def _turn(self) -> None:
        changes = self._settled()
        if changes:
            self._tell(self._whole(changes), False)
            self._observe()
        if time.monotonic() >= self._next_check:
            self._next_check = time.monotonic() + CHECK_S
            self._tell_rest()
            self._check()
            self.fault = ""

    def _tell(self, changes: Changes, found: bool) -> None:
        """Tell, after all that could not be told before: the index takes what it gave for known."""
        self._untold.append((changes, found))
        self._tell_rest()

    def _tell_rest(self) -> None:
        while self._untold:
            self._told(*self._untold[0])
            del self._untold[0]

    def _settled(self) -> Changes:
        if self._settling.wait_s == 0.0 and self._goes_on():
            time.sleep(GIT_S)
            return Changes()
        settled = self._settling.due()
        self._written.difference_update(settled)
        changes = self._index.look(settled, changed=True)
        tops = [path for path in settled if path in self._tops]
        self._tops.difference_update(tops)
        for top in _outermost(tops):
            for name in list(self._index.names(top)):
                self._add(changes, self._index.scan(name))
        if len(settled) > MANY_EVENTS:
            self._next_rescan = 0.0
        for kernel in self._index.missing if settled else ():  # looked at again: gone only when it stays away
            self._settling.note(kernel)
        if tops:
            self._observe()
        return changes

    def _goes_on(self) -> bool:
        """Whether more is about to be told of what waits: a file is open still, or notices come late, as they do on a
        busy machine, and out of step."""
        waiting = self._settling.waiting
        if being_written(waiting):
            return True
        return not self._settling.overdue and any(self._being_saved(path) for path in waiting)

    def _being_saved(self, path: str) -> bool:
        return path in self._written or _young(path)

    def _check(self) -> None:
        """Look after folders that were replaced, and now and then after everything."""
        stale = self._observing.stale()
        for folder in stale:
            self._observing.leave(folder)
        lost = bool(stale) or any(str(f.root) not in self._observing.followed() for f in self._folders)
        if not lost and time.monotonic() < self._next_rescan:
            return
        self._observe()
        began = time.monotonic()
        changes = self._index.scan(unsettled=self._being_saved)
        for kernel in self._index.missing:
            self._settling.note(kernel)
        took_s = time.monotonic() - began
        self._next_rescan = began + max(RESCAN_S, took_s / RESCAN_SHARE)
        if changes:
            self._tell(self._whole(changes), False)

    def _whole(self, changes: Changes) -> Changes:
        """The same; what was read while git began to write is read once more when it has ended."""
        while being_written(changes.saved):
            time.sleep(GIT_S)
            if not being_written(changes.saved):
                self._add(changes, self._index.look(list(changes.saved), changed=True))
        return changes

    def _observe(self) -> None:
        """Follow the folders, what links in them lead to, and where headers of theirs lie."""
        wanted = {str(folder.root): (True, folder.polling) for folder in self._folders}
        wanted |= {target: (True, None) for target in self._index.links if target not in wanted}
        wanted |= {folder: (False, None) for folder in self._index.elsewhere() if folder not in wanted}
        for folder in self._observing.followed() - set(wanted):
            self._observing.leave(folder)
        for folder, (recursive, polling) in wanted.items():
            self._observing.follow(folder, recursive=recursive, polling=polling)

    def _add(self, changes: Changes, more: Changes) -> None:
        changes.saved.update(more.saved)
        changes.gone += more.gone


def _young(path: str) -> bool:
    """Whether something happened to a file within QUIET_S."""
    try:
        return 0 <= time.time() - os.stat(path).st_ctime < QUIET_S
    except OSError:
        return False


def _outermost(paths: Sequence[str]) -> list[str]:
    """Those that lie in no other of them."""
    found: list[str] = []
    for path in sorted(set(paths)):
        if not found or not path.startswith(found[-1] + os.sep):
            found.append(path)
    return found
