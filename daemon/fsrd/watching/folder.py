"""A folder that is watched, and which files in it are taken for kernels."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pathspec

INCLUDE = ("*.cu",)
# What fsr writes itself, version control, and what editors leave behind: never a kernel, whatever is asked for.
NEVER = (
    ".fsr/", "*.fsr.cu", "*.fsr.cuh", ".git/", ".hg/", ".svn/", ".jj/", "CMakeFiles/", "__pycache__/", "node_modules/",
    ".#*", "#*#", "*~", ".*.sw?", "*.tmp",
)  # fmt: skip


@dataclass(frozen=True)
class Folder:
    """root: absolute path. include, exclude: patterns as in .gitignore, relative to the root; a file is a kernel when
    an include pattern takes it and no exclude pattern does. polling: whether to look now and then instead of being
    told by the kernel; None for: on network file systems. include_dirs, defines: -I (absolute) and -D
    of its kernels."""

    root: Path
    include: tuple[str, ...] = INCLUDE
    exclude: tuple[str, ...] = ()
    polling: bool | None = None
    include_dirs: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()

    @cached_property
    def _taken(self) -> pathspec.GitIgnoreSpec:
        return pathspec.GitIgnoreSpec.from_lines(self.include)

    @cached_property
    def _left_out(self) -> pathspec.GitIgnoreSpec:
        # What is never taken stands last: in .gitignore the last pattern that fits decides.
        return pathspec.GitIgnoreSpec.from_lines((*self.exclude, *NEVER))

    def relative(self, path: str) -> str | None:
        """The path from the root; None for one that lies elsewhere."""
        root = str(self.root)
        prefix = root if root.endswith(os.sep) else root + os.sep
        return path[len(prefix) :] if path.startswith(prefix) else "" if path == root else None

    def takes(self, path: str) -> bool:
        """Whether a file by this name would be a kernel."""
        relative = self.relative(path)
        if not relative or not _is_text(relative):
            return False
        return self._taken.match_file(relative) and not self._left_out.match_file(relative)

    def enters(self, path: str) -> bool:
        """Whether a folder by this name is looked into."""
        relative = self.relative(path)
        return relative == "" or (relative is not None and not self._left_out.match_file(relative + "/"))


def _is_text(name: str) -> bool:
    """Whether a name can be told of: one that is no UTF-8 fits neither the queue nor a page."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
