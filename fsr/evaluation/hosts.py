"""Host devices on cores that are idle beside a GPU: what only watches needs none of the session's own devices."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeVar

from fsr.backends.protocol import RecordingDevice, can_record
from fsr.backends.select import recording_backend

_Found = TypeVar("_Found")
_CORES_EACH, _MOST = 4, 4  # workers compile on most cores, sanitizers run on some


def idle_hosts() -> int:
    """How many host devices a session beside a GPU may have at work; 0 where cores are few."""
    return max(0, min(_MOST, len(os.sched_getaffinity(0)) // _CORES_EACH - 1))


class Hosts:
    """Several host devices, each of a thread's own while it works. Opened when first needed."""

    def __init__(self, count: int) -> None:
        self._free: SimpleQueue[RecordingDevice | None] = SimpleQueue()
        for _ in range(count):
            self._free.put(None)
        self._count = count
        self._threads = ThreadPoolExecutor(count, "hosts")

    def submit(self, work: Callable[[RecordingDevice], _Found]) -> Future[_Found]:
        """Work for whichever is free next."""

        def on_one() -> _Found:
            device = self._free.get()
            try:
                if device is None:
                    opened = recording_backend().open(0)
                    assert can_record(opened)
                    device = opened
                return work(device)
            finally:
                self._free.put(device)

        return self._threads.submit(on_one)

    def close(self) -> None:
        """Drop what has not begun, wait for what has, and close the devices."""
        self._threads.shutdown(cancel_futures=True)
        for _ in range(self._count):
            device = self._free.get()
            if device is not None:
                device.close()
