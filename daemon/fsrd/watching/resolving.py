"""Paths without links, for hundreds of files of a few folders at once."""

from __future__ import annotations

import os


class RealPaths:
    """``os.path.realpath`` that resolves every folder once until it is told to forget. Not for several threads."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def __call__(self, path: str) -> str:
        """The path that no link leads to; of an absolute path."""
        folder, name = os.path.split(path)
        real = self._folders.get(folder)
        if real is None:
            real = self._folders[folder] = os.path.realpath(folder)
        joined = os.path.join(real, name)
        return os.path.realpath(joined) if os.path.islink(joined) else joined

    def forget(self) -> None:
        """Links may lead elsewhere by now."""
        self._folders.clear()
