"""The time that leases and back-off are measured in: it never jumps, and a reboot begins it anew under another name.

The wall clock serves people only: somebody sets it, and daylight saving moves it.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Clock(Protocol):
    """boot: the name of this boot of the machine. now_s: seconds since it began, sleep included. wall_s: Unix time."""

    @property
    def boot(self) -> str: ...
    def now_s(self) -> float: ...
    def wall_s(self) -> float: ...


class MachineClock:
    """The clock of this machine (clock_gettime(2), CLOCK_BOOTTIME; random(4), boot_id)."""

    def __init__(self) -> None:
        try:
            self._boot = BOOT_ID.read_text().strip()
        except OSError:  # no /proc: what an earlier life held counts as of an earlier boot
            self._boot = f"{time.time() - time.monotonic():.0f}"

    @property
    def boot(self) -> str:
        """The name of this boot."""
        return self._boot

    def now_s(self) -> float:
        """Seconds since the boot; goes on while the machine sleeps."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def wall_s(self) -> float:
        """Unix time, for people to read."""
        return time.time()
