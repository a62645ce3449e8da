"""Buffers larger than memory, of which only the pages that a run touches exist.

The file behind them is full of holes. A run that comes to a hole reads zeros there and leaves a page; that page then
gets what it should have held (by the formula, or poison), and the run is repeated until it comes to no new one.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from fsr.backends.host.arena import GUARD_VALUE, PAGE, Bytes, locate, place
from fsr.backends.protocol import Array, Buffer, DeviceFault
from fsr.records import Fault, FaultKind, Role

_ROUNDS = 5  # of finding out what a run touches
TOUCHED_BYTES = 24 << 20  # more than this is no sample of a large array any more


class SparseArena:
    """As :class:`fsr.backends.host.arena.Arena`, for buffers with formulas."""

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self.buffers, self.places = list(buffers), place(buffers)
        self.file = os.memfd_create("fsr-far-buffers")
        self.filled: set[int] = set()
        self._sums: dict[int, int] = {}  # of input pages, as they were given
        self.forget()

    def forget(self) -> None:
        """Begin with no page at all: what a run left that touched too much is in the way of one that touches less."""
        os.ftruncate(self.file, 0)
        os.ftruncate(self.file, max(sum(p.length for p in self.places), PAGE))
        self.filled.clear()
        self._sums.clear()

    def regions(self) -> list[list[int]]:
        """Offset and length of each buffer's region in the file."""
        return [[p.offset, p.length] for p in self.places]

    def touched(self) -> list[int]:
        """The numbers of the pages that exist, ascending. Raises MemoryError where they are too many."""
        found: list[int] = []
        end, at = os.fstat(self.file).st_size, 0
        while at < end:
            try:
                start = os.lseek(self.file, at, os.SEEK_DATA)
            except OSError:  # nothing but a hole to the end
                break
            at = os.lseek(self.file, start, os.SEEK_HOLE)
            if (len(found) * PAGE) + at - start > TOUCHED_BYTES:
                raise MemoryError(f"over {TOUCHED_BYTES >> 20} MiB of the buffers are touched")
            found += range(start // PAGE, -(-at // PAGE))
        return found

    def fill(self) -> bool:
        """Give new pages their contents, and those that a kernel may write theirs again; whether there were new."""
        pages = self.touched()
        new = [p for p in pages if p not in self.filled]
        self.filled.update(new)
        fresh = set(new)
        for index, numbers in self._by_buffer(pages):
            role = self.buffers[index].role
            written = numbers if role is not Role.IN else [p for p in numbers if p in fresh]
            self._write(index, written)
            if role is Role.IN:
                self._sums |= {page: self._sum(page) for page in written}
        return bool(new)

    def reset(self) -> None:
        """As Arena.reset, of what exists."""
        self.fill()

    def written(self, name: str) -> tuple[Array, Array]:
        """The places (ascending) and values of the elements of a buffer that no longer hold what they began with."""
        found: list[tuple[Array, Array]] = []
        for index, numbers in self._by_buffer(self.touched()):
            if self.buffers[index].name == name and numbers:
                places, values = self._elements(index, numbers)
                changed = _bits(values) != _bits(self._initial(index, places))
                found.append((places[changed], values[changed]))
        if not found:
            return np.empty(0, np.uint64), np.empty(0)
        return found[0]

    def violations(self) -> list[Fault]:
        """Guard zones overwritten, inputs changed, as far as pages exist."""
        faults = []
        for index, numbers in self._by_buffer(self.touched()):
            buffer, p = self.buffers[index], self.places[index]
            edges = {p.offset // PAGE, (p.offset + p.start + p.size) // PAGE, (p.offset + p.length) // PAGE - 1}
            for page in edges & set(numbers) & self.filled:
                data, inside = self._page(index, page)
                if (data[~inside] != GUARD_VALUE).any():
                    faults.append(Fault(FaultKind.GUARD, f"memory beside '{buffer.name}' was written"))
            if buffer.role is Role.IN and any(self._sums[n] != self._sum(n) for n in numbers if n in self._sums):
                faults.append(Fault(FaultKind.INPUT_CHANGED, f"input '{buffer.name}' was changed"))
        return faults

    def locate(self, address: int, bases: Sequence[int]) -> str:
        """As Arena.locate."""
        return locate(self.buffers, self.places, address, bases)

    def read(self) -> dict[str, Array]:
        """Nothing: the buffers are too large to be copied."""
        return {}

    def close(self, *, unmapped: bool = False) -> None:
        """Free the memory here."""
        os.close(self.file)

    # ------------------------------------------------------------ pages

    def _by_buffer(self, pages: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        all_pages = np.asarray(pages, np.int64)
        for index, p in enumerate(self.places):
            low, high = np.searchsorted(all_pages, (p.offset // PAGE, (p.offset + p.length) // PAGE))
            yield index, [int(n) for n in all_pages[low:high]]

    def _sum(self, page: int) -> int:
        return zlib.crc32(os.pread(self.file, PAGE, page * PAGE))

    def _page(self, index: int, page: int) -> tuple[Bytes, Array]:
        """A page's bytes, and which of them belong to the buffer."""
        p = self.places[index]
        data = np.frombuffer(os.pread(self.file, PAGE, page * PAGE), np.uint8)
        at = np.arange(page * PAGE, page * PAGE + PAGE) - p.offset - p.start
        return data, (at >= 0) & (at < p.size)

    def _places(self, index: int, numbers: Sequence[int]) -> Array:
        """The elements that lie wholly in these pages or begin in them."""
        p, item = self.places[index], self.buffers[index].array.itemsize
        starts = np.asarray(numbers, np.int64) * PAGE - p.offset - p.start
        first = -(-starts // item)
        places = (first[:, None] + np.arange(-(-PAGE // item))[None, :]).reshape(-1)
        return places[(places >= 0) & (places < p.size // item)].astype(np.uint64)

    def _elements(self, index: int, numbers: Sequence[int]) -> tuple[Array, Array]:
        """Places and values; of each run of neighbouring elements one read."""
        p, dtype = self.places[index], self.buffers[index].array.dtype
        places = self._places(index, numbers)
        parts = [
            np.frombuffer(
                os.pread(self.file, len(run) * dtype.itemsize, p.offset + p.start + int(run[0]) * dtype.itemsize), dtype
            )
            for run in _runs(places)
        ]
        return places, np.concatenate(parts) if parts else np.empty(0, dtype)

    def _initial(self, index: int, places: Array) -> Array:
        buffer = self.buffers[index]
        if buffer.formula is not None:
            return buffer.formula.at(places, buffer.array.dtype)
        return buffer.array.reshape(-1)[places.astype(np.int64)]

    def _write(self, index: int, numbers: Sequence[int]) -> None:
        p, item = self.places[index], self.buffers[index].array.itemsize
        for page in {p.offset // PAGE, (p.offset + p.start + p.size) // PAGE, (p.offset + p.length) // PAGE - 1}:
            if page in numbers:  # guard zones lie at both ends
                os.pwrite(self.file, bytes([GUARD_VALUE]) * PAGE, page * PAGE)
        places = self._places(index, numbers)
        values, at = self._initial(index, places), 0
        for run in _runs(places):
            part = values[at : at + len(run)]
            os.pwrite(self.file, np.ascontiguousarray(part).tobytes(), p.offset + p.start + int(run[0]) * item)
            at += len(run)


def _runs(places: Array) -> list[Array]:
    """Ascending places cut where they are not neighbours."""
    if not len(places):
        return []
    return np.split(places, np.flatnonzero(np.diff(places) != 1) + 1)


def _bits(values: Array) -> Array:
    return np.ascontiguousarray(values).view(np.dtype(f"u{values.dtype.itemsize}"))


class FarPlan:
    """A prepared plan whose buffers may be larger than memory; closes with it."""

    def __init__(self, prepared: Any, arena: SparseArena) -> None:
        self._prepared, self._arena = prepared, arena

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._prepared.close()

    def run(self, blocks: Sequence[int], timeout_s: float) -> dict[str, tuple[Array, Array]]:
        """Run these blocks (linear numbers) of the launch: places and values of what they changed, by buffer. Raises
        DeviceFault, of kind 'memory' where they touch too much."""
        stopped: DeviceFault | None = None
        try:
            for _ in range(_ROUNDS):
                self._arena.fill()
                try:
                    self._prepared.run(timeout_s, blocks)
                    stopped = None
                except DeviceFault as fault:  # perhaps because what it read was not there yet
                    stopped = fault
                if set(self._arena.touched()) <= self._arena.filled:
                    break
            else:
                raise MemoryError("every run touches more of the buffers")
            if stopped is not None:
                raise stopped
            broken = self._arena.violations()
        except MemoryError as error:
            self._arena.forget()
            raise DeviceFault(Fault(FaultKind.MEMORY, str(error))) from None
        if broken:
            raise DeviceFault(broken[0])
        names = [b.name for b in self._arena.buffers if b.role in (Role.OUT, Role.INOUT)]
        return {name: self._arena.written(name) for name in names}
