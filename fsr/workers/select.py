"""Which workers a run gets: local processes, or Ray for several GPUs or a cluster."""

from __future__ import annotations

import os

from fsr.errors import UsageError
from fsr.workers.local import local_workers
from fsr.workers.supervisor import Supervisor


def open_workers(compile_workers: int | None, ray: str | None, device: str) -> Supervisor:
    """Workers for one run, to be entered as a context manager.

    ``compile_workers``: None for one a core. ``ray``: the address of a cluster ('local' starts one here), or None.
    ``device``: 'host' or 'cuda:N'; both get one device process. Raises UsageError for fewer than one worker and
    MissingToolError when Ray is asked for and not installed."""
    count = compile_workers if compile_workers is not None else max(1, len(os.sched_getaffinity(0)))
    if count < 1:
        raise UsageError(f"{count} compile workers", expected="at least 1", where="--workers", fix="leave it out")
    if ray is not None:
        from fsr.workers.ray import ray_workers

        return ray_workers(ray, count, 1, gpus=0 if device == "host" else 1)
    return local_workers(count, 1)
