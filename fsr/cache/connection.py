"""Opening the cache database: WAL mode, a long busy time-out, local disks only. Standard library alone."""

from __future__ import annotations

import os
import sqlite3

from fsr.errors import StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

BUSY_S = 60.0
NETWORK_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p", "ceph", "lustre", "afs"})


def open_for_reading(path: str) -> sqlite3.Connection | None:
    """A read-only connection, or None when there is no database there. Raises StorageError when it is no
    database or cannot be read."""
    if not os.path.lexists(path):
        return None
    _require_plain(path)
    quoted = os.path.abspath(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")  # noqa: PTH100
    try:
        connection = sqlite3.connect(f"file:{quoted}?mode=ro", uri=True, timeout=BUSY_S)
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except sqlite3.Error as fault:
        raise damaged(path, fault) from None
    return connection


def open_for_writing(path: Path) -> sqlite3.Connection:
    """A connection in WAL mode; creates the file and its folder. Raises StorageError on a network file system,
    a read-only folder, a damaged file or a lock held longer than the time-out."""
    kind = file_system(path)
    if kind in NETWORK_FILE_SYSTEMS:
        raise StorageError(
            f"the cache database lies on a network file system ({kind})",
            expected="a local disk: SQLite's locks are not safe over a network",
            where=str(path),
            fix="set FSR_CACHE to a local path; `fsr cache export` shares winners between machines",
        )
    _require_plain(str(path))
    connection = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=BUSY_S)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
    except OSError as fault:
        raise StorageError(
            f"the cache cannot be created: {fault.strerror}",
            expected="a folder that you may write to",
            where=str(path),
            fix="set FSR_CACHE to a writable path",
        ) from None
    except sqlite3.Error as fault:
        if connection is not None:
            connection.close()
        raise damaged(path, fault) from None
    return connection


def _require_plain(path: str) -> None:
    """SQLite waits for pipes and makes files in place of links that lead nowhere."""
    if os.path.lexists(path) and not os.path.isfile(path):  # noqa: PTH113
        raise StorageError(
            "the cache database is no plain file", expected="a SQLite database made by fsr", where=path,
            fix="move it away (it is made again), or set FSR_CACHE to another path",
        )  # fmt: skip


def damaged(path: Path | str, fault: Exception) -> StorageError:
    """The error for a database that SQLite refuses."""
    if "locked" in str(fault):
        return StorageError(
            f"the cache database stayed locked for {BUSY_S:g} s",
            expected="other processes to hold it for moments",
            where=str(path),
            fix="stop the process that holds it, or leave the cache out with --no-cache",
        )
    if "full" in str(fault) or "disk I/O" in str(fault) or isinstance(fault, OSError):
        return StorageError(
            f"the cache database cannot be written: {fault}", expected="room on its disk", where=str(path),
            fix="free some space, set FSR_CACHE to another disk, or leave the cache out with --no-cache",
        )  # fmt: skip
    return StorageError(
        f"the cache database cannot be used: {fault}",
        expected="a SQLite database made by fsr",
        where=str(path),
        fix="move it away (it is made again), or set FSR_CACHE to another path",
    )


def file_system(path: Path, mounts: str | None = None) -> str:
    """The type of the file system that would hold ``path`` ('' when unknown). ``mounts``: text of /proc/mounts."""
    from pathlib import Path

    if mounts is None:
        try:
            mounts = Path("/proc/mounts").read_text()
        except OSError:
            return ""
    wanted = path.absolute()
    best, kind = -1, ""
    for line in mounts.splitlines():
        parts = line.split()
        if len(parts) < 3:
            continue
        point = Path(parts[1].replace("\\040", " "))
        if (point == wanted or point in wanted.parents) and len(str(point)) >= best:
            best, kind = len(str(point)), parts[2]
    return kind
