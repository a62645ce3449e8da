"""A plan with its memory on the host device: run, read back, check; and an image as the child has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from types import TracebackType
from typing import Any, Protocol, Self

from fsr.backends.host.arena import Place
from fsr.backends.host.faults import describe
from fsr.backends.host.instructions import Block
from fsr.backends.host.launches import pack_launch
from fsr.backends.host.lines import Lines
from fsr.backends.protocol import Array, Buffer, DeviceFault, constant_fault
from fsr.emulator.elf import find_variable
from fsr.errors import HarnessError
from fsr.records import ConcreteLaunch, Fault, FaultKind, Image

_BEHIND_SHARED = 1 << 24  # bytes: as far as an index too large by the size of an element, and of a block, leads


class LoadedImage:
    """An image and what the child said about it; ``generation`` tells which child has it."""

    def __init__(self, key: int, image: Image) -> None:
        self.key, self.image, self.lines = key, image, Lines(image.data)
        self.generation = -1
        self.entries: dict[str, tuple[list[int], str]] = {}
        self.blocks: dict[int, Block] | None = None  # once a recording needs them
        self.shared = self.dynamic = self.base = 0  # addresses in the child: static and dynamic shared memory, image
        self._constants: dict[tuple[str, str], tuple[str, int, int] | None] = {}

    def constant(self, symbol: str, size_bytes: int, entry: str) -> int:
        """Address in the child of a ``__constant__`` variable, of several of that name (candidates in one image) the
        one that the entry sees. Raises DeviceFault kind 'launch' without one of that size."""
        if (symbol, entry) not in self._constants:
            self._constants[symbol, entry] = find_variable(self.image.data, symbol, entry)
        found = self._constants[symbol, entry]
        if found is None or found[2] != size_bytes:
            raise constant_fault(symbol, size_bytes, found[2] if found else None)
        return self.base + found[1]


class Home(Protocol):
    """What a prepared plan needs of its device: the child, which may be another one after each crash."""

    @property
    def generation(self) -> int:
        """Counts the children: what was placed in an earlier one is gone. Starts one where none runs."""

    def holds(self, generation: int) -> bool:
        """Whether the child of that generation is still running."""

    def ensure(self, loaded: LoadedImage) -> None:
        """Load the image into the running child unless it is there."""

    def ask(self, message: Any, files: Sequence[int], timeout_s: float, entry: str) -> Any:
        """Ask the child; its death is a DeviceFault unless it left a record."""

    def last_fault(self) -> Any:
        """The record that the child's last launch left."""


class Memory(Protocol):
    """The parent's side of the buffers: an Arena, or one of which only touched pages exist."""

    buffers: list[Buffer]
    places: list[Place]
    file: int

    def regions(self) -> list[list[int]]:
        """Offset and length of each buffer's region in the file."""

    def reset(self) -> None:
        """Initial contents and guard zones."""

    def read(self) -> dict[str, Array]:
        """Copies of all buffers that are not scratch."""

    def violations(self) -> list[Fault]:
        """Guard zones overwritten, inputs changed."""

    def locate(self, address: int, bases: Sequence[int]) -> str:
        """An address in words."""

    def close(self, *, unmapped: bool = False) -> None:
        """Free the memory here. ``unmapped``: the child has it no more."""


@dataclass(frozen=True, slots=True)
class _WithShared:
    """Tells addresses of buffers in words, and those far behind dynamic shared memory, of ``count`` bytes."""

    arena: Memory
    start: int
    count: int

    def locate(self, address: int, bases: Sequence[int]) -> str:
        """An address in words."""
        byte = address - self.start
        if self.start and self.count and self.count <= byte < self.count + _BEHIND_SHARED:
            return f"byte {byte} of dynamic shared memory, of which the launch has {self.count}"
        return self.arena.locate(address, bases)


class HostPrepared:
    """A prepared plan (a Prepared). The buffers live in memory that parent and child share."""

    def __init__(
        self, device: Home, loaded: LoadedImage, launches: Sequence[ConcreteLaunch], arena: Memory, key: int
    ) -> None:
        self.device, self.loaded, self.launches, self.arena, self.key = device, loaded, list(launches), arena, key
        self.bases: list[int] = []  # addresses of the buffers' regions in the child
        self.packed: list[dict[str, Any]] = []
        self._generation = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def pack(self) -> None:
        """Place image and buffers in the running child. Raises DeviceFault kind 'launch' for wrong arguments."""
        self.device.ensure(self.loaded)
        if self._generation == self.device.generation:
            return
        request = {"op": "map", "memory": self.key, "regions": self.arena.regions()}
        try:
            self.bases = self.device.ask(request, [self.arena.file], 30.0, "mapping the buffers")["addresses"]
        except HarnessError as error:
            raise DeviceFault(Fault(FaultKind.MEMORY, f"the buffers do not fit: {error.what}")) from None
        self._generation = self.device.generation
        addresses = {
            buffer.name: base + p.start
            for buffer, p, base in zip(self.arena.buffers, self.arena.places, self.bases, strict=True)
        }
        image = self.loaded.image
        self.packed = [pack_launch(launch, image, self.loaded.entries, addresses) for launch in self.launches]

    @property
    def entries(self) -> str:
        """What is launched, for messages; a kernel that is launched several times in a row once."""
        return " + ".join(entry for entry, _ in groupby(launch.entry for launch in self.launches))

    def addresses(self) -> list[int]:
        """Where the buffers begin in the child."""
        return [base + p.start for p, base in zip(self.arena.places, self.bases, strict=True)]

    def zeroed(self) -> list[list[int]]:
        """Address and size of each buffer that every run clears."""
        rows = zip(self.arena.buffers, self.arena.places, self.addresses(), strict=True)
        return [[address, p.size] for buffer, p, address in rows if buffer.zeroed and buffer.role is None and p.size]

    def constant(self, buffer: Buffer, size_bytes: int) -> int:
        """Where a buffer's ``__constant__`` variable lies."""
        return self.loaded.constant(buffer.symbol, size_bytes, self.launches[0].entry if self.launches else "")

    def constants(self) -> list[list[int]]:
        """Of each buffer that fills a ``__constant__`` variable: where to, where from, how many bytes."""
        rows = zip(self.arena.buffers, self.arena.places, self.addresses(), strict=True)
        return [
            [self.constant(buffer, p.size), address, p.size] for buffer, p, address in rows if buffer.symbol and p.size
        ]

    def reset(self) -> None:
        """As Prepared.reset."""
        self.arena.reset()

    def run(self, timeout_s: float = 10.0, blocks: Sequence[int] = ()) -> None:
        """As Prepared.run; with ``blocks`` (linear numbers) only those of each launch."""
        self.pack()
        names = self.entries
        request = {
            "op": "run", "image": self.loaded.key, "launches": self.packed, "zero": self.zeroed(),
            "constants": self.constants(), "timeout_s": timeout_s, "blocks": list(blocks),
        }  # fmt: skip
        answer = self.device.ask(request, (), timeout_s, names)
        if "fault" in answer:
            record = answer.get("record") or self.device.last_fault()
            launch = self.launches[answer.get("done", 0)]
            entry = launch.entry if "done" in answer else names
            alone = "done" in answer or len(self.launches) == 1
            known = _WithShared(self.arena, self.loaded.dynamic, launch.shared_bytes if alone else 0)
            raise DeviceFault(describe(record, entry, self.loaded.lines, known, self.bases))

    def read(self) -> dict[str, Array]:
        """As Prepared.read."""
        return self.arena.read()

    def violations(self) -> list[Fault]:
        """As Prepared.violations."""
        return self.arena.violations()

    def close(self) -> None:
        """Free the buffers."""
        held = self.device.holds(self._generation)
        if held:
            self.device.ask({"op": "unmap", "memory": self.key}, (), 10.0, "freeing the buffers")
        self._generation = -1
        self.arena.close(unmapped=held)
