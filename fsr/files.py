"""Reading files that somebody named: plain ones of a sensible size, never a device, a pipe or a folder.

Light: ``fsr lookup`` imports this (no pathlib).
"""

from __future__ import annotations

import os
import stat

MOST_BYTES = 8 << 20
_KINDS = (
    (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"),
)  # fmt: skip


class Unreadable(Exception):  # noqa: N818  # told as an error of whoever needed the file
    """Why a file cannot be read, in words. ``absent``: there is nothing of that name."""

    def __init__(self, why: str, *, absent: bool = False) -> None:
        super().__init__(why)
        self.why, self.absent = why, absent


def read_file(path: str | os.PathLike[str], most: int | None = MOST_BYTES) -> bytes:
    """The bytes of a plain file of at most ``most`` (None: any number). Raises Unreadable.

    It is opened without waiting: a pipe that nobody writes to would never open."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            told = os.fstat(descriptor)
            kind = next((name for is_it, name in _KINDS if is_it(told.st_mode)), None)
            if kind is not None:
                raise Unreadable(f"it is {kind}")
            if most is not None and told.st_size > most:
                raise Unreadable(f"it has {told.st_size:,} bytes, more than {most:,}")
            with open(descriptor, "rb", closefd=False) as file:  # a descriptor
                return file.read() if most is None else file.read(most + 1)
        finally:
            os.close(descriptor)
    except OSError as fault:
        absent = isinstance(fault, FileNotFoundError | NotADirectoryError) and not os.path.islink(path)  # noqa: PTH114
        raise Unreadable(fault.strerror or str(fault), absent=absent) from None
    except ValueError:  # a NUL in its name
        raise Unreadable("its name holds a NUL") from None
