"""Writing the cache: winners, remembered failures, seen devices. One process writes at a time.

Reading for builds is in :mod:`fsr.cache.lookup`; this module may take its time (sqlite-utils).
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from fsr.cache import hints
from fsr.cache.connection import damaged, open_for_writing
from fsr.cache.digest import hardware_of, json_digest, text_digest
from fsr.cache.entry import Entry, read_body
from fsr.cache.key import CacheKey
from fsr.cache.migrations import migrate


class Store:
    """The cache database, opened for writing; a context manager.

    Raises StorageError when it cannot be opened (network file system, damage, a lock, a newer schema).
    """

    def __init__(self, path: Path) -> None:
        from sqlite_utils import Database  # 0.3 s: not on the path of lookup

        self.path = path
        self._connection = open_for_writing(path)
        self._connection.isolation_level = None
        try:
            migrate(self._connection)
        except sqlite3.Error as fault:
            self._connection.close()
            raise damaged(path, fault) from None
        self._db = Database(self._connection, execute_plugins=False)
        if not Path(hints.folder_of(path)).is_dir():  # a database of an fsr that had none
            with self.transaction():
                found = self._connection.execute("SELECT DISTINCT source FROM winners WHERE basis = 'measured'")
                hints.note(path, [source for (source,) in found])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def publish(self, entry: Entry) -> None:
        """Store a winner, atomically: readers see the old row or the new one. A predicted winner never
        replaces a measured one."""
        body = entry.to_body()
        row = {
            "key": entry.key.digest(), "source": entry.key.source, "base": entry.key.without_driver(),
            "context": entry.key.context(), "basis": entry.basis, "hardware": entry.key.hardware,
            "arch": entry.device["arch"], "sm_count": entry.device.get("sm_count"), "driver": entry.key.driver,
            "body": body, "body_digest": text_digest(body.encode()), "created": time.time(),
        }  # fmt: skip
        with self.transaction():
            held = self._row(entry.key.digest())
            if held is not None and held["basis"] == "measured" and entry.basis == "predicted":
                return
            if entry.basis == "measured":
                hints.note(self.path, [entry.key.source])
            self._db.table("winners").insert(row, replace=True)

    def winner(self, key: CacheKey) -> Entry | None:
        """The winner stored under exactly this key; None when absent or damaged."""
        with self.told():
            row = self._row(key.digest())
        return None if row is None else read_body(row["body"], row["body_digest"])

    def akin(self, key: CacheKey) -> Entry | None:
        """The newest winner that differs from this key in driver or compiler alone, a measured one before others; None
        without one that is whole."""
        with self.told():
            rows = list(
                self._db.table("winners").rows_where(
                    "base = ?", [key.without_driver()], order_by="basis = 'measured' desc, created desc, key"
                )
            )
        return next(filter(None, (read_body(row["body"], row["body_digest"]) for row in rows)), None)

    def entries(self) -> Iterator[tuple[dict[str, Any], Entry | None]]:
        """(row, entry) of every winner, newest first; the entry is None when damaged."""
        with self.told():
            rows = list(self._db.table("winners").rows_where(order_by="created desc, key"))
        for row in rows:
            yield row, read_body(row["body"], row["body_digest"])

    def remove(self, keys: list[str]) -> int:
        """Delete winners by key digest; returns how many there were."""
        with self.transaction():
            held = self._measured_sources()
            removed = sum(
                self._connection.execute("DELETE FROM winners WHERE key = ?", (key,)).rowcount for key in keys
            )
            hints.forget(self.path, held - self._measured_sources())
        return removed

    def _measured_sources(self) -> set[str]:
        return {s for (s,) in self._connection.execute("SELECT source FROM winners WHERE basis = 'measured'")}

    def remember_failure(self, context: str, candidate: str, status: str, evidence: Mapping[str, Any]) -> None:
        """Store a failed candidate (by hash) so that no run pays twice; the first telling stays."""
        row = {
            "context": context, "candidate": candidate, "status": status,
            "evidence": json.dumps(evidence, sort_keys=True), "created": time.time(),
        }  # fmt: skip
        with self.told():
            self._db.table("failures").insert(row, ignore=True)

    def failures(self, context: str) -> dict[str, str]:
        """Candidate hash to status of every failure remembered in this context."""
        with self.told():
            found = self._connection.execute("SELECT candidate, status FROM failures WHERE context = ?", (context,))
            return dict(found.fetchall())

    def forget_failures(self, older_than_s: float) -> int:
        """Delete failures older than that many seconds; returns how many."""
        limit = time.time() - older_than_s
        with self.told():
            return self._connection.execute("DELETE FROM failures WHERE created < ?", (limit,)).rowcount

    def saw_device(self, uuid: str, driver: str, info: Mapping[str, Any]) -> None:
        """Note a device's identity, so that lookup needs no driver call."""
        row = {
            "uuid": uuid, "driver": driver, "hardware": json_digest(hardware_of(info)), "arch": info["arch"],
            "sm_count": info.get("sm_count"), "info": json.dumps(dict(info), sort_keys=True), "seen": time.time(),
        }  # fmt: skip
        with self.told():
            self._db.table("devices").insert(row, replace=True)

    def _row(self, key: str) -> dict[str, Any] | None:
        return next(iter(self._db.table("winners").rows_where("key = ?", [key])), None)

    @contextmanager
    def told(self) -> Iterator[None]:
        """A context in which SQLite's faults become StorageError."""
        try:
            yield
        except sqlite3.Error as fault:
            raise damaged(self.path, fault) from None

    def transaction(self) -> _Immediate:
        """A write transaction, a context manager; within it, :attr:`connection` is the writer's alone."""
        return _Immediate(self._connection, self.path)

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, for the parts of the cache that keep tables of their own."""
        return self._connection


class _Immediate:
    """One write transaction; SQLite's faults become StorageError."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path

    def __enter__(self) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as fault:
            raise damaged(self._path, fault) from None

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, _: object) -> None:
        if self._connection.in_transaction:
            self._connection.execute("COMMIT" if kind is None else "ROLLBACK")
        if isinstance(value, sqlite3.Error | OSError):
            raise damaged(self._path, value) from None
