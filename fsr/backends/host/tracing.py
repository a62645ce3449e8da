"""A watched run of a prepared plan: every value of its buffers as the number of an expression node."""

from __future__ import annotations

import mmap
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fsr.backends.host.faults import describe
from fsr.backends.host.instrument import LOST_ELSEWHERE, LOST_VOTE
from fsr.backends.host.prepared import HostPrepared
from fsr.backends.protocol import DeviceFault
from fsr.hardware.dtypes import numpy_dtype
from fsr.records import Fault, FaultKind, Role, ScalarValue

NODE = np.dtype([("kind", "i4"), ("type", "i4"), ("a", "i4"), ("b", "i4"), ("c", "i4"), ("_", "i4"), ("value", "u8")])
# tracer.h: Kind and Type, in order from 1 and from 0.
KINDS = ("", "const", "integer", "load", "gathered", "chosen", "guard", "select", "pair", "unknown")
TYPES = ("bool", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
CAPACITY = 1 << 22
ASIDE = "threads that are not followed take part in what others compute"
FULL = "too many operations"
COVERED = "several threads write one element, each under conditions on data of its own"
_LOST = {16: ASIDE, 1: FULL, 2: "too many branches on data at once", LOST_VOTE: "threads vote on data",
         LOST_ELSEWHERE: "data goes where it cannot be followed", 32: COVERED}  # fmt: skip


@dataclass(frozen=True)
class Trace:
    """What a watched run left.

    nodes: all expression nodes, of dtype NODE; number 0 is none. results: for each buffer that a kernel may write and
    that is no scratch the node of every element, flat; 0 where only some blocks ran and none of them wrote it; kept in
    ``known`` where a thread that is followed wrote it. places:
    for each buffer its first address (data-dependent addresses are told in these), element size and elements. regions:
    buffer or scalar by the number that loads name. lost: why some values are not known.
    """

    nodes: npt.NDArray[Any]
    results: Mapping[str, npt.NDArray[np.int32]]
    places: Mapping[str, tuple[int, int, int]]
    regions: tuple[str, ...]
    lost: tuple[str, ...]

    def values(self, name: str, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """What each element of a buffer was in the end, where a node tells it."""
        bits = np.ascontiguousarray(self.nodes["value"][self.results[name]])
        return bits.astype(f"u{dtype.itemsize}").view(dtype)

    @cached_property
    def known(self) -> Mapping[str, npt.NDArray[np.int32]]:
        """The results, 0 too where a thread wrote that is not followed; asked for once an element that is looked at."""
        unknown = self.nodes["kind"] == KINDS.index("unknown")
        if not unknown.any():
            return self.results
        return {name: np.where(unknown[found], 0, found) for name, found in self.results.items()}

    def columns(self) -> tuple[memoryview, ...]:
        """The nodes' kinds, types, three operands and values."""
        fields = ("kind", "type", "a", "b", "c", "value")
        return tuple(np.ascontiguousarray(self.nodes[name]).data for name in fields)


def type_number(dtype: np.dtype[Any]) -> int:
    """The tracer's number of an element type. Raises KeyError for one that it does not follow."""
    name = dtype.name.replace("uint", "int")
    return {name_: number for number, name_ in enumerate(TYPES)}[name]


@dataclass(frozen=True, slots=True)
class Part:
    """What of a plan is run and watched. ``blocks``: for each launch those that run, or nothing for all. ``threads``:
    of each block those that are watched, or nothing for all; of the others only what they read and pass on is, and of
    those that stand ``alone`` nothing. ``plain``: buffers whose elements are not followed but taken as what they
    hold."""

    blocks: Sequence[Sequence[int]] = ()
    threads: Sequence[int] = ()
    alone: bool = False
    plain: Collection[str] = ()


ALL = Part()


def trace(prepared: HostPrepared, scalars: Sequence[Sequence[str]], timeout_s: float, part: Part = ALL) -> Trace:
    """Run the plan once, watched. ``scalars``: for each launch the name of the scalar that each argument is, '' for one
    that is none or has no name of its own. Raises DeviceFault; KeyError for an element type that is not followed."""
    prepared.pack()
    arena, regions, rows, reads, offset = prepared.arena, list[str](), [], [], 0
    starts = _starts(prepared)
    for buffer, place, address in zip(arena.buffers, arena.places, starts, strict=True):
        number, count = type_number(buffer.array.dtype), buffer.array.size
        if not (buffer.zeroed and buffer.role is None) and buffer.name not in part.plain:
            rows.append([address, count, number, len(regions), 1])
        regions.append(buffer.name)
        if buffer.role not in (None, Role.IN) and place.size:
            reads.append([address, count, number, offset])
            offset += count
    room = -(-4 * max(offset, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
    size = room + CAPACITY * NODE.itemsize
    file = os.memfd_create("fsr-trace")
    try:
        try:
            os.ftruncate(file, size)
        except OSError as error:  # a limit on the size of files, which memory counts as
            raise DeviceFault(Fault(FaultKind.MEMORY, f"watching needs {size >> 20} MiB: {error.strerror}")) from None
        request = {
            "op": "trace", "image": prepared.loaded.key, "launches": prepared.packed, "zero": prepared.zeroed(),
            "constants": prepared.constants(),
            "timeout_s": timeout_s, "regions": rows, "reads": reads, "room": room, "capacity": CAPACITY, "size": size,
            "scalars": _scalar_regions(prepared, scalars, regions),
            "blocks": [list(b) for b in part.blocks] or [[] for _ in prepared.launches],
            "threads": list(part.threads), "alone": part.alone,
        }  # fmt: skip
        names = prepared.entries
        answer = prepared.device.ask(request, [file], timeout_s, names)
        if "fault" in answer:
            record = answer.get("record") or prepared.device.last_fault()
            raise DeviceFault(describe(record, names, prepared.loaded.lines, arena, prepared.bases))
        with mmap.mmap(file, size) as memory:
            found = np.frombuffer(memory, np.int32, offset).copy()
            nodes = np.frombuffer(memory, NODE, min(int(answer["nodes"]), CAPACITY), room).copy()
    finally:
        os.close(file)
    places, results, at = {}, {}, 0
    for buffer, place, address in zip(arena.buffers, arena.places, starts, strict=True):
        places[buffer.name] = (address, buffer.array.itemsize, buffer.array.size)
        if buffer.role not in (None, Role.IN) and place.size:
            results[buffer.name] = found[at : at + buffer.array.size]
            at += buffer.array.size
    lost = tuple(words for bit, words in _LOST.items() if int(answer["lost"]) & bit)
    return Trace(nodes, results, places, tuple(regions), lost)


def _starts(prepared: HostPrepared) -> list[int]:
    """Where each buffer is read: what fills a ``__constant__`` variable there."""
    rows = zip(prepared.arena.buffers, prepared.arena.places, prepared.addresses(), strict=True)
    return [prepared.constant(b, p.size) if b.symbol and p.size else address for b, p, address in rows]


def _scalar_regions(
    prepared: HostPrepared, scalars: Sequence[Sequence[str]], regions: list[str]
) -> list[list[list[int]]]:
    """For each launch and argument: number of its region and type, or nothing; names are added to ``regions``."""
    rows = []
    for launch, names in zip(prepared.launches, scalars, strict=True):
        row: list[list[int]] = []
        for arg, name in zip(launch.args, names, strict=True):
            followed = bool(name) and isinstance(arg, ScalarValue) and numpy_dtype(arg.dtype).kind == "f"
            if not followed or not isinstance(arg, ScalarValue):
                row.append([])
                continue
            if name not in regions:
                regions.append(name)
            row.append([regions.index(name), type_number(numpy_dtype(arg.dtype))])
        rows.append(row)
    return rows


__all__ = [
    "ALL",
    "ASIDE",
    "CAPACITY",
    "FULL",
    "KINDS",
    "NODE",
    "TYPES",
    "Part",
    "Role",
    "Trace",
    "trace",
    "type_number",
]
