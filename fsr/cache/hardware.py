"""The device of this machine as the cache knows it. Standard library alone: ``fsr lookup`` answers in milliseconds.

A backend's ``present`` module tells a device's driver and UUID in microseconds, and the cache's ``devices`` table
(filled by refine) turns the UUID into its full identity.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3


class Hardware:
    """A GPU as lookup compares it: digest of its identity, architecture, multiprocessors, driver now."""

    __slots__ = ("arch", "driver", "hardware", "sm_count")

    def __init__(self, hardware: str, arch: str, sm_count: int | None, driver: str) -> None:
        self.hardware, self.arch, self.sm_count, self.driver = hardware, arch, sm_count, driver


def known_device(connection: sqlite3.Connection, index: int, backend: str = "cuda") -> Hardware | None:
    """Device ``index`` with its driver as it is now; None when there is no such or the cache never saw it."""
    found = importlib.import_module(f"fsr.backends.{backend}.present").numbered(index)
    if found is None:
        return None
    driver, uuid = found
    row = connection.execute("SELECT hardware, arch, sm_count FROM devices WHERE uuid = ?", (uuid,)).fetchone()
    return None if row is None else Hardware(row[0], row[1], row[2], driver)
