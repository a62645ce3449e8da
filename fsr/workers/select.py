"""Which workers a run gets: local processes, or Ray for several GPUs or a cluster."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence

from fsr.errors import UsageError
from fsr.workers.local import local_workers
from fsr.workers.supervisor import Supervisor

MOST_WORKERS, WORKERS_A_CORE = 64, 4  # compile workers: a cluster has more cores than the machine that asks


def open_workers(
    compile_workers: int | None, ray: str | None, gpus: Sequence[str] = (), device_workers: int = 1
) -> Supervisor:
    """Workers of this machine for one run, to be entered as a context manager.

    ``compile_workers``: None for one a core. ``gpus``: UUIDs of the GPUs to use, one a device worker; without them
    there are ``device_workers``. ``ray``: 'local' for actors of a Ray that is started here, which is also used where
    there are several GPUs and Ray is installed. Raises UsageError for fewer than one worker and MissingToolError
    when Ray is asked for and not installed."""
    count = compilers(compile_workers)
    if ray is None and (len(gpus) < 2 or importlib.util.find_spec("ray") is None):
        return local_workers(count, len(gpus) or device_workers, gpus if len(gpus) > 1 else ())
    from fsr.workers.ray import ray_workers

    return ray_workers(count, len(gpus) or device_workers, gpus)


def compilers(asked: int | None) -> int:
    """How many compile workers: as asked, or one a core. Raises UsageError for fewer than one, or more than could ever
    be of use."""
    cores = max(1, len(os.sched_getaffinity(0)))
    count, most = asked if asked is not None else cores, max(MOST_WORKERS, WORKERS_A_CORE * cores)
    if not 1 <= count <= most:
        expected = f"1 to {most}; this machine has {cores} cores"
        raise UsageError(f"{count} compile workers", expected=expected, where="--workers", fix="leave it out")
    return count
