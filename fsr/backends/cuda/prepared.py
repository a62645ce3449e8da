"""A plan with its memory on the GPU: run, time, read back, check."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

import numpy as np

from fsr.backends.cuda.checks import Checker, Zone
from fsr.backends.cuda.driver import Driver, DriverError, Event, Function
from fsr.backends.cuda.judging import Judge, Region
from fsr.backends.cuda.launching import Loaded, fault_of, pack_arguments
from fsr.backends.cuda.memory import GUARD_BYTES, GUARD_VALUE, Layout, Originals, Pool
from fsr.backends.protocol import Array, Buffer, DeviceFault
from fsr.records import Fault, FaultKind, Role

_SPIN_S = 0.002  # below this a sleep would cost more than the kernel takes
_LAUNCHES_A_FLUSH = 6  # a flush of 128 MiB keeps the GPU busy about 60 us; queueing a launch takes about 8
_NODES_A_FLUSH = 32  # of a graph, where starting one takes under 2
_MANY_LAUNCHES = 48  # a plan of more is timed as a graph: the queue of a stream is not endless
MAX_SETS = 16


class Home(Protocol):
    """What a prepared plan needs of its device."""

    driver: Driver
    pool: Pool
    originals: Originals
    judge: Judge
    broken: bool
    l2_bytes: int

    @property
    def check_function(self) -> Function:
        """fsr's own kernel that looks at guard zones and inputs."""

    def flush_l2(self, times: int = 1) -> None:
        """Queue what leaves no line of a buffer in the L2."""

    def give_up(self) -> None:
        """The context is lost: touch the GPU no more."""


@dataclass(slots=True)
class _MemorySet:
    """One copy of all buffers: block by name, each launch's packed arguments, and for long plans their graph."""

    blocks: dict[str, int] = field(default_factory=dict)
    packed: list[bytes] = field(default_factory=list)
    graph: Callable[[], None] | None = None


class CudaPrepared:
    """See :class:`fsr.backends.protocol.TimedPrepared`. After a fatal fault only leaving the context is allowed."""

    def __init__(
        self, device: Home, loaded: Sequence[Loaded], buffers: Sequence[Buffer], constants: Mapping[str, int]
    ) -> None:
        """``constants``: where the ``__constant__`` variables lie that buffers fill, by name."""
        self._device, self._driver, self._loaded, self._buffers = device, device.driver, loaded, buffers
        self._constants = constants
        self._layouts = {buffer.name: Layout.of(buffer) for buffer in buffers}
        self._originals: dict[str, int] = {}
        self._sets: list[_MemorySet] = []  # the first is the one that run() uses
        self._checker: Checker | None = None
        self._warm = False
        try:
            with self._faults():
                self._place()
        except BaseException:
            self._release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    # ------------------------------------------------------------ memory

    def _place(self) -> None:
        for buffer in self._buffers:
            if buffer.formula is None:
                self._originals[buffer.name] = self._device.originals.take(buffer.array, self._layouts[buffer.name])
        self._add_set()

    def _add_set(self) -> None:
        new = _MemorySet()
        self._sets.append(new)
        for buffer in self._buffers:
            layout = self._layouts[buffer.name]
            new.blocks[buffer.name] = self._device.pool.take(layout.total_bytes)
            if buffer.formula is not None:  # what is drawn leaves the guard zones as they are
                self._driver.fill(new.blocks[buffer.name], GUARD_VALUE, layout.total_bytes)
        self._bind(new)
        self._restore(self._buffers, new)

    def _bind(self, memory: _MemorySet) -> None:
        addresses = {name: block + self._layouts[name].offset for name, block in memory.blocks.items()}
        memory.packed = [pack_arguments(item.launch, addresses, item.block) for item in self._loaded]
        memory.graph = None

    def exchange(self, other: Self) -> None:
        """See TimedPrepared."""
        mine, theirs = self._sets[0].blocks, other._sets[0].blocks
        for name in mine.keys() & theirs.keys():
            if self._layouts[name] == other._layouts[name]:
                mine[name], theirs[name] = theirs[name], mine[name]
        with self._faults():
            for side in (self, other):
                side._bind(side._sets[0])
                side._close_checker()  # of other addresses; the next look makes another

    def _restore(self, buffers: Sequence[Buffer], memory: _MemorySet) -> None:
        for buffer in buffers:
            name = buffer.name
            if buffer.formula is not None:
                address = memory.blocks[name] + self._layouts[name].offset
                self._device.judge.draw(address, buffer.formula, buffer.array.dtype)
                continue
            self._driver.copy(memory.blocks[name], self._originals[name], self._layouts[name].total_bytes)

    def _zones(self) -> list[Zone]:
        """Three zones a buffer: guard before, guard behind, and the data of inputs (empty for others)."""
        zones = []
        for buffer in self._buffers:
            layout, block = self._layouts[buffer.name], self._sets[0].blocks[buffer.name]
            end = block + layout.offset + layout.data_bytes
            compared = buffer.role is Role.IN and buffer.formula is None
            data_bytes = layout.data_bytes if compared else 0
            original = self._originals[buffer.name] + layout.offset if compared else 0
            zones += [
                Zone(block, 0, layout.offset, GUARD_VALUE),
                Zone(end, 0, GUARD_BYTES, GUARD_VALUE),
                Zone(block + layout.offset, original, data_bytes),
            ]
        return zones

    def _release(self) -> None:
        if not self._device.broken:
            for memory in self._sets:
                for block in memory.blocks.values():
                    self._device.pool.give(block)
            for original in self._originals.values():
                self._device.originals.give(original)
            self._close_checker()
        self._sets, self._originals, self._checker = [], {}, None

    def _close_checker(self) -> None:
        if self._checker is not None:
            self._checker.close()
        self._checker = None

    # ------------------------------------------------------------ running

    def reset(self) -> None:
        """See Prepared."""
        with self._faults():
            self._restore(self._buffers, self._sets[0])

    def run(self, timeout_s: float = 10.0) -> None:
        """See Prepared."""
        with self._faults():
            self._fill_constants()
            self._queue_plan(self._sets[0])
            self._finish(timeout_s)
        self._warm = True

    def _fill_constants(self) -> None:
        """As callers do before they launch. Not timed: what a plan runs cannot write them, but other plans of this
        module fill them too."""
        for buffer in self._buffers:
            if buffer.symbol:
                source = self._sets[0].blocks[buffer.name] + self._layouts[buffer.name].offset
                self._driver.copy(self._constants[buffer.symbol], source, buffer.array.nbytes)

    def _queue_plan(self, memory: _MemorySet) -> None:
        for buffer in self._buffers:
            if buffer.zeroed:
                address = memory.blocks[buffer.name] + self._layouts[buffer.name].offset
                self._driver.fill(address, 0, buffer.array.nbytes)
        for item, packed in zip(self._loaded, memory.packed, strict=True):
            launch = item.launch
            self._driver.launch(item.function, launch.grid, launch.block, packed, launch.shared_bytes)

    def _finish(self, timeout_s: float) -> Event:
        """Wait for all that is queued, then for every other stream. Raises DeviceFault 'hang'."""
        end = self._driver.event()
        self._driver.record(end)
        started = time.monotonic()
        while not self._driver.done(end):
            waited = time.monotonic() - started
            if waited > timeout_s:
                self._device.give_up()
                raise DeviceFault(Fault(FaultKind.HANG, f"not finished after {timeout_s:g} s"), fatal=True)
            if waited > _SPIN_S:
                time.sleep(min(waited / 10, 0.05))
        self._driver.synchronize()
        return end

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Turn driver errors into the candidate's faults."""
        try:
            yield
        except DriverError as error:
            fault = fault_of(error)
            if fault.fatal:
                self._device.give_up()
            raise fault from error

    # ------------------------------------------------------------ results

    def read(self) -> dict[str, Array]:
        """See Prepared. An input that is unchanged is answered with a read-only view of its initial array."""
        with self._faults():
            misfits = self._misfits()
            results: dict[str, Array] = {}
            for index, buffer in enumerate(self._buffers):
                if buffer.role is Role.IN and buffer.formula is None and misfits[3 * index + 2] is None:
                    results[buffer.name] = buffer.array.view()
                    results[buffer.name].flags.writeable = False
                elif buffer.role is not None:
                    results[buffer.name] = np.empty(buffer.array.shape, buffer.array.dtype)
                    source = self._sets[0].blocks[buffer.name] + self._layouts[buffer.name].offset
                    self._driver.download(results[buffer.name], source)
            return results

    def violations(self) -> list[Fault]:
        """See Prepared."""
        with self._faults():
            misfits = self._misfits()
        faults = []
        for index, buffer in enumerate(self._buffers):
            before, behind, changed = misfits[3 * index : 3 * index + 3]
            if before is not None:
                distance = self._layouts[buffer.name].offset - before
                faults.append(Fault(FaultKind.GUARD, f"{buffer.name}: written {distance} bytes before its start"))
            if behind is not None:
                faults.append(Fault(FaultKind.GUARD, f"{buffer.name}: written {behind} bytes past its end"))
            if changed is not None:
                element = changed // buffer.array.itemsize
                faults.append(
                    Fault(FaultKind.INPUT_CHANGED, f"{buffer.name}: element {element} is an input and was changed")
                )
        return faults

    def _misfits(self) -> list[int | None]:
        if self._checker is None:
            self._checker = Checker(self._driver, self._device.pool, self._device.check_function, self._zones())
        found = self._checker.first_misfits()
        for index, buffer in enumerate(self._buffers):
            if buffer.role is Role.IN and buffer.formula is not None:
                region, item = self.region(buffer.name), buffer.array.itemsize
                first = self._device.judge.first_other(region.address, buffer.formula, buffer.array.dtype)
                found[3 * index + 2] = None if first is None else first * item
        return found

    def region(self, name: str) -> Region:
        """Where a buffer's data lie on the device."""
        buffer = next(b for b in self._buffers if b.name == name)
        address = self._sets[0].blocks[name] + self._layouts[name].offset
        return Region(address, buffer.array.size, buffer.array.dtype)

    def shake(self, name: str, key: int, step: float) -> None:
        """Move every element of a drawn floating buffer by up to ``step`` of itself, within its formula's bounds."""
        formula = next(b.formula for b in self._buffers if b.name == name)
        with self._faults():
            self._device.judge.shake(self.region(name), key, step, formula.bounds if formula else (-math.inf, math.inf))

    # ------------------------------------------------------------ timing

    def time_ns(self, timeout_s: float = 10.0) -> float:
        """See TimedPrepared. Everything is queued behind the flush, so gaps between launches do not count."""
        if not self._warm:
            self.run(timeout_s)
        with self._faults():
            # Outputs and scratch are poisoned anew too: work skipped because the last run did it shows.
            self._restore([b for b in self._buffers if b.role is not Role.IN and not b.zeroed], self._sets[0])
            self._fill_constants()
            queue, graph = self._whole_plan()
            self._device.flush_l2(self._flushes(1, graph))
            start, end = self._driver.event(), self._driver.event()
            self._driver.record(start)
            queue()
            self._driver.record(end)
            self._finish(timeout_s)
            return self._driver.elapsed_ns(start, end)

    def _whole_plan(self) -> tuple[Callable[[], None], bool]:
        """What queues the plan, and whether that is a graph, as for plans of many launches where graphs can be
        captured."""
        memory = self._sets[0]
        if len(self._loaded) > _MANY_LAUNCHES and memory.graph is None:
            memory.graph = self._driver.graph(lambda: self._queue_plan(memory))
        return memory.graph or (lambda: self._queue_plan(memory)), memory.graph is not None

    def _flushes(self, runs: int, graph: bool) -> int:
        """Flushes that keep the GPU busy until so many runs of the plan are queued."""
        return 1 + runs * len(self._loaded) // (_NODES_A_FLUSH if graph else _LAUNCHES_A_FLUSH)

    def time_batch_ns(self, runs: int = 16, timeout_s: float = 10.0) -> float:
        """Mean time of one run of the plan among ``runs`` queued back to back, for plans of under about 50 us,
        where one sample is mostly the clock's grain. They rotate over copies of all buffers (at least three,
        twice the L2 together where sixteen copies reach that), as one graph where graphs can be captured.
        Buffers of role inout go on from what the run before left in their copy."""
        if not self._warm:
            self.run(timeout_s)
        with self._faults():
            self._ensure_sets(runs)
            sets = self._sets

            def queue() -> None:
                for index in range(runs):
                    self._queue_plan(sets[index % len(sets)])

            launch: Callable[[], None] = self._driver.graph(queue) or queue
            for memory in sets:
                self._restore([b for b in self._buffers if b.role is Role.INOUT], memory)
            self._fill_constants()
            self._device.flush_l2(self._flushes(runs, launch is not queue))
            start, end = self._driver.event(), self._driver.event()
            self._driver.record(start)
            launch()
            self._driver.record(end)
            self._finish(timeout_s)
            return self._driver.elapsed_ns(start, end) / runs

    def _ensure_sets(self, runs: int) -> None:
        one_set = sum(layout.data_bytes for layout in self._layouts.values())
        wanted = min(max(3, -(-2 * self._device.l2_bytes // max(one_set, 1))), MAX_SETS, max(runs, 1))
        while len(self._sets) < wanted:
            self._add_set()
