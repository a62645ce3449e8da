"""Checks that run on the device: guard zones still hold their pattern, inputs are what they were.

fsr's own kernel looks at all zones of a plan in one launch and reports, for each, the first byte that is not
as expected; only those numbers are copied back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fsr.devices.cuda.driver import Driver, Function
from fsr.devices.cuda.memory import Pool
from fsr.errors import HarnessError
from fsr.records import Candidate, Image, Launch, Plan
from fsr.toolchains.cuda import cuda_toolchain

CHECK_ENTRY = "fsr_check"
CHECK_SOURCE = """
struct Zone { const unsigned char* bytes; const unsigned char* expected; unsigned long long size, value; };
extern "C" __global__ void fsr_check(const Zone* zones, unsigned long long* first) {
  const Zone zone = zones[blockIdx.y];
  const unsigned long long start = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
  const unsigned long long step = gridDim.x * (unsigned long long)blockDim.x;
  const unsigned long long misfit = ((unsigned long long)zone.bytes | (unsigned long long)zone.expected) & 15;
  const unsigned long long wide = misfit ? 0 : zone.size / 16;
  const unsigned int word = (unsigned int)zone.value * 0x01010101u;
  unsigned long long found = ~0ull;
  for (unsigned long long i = start; i < wide; i += step) {
    const uint4 got = ((const uint4*)zone.bytes)[i];
    const uint4 want = zone.expected ? ((const uint4*)zone.expected)[i] : make_uint4(word, word, word, word);
    if (got.x == want.x && got.y == want.y && got.z == want.z && got.w == want.w) continue;
    for (int b = 15; b >= 0; b--)
      if (zone.bytes[i * 16 + b] != (zone.expected ? zone.expected[i * 16 + b] : (unsigned char)zone.value))
        found = min(found, i * 16 + b);
  }
  for (unsigned long long i = wide * 16 + start; i < zone.size; i += step)
    if (zone.bytes[i] != (zone.expected ? zone.expected[i] : (unsigned char)zone.value)) found = min(found, i);
  if (found != ~0ull) atomicMin(first + blockIdx.y, found);
}
"""
NOTHING = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Zone:
    """Bytes to look at: equal to those at ``expected``, or all ``value`` when expected is 0."""

    address: int
    expected: int
    size_bytes: int
    value: int = 0


def compile_check(arch: str) -> Image:
    """The check kernel for one architecture. Raises MissingToolError without a compiler."""
    one = ("1", "1", "1")
    plan = Plan((Launch(CHECK_ENTRY, one, one, "0", ()),))
    image = cuda_toolchain(arch).compile(Candidate(CHECK_SOURCE, plan))
    if not isinstance(image, Image):
        raise HarnessError(f"fsr's own check kernel does not compile: {image.log}", where="fsr.devices.cuda.checks")
    return image


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
        arguments = np.array([self._block, self._answers], np.uint64).tobytes()
        self._driver.launch(self._function, (self._blocks, len(self._zones), 1), (256, 1, 1), arguments, 0)
        self._driver.download(self._first, self._answers)
        return [None if first == NOTHING else int(first) for first in self._first.tolist()]

    def close(self) -> None:
        """Free the tables."""
        self._pool.give(self._block)
