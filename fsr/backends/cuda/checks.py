"""Checks that run on the device: guard zones still hold their pattern, inputs are what they were.

fsr's own kernel (check.cu) looks at all zones of a plan in one launch and reports, for each, the first byte that is not
as expected; only those numbers are copied back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fsr.backends.cuda.driver import Driver, Function
from fsr.backends.cuda.memory import Pool

CHECK_ENTRY = "fsr_check"
NOTHING = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Zone:
    """Bytes to look at: equal to those at ``expected``, or all ``value`` when expected is 0."""

    address: int
    expected: int
    size_bytes: int
    value: int = 0


def check_module() -> bytes:
    """The check kernel as PTX, which the driver builds for any GPU (10 to 50 ms, once a process)."""
    return (Path(__file__).with_name("check.ptx")).read_bytes() + b"\0"  # the driver wants a C string


class Checker:
    """The zones of one prepared plan; its tables stay on the device until :meth:`close`."""

    def __init__(self, driver: Driver, pool: Pool, function: Function, zones: Sequence[Zone]) -> None:
        self._driver, self._pool, self._function, self._zones = driver, pool, function, zones
        table = np.array([(z.address, z.expected, z.size_bytes, z.value) for z in zones], np.uint64)
        self._first = np.empty(len(zones), np.uint64)
        self._block = pool.take(table.nbytes + self._first.nbytes)
        self._answers = self._block + table.nbytes
        driver.upload(self._block, table)
        largest = max((zone.size_bytes for zone in zones), default=0)
        self._blocks = min(max(largest // (16 * 256 * 4), 1), 1024)

    def first_misfits(self) -> list[int | None]:
        """For each zone the offset of its first wrong byte, or None."""
        if not self._zones:
            return []
        self._driver.fill(self._answers, 0xFF, self._first.nbytes)
        self.launch()
        self._driver.download(self._first, self._answers)
        return [None if first == NOTHING else int(first) for first in self._first.tolist()]

    def launch(self) -> None:
        """Queue the look at all zones, without waiting for what it finds."""
        arguments = np.array([self._block, self._answers], np.uint64).tobytes()
        self._driver.launch(self._function, (self._blocks, len(self._zones), 1), (256, 1, 1), arguments, 0)

    def close(self) -> None:
        """Free the tables."""
        self._pool.give(self._block)
