"""What a kernel consists of: its bytes and those of all it includes locally, by digest.

Nothing is parsed: 500 files of a checkout are read within two seconds. The includes are those that a preprocessor could
take, conditional ones among them: a digest that changes too often costs a run, one that does not change hides a kernel.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\r\n]+)"', re.MULTILINE)
SEARCHED = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*<([^>\r\n]+)>", re.MULTILINE)
FOLDERS = re.compile(rb"^[ \t]*(?://)?[ \t]*include_dirs[ \t]*=[ \t]*\[([^\]]*)\]", re.MULTILINE)  # of a contract
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
    searched: tuple[str, ...]
    folders: tuple[str, ...]
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

    def read(self, kernel: str, include_dirs: Sequence[str] = (), defines: Sequence[str] = ()) -> Content | None:
        """The content of a kernel file under -I and -D; None when it cannot be read or holds no kernel."""
        first, sidecar = self._file(kernel), os.path.splitext(kernel)[0] + SIDECAR
        if first is None:
            return None
        hasher, found, todo = hashlib.sha256(), False, [kernel, sidecar]
        hasher.update("".join(f"{text}\0" for text in (*include_dirs, *defines)).encode("utf-8", "surrogateescape"))
        files, absent, folder = set[str](), set[str](), os.path.dirname(kernel)
        stated = (*first.folders, *(((beside := self._file(sidecar)) and beside.folders) or ()))
        search = [*include_dirs, *(os.path.join(folder, name) for name in stated)]
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
            places = [(os.path.dirname(path), name) for name in file.includes]
            places += [(place, name) for place in search for name in (*file.includes, *file.searched)]
            todo += [os.path.normpath(os.path.join(place, name)) for place, name in places]
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
        names = _texts((*INCLUDE.findall(data), *REFERENCE.findall(data)))
        folders = _texts(re.findall(rb'"([^"\r\n]+)"', b" ".join(FOLDERS.findall(data))))
        searched = _texts(SEARCHED.findall(data))
        file = _File(now, hashlib.sha256(data).digest(), names, searched, folders, GLOBAL in data)
        if time.time_ns() - now[0] > RACY_NS:
            self._files[path] = file
        return file


def _relative(path: str, folder: str) -> str:
    """``os.path.relpath`` of normal paths, quick where the file lies below the folder."""
    inside = folder.rstrip(os.sep) + os.sep
    return path[len(inside) :] if path.startswith(inside) else os.path.relpath(path, folder)


def _texts(found: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(match.decode("utf-8", "surrogateescape") for match in found)


def _signature(stat: os.stat_result) -> tuple[int, ...]:
    return stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino, stat.st_dev
