"""The tables of the queue as numbered, append-only migrations, each in one transaction with its number."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from fsr.errors import StorageError

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE jobs (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            kernel TEXT NOT NULL,
            digest TEXT NOT NULL,
            hardware TEXT NOT NULL,
            priority INTEGER NOT NULL,
            state TEXT NOT NULL
                CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled', 'superseded')),
            reason TEXT NOT NULL,
            run TEXT NOT NULL DEFAULT '',
            attempts INTEGER NOT NULL DEFAULT 0,
            wanted TEXT NOT NULL DEFAULT '',
            token TEXT NOT NULL DEFAULT '',
            boot TEXT NOT NULL DEFAULT '',
            beat_s REAL NOT NULL DEFAULT 0,
            ready_s REAL NOT NULL DEFAULT 0,
            created REAL NOT NULL,
            changed REAL NOT NULL,
            started REAL,
            ended REAL,
            progress TEXT NOT NULL DEFAULT '{}',
            result TEXT,
            error TEXT NOT NULL DEFAULT '',
            CHECK ((state = 'running') = (token <> ''))
        )""",
        # One content of a kernel is never queued twice, and never worked on twice at once.
        """CREATE UNIQUE INDEX live ON jobs (kernel, digest, hardware) WHERE state IN ('queued', 'running')""",
        """CREATE INDEX waiting ON jobs (hardware, priority DESC, id) WHERE state = 'queued'""",
        """CREATE INDEX by_kernel ON jobs (kernel, hardware, id)""",
        """CREATE TABLE spent (day TEXT PRIMARY KEY, seconds REAL NOT NULL)""",
    ),
    ("""ALTER TABLE jobs ADD COLUMN stack TEXT NOT NULL DEFAULT ''""",),
    ("""ALTER TABLE jobs ADD COLUMN given TEXT NOT NULL DEFAULT '[]'""",),
)


def opened(path: Path) -> sqlite3.Connection:
    """A connection to the queue, made or migrated where needed; commits reach the disk before they return.

    Raises StorageError for a damaged file, a newer schema, a lock or a folder that cannot be written."""
    connection = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=30.0, check_same_thread=False, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        _migrate(connection, path)
    except (sqlite3.Error, OSError, StorageError) as fault:
        if connection is not None:
            connection.close()
        if isinstance(fault, StorageError):
            raise
        raise unusable(path, fault) from None
    return connection


def unusable(path: Path, fault: Exception) -> StorageError:
    """The error for a queue that SQLite refuses."""
    full = "full" in str(fault) or "disk I/O" in str(fault) or isinstance(fault, OSError)
    return StorageError(
        f"the queue of jobs cannot be {'written' if full else 'used'}: {fault}", where=str(path),
        expected="room on its disk" if full else "a SQLite database that the daemon made",
        fix="free some space: what was saved meanwhile is queued then" if full
        else "move it away: it is made again, and the folders are looked through anew",
    )  # fmt: skip


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    def version() -> int:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])

    if version() > len(MIGRATIONS):
        raise StorageError(
            f"the queue of jobs has schema {version()}, this fsr knows up to {len(MIGRATIONS)}", where=str(path),
            fix="update fsr, or move the file away: the folders are looked through anew",
        )  # fmt: skip
    for number in range(version(), len(MIGRATIONS)):
        connection.execute("BEGIN IMMEDIATE")
        try:
            if version() == number:
                for statement in MIGRATIONS[number]:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version={number + 1}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
