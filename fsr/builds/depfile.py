"""Dependency files that name the original where a winner was compiled."""

from __future__ import annotations

import os
from pathlib import Path


def escaped(path: str) -> str:
    """A path as compilers write it into Make rules (GCC, -M: spaces and # get a backslash, $ is doubled)."""
    return path.replace("\\ ", "\\\\ ").replace(" ", "\\ ").replace("#", "\\#").replace("$", "$$")


def restore_source(depfile: str, compiled: str, original: str) -> None:
    """Name ``original`` wherever the rules name the file that was compiled, atomically. A depfile that is not there
    stays so. Raises OSError."""
    path = Path(depfile)
    try:
        text = path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    for spelling in {escaped(compiled), compiled}:
        text = text.replace(spelling, escaped(original))
    draft.write_bytes(text.encode("utf-8", "surrogateescape"))
    draft.replace(path)
