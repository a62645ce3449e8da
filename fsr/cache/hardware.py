"""Which GPU is in this machine, without a driver call where possible. Standard library alone.

``cuInit`` costs 0.1 s and more; the kernel driver's files under /proc tell GPU and driver in microseconds, and
the cache's ``devices`` table (filled by refine and doctor) turns a GPU's UUID into its full identity.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

PROC = Path("/proc/driver/nvidia")


def present(proc: Path = PROC) -> tuple[str, list[str]] | None:
    """(driver version, GPU UUIDs in bus order) from the kernel driver's files, or None without them."""
    try:
        words = (proc / "version").read_text().split("Kernel Module")[1].split()
        driver = next(w for w in words if w[0].isdigit())
        folders = sorted((proc / "gpus").iterdir())
        uuids = [
            line.split(":", 1)[1].strip()
            for folder in folders
            for line in (folder / "information").read_text().splitlines()
            if line.startswith("GPU UUID")
        ]
    except (OSError, IndexError, StopIteration):
        return None
    return (driver, uuids) if uuids and not any("?" in uuid for uuid in uuids) else None


def asked(timeout_s: float = 10.0) -> tuple[str, list[str]] | None:
    """The same from ``nvidia-smi``, slower; None when there is none."""
    command = ["nvidia-smi", "--query-gpu=driver_version,uuid", "--format=csv,noheader"]
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    rows = [[part.strip() for part in line.split(",")] for line in text.splitlines() if "," in line]
    return (rows[0][0], [uuid for _, uuid in rows]) if rows else None


def known_device(connection: sqlite3.Connection, index: int, proc: Path = PROC) -> dict[str, Any] | None:
    """The identity (fields of DeviceInfo) of GPU ``index``, with its driver as it is now; None when there is
    no such GPU or the cache has never seen it."""
    found = present(proc) or asked()
    if found is None or index >= len(found[1]):
        return None
    row = connection.execute("SELECT info FROM devices WHERE uuid = ?", (found[1][index],)).fetchone()
    if row is None:
        return None
    info: dict[str, Any] = json.loads(row[0])
    info["driver"] = found[0]
    return info
