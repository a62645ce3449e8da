"""The schema as numbered, append-only migrations, each in one transaction with its record."""

from __future__ import annotations

import sqlite3

from fsr.errors import StorageError

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE winners (
        key TEXT PRIMARY KEY,
        source TEXT NOT NULL,
        base TEXT NOT NULL,
        context TEXT NOT NULL,
        basis TEXT NOT NULL CHECK (basis IN ('measured', 'predicted')),
        hardware TEXT NOT NULL,
        arch TEXT NOT NULL,
        sm_count INTEGER,
        driver TEXT NOT NULL,
        body TEXT NOT NULL,
        body_digest TEXT NOT NULL,
        created REAL NOT NULL
    );
    CREATE INDEX winners_by_source ON winners (source);
    CREATE TABLE failures (
        context TEXT NOT NULL,
        candidate TEXT NOT NULL,
        status TEXT NOT NULL,
        evidence TEXT NOT NULL,
        created REAL NOT NULL,
        PRIMARY KEY (context, candidate)
    );
    CREATE TABLE devices (
        uuid TEXT PRIMARY KEY,
        driver TEXT NOT NULL,
        hardware TEXT NOT NULL,
        arch TEXT NOT NULL,
        sm_count INTEGER,
        info TEXT NOT NULL,
        seen REAL NOT NULL
    );
    """,
    """
    CREATE TABLE quarantine (
        key TEXT PRIMARY KEY,
        source TEXT NOT NULL,
        body TEXT NOT NULL,
        body_digest TEXT NOT NULL,
        signer TEXT NOT NULL,
        imported REAL NOT NULL
    );
    CREATE TABLE signers (
        signer TEXT PRIMARY KEY,
        serial INTEGER NOT NULL
    );
    """,
    """
    CREATE TABLE experience (
        run TEXT PRIMARY KEY,
        kernel TEXT NOT NULL,
        basis TEXT NOT NULL CHECK (basis IN ('measured', 'predicted')),
        hardware TEXT NOT NULL,
        moves INTEGER NOT NULL,
        body TEXT NOT NULL,
        body_digest TEXT NOT NULL,
        created REAL NOT NULL
    );
    CREATE INDEX experience_by_kernel ON experience (kernel, basis, hardware);
    """,
)


def version_of(connection: sqlite3.Connection) -> int:
    """How many migrations the database has had."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection) -> None:
    """Apply what is missing. Raises StorageError when the database is of a newer fsr, or of none."""
    found = version_of(connection)
    if found < 0:
        raise StorageError(
            f"the cache database has schema {found}, which no fsr wrote", expected=f"0 to {len(MIGRATIONS)}",
            fix="move it away, or set FSR_CACHE to another path",
        )  # fmt: skip
    if found > len(MIGRATIONS):
        raise StorageError(
            f"the cache database has schema {found}, this fsr knows up to {len(MIGRATIONS)}",
            fix="update fsr, or set FSR_CACHE to another path",
        )
    for number in range(found, len(MIGRATIONS)):
        connection.execute("BEGIN IMMEDIATE")
        try:
            if version_of(connection) == number:  # another process may have been quicker
                for statement in MIGRATIONS[number].split(";"):
                    if statement.strip():
                        connection.execute(statement)
                connection.execute(f"PRAGMA user_version={number + 1}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # a full disk has ended it already
                connection.execute("ROLLBACK")
            raise
