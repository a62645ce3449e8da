"""Folders that are built once, under a name that tells all they are made from, and kept while they are used."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fsr.folders import filled

# A precompiled header takes 23 MB, and every version of the headers has ten of its own, one for each set of options.
MOST_KEPT = 32
IDLE_S = 14 * 86_400.0  # what was used since then is kept, however many there are: a process may rely on it


def built_once(target: Path, build: Callable[[Path], None]) -> Path:
    """The folder, marked as used now. Where there is none, ``build`` fills one, which takes the name only when it is
    complete; the first process wins, and what lies beside it unused makes room. Raises what ``build`` raises, and
    OSError."""
    if target.is_dir():
        with suppress(OSError):  # another user's, say
            os.utime(target)
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    filled(target, build)
    _make_room(target.parent)
    return target


def _make_room(folder: Path) -> None:
    """Remove the least recently used beyond the most that are kept, and what was left half-built."""
    found = [(_used(path), path) for path in folder.iterdir() if "-" in path.name and path.is_dir()]
    kept = 0
    for used, path in sorted(found, reverse=True):
        kept += not path.name.startswith(".")
        if (kept > MOST_KEPT or path.name.startswith(".")) and time.time() - used > IDLE_S:
            gone = folder / f".removed-{os.getpid()}-{path.name.lstrip('.')}"
            with suppress(OSError):  # out of the way at once: nobody finds a half of it
                os.rename(path, gone)  # noqa: PTH104
                shutil.rmtree(gone, ignore_errors=True)


def _used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return time.time()
