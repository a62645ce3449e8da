"""Kernels that builds compiled without a winner and left for the daemon (fsr/builds/queue.py)."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

from fsr.builds.queue import read, waiting
from fsrd.watching.content import Content, Contents

LOG = logging.getLogger(__name__)

Submit = Callable[[str, str], object]
"""Called with a kernel and the digest of its content."""


def take_queued(folder: Path, watched: Callable[[str], Content | None], submit: Submit) -> None:
    """Hand every job of a queue folder on and remove it, oldest first. What was saved again since, or holds no kernel,
    is dropped. ``watched``: the content of a kernel that is watched, None for any other."""
    for place in waiting(folder):
        try:
            job = read(place)
            kernel = "" if job is None or not job.current else os.path.realpath(job.kernel)
            content = (watched(kernel) or Contents(os.path.realpath).read(kernel)) if kernel else None
            if content is not None:
                submit(kernel, content.digest)
            elif job is not None:
                LOG.info("%s: a build left a job, and the file changed since or holds no kernel", job.kernel)
            place.unlink(missing_ok=True)
        except OSError as fault:
            LOG.warning("%s cannot be read: %s", place, fault)
