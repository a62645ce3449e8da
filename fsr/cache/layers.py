"""The caches that a lookup asks, one after another: the user's, then a read-only one of the system, then copies of what
another machine serves.

Standard library alone, and no more of it than a lookup needs: ``fsr lookup`` goes through here.
"""

from __future__ import annotations

import os
import sqlite3

from fsr.cache.connection import damaged, open_for_reading
from fsr.cache.digest import text_digest
from fsr.cache.hardware import Hardware, known_device
from fsr.cache.lookup import Hit, find, readable
from fsr.errors import StorageError
from fsr.files import Unreadable, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from fsr.cache.readthrough import ReadThrough


class Found:
    """hit: the winner. database: the cache that held it. user: the user's cache, beside which files are placed."""

    __slots__ = ("database", "hit", "user")

    def __init__(self, hit: Hit, database: str, user: str) -> None:
        self.hit, self.database, self.user = hit, database, user

    @property
    def folder(self) -> Path:
        """The folder that this winner's files are written to, beside the user's cache."""
        from pathlib import Path

        return Path(self.place)

    @property
    def place(self) -> str:
        """The same as text, without pathlib."""
        return os.path.join(os.path.dirname(os.path.abspath(self.user)), "winners", self.hit.key)  # noqa: PTH100, PTH118, PTH120


class Layers:
    """user: path of the user's database. system: of a read-only one that is asked next, '' for none. remote, token:
    address of the daemon that is asked last, and what opens it; home: where the keys lie that it must sign with."""

    __slots__ = ("remote", "system", "user")

    def __init__(self, user: str, system: str = "", remote: str = "", token: str = "", home: str = "") -> None:
        self.user, self.system = user, system
        self.remote: ReadThrough | None = None
        if remote:
            from fsr.cache.readthrough import ReadThrough

            self.remote = ReadThrough(remote, token, home, user)

    @property
    def databases(self) -> list[tuple[str, str]]:
        """(name, path) of every layer, in the order in which they are asked."""
        found = [("user", self.user), ("system", self.system)]
        return [pair for pair in (*found, ("remote", self.remote.database if self.remote else "")) if pair[1]]

    def find(
        self, kernel: str, *, entry: str | None = None, device: int = 0, tier: str = "exact",
        given: tuple[str, ...] | None = (),
    ) -> Found | None:  # fmt: skip
        """The best winner of the first layer that has one. The device may be known to either; ``given``: as of
        :func:`fsr.cache.lookup.find`.

        Raises UsageError when the kernel cannot be read, StorageError when the user's database cannot be; another
        cache that cannot be read is as good as none."""
        wanted = self.hardware(device)
        if wanted is None:
            readable(kernel)
            return None
        hit = find(kernel, self.user, entry=entry, device=wanted, tier=tier, given=given)
        if hit is not None:
            used(self.user, hit.key)
            return Found(hit, self.user, self.user)
        if self.remote is not None:
            self._read_through(kernel)
        for _, database in self.databases[1:]:
            try:
                hit = find(kernel, database, entry=entry, device=wanted, tier=tier, given=given)
            except StorageError:
                continue
            if hit is not None:
                return Found(hit, database, self.user)
        return None

    def _read_through(self, kernel: str) -> None:
        """Ask the other side, where that was not done lately."""
        assert self.remote is not None
        try:
            source = text_digest(read_file(kernel))
        except Unreadable:
            return
        if not self.remote.asked_lately(source):
            self.remote.ask(source)

    def hardware(self, index: int) -> Hardware | None:
        """GPU ``index`` as the first layer that has seen it knows it; None without one."""
        for _, database in self.databases:
            try:
                connection = open_for_reading(database)
                if connection is None:
                    continue
                try:
                    found = known_device(connection, index)
                finally:
                    connection.close()
            except StorageError:
                if database == self.user:
                    raise
                continue
            except sqlite3.Error as fault:
                if database == self.user:
                    raise damaged(database, fault) from None
                continue
            if found is not None:
                return found
        return None


def used(database: str, key: str) -> None:
    """Note that a winner was served, by the time of a file: reading must not write to the database."""
    path = f"{database}.used/{key}"
    try:
        try:
            os.utime(path)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
            with open(path, "w"):  # noqa: PTH123
                pass
    except OSError:
        pass  # a folder that cannot be written: the winner counts as unused since it was stored
