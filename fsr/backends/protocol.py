"""What every device offers: load an image, place memory, launch, time, read back. One thread, one process.

A device lives inside a worker process; a crash or hang of a candidate costs that process only. All calls are
synchronous. A candidate's faults raise :class:`DeviceFault` (caught by evaluation and turned into an
outcome); faults of fsr itself raise FsrError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self, TypeGuard

import numpy as np
import numpy.typing as npt

from fsr.backends.toolchain import Toolchain
from fsr.records import ConcreteLaunch, DeviceInfo, Fault, FaultKind, Image, Role

Array = npt.NDArray[Any]


class DeviceFault(Exception):  # noqa: N818  # a fault of the candidate, not an error of the program
    """A launch that a right candidate would not have made: kind as in Fault, or 'crash', 'hang', 'launch'.

    'launch' means refused before running (too much shared memory, too many threads). After 'crash' the
    device may be unusable: ``fatal`` tells the worker to end its process.
    """

    def __init__(self, fault: Fault, *, fatal: bool = False) -> None:
        super().__init__(fault.detail)
        self.fault, self.fatal = fault, fatal

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.fault, self.fatal)


def _rebuild(fault: Fault, fatal: bool) -> DeviceFault:
    return DeviceFault(fault, fatal=fatal)


class Formula(Protocol):
    """How an array is drawn: :class:`fsr.testgen.draws.Draw`."""

    @property
    def count(self) -> int:
        """Elements."""

    @property
    def bounds(self) -> tuple[float, float]:
        """What floating values lie within."""

    def values(self, dtype: np.dtype[Any]) -> Array:
        """All elements, drawn here."""

    def at(self, places: Array, dtype: np.dtype[Any]) -> Array:
        """The elements at these places (uint64), drawn here."""

    def parameters(self, dtype: np.dtype[Any]) -> bytes:
        """What a device's own kernel draws them from."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """One buffer to place. ``array`` is C-contiguous, its contents are the initial ones (inputs, or poison for
    outputs and unzeroed scratch); with a ``formula`` it gives shape and type only. ``symbol``: the ``__constant__``
    variable that gets its contents before every run, '' for memory that a launch passes. ``alignment_bytes``: the
    address is a multiple of exactly this (256: at least). ``role`` None marks scratch; ``zeroed`` scratch is cleared
    inside every run."""

    name: str
    array: Array
    role: Role | None
    alignment_bytes: int = 256
    zeroed: bool = False
    formula: Formula | None = None
    symbol: str = ""

    def contents(self) -> Array:
        """The initial contents, drawn here where there is a formula."""
        if self.formula is None:
            return self.array
        return self.formula.values(self.array.dtype).reshape(self.array.shape)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How an output is judged on a device, as :mod:`fsr.testgen.compare` judges it: floors of the bound, how many
    times the original's own error, how near to the truth counts where the original overflowed (``sums``: there any
    non-number does). ``pure``: nobody reads its initial values, which are the ``poisons`` (bits) of the candidate's,
    the original's and its second run."""

    relative: float
    absolute: float
    times: float
    near: float
    exact: bool
    sums: bool
    pure: bool
    poisons: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Difference:
    """The worst of ``count`` wrong elements of one kind, as in :class:`fsr.testgen.compare.Mismatch`."""

    kind: str
    index: int
    count: int
    got: float
    expected: float
    error: float
    bound: float


class Prepared(Protocol):
    """A plan with its memory on the device, ready to run; a context manager that frees it all.

    Every buffer stands between guard zones (at least 256 bytes filled with a pattern) in memory of its own.
    """

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def reset(self) -> None:
        """Restore the initial contents of every buffer (and the guard zones)."""

    def run(self, timeout_s: float = 10.0) -> None:
        """Run the whole plan once and wait. Raises DeviceFault."""

    def read(self) -> dict[str, Array]:
        """Copies of all non-scratch buffers as they are now."""

    def violations(self) -> list[Fault]:
        """Guard zones overwritten and inputs (role in) changed since the last reset; empty when clean."""


class TimedPrepared(Prepared, Protocol):
    """A prepared plan on a device with a clock (a GPU)."""

    def time_ns(self) -> float:
        """One timed run of the plan on cold caches: restore inout buffers (untimed), flush the L2 with twice
        its size, then the time between two events around the plan. All streams are synchronised after."""

    def time_batch_ns(self, runs: int = 16, timeout_s: float = 10.0) -> float:
        """Mean time of one run of the plan among ``runs`` queued back to back over rotated copies of the buffers,
        as a program that launches it in a loop sees it. Inout buffers go on from what the run before left."""

    def exchange(self, other: Self) -> None:
        """Take over the other's memory, and leave it one's own: of every buffer that both have in one layout. Where
        a buffer lies costs or gains up to some percent; a comparison that lets both sides lie in both places is
        rid of that. Both hold the same initial data."""


class Device(Protocol):
    """A device that executes images of one kind. Not thread-safe; owned by the process that opened it."""

    timed: bool  # whether it is a TimedDevice
    records: bool  # whether it is a RecordingDevice

    @property
    def info(self) -> DeviceInfo:
        """Identity, read once."""

    def prepare(self, image: Image, launches: Sequence[ConcreteLaunch], buffers: Sequence[Buffer]) -> Prepared:
        """Load (images are cached by identity), allocate, fill. Raises DeviceFault kind 'launch' when the plan
        cannot be launched here, kind 'memory' when the buffers do not fit."""

    def sm_clock_mhz(self) -> int | None:
        """The SM clock now, or None where there is none to read."""

    def close(self) -> None:
        """Free everything; the device is unusable afterwards."""


class TimedDevice(Device, Protocol):
    """A device with a clock."""

    def prepare(self, image: Image, launches: Sequence[ConcreteLaunch], buffers: Sequence[Buffer]) -> TimedPrepared:
        """As Device.prepare."""

    def copy_bandwidth(self) -> float:
        """Measured device-to-device copy rate in bytes (read + written) a second; measured once a process."""


# ---------------------------------------------------------------- the host device's recording


@dataclass(frozen=True, slots=True)
class AccessSite:
    """All accesses of one source line, one memory space and one kind within one launch, scaled from the blocks
    that were executed to the whole grid.

    ``requests``: warp-level requests; ``lanes``: thread-level accesses; ``sectors``: 32-byte sectors summed over
    requests (global); ``unique_sectors``: distinct sectors over the sampled blocks, scaled to the grid only as
    far as blocks touch different ones (a lower bound of DRAM traffic); ``wavefronts``: shared-memory passes
    (1 a conflict-free request), of constant memory one for each different word of a request; ``serial``: for atomics,
    the sum over requests of the largest number of lanes on one address. ``block_sectors``: distinct sectors of each
    block, summed over blocks: the traffic between L1 and L2 if the L1 kept what a block touched; ``lines``: 128-byte
    lines summed over requests. Both 0 where not recorded.
    ``integers``: whether the buffer holds integers. ``past_l1``: whether loads ask the L2 at once, which the compiler
    decides: see fsr.prediction.compiled.
    """

    line: int
    space: str  # "global", "shared", "constant", "local" (arrays that fsr.prediction.locals tells of)
    kind: str  # "read", "write", "atomic"
    bytes: int  # of one lane's access
    buffer: str  # argument or scratch name; the variable for shared memory
    requests: float
    lanes: float
    sectors: float
    unique_sectors: float
    wavefronts: float
    serial: float = 0.0
    max_same_address: float = 0.0  # atomics: accesses to the busiest single address, grid-wide estimate
    block_sectors: float = 0.0
    lines: float = 0.0
    integers: bool = False
    past_l1: bool = False


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Warp-level instructions of a launch that go at a rate of their own, judged from the CPU's code: ``special``, of
    the unit for special functions (bits counted and found, reciprocals, roots, exponentials); ``doubles``, of FP64.
    ``divisions``: of float32, roots among them, and ``functions``: calls of float32 library functions, each several of
    the launch's instructions, fewer with fast mathematics."""

    special: float = 0.0
    doubles: float = 0.0
    divisions: float = 0.0
    functions: float = 0.0


@dataclass(frozen=True, slots=True)
class LaunchProfile:
    """What one launch did. ``warp_instructions``: estimated warp-level instructions of the whole grid (scaled),
    divergence included; ``barriers``, ``shuffles``: warp-level counts; blocks and threads as launched;
    ``tensor_operations``: multiplications and additions of tensor cores, each type's as many as halves take as long;
    ``times``: how many launches of the plan it stands for; ``arithmetic``: instructions that are slower than others."""

    entry: str
    blocks: int
    threads_per_block: int
    sampled_blocks: int
    shared_bytes: int  # static + dynamic
    warp_instructions: float
    barriers: float
    shuffles: float
    sites: tuple[AccessSite, ...]
    tensor_operations: float = 0.0
    times: int = 1
    arithmetic: Arithmetic = Arithmetic()


@dataclass(frozen=True, slots=True)
class AccessProfile:
    """The recording of one run of a plan: a profile a launch, and every fault found (all kinds of Fault)."""

    launches: tuple[LaunchProfile, ...]
    faults: tuple[Fault, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which parts of a kernel one run of a plan went through. ``parts``: the function, by a number, and the line of the
    source of each basic block that is written there, by a number of its own; ``ran``: those that a thread went
    through."""

    parts: Mapping[int, tuple[int, int]]
    ran: frozenset[int]


@dataclass(frozen=True, slots=True)
class BlockOrder:
    """An order in which blocks and threads of a launch run, of the many that a GPU may choose.

    ``blocks``: 0 ascending, 1 descending, 2 mixed. ``backward``: the threads of a block start from the last.
    ``quantum``: another thread, of any block, goes on after so many global accesses on average (0: only where one
    waits). ``stalled``: 1 + the place of a block that stands still until no other can go on (0: none). ``stale``: how
    often a relaxed load misses a store that nothing orders before it. ``resident``: blocks under way at once (0: as
    many as fit); where these wait for others, they are starved. ``chosen``: execute only so many blocks, neighbours
    among them (0: all); ``budget``: and start none after so many accesses (0: no limit). ``cooperative``: a barrier of
    the grid may be waited at."""

    seed: int = 0
    blocks: int = 0
    backward: int = 0
    quantum: int = 0
    stalled: int = 0
    stale: int = 0
    resident: int = 0
    chosen: int = 0
    budget: int = 0
    cooperative: int = 0


class RecordingDevice(Device, Protocol):
    """The host device: it can also record, given an image compiled with ``instrumented=True``."""

    def record(
        self,
        image: Image,
        launches: Sequence[ConcreteLaunch],
        buffers: Sequence[Buffer],
        *,
        access_budget: int = 3_000_000,
        timeout_s: float = 20.0,
    ) -> AccessProfile:
        """Run once with every access recorded. When the grid would exceed ``access_budget`` thread-level
        accesses, blocks spread evenly over the grid are executed until the budget is used (at least one) and
        counts are scaled; faults are exact for the blocks executed. Where a launch stands for several (``times``), what
        those left out would have written counts as written. Raises DeviceFault on crash or hang."""

    def covering_toolchain(self) -> Toolchain:
        """The compiler of images for :meth:`cover`, which keeps the source's branches."""

    def cover(
        self, image: Image, launches: Sequence[ConcreteLaunch], buffers: Sequence[Buffer], timeout_s: float = 20.0
    ) -> Coverage:
        """Run once as :meth:`record` does, and tell what the blocks that were executed went through. Nothing is known
        of an image where no tool reads it. Raises DeviceFault on crash or hang."""

    def watching_toolchain(self) -> Toolchain:
        """The compiler of images to be watched, which finds more than one for recording does."""

    def watch(
        self,
        image: Image,
        launches: Sequence[ConcreteLaunch],
        buffers: Sequence[Buffer],
        order: BlockOrder,
        timeout_s: float = 20.0,
    ) -> tuple[tuple[Fault, ...], dict[str, Array]]:
        """Run once in another order, every access looked at: the faults found, and all buffers that are not scratch
        afterwards. What depends on the order, or on what no fence makes visible, shows in either. Raises DeviceFault
        on crash or hang."""


class JudgingDevice(TimedDevice, Protocol):
    """A device that draws arrays by :class:`Formula` and compares outputs where they are. What it prepares also has
    ``region(name)`` (where an array lies) and ``shake(name, key, step)`` (moves a floating input). ``judge``: its
    kernels, as :class:`fsr.backends.cuda.judging.Judge`; ``pool``: ``take(bytes)`` and ``give(address)``."""

    judge: Any
    pool: Any


def constant_fault(symbol: str, given_bytes: int, found_bytes: int | None) -> DeviceFault:
    """A candidate that lacks a ``__constant__`` variable which callers fill (None), or has one of another size."""
    has = "has none" if found_bytes is None else f"has one of {found_bytes} bytes"
    return DeviceFault(
        Fault(
            FaultKind.LAUNCH,
            f"callers fill the __constant__ variable '{symbol}' ({given_bytes} bytes) before they launch, and this "
            f"code {has}: keep its name and type",
        )
    )


def can_judge(device: Device) -> TypeGuard[JudgingDevice]:
    """Whether a device draws and compares by itself."""
    return hasattr(device, "judge")


def can_time(device: Device) -> TypeGuard[TimedDevice]:
    """Whether a device has a clock."""
    return device.timed


def can_record(device: Device) -> TypeGuard[RecordingDevice]:
    """Whether a device records accesses."""
    return device.records


__all__ = [
    "AccessProfile", "AccessSite", "Array", "BlockOrder", "Buffer", "Comparison", "Device", "DeviceFault", "Difference",
    "Formula", "JudgingDevice", "LaunchProfile", "Prepared", "RecordingDevice", "TimedDevice", "TimedPrepared",
    "can_judge", "can_record", "can_time", "constant_fault",
]  # fmt: skip
