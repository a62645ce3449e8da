"""Which kernels there are, what each consists of, and whom a change of a file concerns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from fsrd.watching.content import Content, Contents
from fsrd.watching.folder import Folder
from fsrd.watching.resolving import RealPaths


@dataclass(slots=True)
class Changes:
    """saved: kernel to the digest of its new content. gone: kernels that are no more."""

    saved: dict[str, str] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.saved or self.gone)


class Index:
    """The kernels of some folders. Not for several threads at once.

    A kernel that is reached by several names, through links, is known by that which leads to it without one where that
    lies in a watched folder. ``links``: folders elsewhere that links lead to, with the name they have here."""

    def __init__(self, folders: Iterable[Folder]) -> None:
        self.folders = tuple(folders)
        self.kernels: dict[str, Content] = {}
        self.links: dict[str, str] = {}
        self._users: dict[str, set[str]] = {}
        self._real = RealPaths()
        self._contents = Contents(self._real)
        self._missing: set[str] = set()

    # ------------------------------------------------------------ names

    def takes(self, path: str) -> bool:
        """Whether a file by this name would be a kernel."""
        return any(folder.takes(path) for folder in self.folders)

    def concerns(self, path: str) -> bool:
        """Whether a change of this file could change a kernel."""
        return path in self._users or any(self.takes(name) for name in self.names(path))

    def names(self, path: str) -> Iterator[str]:
        """The path, and the names that it has in watched folders through links."""
        yield path
        for target, name in self.links.items():
            if path == target or path.startswith(target + os.sep):
                yield name + path[len(target) :]

    def _canonical(self, path: str) -> str:
        real = self._real(path)
        return real if real == path or self.takes(real) else path

    # ------------------------------------------------------------ looking

    def scan(
        self, top: str | None = None, *, first: bool = False, unsettled: Callable[[str], bool] | None = None
    ) -> Changes:
        """Look at all kernels below ``top`` (everywhere when None), and at those known there that may be gone.
        ``first``: nobody is writing anything, so that a header which is not there will not come in a moment.
        ``unsettled``: whether a file is being saved right now. A kernel that holds one, or is not there, counts as
        missed once, whatever was seen of it before: the next look decides."""
        self._real.forget()
        if top is None:
            self.links.clear()
        seen = dict.fromkeys(kernel for folder in self.folders for kernel in self._walk(folder, top))
        below = [k for k in self.kernels if top is None or k == top or k.startswith(top + os.sep)]
        changes = self.look([*seen, *(k for k in below if k not in seen)], first=first, unsettled=unsettled)
        if top is None:
            self._contents.prune(frozenset(self._users))
        return changes

    def look(
        self, paths: Iterable[str], *, changed: bool = False, first: bool = False,
        unsettled: Callable[[str], bool] | None = None,
    ) -> Changes:  # fmt: skip
        """Look at these files and whatever includes them. ``changed``: something happened to each, so that it is read
        whatever its time stamp says. A kernel, or a header of it, is gone only when it is missed twice: editors move
        files about, and whoever copies a folder copies one after the other."""
        self._real.forget()
        kernels: dict[str, None] = {}
        for path in paths:
            if changed:
                self._contents.forget(path)
            for name in self.names(path):
                if name in self.kernels or self.takes(name):
                    kernels[self._canonical(name)] = None
                kernels.update(dict.fromkeys(sorted(self._users.get(name, ()))))
        changes = Changes()
        for kernel in kernels:
            if unsettled is not None and self._is_unsettled(kernel, unsettled):
                self._missing.add(kernel)
            else:
                self._look_at(kernel, changes, first)
        return changes

    def _is_unsettled(self, kernel: str, unsettled: Callable[[str], bool]) -> bool:
        old, new = self.kernels.get(kernel), self._current(kernel)
        return old != new and (new is None or any(unsettled(path) for path in new.files))

    def _look_at(self, kernel: str, changes: Changes, first: bool) -> None:
        old, new = self.kernels.get(kernel), self._current(kernel)
        if new is None:
            if old is not None and kernel in self._missing:
                self._missing.discard(kernel)
                self._note(kernel, None)
                changes.gone.append(kernel)
            elif old is not None:
                self._missing.add(kernel)
            return
        lacking = new.absent - (old.absent if old is not None else frozenset())
        if lacking and not first and kernel not in self._missing:
            self._missing.add(kernel)
            return
        self._missing.discard(kernel)
        if old != new:
            self._note(kernel, new)
        if old is None or old.digest != new.digest:
            changes.saved[kernel] = new.digest

    def _current(self, kernel: str) -> Content | None:
        return self._read(kernel) if self._canonical(kernel) == kernel else None

    def _read(self, kernel: str) -> Content | None:
        holding = [folder for folder in self.folders if folder.relative(kernel) is not None]
        inner = max(holding, key=lambda folder: len(str(folder.root)), default=None)
        return self._contents.read(kernel, *((inner.include_dirs, inner.defines) if inner is not None else ()))

    @property
    def missing(self) -> tuple[str, ...]:
        """Kernels that were missed once, or a header of them, or are being saved: to be looked at again in a moment."""
        return tuple(self._missing)

    def elsewhere(self) -> set[str]:
        """The folders outside the watched ones that hold something a kernel consists of."""
        folders = {os.path.dirname(path) for path in self._users}
        return {f for f in folders if all(folder.relative(f) is None for folder in self.folders) and os.path.isdir(f)}

    # ------------------------------------------------------------ inside

    def _note(self, kernel: str, content: Content | None) -> None:
        old = self.kernels.pop(kernel, None)
        for path in old.files if old is not None else ():
            users = self._users[path]
            users.discard(kernel)
            if not users:
                del self._users[path]
        if content is not None:
            self.kernels[kernel] = content
            for path in content.files:
                self._users.setdefault(path, set()).add(kernel)

    def _walk(self, folder: Folder, top: str | None) -> Iterator[str]:
        """The kernels of a folder below ``top``, links to folders followed, none entered twice."""
        start = str(folder.root) if top is None else top
        if folder.relative(start) is None:
            if not str(folder.root).startswith(start + os.sep):
                return
            start = str(folder.root)
        entered, todo = set[str](), [start]
        while todo:
            here = todo.pop()
            real = os.path.realpath(here)
            if real in entered or not folder.enters(here):
                continue
            entered.add(real)
            if real != here and all(other.relative(real) is None for other in self.folders):
                self.links[real] = here
            try:
                with os.scandir(here) as found:
                    entries = sorted(found, key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in entries:
                if _is_folder(entry):
                    todo.append(entry.path)
                elif folder.takes(entry.path):
                    yield self._canonical(entry.path)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder or leads to one; a link that leads to itself, or where nobody may look, is none."""
    try:
        return entry.is_dir()
    except OSError:
        return False
