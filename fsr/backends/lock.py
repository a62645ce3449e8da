"""One process holds a GPU at a time: a lock file per device that the kernel releases when its holder dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from fsr.errors import FsrError

_POLL_S = 0.05


class DeviceLock:
    """An exclusive lock named after a device (``cuda:0``), as a context manager.

    The file stays; only the lock on it counts, and that goes with the process however it ends. The holder's
    process id is in the file for the message. One lock object is one claim: two in one process exclude
    each other too.

    Args:
        name: the device.
        folder: where lock files lie; by default a folder under the system's temporary folder that all users
            of the machine share.
        timeout_s: how long ``with`` waits before it raises FsrError.
    """

    def __init__(self, name: str, folder: Path | None = None, *, timeout_s: float = 60.0) -> None:
        self.name = name
        self._path = (folder or Path(tempfile.gettempdir()) / "fsr-locks") / f"{name.replace(':', '-')}.lock"
        self._timeout_s = timeout_s
        self._file: int | None = None

    def __enter__(self) -> Self:
        deadline = time.monotonic() + self._timeout_s
        while not self.acquire():
            if time.monotonic() > deadline:
                raise FsrError(
                    f"{self.name} is in use by {self.holder()}", expected="a device that nobody is timing on",
                    where=str(self._path), fix="wait for that process to end, or choose another --device",
                )  # fmt: skip
            time.sleep(_POLL_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def acquire(self) -> bool:
        """Take the lock if it is free, without waiting; whether this object holds it now."""
        if self._file is not None:
            return True
        file = self._open()
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        self._file = file
        return True

    def release(self) -> None:
        """Let the lock go; nothing happens when it is not held."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def holder(self) -> str:
        """Who holds the lock, in words."""
        try:
            text = self._path.read_text(encoding="ascii").strip()
        except OSError:
            text = ""
        return f"process {text}" if text.isdigit() else "another process"

    def _open(self) -> int:
        try:
            if not self._path.parent.is_dir():
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with contextlib.suppress(PermissionError):  # another user made it in the meantime
                    self._path.parent.chmod(0o1777)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except OSError as fault:
            raise FsrError(
                f"the lock file of {self.name} cannot be opened ({fault.strerror})", where=str(self._path),
                fix="make the folder writable, or set TMPDIR",
            ) from fault  # fmt: skip
        with contextlib.suppress(PermissionError):
            os.fchmod(file, 0o666)
        return file
