"""Device memory: a pool that keeps freed blocks, and buffers between guard zones."""

from __future__ import annotations

import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass

from fsr.backends.cuda.driver import Driver, DriverError
from fsr.backends.protocol import Array, Buffer

GUARD_BYTES = 16 * 1024  # an overrun by one row of a small matrix still lands in it
GUARD_VALUE = 0xC7  # as float32 -102287.56: visible in outputs, no NaN, odd as an index
_SMALL = 1 << 20


def _size_class(size_bytes: int) -> int:
    """Sizes are rounded up (64 KiB steps to 1 MiB, 2 MiB beyond) so that freed blocks fit again."""
    step = 64 * 1024 if size_bytes <= _SMALL else 2 << 20
    return -(-size_bytes // step) * step


class Pool:
    """Blocks of device memory, kept when freed: allocating costs the driver 0.1 to 1 ms, the pool nothing.

    A freed block is overwritten, so that no candidate finds the answers of another. ``limit_bytes`` bounds what
    is kept unused.
    """

    def __init__(self, driver: Driver, limit_bytes: int) -> None:
        self._driver, self._limit = driver, limit_bytes
        self._free: defaultdict[int, deque[int]] = defaultdict(deque)
        self._kept_bytes = 0
        self._sizes: dict[int, int] = {}
        self.on_pressure: Callable[[], None] = lambda: None  # gives back what could be made again

    @property
    def used_bytes(self) -> int:
        """Bytes in blocks that are taken now."""
        return sum(self._sizes.values()) - self._kept_bytes

    def take(self, size_bytes: int) -> int:
        """Address of a block of at least that size. Raises DriverError kind 'memory' after freeing what is kept."""
        size = _size_class(size_bytes)
        if self._free[size]:
            self._kept_bytes -= size
            return self._free[size].popleft()  # the one freed longest ago: repeated runs see other memory
        try:
            address = self._driver.alloc(size)
        except DriverError as error:
            if error.kind != "memory":
                raise
            self.on_pressure()
            self.trim()
            address = self._driver.alloc(size)
        self._sizes[address] = size
        return address

    def give(self, address: int) -> None:
        """Return a block."""
        size = self._sizes[address]
        if self._kept_bytes + size > self._limit:
            self._driver.free(address)
            del self._sizes[address]
            return
        self._driver.fill(address, GUARD_VALUE, size)
        self._free[size].append(address)
        self._kept_bytes += size

    def trim(self) -> None:
        """Give all unused blocks back to the driver."""
        for size, addresses in self._free.items():
            for address in addresses:
                self._driver.free(address)
                del self._sizes[address]
                self._kept_bytes -= size
        self._free.clear()


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a buffer lies in its block: ``offset`` to the data, guard zones on both sides."""

    data_bytes: int
    offset: int

    @classmethod
    def of(cls, buffer: Buffer) -> Layout:
        """Data at a multiple of exactly the buffer's alignment (blocks start at multiples of 256 at least)."""
        align = buffer.alignment_bytes
        return cls(buffer.array.nbytes, GUARD_BYTES + (align if align < 256 else 0))

    @property
    def total_bytes(self) -> int:
        """Guard, data, guard."""
        return self.offset + self.data_bytes + GUARD_BYTES


class Originals:
    """Initial contents on the device, guard zones included: what a reset copies from.

    An array that is marked read-only (``array.flags.writeable`` false) is taken to stay as it is, and its copy
    is kept for the next candidate up to ``limit_bytes`` in all, the least recently used going first.
    """

    def __init__(self, driver: Driver, pool: Pool, limit_bytes: int) -> None:
        self._driver, self._pool, self._limit = driver, pool, limit_bytes
        self._kept: OrderedDict[tuple[int, int], tuple[weakref.ref[Array], int, int]] = OrderedDict()
        self._lent: defaultdict[int, int] = defaultdict(int)
        self._kept_bytes = 0
        pool.on_pressure = self.clear

    def take(self, array: Array, layout: Layout) -> int:
        """Address of a block holding guard zones and the array's contents; give it back with :meth:`give`."""
        key = (id(array), layout.offset)
        if key in self._kept and self._kept[key][0]() is array:
            self._kept.move_to_end(key)
            address = self._kept[key][1]
        else:
            address = self._place(array, layout)
            if not array.flags.writeable and layout.total_bytes <= self._limit:
                self._keep(key, array, address, layout.total_bytes)
        self._lent[address] += 1
        return address

    def give(self, address: int) -> None:
        """Return a block; kept ones stay on the device."""
        self._lent[address] -= 1
        if not self._lent[address]:
            del self._lent[address]
            if all(address != kept for _, kept, _ in self._kept.values()):
                self._pool.give(address)

    def clear(self) -> None:
        """Forget all kept copies that are not lent out."""
        for key in list(self._kept):
            self._forget(key)

    def _place(self, array: Array, layout: Layout) -> int:
        address = self._pool.take(layout.total_bytes)
        try:
            self._driver.fill(address, GUARD_VALUE, layout.total_bytes)
            self._driver.upload(address + layout.offset, array)
        except DriverError as error:
            if error.kind != "crash":
                self._pool.give(address)
            raise
        return address

    def _keep(self, key: tuple[int, int], array: Array, address: int, size_bytes: int) -> None:
        if key in self._kept:
            self._forget(key)  # an array that is gone had the same id
        self._kept[key] = (weakref.ref(array), address, size_bytes)
        self._kept_bytes += size_bytes
        for old in list(self._kept):
            if self._kept_bytes <= self._limit:
                break
            if old != key:
                self._forget(old)

    def _forget(self, key: tuple[int, int]) -> None:
        _, address, size_bytes = self._kept.pop(key)
        self._kept_bytes -= size_bytes
        if address not in self._lent:
            self._pool.give(address)
