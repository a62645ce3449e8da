"""Folders that are there whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def filled(target: Path, fill: Callable[[Path], None]) -> None:
    """Have ``fill`` fill a folder, which takes the name of ``target`` only when it is complete; the first process to do
    so wins. Raises what ``fill`` raises, and OSError where nobody has won."""
    building = Path(tempfile.mkdtemp(prefix=".building-", dir=target.parent))
    try:
        fill(building)
        try:
            os.rename(building, target)  # noqa: PTH104  # Path.rename would replace
        except OSError:
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(building, ignore_errors=True)
