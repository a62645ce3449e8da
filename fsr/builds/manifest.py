"""The manifest: which winners a build may use, as a flat file that CMake reads without starting a process.

UTF-8, one line a winner, fields separated by tabs; the first line names the format and the compiler flags that the
winners were chosen for. Behind the fifth field stands one for every file that the kernel includes::

    # fsr-manifest 1<TAB>-arch=sm_90
    <SHA-256 of the kernel file><TAB><architecture><TAB><kernel file><TAB><winner file><TAB><flags to add>
        <TAB><SHA-256> <file, from the kernel's folder>...

(all on one line). A reader compares the digests with the files as they are (CMake: ``file(SHA256)``): where one
changed, the original is compiled. Paths of the kernel and the winner are absolute; no field holds a tab, line break or
semicolon. The winner's own includes are searched in the kernel's folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fsr.builds.launching import put
from fsr.builds.serving import Served
from fsr.cache.digest import text_digest
from fsr.cache.layers import Found
from fsr.errors import StorageError

HEAD = "# fsr-manifest 1"


@dataclass(frozen=True, slots=True)
class Line:
    """source: digest of the kernel's bytes. arch: 'sm_90'. flags: to be added to the compiler's. includes: name and
    digest of every file that the kernel includes."""

    source: str
    arch: str
    kernel: Path
    winner: Path
    flags: tuple[str, ...]
    includes: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, kernel: Path, found: Found, chosen: Served) -> Line:
        """The line of a winner, whose file is written. Raises StorageError."""
        body = json.loads(found.hit.body)
        winner = found.folder / "kept" / kernel.name
        includes = tuple((name, digest) for name, digest in body["key"]["includes"])
        try:
            put(winner, chosen.text)
            source = text_digest(kernel.read_bytes())
        except OSError as fault:
            raise StorageError(f"the winner cannot be written: {fault.strerror}", where=str(winner)) from None
        return cls(source, body["device"]["arch"], kernel.absolute(), winner, chosen.flags, includes)

    def fields(self) -> list[str]:
        """The fields of the line, in order."""
        included = [f"{digest} {name}" for name, digest in self.includes]
        return [self.source, self.arch, str(self.kernel), str(self.winner), " ".join(self.flags), *included]


def write_manifest(path: Path, lines: Iterable[Line], flags: str) -> bool:
    """Write the file atomically; False when it holds just that already, and keeps its time. A kernel whose path would
    break the format is left out. Raises StorageError."""
    rows = [line.fields() for line in lines]
    told = sorted("\t".join(row) for row in rows if not any(mark in field for field in row for mark in "\t\n;"))
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
