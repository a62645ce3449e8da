"""Whether git is writing a work tree now: what it checks out belongs together and is read when it is whole."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

LOCK = "index.lock"  # held by git for as long as it writes the work tree (git's Documentation/technical/api-lockfile)
LONGEST_S = 30.0  # one that is older was left by a git that was killed


def being_written(paths: Iterable[str]) -> bool:
    """Whether one of these paths lies in a work tree that git is changing."""
    folders = {os.path.dirname(path) for path in paths}
    repositories = {found for folder in folders if (found := _repository(folder)) is not None}
    return any(_locked(repository) for repository in repositories)


def _repository(folder: str) -> str | None:
    """The folder of git that a work tree's folder belongs to."""
    while True:
        git = os.path.join(folder, ".git")
        if os.path.isdir(git):
            return git
        if os.path.isfile(git):  # another work tree of a repository: gitrepository-layout(5)
            try:
                with open(git, encoding="utf-8", errors="surrogateescape") as file:
                    return os.path.join(folder, file.read().removeprefix("gitdir:").strip())
            except OSError:
                return None
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def _locked(repository: str) -> bool:
    try:
        age_s = time.time() - os.stat(os.path.join(repository, LOCK)).st_mtime
    except OSError:
        return False
    return abs(age_s) < LONGEST_S
