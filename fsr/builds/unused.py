"""Kernels with a verified winner that is not used: what a check before a commit, or of a pull request, fails on.

Such a check runs on machines without a GPU, so it asks for winners of any hardware, those among them that were imported
and that this machine cannot verify itself: whoever signed them has. A winner counts as used when a file
beside the kernel, ``KERNEL.fsr.cu``, holds it: the build takes that one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fsr.cache.connection import damaged, open_for_reading
from fsr.cache.digest import includes_unchanged, text_digest
from fsr.cache.entry import Entry, read_body


@dataclass(frozen=True, slots=True)
class Unused:
    """kernel: the file. entry: its kernel. hardware: for which the winner was measured. speedup: there."""

    kernel: Path
    entry: str
    hardware: str
    speedup: float | None


def unused(kernels: Iterable[Path], databases: Iterable[str]) -> Iterator[Unused]:
    """The winners of these files that nothing uses, best first for each file. Raises StorageError."""
    databases = list(databases)
    for kernel in kernels:
        data = kernel.read_bytes()
        found = [entry for database in databases for entry in _measured(database, text_digest(data))]
        for entry in sorted(found, key=_speedup, reverse=True):
            if includes_unchanged(str(kernel.parent), entry.key.includes) and not _used(kernel, entry):
                name = str(entry.device.get("name") or entry.device.get("arch"))
                yield Unused(kernel, entry.key.entry, name, _speedup(entry) or None)


def _measured(database: str, source: str) -> list[Entry]:
    connection = open_for_reading(database)
    if connection is None:
        return []
    try:
        columns = "SELECT body, body_digest FROM"
        rows = connection.execute(f"{columns} winners WHERE source = ? AND basis = 'measured'", (source,)).fetchall()
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'quarantine'").fetchone():
            rows += connection.execute(f"{columns} quarantine WHERE source = ?", (source,)).fetchall()
    except sqlite3.Error as fault:
        raise damaged(database, fault) from None
    finally:
        connection.close()
    return [entry for body, digest in rows if (entry := read_body(body, digest)) is not None]


def _speedup(entry: Entry) -> float:
    best = entry.evidence.get("best") or {}
    return float(best.get("speedup") or 0.0)


def _used(kernel: Path, entry: Entry) -> bool:
    beside = kernel.with_name(f"{kernel.stem}.fsr{kernel.suffix}")
    texts = [text for name, text in entry.files.items() if not name.endswith(".cuh")]
    return beside.is_file() and beside.read_bytes().decode("utf-8", "surrogateescape") in texts


def told(found: Iterable[Unused], as_json: bool) -> str:
    """The findings as lines, or as one JSON object."""
    found = list(found)
    if as_json:
        rows = [
            {"kernel": str(u.kernel), "entry": u.entry, "hardware": u.hardware, "speedup": u.speedup} for u in found
        ]
        return json.dumps({"unused": rows})
    return "\n".join(
        f"{u.kernel}: {u.entry} has a verified winner that is not used"
        + (f", {u.speedup:.2f} times as fast on {u.hardware}" if u.speedup else f" for {u.hardware}")
        for u in found
    )
