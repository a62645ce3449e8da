"""Why a lookup answers what it does: which part of the key missed."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from fsr.cache.connection import damaged, open_for_reading
from fsr.cache.digest import includes_unchanged, text_digest
from fsr.cache.entry import Entry, read_body
from fsr.cache.hardware import Hardware, known_device
from fsr.errors import UsageError
from fsr.files import Unreadable, read_file
from fsr.report.words import number_text


@dataclass(frozen=True, slots=True)
class Missed:
    """A part of the key that does not fit. part: 'source', 'include', 'given', 'hardware', 'arch', 'driver', 'basis'
    or 'digest'. stored, here: what the winner was found for, and what is here now. told: the sentence."""

    part: str
    stored: str
    here: str
    told: str


@dataclass(frozen=True, slots=True)
class Considered:
    """A stored winner and what of its key missed; nothing when it is served. entry: None when it is damaged."""

    key: str
    entry: Entry | None
    missed: tuple[Missed, ...]


def explain(kernel: Path, database: Path, device: Hardware | int = 0, given: tuple[str, ...] = ()) -> list[str]:
    """Lines of text: the hardware looked for, and for every stored winner of this file what fits and what not.

    Raises UsageError when the kernel cannot be read, StorageError when the database cannot be."""
    answer = considered(kernel, database, device, given)
    if answer is None:
        return [f"there is no cache yet at {database}: `fsr refine {kernel}` makes it"]
    wanted, rows = answer
    of_this = [row for row in rows if not any(m.part == "source" for m in row.missed)]
    source = text_digest(read_file(kernel))
    lines = [f"source {source[:16]}: {number_text(len(of_this), 'winner')} stored", _hardware_line(wanted, device)]
    lines += [f"  {row.key[:16]}: " + ("; ".join(m.told for m in row.missed) or "exact: served") for row in rows]
    return lines


def considered(
    kernel: Path, database: Path, device: Hardware | int = 0, given: tuple[str, ...] = ()
) -> tuple[Hardware | None, list[Considered]] | None:
    """``device``: what is looked for, or the number of a GPU that this database has seen. ``given``: folders and
    macros, as fsr.given.as_key gives them. Returns the hardware here, and the winners of this file; where there is
    none, those of kernels that the file defines under the same name, as they were found for other bytes of it. None
    without a database."""
    try:
        data = read_file(kernel)
    except Unreadable as fault:
        raise UsageError(
            f"the kernel file cannot be read: {fault.why}", where=str(kernel), fix="check the path"
        ) from None
    connection = open_for_reading(str(database))
    if connection is None:
        return None
    columns = "SELECT key, body, body_digest, basis, hardware, driver, arch FROM winners"
    try:
        wanted = known_device(connection, device) if isinstance(device, int) else device
        rows = connection.execute(f"{columns} WHERE source = ? ORDER BY key", (text_digest(data),)).fetchall()
        if not rows:
            names = ",".join(f"'{name}'" for name in _kernels(data))
            where = f"json_valid(body) AND json_extract(body, '$.key.entry') IN ({names})"
            rows = connection.execute(f"{columns} WHERE {where} ORDER BY created DESC LIMIT 20").fetchall()
    except sqlite3.Error as fault:
        raise damaged(database, fault) from None
    finally:
        connection.close()
    return wanted, [_considered(row, wanted, kernel, text_digest(data), given) for row in rows]


def _kernels(data: bytes) -> list[str]:
    """Names that a file declares behind __global__, as far as a pattern tells."""
    text = data.decode("utf-8", "replace")
    return re.findall(r"__global__[^;{(]*?(?:__launch_bounds__\s*\([^)]*\)[^;{(]*?)?\b([A-Za-z_]\w*)\s*\(", text)


def _considered(
    row: tuple[str, ...], wanted: Hardware | None, kernel: Path, source: str, given: tuple[str, ...]
) -> Considered:
    key, body, digest, basis, hardware, driver, arch = row
    entry = read_body(body, digest)
    if entry is None:
        return Considered(key, None, (Missed("digest", digest, "", "damaged: never served"),))
    missed = []
    if entry.key.source != source:
        told = f"{entry.key.entry} was refined in a file of other bytes (source {entry.key.source[:16]})"
        missed.append(Missed("source", entry.key.source, source, told))
    if entry.key.given != given:
        stored, here = (" ".join(texts) or "no -I or -D" for texts in (entry.key.given, given))
        missed.append(Missed("given", stored, here, f"refined with {stored}, looked up with {here}"))
    missed += _hardware_missed(wanted, basis, hardware, driver, arch)
    folder = kernel.parent
    for name, stored in entry.key.includes:
        if not includes_unchanged(str(folder), [(name, stored)]):
            path = folder / name
            here = text_digest(path.read_bytes()) if path.is_file() else "absent"
            missed.append(Missed("include", stored, here, f"{name} changed: an included file or the contract"))
    return Considered(key, entry, tuple(missed))


def _hardware_line(wanted: Hardware | None, index: Hardware | int) -> str:
    if wanted is None:
        return f"no GPU {index} that this cache has seen: nothing can be served (`fsr refine` notes the device)"
    return f"hardware {wanted.arch}, {wanted.sm_count} multiprocessors, driver {wanted.driver}"


def _hardware_missed(wanted: Hardware | None, basis: str, hardware: str, driver: str, arch: str) -> list[Missed]:
    missed = []
    if basis != "measured":
        missed.append(Missed("basis", basis, "measured", "predicted, not measured: never served"))
    if wanted is None:
        missed.append(Missed("hardware", hardware, "", "no GPU to compare with"))
    elif arch != wanted.arch:
        missed.append(Missed("arch", arch, wanted.arch, f"for {arch}"))
    elif hardware != wanted.hardware:
        told = "other hardware of this architecture: served with --tier arch"
        missed.append(Missed("hardware", hardware, wanted.hardware, told))
    elif driver != wanted.driver:
        missed.append(Missed("driver", driver, wanted.driver, f"driver {driver}: served with --tier driver"))
    return missed
