"""``fsr lookup``: the winner for this hardware, in milliseconds. Standard library alone.

The ladder: exact -> the same device under another driver or compiler -> the same architecture, closest number
of multiprocessors -> nothing. The answer always says its tier; by default only an exact one is served.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsr.cache.connection import damaged, open_for_reading
from fsr.cache.entry import Entry, read_body
from fsr.cache.hardware import known_device
from fsr.cache.key import hardware_of, includes_unchanged, json_digest, text_digest
from fsr.errors import EXIT_DONE, EXIT_MISS, FsrError, StorageError, UsageError

TIERS = ("exact", "driver", "arch")
USAGE = """usage: fsr lookup KERNEL [--entry NAME] [--device cuda:N] [--tier exact|driver|arch] [-o OUT] [--json]

Prints the path of the winner for this hardware and exits 0; exits 3 when the cache holds none."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A winner and how well it fits: ``tier`` is 'exact', 'driver' or 'arch'."""

    entry: Entry
    tier: str


def find(
    kernel: Path, database: Path, *, entry: str | None = None, device: Mapping[str, Any] | int = 0, tier: str = "exact"
) -> Hit | None:
    """The best measured winner of a kernel file, or None.

    ``device``: an identity (fields of DeviceInfo) or the index of the GPU to look at. ``tier``: the last step
    of the ladder that may answer. Raises UsageError when the kernel cannot be read, StorageError when the
    database cannot be."""
    try:
        source = text_digest(kernel.read_bytes())
    except OSError as fault:
        raise UsageError(
            f"the kernel file cannot be read: {fault.strerror}", where=str(kernel), fix="check the path"
        ) from None
    connection = open_for_reading(database)
    if connection is None:
        return None
    try:
        info = known_device(connection, device) if isinstance(device, int) else dict(device)
        if info is None:
            return None
        rows = connection.execute(
            "SELECT body, body_digest FROM winners WHERE source = ? AND basis = 'measured' AND arch = ?"
            " ORDER BY created DESC",
            (source, info["arch"]),
        ).fetchall()
    except sqlite3.Error as fault:
        raise damaged(database, fault) from None
    finally:
        connection.close()
    return _best(rows, info, kernel, entry, tier)


def _best(
    rows: list[tuple[str, str]], info: Mapping[str, Any], kernel: Path, entry: str | None, tier: str
) -> Hit | None:
    hardware = json_digest(hardware_of(info))
    ranked: list[tuple[int, int, int, Hit]] = []
    for order, (body, digest) in enumerate(rows):
        found = read_body(body, digest)
        if found is None or (entry is not None and found.key.entry != entry):
            continue
        if not includes_unchanged(kernel.parent, dict(found.key.includes)):
            continue
        step = 2 if found.key.hardware != hardware else 0 if found.key.driver == info["driver"] else 1
        distance = abs((found.device.get("sm_count") or 0) - (info.get("sm_count") or 0))
        if step <= TIERS.index(tier):
            ranked.append((step, distance, order, Hit(found, TIERS[step])))
    return min(ranked, key=lambda r: r[:3])[3] if ranked else None


def write_files(hit: Hit, folder: Path) -> list[Path]:
    """Place the winner's files in a folder (made when missing), each atomically; returns their paths."""
    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in hit.entry.files.items():
            path = folder / Path(name).name
            if not path.exists() or path.read_text() != text:
                draft = folder / f".{path.name}.{os.getpid()}"
                draft.write_text(text)
                draft.replace(path)
            paths.append(path)
    except OSError as fault:
        raise StorageError(
            f"the winner cannot be written: {fault.strerror}", where=str(folder), fix="give -o a writable folder"
        ) from None
    return paths


def main(arguments: list[str], database: Path) -> int:
    """The command; returns its exit code. Prints to standard output only what was asked for."""
    import sys

    try:
        options = _parse(arguments)
        if options is None:
            print(USAGE)
            return EXIT_DONE
        kernel = Path(str(options["kernel"]))
        hit = find(
            kernel, database, entry=options["entry"], device=_index(options["device"]), tier=options["tier"] or "exact"
        )
        if hit is None:
            print(f"fsr lookup: no winner for {kernel} on this hardware; `fsr refine {kernel}` finds one",
                  file=sys.stderr)  # fmt: skip
            return EXIT_MISS
        folder = database.parent / "winners" / hit.entry.key.digest()
        paths = write_files(hit, Path(options["o"]) if options["o"] else folder)
        print(_json(hit, paths) if options["json"] else paths[0])
    except FsrError as fault:
        print(f"fsr: {fault}", file=sys.stderr)
        return fault.exit_code
    return EXIT_DONE


def _json(hit: Hit, paths: list[Path]) -> str:
    import json

    told = {
        "status": "hit", "tier": hit.tier, "basis": hit.entry.basis, "entry": hit.entry.key.entry,
        "files": [str(p) for p in paths], "device": dict(hit.entry.device), "evidence": dict(hit.entry.evidence),
    }  # fmt: skip
    return json.dumps(told)


def _index(text: str | None) -> int:
    name, _, number = (text or "cuda:0").partition(":")
    if name not in ("cuda", "auto") or not (number or "0").isdigit():
        raise UsageError(f"unknown device {text!r}", expected="cuda:N", fix="for example --device cuda:0")
    return int(number or "0")


def _parse(arguments: list[str]) -> dict[str, Any] | None:
    options: dict[str, Any] = dict.fromkeys(("kernel", "entry", "device", "tier", "o", "json"))
    values = {"--entry": "entry", "--device": "device", "--tier": "tier", "-o": "o", "--out": "o"}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in ("-h", "--help"):
            return None
        if word == "--json":
            options["json"] = True
        elif word in values:
            if not rest:
                raise UsageError(f"{word} needs a value", where="fsr lookup", fix="see `fsr lookup --help`")
            options[values[word]] = rest.pop(0)
        elif word.startswith("-") or options["kernel"] is not None:
            raise UsageError(f"unexpected {word!r}", where="fsr lookup", fix="see `fsr lookup --help`")
        else:
            options["kernel"] = word
    if options["kernel"] is None:
        raise UsageError("no kernel named", expected="fsr lookup KERNEL", fix="see `fsr lookup --help`")
    if options["tier"] not in (None, *TIERS):
        raise UsageError(f"unknown tier {options['tier']!r}", expected="exact, driver or arch")
    return options
