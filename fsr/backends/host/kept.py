"""Shared objects of kernels that were compiled before, kept in the user's cache folder under all they are made from.

The same few kernels are compiled over and over: an original anew in every process that judges its candidates, in
float64, to be watched and to be recorded, and all of it again in the next run. Only what compiled is kept: a failure
may be the machine's.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

LIMIT_BYTES = 512 << 20
_SHARE_KEPT = 0.75  # of the limit, once it was passed
_LOOKS = "0"  # keys are digests: at one store of sixteen somebody looks at the folder's size
_DIGEST_BYTES = 32
_HERE = Path(__file__).resolve()
_MAKERS = (_HERE.with_name("compiler.py"), _HERE.with_name("reach.py"), _HERE.parents[2] / "emulator" / "elf.py")


class KeptObjects:
    """What was built, by the digest of what it was built from. Safe in parallel; a damaged file is as none. A folder
    that cannot be written keeps nothing."""

    def __init__(self, folder: Path, limit_bytes: int = LIMIT_BYTES) -> None:
        self._folder, self._limit = folder, limit_bytes

    def find(self, key: str) -> bytes | None:
        """The object stored under a key, marked as used now; None where there is none."""
        path = self._folder / key
        try:
            text = path.read_bytes()
        except OSError:
            return None
        digest, data = text[:_DIGEST_BYTES], text[_DIGEST_BYTES:]
        if hashlib.sha256(data).digest() != digest:
            return None
        with suppress(OSError):
            os.utime(path)
        return data

    def store(self, key: str, data: bytes) -> None:
        """Keep an object; the least recently used ones go when the folder grows beyond its limit."""
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(prefix=".new-", dir=self._folder, delete=False) as file:
                file.write(hashlib.sha256(data).digest() + data)
            os.replace(file.name, self._folder / key)  # noqa: PTH105
            if key.startswith(_LOOKS):
                self._trim()

    def _trim(self) -> None:
        found = sorted(_files(self._folder))
        total = sum(size for _, size, _ in found)
        if total <= self._limit:
            return
        for _, size, path in found:
            if total <= self._limit * _SHARE_KEPT:
                return
            with suppress(FileNotFoundError):
                os.unlink(path)  # noqa: PTH108
            total -= size


@cache
def own_digest() -> str:
    """The digest of the code here that takes part in making an object."""
    return key_of(path.read_text(encoding="utf-8") for path in _MAKERS)


def key_of(parts: Iterable[str]) -> str:
    """The digest of texts."""
    content = hashlib.sha256()
    for part in parts:
        content.update(f"{len(part)}:".encode() + part.encode(errors="surrogateescape"))
    return content.hexdigest()


def _files(folder: Path) -> Iterator[tuple[float, int, str]]:
    """(last use, bytes, path) of what a folder holds."""
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # another process removed it
                told = entry.stat()
                yield told.st_mtime, told.st_size, entry.path
