"""The few driver calls that the CUDA device is built on, as a protocol, so that a fake can stand in for a GPU.

Addresses are integers. Fills and copies between device buffers are queued on the one stream, as launches are;
uploads and downloads wait. Nothing here knows of candidates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NewType, Protocol

from fsr.backends.protocol import Array
from fsr.records import Dim3

Event = NewType("Event", object)
Function = NewType("Function", object)
Module = NewType("Module", object)

# attributes that the device asks for, by their names in CUDA's driver interface
ATTRIBUTES = (
    "CLOCK_RATE", "L2_CACHE_SIZE", "MAX_BLOCK_DIM_X", "MAX_BLOCK_DIM_Y", "MAX_BLOCK_DIM_Z", "MAX_GRID_DIM_X",
    "MAX_GRID_DIM_Y", "MAX_GRID_DIM_Z", "MAX_SHARED_MEMORY_PER_BLOCK", "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "MAX_THREADS_PER_BLOCK", "MEMORY_CLOCK_RATE", "MULTIPROCESSOR_COUNT",
)  # fmt: skip


class DriverError(Exception):
    """A driver call that failed. ``kind``: 'memory' (out of it), 'launch' (refused before running), 'image' (cannot
    be loaded or has no such symbol), 'crash' (a kernel failed; the context is lost)."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(kind, detail)
        self.kind, self.detail = kind, detail

    def __str__(self) -> str:
        return self.detail


class Driver(Protocol):
    """One context on one GPU with one stream. All methods raise DriverError."""

    name: str
    pci_bus_id: str
    compute_capability: tuple[int, int]
    memory_bytes: int
    runtime: str
    attributes: Mapping[str, int]

    def alloc(self, size_bytes: int) -> int:
        """Address of new memory, a multiple of 256."""

    def free(self, address: int) -> None:
        """Give memory back."""

    def fill(self, address: int, value: int, size_bytes: int) -> None:
        """Queue setting bytes to ``value`` (0 to 255)."""

    def copy(self, to: int, source: int, size_bytes: int) -> None:
        """Queue a copy within the device."""

    def upload(self, to: int, array: Array) -> None:
        """Copy a C-contiguous array to the device and wait."""

    def download(self, array: Array, source: int) -> None:
        """Wait for the stream, then fill a C-contiguous array."""

    def load(self, image: bytes) -> Module:
        """Load a cubin; unloaded when the last reference goes."""

    def function(self, module: Module, symbol: str) -> Function:
        """A kernel by its lowered symbol."""

    def variable(self, module: Module, symbol: str) -> int:
        """Address of a variable by its lowered symbol."""

    def function_limits(self, function: Function) -> tuple[int, int]:
        """Most threads a block (for its registers) and its static shared memory in bytes."""

    def allow_dynamic_shared(self, function: Function, size_bytes: int) -> None:
        """Raise the kernel's limit of dynamic shared memory."""

    def launch(self, function: Function, grid: Dim3, block: Dim3, arguments: bytes, shared_bytes: int) -> None:
        """Queue a launch; ``arguments`` is the packed parameter block."""

    def event(self) -> Event:
        """A new event with a time stamp."""

    def record(self, event: Event) -> None:
        """Queue the event."""

    def done(self, event: Event) -> bool:
        """Whether everything queued before the event has finished. Raises kind 'crash'."""

    def elapsed_ns(self, start: Event, end: Event) -> float:
        """Time between two finished events."""

    def synchronize(self) -> None:
        """Wait for every stream of the context."""

    def graph(self, queue: Any) -> Any:
        """What ``queue()`` queues, captured as a graph, as a callable that queues it; None where graphs cannot be
        captured."""

    def abandon(self) -> None:
        """After a hang or crash: make sure that nothing in this process waits for the GPU again."""

    def close(self) -> None:
        """Destroy the context."""
