"""Whose turn it is on a GPU: between the runs of one process in order of asking, between processes by a lock file.

A run takes its lease before it gives anything to a device, and gives it back when another run waits and it had its
turn, when it is paused, and when it ends. Tasks of two runs never overlap on a GPU, so that neither is timed beside the
other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Protocol

from fsr.backends.lock import DeviceLock

TURN_S = 2.0  # a lease is kept this long although others wait: changing hands costs a drained queue
POLL_S = 0.05


class Lock(Protocol):
    """What keeps other processes away from one device; see :class:`fsr.backends.lock.DeviceLock`."""

    def acquire(self) -> bool: ...
    def release(self) -> None: ...
    def holder(self) -> str: ...


class Leases:
    """The devices of this process and the runs that wait for them, first come, first served.

    A run waits while a device that it wants is out or wanted by one that came before it, so none is passed over for
    good. Args: lock, makes the lock of a device by its name."""

    def __init__(self, lock: Callable[[str], Lock] = DeviceLock) -> None:
        self._lock = lock
        self._changed = threading.Condition()
        self._waiting: list[Lease] = []
        self._out: list[Lease] = []

    def lease(self, devices: Iterable[str]) -> Lease:
        """A lease, not yet held, on devices by name; on none it is always held."""
        return Lease(self, tuple(sorted(set(devices))))

    def wanted(self, lease: Lease) -> bool:
        """Whether somebody else waits for a device of this lease."""
        with self._changed:
            return any(set(other.devices) & set(lease.devices) for other in self._waiting if other is not lease)

    def take(self, lease: Lease) -> bool:
        """Whether the lease is held now; if not, it has its place in the line."""
        with self._changed:
            if lease in self._out:
                return True
            if lease not in self._waiting:
                self._waiting.append(lease)
            before = self._waiting[: self._waiting.index(lease)]
            taken = {device for other in (*before, *self._out) for device in other.devices}
            if taken & set(lease.devices) or not lease.lock([self._lock(device) for device in lease.devices]):
                return False
            self._waiting.remove(lease)
            self._out.append(lease)
            return True

    def give_back(self, lease: Lease) -> None:
        """Free the devices of a lease, or leave the line."""
        with self._changed:
            for held in (self._waiting, self._out):
                if lease in held:
                    held.remove(lease)
            lease.unlock()
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Sleep, or until a lease of this process is given back."""
        with self._changed:
            self._changed.wait(seconds)


class Lease:
    """One run's claim on its devices, made by :meth:`Leases.lease`. A context manager that gives it back."""

    def __init__(self, leases: Leases, devices: tuple[str, ...]) -> None:
        self.devices = devices
        self.blocked_by = ""
        self._leases = leases
        self._locks: list[Lock] = []
        self._since = 0.0

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def take(self) -> bool:
        """Whether it is held now; asking again keeps the place in the line."""
        if not self.devices:
            return True
        held = bool(self._locks)
        taken = self._leases.take(self)
        if taken and not held:
            self._since = time.monotonic()
        return taken

    def wait(self) -> None:
        """Sleep a moment, less when a device came free."""
        self._leases.wait(POLL_S)

    def due(self) -> bool:
        """Whether it had its turn and somebody waits: to be given back as soon as nothing runs on the device."""
        return bool(self._locks) and time.monotonic() - self._since >= TURN_S and self._leases.wanted(self)

    def give_back(self) -> None:
        """Let the devices go, or leave the line; nothing happens when neither is so."""
        self._leases.give_back(self)

    def lock(self, locks: list[Lock]) -> bool:
        """Take all of these locks or none; only called by Leases. ``blocked_by`` says who holds one."""
        with ExitStack() as undo:
            for lock in locks:
                if not lock.acquire():
                    self.blocked_by = lock.holder()
                    return False
                undo.callback(lock.release)
            undo.pop_all()
        self._locks, self.blocked_by = locks, ""
        return True

    def unlock(self) -> None:
        """Release the locks; only called by Leases."""
        while self._locks:
            self._locks.pop().release()


LEASES = Leases()
"""Those of this process."""
