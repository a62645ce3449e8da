"""Memory of a prepared plan: one anonymous file that parent and child map, each buffer between guard zones."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fsr.backends.protocol import Array, Buffer
from fsr.records import Fault, FaultKind, Role

Bytes = npt.NDArray[np.uint8]
PAGE = mmap.PAGESIZE
GUARD_BYTES, GUARD_VALUE = 256, 0xA5
KEPT_LEAST, KEPT_MOST, KEPT_ROOMS = 1 << 20, 1 << 30, 4  # bytes of a room, of all together, and how many
NULL_REACH = 1 << 32  # bytes
WASTE = 4  # a room may be so many times as large as what is asked for


@dataclass(frozen=True, slots=True)
class Place:
    """Where a buffer lies: its region's offset and length in the file (whole pages), its start in the region."""

    offset: int
    length: int
    start: int
    size: int


def place(buffers: Sequence[Buffer]) -> list[Place]:
    """Regions one after the other. A buffer ends as close to its region's end (an unmapped page follows) as its
    alignment allows; below 256 its address is an odd multiple of the alignment, so that no more is promised."""
    places, offset = [], 0
    for buffer in buffers:
        size, step = buffer.array.nbytes, max(buffer.alignment_bytes, 1)
        exact = step < GUARD_BYTES
        length = -(-(size + GUARD_BYTES + 2 * step) // PAGE) * PAGE
        start = length - size
        start -= (start - step) % (2 * step) if exact else start % step
        places.append(Place(offset, length, start, size))
        offset += length
    return places


def from_null(address: int) -> bool:
    """Whether an address is a null pointer, or lies some index from one: so low, or below 0, nothing is mapped."""
    return (address + NULL_REACH) % 2**64 < 2 * NULL_REACH


def locate(buffers: Sequence[Buffer], places: Sequence[Place], address: int, bases: Sequence[int]) -> str:
    """An address in words: which buffer it is in or next to, given the regions' addresses in the child."""
    if from_null(address):
        return f"address {address:#x}, through a null pointer"
    best, words = None, f"address {address:#x}, near no buffer"
    for buffer, p, base in zip(buffers, places, bases, strict=True):
        start = base + p.start
        distance = start - address if address < start else max(address - (start + p.size) + 1, 0)
        if distance < 1 << 20 and (best is None or distance < best):
            best, item = distance, max(buffer.array.itemsize, 1)
            index = (address - start) // item
            words = f"'{buffer.name}'[{index}], but '{buffer.name}' has {buffer.array.size} elements"
    return words


@dataclass(frozen=True, slots=True)
class Room:
    """An anonymous file that is mapped here. ``fresh``: nobody has written to it yet."""

    file: int
    map: mmap.mmap
    size: int
    fresh: bool = True

    @staticmethod
    def of(size: int) -> Room:
        """One of so many bytes. Raises MemoryError or OSError when there is no room."""
        file = os.memfd_create("fsr-buffers")
        try:
            os.ftruncate(file, size)
            return Room(file, mmap.mmap(file, size), size)
        except BaseException:
            os.close(file)
            raise

    def close(self) -> None:
        """Free the memory here (the child's mapping is its own)."""
        os.close(self.file)
        with suppress(BufferError):  # a caller still holds a view; the last one frees it
            self.map.close()


class Rooms:
    """Rooms that large buffers have left, for the next: what a page costs when it is first touched is more than what
    filling it costs (64 MiB anew: 80 ms and more; again: 10 ms)."""

    def __init__(self) -> None:
        self._kept: list[Room] = []

    def take(self, size: int) -> Room:
        """The smallest of the kept ones that is large enough and not much too large, or a new one."""
        fitting = [r for r in self._kept if size <= r.size <= WASTE * size]
        if not fitting:
            return Room.of(size)
        found = min(fitting, key=lambda r: r.size)
        self._kept.remove(found)
        return found

    def keep(self, room: Room) -> None:
        """Take back one that no child has mapped any more."""
        if room.size < KEPT_LEAST or room.size > KEPT_MOST:
            return room.close()
        self._kept.append(replace(room, fresh=False))
        while sum(r.size for r in self._kept) > KEPT_MOST or len(self._kept) > KEPT_ROOMS:
            self._kept.pop(0).close()
        return None

    def clear(self) -> None:
        """Free all."""
        while self._kept:
            self._kept.pop().close()


class Arena:
    """The parent's view of the buffers. ``file`` is handed to the child."""

    def __init__(self, buffers: Sequence[Buffer], rooms: Rooms) -> None:
        """Raises MemoryError or OSError when there is no room."""
        self.buffers, self.places = list(buffers), place(buffers)
        self._rooms, self._room = rooms, rooms.take(max(sum(p.length for p in self.places), PAGE))
        self.file = self._room.file
        self._bytes: Bytes = np.frombuffer(self._room.map, np.uint8)
        self._fresh = self._room.fresh

    def regions(self) -> list[list[int]]:
        """Offset and length of each buffer's region in the file."""
        return [[p.offset, p.length] for p in self.places]

    def content(self, index: int) -> Bytes:
        """The bytes of a buffer as they are now."""
        p = self.places[index]
        return self._bytes[p.offset + p.start : p.offset + p.start + p.size]

    def _guards(self, index: int) -> tuple[Bytes, Bytes]:
        p = self.places[index]
        return self._bytes[p.offset : p.offset + p.start], self._bytes[
            p.offset + p.start + p.size : p.offset + p.length
        ]

    def reset(self) -> None:
        """Initial contents and guard zones."""
        for index, buffer in enumerate(self.buffers):
            # A fresh file reads as zeros: pages of cleared scratch need not be touched.
            if not (self._fresh and buffer.zeroed and buffer.role is None):
                self.content(index)[:] = _raw(buffer.contents())
            for guard in self._guards(index):
                guard[:] = GUARD_VALUE
        self._fresh = False

    def read(self) -> dict[str, Array]:
        """Copies of all buffers that are not scratch."""
        return {
            buffer.name: self.content(index).copy().view(buffer.array.dtype).reshape(buffer.array.shape)
            for index, buffer in enumerate(self.buffers)
            if buffer.role is not None
        }

    def violations(self) -> list[Fault]:
        """Guard zones overwritten, inputs changed."""
        faults = []
        for index, buffer in enumerate(self.buffers):
            before, after = self._guards(index)
            for zone, side in ((before, "before"), (after, "behind")):
                hit = np.flatnonzero(zone != GUARD_VALUE)
                if hit.size:
                    distance = len(before) - int(hit[-1]) if side == "before" else int(hit[0]) + 1
                    faults.append(Fault(FaultKind.GUARD, f"byte {distance} {side} '{buffer.name}' was written"))
            if buffer.role is Role.IN and not np.array_equal(self.content(index), _raw(buffer.contents())):
                changed = int(np.flatnonzero(self.content(index) != _raw(buffer.contents()))[0])
                changed //= buffer.array.itemsize
                faults.append(
                    Fault(FaultKind.INPUT_CHANGED, f"input '{buffer.name}' was changed, first at element {changed}")
                )
        return faults

    def locate(self, address: int, bases: Sequence[int]) -> str:
        """See :func:`locate`."""
        return locate(self.buffers, self.places, address, bases)

    def close(self, *, unmapped: bool = False) -> None:
        """Give the memory back. ``unmapped``: the child has done so, and another arena may have it."""
        self._bytes = np.empty(0, np.uint8)
        if unmapped:
            self._rooms.keep(self._room)
        else:
            self._room.close()


def _raw(array: Array) -> Bytes:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
