"""What a device worker has: asked inside of it, told to the run."""

from __future__ import annotations

import os
from dataclasses import dataclass

from fsr.backends.backend import Gpu
from fsr.backends.lock import DeviceLock
from fsr.backends.select import backends


@dataclass(frozen=True, slots=True)
class Seat:
    """What a device worker found: its GPU, the backend it belongs to, and who holds it ('' for nobody). ``gpu`` is
    None without one."""

    gpu: Gpu | None
    holder: str = ""
    node: str = ""
    backend: str = "cuda"


def seat_task(_: None) -> Seat:
    """Run in a device worker that was given one GPU: which it is, and whether somebody is timing on it."""
    for backend in backends():
        for gpu in backend.gpus():
            lock = DeviceLock(gpu.uuid)
            holder = "" if lock.acquire() else lock.holder()
            lock.release()
            return Seat(gpu, holder, os.uname().nodename, backend.name)
    return Seat(None, node=os.uname().nodename)
