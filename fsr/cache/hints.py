"""Which sources have a measured winner, as files that a shell can test without opening the database.

Beside ``cache.db`` lies the folder ``cache.db.sources``: one empty file for the SHA-256 of every kernel file that has
a measured winner, and ``stamp``, whose text and time change with every winner, for build systems to depend on. A file
there is a hint and no answer: it may be left over, and the database decides. What must not be is a winner without its
file, so it is made before the winner is stored and removed with the last winner, both under the writer's lock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress

SUFFIX, STAMP = ".sources", "stamp"


def folder_of(database: str | os.PathLike[str]) -> str:
    """The folder of a database's hints."""
    return os.fspath(database) + SUFFIX


def note(database: str | os.PathLike[str], sources: Iterable[str]) -> None:
    """Make the files of these sources. Raises OSError."""
    folder = folder_of(database)
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    for name in sources:
        with open(os.path.join(folder, name), "w"):  # noqa: PTH118, PTH123
            pass
    with open(os.path.join(folder, STAMP), "w") as stamp:  # noqa: PTH118, PTH123
        stamp.write(f"{time.time_ns()}\n")


def forget(database: str | os.PathLike[str], sources: Iterable[str]) -> None:
    """Remove the files of sources that have no winner any more."""
    folder = folder_of(database)
    for name in sources:
        with suppress(OSError):  # a hint too many costs a look into the database, nothing else
            os.unlink(os.path.join(folder, name))  # noqa: PTH108, PTH118
    note(database, ())
