"""The manifest: which winners a build may use, as a flat file that CMake reads without starting a process.

UTF-8, one line a winner, fields separated by tabs; lines that begin with ``#`` are comments, the first of them names
the format and the compiler flags that the winners were chosen for::

    # fsr-manifest 1<TAB>-arch=sm_90
    <SHA-256 of the kernel file><TAB><architecture><TAB><kernel file><TAB><winner file><TAB><flags to add>

A reader compares the digest with the kernel file as it is (CMake: ``file(SHA256)``): a file that changed has no line,
and the original is compiled. Paths are absolute.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fsr.builds.launching import put
from fsr.builds.serving import Served
from fsr.cache.digest import text_digest
from fsr.errors import StorageError

HEAD = "# fsr-manifest 1"


@dataclass(frozen=True, slots=True)
class Line:
    """source: digest of the kernel's bytes. arch: 'sm_90'. flags: to be added to the compiler's."""

    source: str
    arch: str
    kernel: Path
    winner: Path
    flags: tuple[str, ...]

    @classmethod
    def of(cls, kernel: Path, winner: Path, chosen: Served, arch: str) -> Line:
        """The line of a winner, whose file is written. Raises StorageError."""
        try:
            put(winner, chosen.text)
            source = text_digest(kernel.read_bytes())
        except OSError as fault:
            raise StorageError(f"the winner cannot be written: {fault.strerror}", where=str(winner)) from None
        return cls(source, arch, kernel.absolute(), winner, chosen.flags)

    def __str__(self) -> str:
        return "\t".join((self.source, self.arch, str(self.kernel), str(self.winner), " ".join(self.flags)))


def write_manifest(path: Path, lines: Iterable[Line], flags: str) -> bool:
    """Write the file atomically; False when it holds just that already, and keeps its time. A kernel whose path holds
    a tab or a line break is left out. Raises StorageError."""
    texts = sorted(str(line) for line in lines)
    told = [text for text in texts if text.count("\t") == 4 and "\n" not in text]
    data = "\n".join([f"{HEAD}\t{flags}", *told, ""]).encode("utf-8", "surrogateescape")
    try:
        if path.is_file() and path.read_bytes() == data:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_bytes(data)
        draft.replace(path)
    except OSError as fault:
        raise StorageError(f"the manifest cannot be written: {fault.strerror}", where=str(path)) from None
    return True
