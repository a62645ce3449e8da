"""One service a home: its folder, its lock, and how others find it."""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path
from typing import IO

from fsr.errors import UsageError
from fsr.settings import Settings


class Place:
    """The files of the service under the home of fsr. Everything here is for its user alone."""

    def __init__(self, home: str | Path) -> None:
        self.folder = Path(home) / "daemon"
        self.config = Path(home) / "daemon.toml"
        self.lock, self.jobs = self.folder / "lock", self.folder / "jobs.db"
        self.socket, self.address = self.folder / "socket", self.folder / "address"
        self.token, self.paused = self.folder / "token", self.folder / "paused"
        self.log = self.folder / "log" / "fsrd.log"

    @classmethod
    def of(cls, settings: Settings) -> Place:
        """That of a home."""
        return cls(settings.home)

    def make(self) -> None:
        """Make the folders."""
        for folder in (self.folder, self.log.parent):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder.chmod(0o700)

    def secret(self) -> str:
        """The token of the loopback API, made on first use; readable by its user only."""
        try:
            known = self.token.read_text(encoding="ascii").strip()
        except OSError:
            known = ""
        if len(known) >= 32:
            return known
        made = secrets.token_urlsafe(32)
        draft = self.token.with_suffix(".new")
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(made)
        draft.replace(self.token)
        return made

    def running(self) -> int | None:
        """The process that is the service of this home now, None while there is none."""
        try:
            with self.lock.open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            text = self.lock.read_text(encoding="ascii").strip()
            return int(text) if text.isdigit() else 0
        except OSError:
            return None
        return None


class Instance:
    """Holds the lock of a place for as long as it lives. Raises UsageError when another process does."""

    def __init__(self, place: Place) -> None:
        place.make()
        self._file: IO[str] = place.lock.open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise UsageError(
                f"the daemon of this home runs already, as process {place.running()}", where=str(place.folder),
                fix="fsr daemon status shows it, fsr daemon stop ends it",
            ) from None  # fmt: skip
        for left in (place.address, place.socket):  # by one that was killed
            left.unlink(missing_ok=True)
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def close(self) -> None:
        """Let it go; the file stays, so that nobody locks one that was removed."""
        self._file.truncate(0)
        self._file.close()
