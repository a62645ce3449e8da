"""Why a lookup answers what it does."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from fsr.cache.connection import damaged, open_for_reading
from fsr.cache.digest import includes_unchanged, text_digest
from fsr.cache.entry import read_body
from fsr.cache.hardware import Hardware, known_device
from fsr.errors import UsageError


def explain(kernel: Path, database: Path, index: int = 0) -> list[str]:
    """Lines of text: the hardware looked for, and for every stored winner of this file what fits and what not.

    Raises UsageError when the kernel cannot be read, StorageError when the database cannot be."""
    try:
        source = text_digest(kernel.read_bytes())
    except OSError as fault:
        raise UsageError(f"the kernel file cannot be read: {fault.strerror}", where=str(kernel)) from None
    connection = open_for_reading(str(database))
    if connection is None:
        return [f"there is no cache yet at {database}: `fsr refine {kernel}` makes it"]
    try:
        wanted = known_device(connection, index)
        rows = connection.execute(
            "SELECT key, body, body_digest, basis, hardware, driver, arch FROM winners WHERE source = ?", (source,)
        ).fetchall()
    except sqlite3.Error as fault:
        raise damaged(database, fault) from None
    finally:
        connection.close()
    lines = [f"source {source[:16]}: {len(rows)} winners stored", _hardware_line(wanted, index)]
    for key, body, digest, basis, hardware, driver, arch in rows:
        entry = read_body(body, digest)
        if entry is None:
            reasons = ["damaged: never served"]
        else:
            reasons = _reasons(wanted, basis, hardware, driver, arch)
            if not includes_unchanged(str(kernel.parent), entry.key.includes):
                reasons.append("an included file or the contract changed")
        lines.append(f"  {key[:16]}: " + ("; ".join(reasons) or "exact: served"))
    return lines


def _hardware_line(wanted: Hardware | None, index: int) -> str:
    if wanted is None:
        return f"no GPU {index} that this cache has seen: nothing can be served (`fsr refine` notes the device)"
    return f"hardware {wanted.arch}, {wanted.sm_count} multiprocessors, driver {wanted.driver}"


def _reasons(wanted: Hardware | None, basis: str, hardware: str, driver: str, arch: str) -> list[str]:
    reasons = []
    if basis != "measured":
        reasons.append("predicted, not measured: never served")
    if wanted is None:
        reasons.append("no GPU to compare with")
    elif arch != wanted.arch:
        reasons.append(f"for {arch}")
    elif hardware != wanted.hardware:
        reasons.append("other hardware of this architecture: served with --tier arch")
    elif driver != wanted.driver:
        reasons.append(f"driver {driver}: served with --tier driver")
    return reasons
