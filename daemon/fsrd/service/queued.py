"""Kernels that builds compiled without a winner and left for the daemon (fsr/builds/queue.py)."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

from fsr.builds.queue import read, waiting
from fsr.given import split_given
from fsrd.watching.content import Content, Contents

LOG = logging.getLogger(__name__)

Given = tuple[str, ...]
Submit = Callable[[str, str, Given], object]
"""Called with a kernel, the digest of its content, and the -I and -D of a build that are not its folder's own."""


def take_queued(folder: Path, watched: Callable[[str, Given], Content | None], submit: Submit) -> None:
    """Hand every job of a queue folder on and remove it, oldest first. What was saved again since, or holds no kernel,
    is dropped. ``watched``: the content of a kernel that is watched with these -I and -D, None for any other."""
    for place in waiting(folder):
        try:
            job = read(place)
            kernel = "" if job is None or not job.current else os.path.realpath(job.kernel)
            if kernel and job is not None and (content := watched(kernel, job.given)) is not None:
                submit(kernel, content.digest, ())
            elif kernel and job is not None and (content := _content(kernel, job.given)) is not None:
                submit(kernel, content.digest, job.given)
            elif job is not None:
                LOG.info("%s: a build left a job, and the file changed since or holds no kernel", job.kernel)
            place.unlink(missing_ok=True)
        except OSError as fault:
            LOG.warning("%s cannot be read: %s", place, fault)
        except UnicodeEncodeError:  # a path that is no UTF-8: it would stand in the way of the others for ever
            LOG.warning("%s names a kernel whose path is no UTF-8: dropped", place)
            place.unlink(missing_ok=True)


def _content(kernel: str, given: Given) -> Content | None:
    return Contents(os.path.realpath).read(kernel, *split_given(given))
