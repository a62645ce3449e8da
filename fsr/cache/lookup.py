"""``fsr lookup``: the winner for this hardware, in milliseconds. Standard library alone.

The ladder: exact -> the same device under another driver or compiler -> the same architecture, closest number
of multiprocessors -> nothing. The answer always says its tier; by default only an exact one is served.
"""

from __future__ import annotations

import os
import sqlite3

from fsr.cache.connection import damaged, open_for_reading
from fsr.cache.digest import hardware_of, includes_unchanged, json_digest, text_digest
from fsr.cache.hardware import Hardware, known_device
from fsr.errors import StorageError, UsageError
from fsr.files import Unreadable, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TIERS = ("exact", "driver", "arch")


class Hit:
    """A winner and how well it fits.

    key: the digest it is stored under. body: the stored JSON text (key, basis, device, files, evidence).
    files: name to text of what a build uses. tier: 'exact', 'driver' or 'arch'."""

    __slots__ = ("body", "files", "key", "tier")

    def __init__(self, key: str, body: str, files: dict[str, str], tier: str) -> None:
        self.key, self.body, self.files, self.tier = key, body, files, tier


def find(
    kernel: str | os.PathLike[str],
    database: str | os.PathLike[str],
    *,
    entry: str | None = None,
    device: Mapping[str, Any] | Hardware | int = 0,
    tier: str = "exact",
    given: tuple[str, ...] | None = (),
) -> Hit | None:
    """The best measured winner of a kernel file, or None.

    ``device``: an identity (fields of DeviceInfo), hardware, or the index of the GPU to look at. ``tier``: the
    last step of the ladder that may answer. ``given``: folders and macros beside the contract's, as fsr.given.as_key
    gives them; None for whatever the winner was found under. Raises UsageError when the kernel cannot be read,
    StorageError when the database cannot be."""
    kernel, database = os.fspath(kernel), os.fspath(database)
    source = text_digest(readable(kernel))
    connection = open_for_reading(database)
    if connection is None:
        return None
    try:
        found = known_device(connection, device) if isinstance(device, int) else device
        if found is not None and not isinstance(found, Hardware):
            found = _hardware(found)
        if found is None:
            return None
        rows = _fitting(connection, source, found, os.path.dirname(kernel), tier)  # noqa: PTH120
        return _best(connection, rows, entry, given)
    except sqlite3.Error as fault:
        raise damaged(database, fault) from None
    finally:
        connection.close()


def readable(kernel: str) -> bytes:
    """The bytes of a kernel file. Raises UsageError when it cannot be read."""
    try:
        return read_file(kernel)
    except Unreadable as fault:
        raise UsageError(f"the kernel file cannot be read: {fault.why}", where=kernel, fix="check the path") from None


def _hardware(info: Mapping[str, Any]) -> Hardware:
    return Hardware(json_digest(hardware_of(info)), info["arch"], info.get("sm_count"), str(info.get("driver")))


def _fitting(
    connection: sqlite3.Connection, source: str, wanted: Hardware, folder: str, tier: str
) -> list[tuple[int, int, float, str, str]]:
    """(step, distance in multiprocessors, age, key, body) of the winners of these bytes and includes.

    SQLite itself reads the JSON of an entry: importing json costs 4 ms."""
    rows = connection.execute(
        "SELECT key, body, body_digest, hardware, driver, sm_count, created FROM winners"
        " WHERE source = ? AND basis = 'measured' AND arch = ?",
        (source, wanted.arch),
    ).fetchall()
    found: list[tuple[int, int, float, str, str]] = []
    for key, body, digest, hardware, driver, sm_count, created in rows:
        step = 2 if hardware != wanted.hardware else 0 if driver == wanted.driver else 1
        if step > TIERS.index(tier) or text_digest(body.encode()) != digest:
            continue
        includes = connection.execute(
            "SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?, '$.key.includes')",
            (body,),
        ).fetchall()
        if includes_unchanged(folder, includes):
            found.append((step, abs((sm_count or 0) - (wanted.sm_count or 0)), -created, key, body))
    return found


def _best(
    connection: sqlite3.Connection,
    rows: list[tuple[int, int, float, str, str]],
    entry: str | None,
    given: tuple[str, ...] | None,
) -> Hit | None:
    for step, _, _, key, body in sorted(rows):
        name = connection.execute("SELECT json_extract(?, '$.key.entry')", (body,)).fetchone()[0]
        stored = connection.execute("SELECT value FROM json_each(?, '$.key.given')", (body,)).fetchall()
        if entry in (None, name) and given in (None, tuple(text for (text,) in stored)):
            files = dict(connection.execute("SELECT key, value FROM json_each(?, '$.files')", (body,)).fetchall())
            return Hit(key, body, files, TIERS[step])
    return None


def write_files(hit: Hit, folder: str) -> list[str]:
    """Place the winner's files in a folder (made when missing), each atomically; returns their paths."""
    paths = []
    try:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        for name, text in hit.files.items():
            path = f"{folder}/{name.rpartition('/')[2]}"
            data = text.encode()
            if not _holds(path, data):
                draft = f"{path}.{os.getpid()}.draft"
                with open(draft, "wb") as file:  # noqa: PTH123
                    file.write(data)
                os.replace(draft, path)  # noqa: PTH105
            paths.append(path)
    except OSError as fault:
        raise StorageError(
            f"the winner cannot be written: {fault.strerror}", where=folder, fix="give -o a writable folder"
        ) from None
    return paths


def _holds(path: str, data: bytes) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read() == data
    except OSError:
        return False
