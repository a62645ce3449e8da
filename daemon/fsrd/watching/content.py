"""What a kernel consists of: its bytes and those of all it includes locally, by digest.

Nothing is parsed: 500 files of a checkout are read within two seconds. The includes are those that a preprocessor could
take, conditional ones among them: a digest that changes too often costs a run, one that does not change hides a kernel.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\r\n]+)"', re.MULTILINE)
REFERENCE = re.compile(rb'^[ \t]*(?://)?[ \t]*reference[ \t]*=[ \t]*"([^":\r\n]+)', re.MULTILINE)
GLOBAL = b"__global__"
SIDECAR = ".fsr.toml"
MOST_FILES = 2000
# File systems note times in steps of a few milliseconds: what was written this shortly ago may be written again
# within the same step (the racy-git problem, git's Documentation/technical/racy-git).
RACY_NS = 50_000_000


@dataclass(frozen=True, slots=True)
class Content:
    """digest: of all of it. files: every path it was read from or would have been (a header that is not there yet),
    as named and as resolved. absent: what it includes and is not there."""

    digest: str
    files: frozenset[str]
    absent: frozenset[str]


@dataclass(frozen=True, slots=True)
class _File:
    signature: tuple[int, ...]
    digest: bytes
    includes: tuple[str, ...]
    kernel: bool


class Contents:
    """Reads contents; a file that did not change since is not read again. Not for several threads at once.

    ``real``: a path without links (``os.path.realpath``)."""

    def __init__(self, real: Callable[[str], str]) -> None:
        self._real = real
        self._files: dict[str, _File] = {}

    def forget(self, path: str) -> None:
        """Read this file anew next time: something happened to it."""
        self._files.pop(path, None)

    def prune(self, wanted: frozenset[str]) -> None:
        """Keep what is known of these files only."""
        self._files = {path: file for path, file in self._files.items() if path in wanted}

    def read(self, kernel: str) -> Content | None:
        """The content of a kernel file; None when it is not there, cannot be read or holds no kernel."""
        first = self._file(kernel)
        if first is None:
            return None
        sidecar = os.path.splitext(kernel)[0] + SIDECAR
        hasher, found, todo = hashlib.sha256(), False, [kernel, sidecar]
        files, absent, folder = set[str](), set[str](), os.path.dirname(kernel)
        while todo and len(files) < MOST_FILES:
            path = todo.pop()
            if path in files:
                continue
            files.add(path)
            file = first if path == kernel else self._file(path)
            if file is None:
                absent.add(path)
                continue
            found |= file.kernel
            hasher.update(_relative(path, folder).encode("utf-8", "surrogateescape") + b"\0" + file.digest)
            todo += [os.path.normpath(os.path.join(os.path.dirname(path), name)) for name in file.includes]
        if not found:
            return None
        named = frozenset(files | {self._real(path) for path in files})
        return Content(hasher.hexdigest(), named, frozenset(absent - {sidecar}))

    def _file(self, path: str) -> _File | None:
        try:
            known, now = self._files.get(path), _signature(os.stat(path))
            if known is not None and known.signature == now:
                return known
            with open(path, "rb") as opened:
                data = opened.read()
        except OSError:
            self._files.pop(path, None)
            return None
        names = [match.decode("utf-8", "surrogateescape") for match in INCLUDE.findall(data)]
        names += [match.decode("utf-8", "surrogateescape") for match in REFERENCE.findall(data)]
        file = _File(now, hashlib.sha256(data).digest(), tuple(names), GLOBAL in data)
        if time.time_ns() - now[0] > RACY_NS:
            self._files[path] = file
        return file


def _relative(path: str, folder: str) -> str:
    """``os.path.relpath`` of normal paths, quick where the file lies below the folder."""
    inside = folder.rstrip(os.sep) + os.sep
    return path[len(inside) :] if path.startswith(inside) else os.path.relpath(path, folder)


def _signature(stat: os.stat_result) -> tuple[int, ...]:
    return stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino, stat.st_dev
