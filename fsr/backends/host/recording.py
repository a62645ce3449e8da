"""A recorded run of a prepared plan, from the child's rows to an AccessProfile."""

from __future__ import annotations

import re
from dataclasses import asdict, fields, replace
from typing import Any

from fsr.backends.host.arena import from_null
from fsr.backends.host.faults import describe
from fsr.backends.host.instructions import Block, blocks_of
from fsr.backends.host.prepared import HostPrepared, LoadedImage
from fsr.backends.host.wide import Row, merge_wide, vector_sizes
from fsr.backends.protocol import (
    AccessProfile,
    AccessSite,
    Arithmetic,
    BlockOrder,
    Coverage,
    DeviceFault,
    LaunchProfile,
)  # fmt: skip
from fsr.emulator.elf import attached_source, read_variables
from fsr.records import OTHER_AT, ConcreteLaunch, Fault, FaultKind, Role

_GLOBAL, _SHARED, _IMAGE, _LOCAL = 0, 1, 2, 3
_LOCALS = "local memory"
_SPACES = {_SHARED: "shared", _LOCAL: "local"}
_UNDEFINED, _DEFINED = (True, False), (False, False)  # variables of the image, which kernels may write
_ACCESS = ("read", "write", "atomic")
_FAULTS = {
    1: FaultKind.OUT_OF_BOUNDS, 2: FaultKind.RACE, 3: FaultKind.UNINITIALISED, 4: FaultKind.MISALIGNED,
    5: FaultKind.INPUT_CHANGED, 6: FaultKind.STATE, 7: FaultKind.UNDEFINED,
}  # fmt: skip
_CONSTANT = re.compile(r"__constant__[^;={}()]*?(\w+)\s*(?:\[[^;{}]*?\]\s*)*(?:;|=|\{)")
_COVER_BUDGET = 3_000_000  # accesses
_LINE = 1 << 31  # set where the other access of a race is told by its line, not by its place in the image
_NOTE = "instructions are estimated from the CPU's code"


class Regions:
    """All memory a kernel may touch, in the child's numbering: buffers, shared variables, device variables."""

    def __init__(self, prepared: HostPrepared) -> None:
        self.names: list[str] = []
        self.sizes: dict[str, int] = {}  # bytes, by name
        self.integers = {b.name for b in prepared.arena.buffers if b.array.dtype.kind in "iu"}
        self.items: list[int] = []  # bytes of an element, 1 where unknown
        self.spaces: list[int] = []
        self.rows: list[list[int]] = []
        loaded = prepared.loaded
        partial = any(launch.times > 1 for launch in prepared.launches)  # what others write is not there to be read
        for buffer, p, address in zip(prepared.arena.buffers, prepared.arena.places, prepared.addresses(), strict=True):
            undefined = not partial and (buffer.role is Role.OUT or (buffer.role is None and not buffer.zeroed))
            flags = (undefined, buffer.role is Role.IN)
            self._add(buffer.name, address, p.size, _GLOBAL, buffer.array.itemsize, flags)
        variables = read_variables(loaded.image.data)
        for v in variables.shared:
            if not _internal(v.name):
                self._add(v.name, loaded.shared + v.offset, v.size_bytes, _SHARED, 4, _UNDEFINED)
        for v in variables.data:
            if not _internal(v.name):
                self._add(v.name, loaded.base + v.offset, v.size_bytes, _IMAGE, 4, _DEFINED)
        largest = max((launch.shared_bytes for launch in prepared.launches), default=0)
        if largest:
            self._add("dynamic shared memory", loaded.dynamic, largest, _SHARED, 4, _UNDEFINED)

    def _add(self, name: str, address: int, size: int, space: int, item: int, flags: tuple[bool, bool]) -> None:
        """``flags``: whether it begins undefined, and whether a kernel may only read it."""
        shift = {1: 0, 2: 1}.get(item, 2)
        if size:
            self.rows.append([address, size, space, len(self.names), shift, *map(int, flags)])
        self.names.append(name)
        self.sizes[name] = size
        self.items.append(item if space == _GLOBAL else 1)
        self.spaces.append(space)


def _internal(name: str) -> bool:
    """Whether a variable belongs to the runtime or the compiler and not to the candidate."""
    return name.startswith(("_", "fsr_", ".L", "threadIdx", "blockIdx", "blockDim", "gridDim"))


def record(prepared: HostPrepared, access_budget: int, timeout_s: float) -> AccessProfile:
    """Run the plan once, recorded. See RecordingDevice.record."""
    answer, faults = _observed(prepared, {"op": "record", "budget": max(access_budget, 1)}, timeout_s)
    regions = Regions(prepared)
    pairs = zip(prepared.launches, answer["launches"], strict=False)
    profiles = tuple(_profile(launch, report, regions, prepared.loaded) for launch, report in pairs)
    return AccessProfile(profiles, tuple(faults), _NOTE)


def cover(prepared: HostPrepared, timeout_s: float) -> Coverage:
    """Run the plan once. See RecordingDevice.cover."""
    answer, _ = _observed(prepared, {"op": "record", "budget": _COVER_BUDGET}, timeout_s)
    loaded = prepared.loaded
    blocks = {at - 1: block for at, block in _blocks(loaded).items()}  # by the calls that mark them
    lines = loaded.lines.own(blocks)
    ran = {pc - loaded.base - 1 for report in answer["launches"] for pc, warps in report["blocks"] if warps}
    return Coverage({at: (blocks[at].function, line) for at, line in lines.items()}, frozenset(ran & lines.keys()))


def watch(prepared: HostPrepared, order: BlockOrder, timeout_s: float) -> tuple[Fault, ...]:
    """Run the plan once in that order, every access looked at. See RecordingDevice.watch."""
    return tuple(_observed(prepared, {"op": "watch", "order": asdict(order)}, timeout_s)[1])


def _observed(prepared: HostPrepared, request: dict[str, Any], timeout_s: float) -> tuple[Any, list[Fault]]:
    """The child's answer to a request that observes accesses, and the faults found. Raises DeviceFault."""
    prepared.pack()
    regions = Regions(prepared)
    names = prepared.entries
    request |= {
        "image": prepared.loaded.key, "launches": prepared.packed, "zero": prepared.zeroed(),
        "constants": prepared.constants(), "timeout_s": timeout_s, "regions": regions.rows,
    }  # fmt: skip
    answer = prepared.device.ask(request, (), timeout_s, names)
    if "record" in answer:  # died in an access that the recorder let pass
        raise DeviceFault(describe(answer["record"], names, prepared.loaded.lines, prepared.arena, prepared.bases))
    faults = _faults(answer["found"], regions, prepared.loaded)
    if answer.get("fault"):
        record_ = prepared.device.last_fault()
        entry = prepared.launches[answer["done"]].entry
        stopped = describe(record_, entry, prepared.loaded.lines, prepared.arena, prepared.bases)
        if not (faults and stopped.kind == FaultKind.OUT_OF_BOUNDS):  # which the recorder has told in better words
            faults.append(stopped)
    return answer, faults


def _profile(launch: ConcreteLaunch, report: Any, regions: Regions, loaded: LoadedImage) -> LaunchProfile:
    blocks = launch.grid[0] * launch.grid[1] * launch.grid[2]
    known = _blocks(loaded)
    ran = [(known.get(pc - loaded.base), warps) for pc, warps in report["blocks"]]
    counted = [(block, warps) for block, warps in ran if block]
    instructions = sum(warps * (block.weight if block else 4.0) for block, warps in ran)
    resources = loaded.image.resources.get(launch.entry)
    static = (resources.static_shared_bytes if resources else 0) or 0
    return LaunchProfile(
        entry=launch.entry, blocks=blocks, threads_per_block=launch.block[0] * launch.block[1] * launch.block[2],
        sampled_blocks=report["executed"], shared_bytes=static + launch.shared_bytes,
        warp_instructions=instructions, barriers=report["barriers"], shuffles=report["warp_syncs"],
        sites=tuple(_sites(report["sites"], regions, loaded)), tensor_operations=report["tensor"],
        times=launch.times, arithmetic=_arithmetic(counted),
    )  # fmt: skip


def _arithmetic(ran: list[tuple[Block, float]]) -> Arithmetic:
    """What the blocks of a launch did, each by as many warps."""
    return Arithmetic(**{f.name: sum(warps * getattr(block, f.name) for block, warps in ran)
                         for f in fields(Arithmetic)})  # fmt: skip


def _blocks(loaded: LoadedImage) -> dict[int, Block]:
    if loaded.blocks is None:
        loaded.blocks = blocks_of(loaded.image.data)
    return loaded.blocks


def _sites(rows: list[dict[str, Any]], regions: Regions, loaded: LoadedImage) -> list[AccessSite]:
    """One AccessSite a line, space, kind, width and buffer."""
    pcs = {row["pc"] - loaded.base - 1 for row in rows if not row["line"]}
    lines = loaded.lines.find(pcs)
    written = {row["region"] for row in rows if row["access"]}
    source = attached_source(loaded.image.data)
    held = set(_CONSTANT.findall(source))
    records = []
    for row in rows:
        line = row["line"] or lines.get(row["pc"] - loaded.base - 1) or 0
        constant = row["space"] == _IMAGE and row["region"] not in written
        space = "constant" if constant else _SPACES.get(row["space"], "global")
        name = _LOCALS if space == "local" else regions.names[row["region"]]
        if space == "constant" and name.rpartition("::")[2] not in held:
            row = {**row, "wavefronts": row["requests"]}  # a variable of the device, through the L1
        records.append(Row(line, space, _ACCESS[row["access"]], row["bytes"], name, row))
    merged = merge_wide(records, vector_sizes(source))
    totals: dict[tuple[Any, ...], AccessSite] = {}
    for one in merged:
        key = (one.line, one.space, one.kind, one.bytes, one.buffer)
        totals[key] = _sum(totals.get(key), one)
    # Two accesses of one line that touch the same sectors are two sites to the recorder and count them twice.
    whole = {name: size / 32 + 1 for name, size in regions.sizes.items()} | {_LOCALS: 0.0}
    capped = (
        replace(s, unique_sectors=min(s.unique_sectors, whole[s.buffer]), integers=s.buffer in regions.integers)
        for s in totals.values()
    )
    return sorted(capped, key=lambda s: (s.line, s.kind, s.buffer))


def _sum(total: AccessSite | None, row: Row) -> AccessSite:
    c = row.counts
    t = total or AccessSite(row.line, row.space, row.kind, row.bytes, row.buffer, 0, 0, 0, 0, 0)
    return AccessSite(
        t.line, t.space, t.kind, t.bytes, t.buffer, t.requests + c["requests"], t.lanes + c["lanes"],
        t.sectors + c["sectors"], t.unique_sectors + c["unique_sectors"], t.wavefronts + c["wavefronts"],
        t.serial + c["serial"], max(t.max_same_address, c["max_same"]),
        t.block_sectors + c["block_sectors"], t.lines + c["lines"],
    )  # fmt: skip


def _faults(found: list[dict[str, Any]], regions: Regions, loaded: LoadedImage) -> list[Fault]:
    others = {row["other_at"] for row in found if 0 < row["other_at"] < _LINE}
    lines = loaded.lines.find(others | {row["pc"] for row in found if row["pc"] and not row["line"]})
    faults = []
    for row in found:
        line = row["line"] or lines.get(row["pc"])
        who = f"block {tuple(row['block'])}, thread {row['thread']}"
        if row["kind"] == 1:
            where = f" {_near(row['address'], regions)}" if row["address"] or row["text"].endswith("bytes") else ""
            faults.append(Fault(FaultKind.OUT_OF_BOUNDS, f"{row['text']}{where} ({who})", line))
            continue
        if row["region"] < 0:
            faults.append(Fault(_FAULTS[row["kind"]], f"{row['text']} ({who})", line))
            continue
        item = regions.items[row["region"]]
        place = f"'{regions.names[row['region']]}'" + (
            f"[{row['address'] // item}]" if item > 1 else f" byte {row['address']}"
        )
        if row["kind"] == 2:
            who += " of another block and" if row["other_earlier_block"] else f" and thread {row['other']}"
            who = f"{who} another" if row["other_earlier_block"] else who
        other = row["other_at"] - _LINE if row["other_at"] > _LINE else lines.get(row["other_at"])
        who += f"; {OTHER_AT} {other}" if other else ""
        kind = _FAULTS[row["kind"]]
        if kind is FaultKind.UNINITIALISED and regions.spaces[row["region"]] == _SHARED:
            kind = FaultKind.UNSET
        faults.append(Fault(kind, f"{place}: {row['text']} ({who})", line))
    return list(dict.fromkeys(faults))


def _near(address: int, regions: Regions) -> str:
    """The memory that an address lies next to."""
    if from_null(address):
        return f"at {address:#x}, through a null pointer"
    best, words = 1 << 20, f"at {address:#x}, in no buffer"
    for begin, size, _, index, *_ in regions.rows:
        distance = begin - address if address < begin else address - begin - size
        if 0 <= distance < best:
            best, item = distance, regions.items[index]
            unit = f"[{(address - begin) // item}]" if item > 1 else f" at byte {address - begin}"
            words = f"of '{regions.names[index]}'{unit}, which has {size // item} {'elements' if item > 1 else 'bytes'}"
    return words


__all__ = ["Regions", "cover", "record", "watch"]
