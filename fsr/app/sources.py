"""``fsr.lookup_source``: for programs that compile kernels when they run."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from fsr.builds.source import KernelSource, source_for
from fsr.cache.layers import Layers
from fsr.settings import read_settings


def lookup_source(kernel: str | PathLike[str], *, flags: Sequence[str] = (), device: int = 0) -> KernelSource:
    """The source to compile in a kernel file's place: its winner for GPU ``device``, else the file as it is.

    ``flags``: what the caller compiles with, without the architecture; a winner that was not proven with them is not
    given. The kernel is launched as before. Never searches and needs no GPU library; takes milliseconds. Raises
    UsageError when the file cannot be read."""
    settings = read_settings()
    return source_for(Path(kernel), flags, device, Layers(*settings.layers))
