"""What is known of a candidate beyond its time: records whose fields say name, unit, range and where they come from.

Each group is filled by one source of knowledge, or is None where that was not asked or is not there; a field is None
where its source could not tell. Imports nothing of fsr, so that outcomes can carry features.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

VERSION = 1  # of the schema: raised when a field changes its meaning or goes
LONGEST, SUM, LEAST = "", "sum over launches", "least of all launches"


def _said(unit: str, meaning: str, most: float = math.inf, metric: str = "", over: str = LONGEST) -> Any:
    """A field: its ``unit``, its range (0 to ``most``), and for counters Nsight Compute's name (' or ' others,
    on GPUs that lack the first) and what stands for a plan of several launches."""
    said = {"unit": unit, "meaning": meaning, "most": most, "metric": metric, "over": over}
    return dataclasses.field(default=None, metadata=said)


@dataclass(frozen=True, slots=True)
class Source:
    """Lifted from the plan and the parsed kernels; sizes at the first timed configuration, of its largest launch."""

    launches: int | None = _said("launches", "kernels that one run of the plan starts")
    threads_per_block: int | None = _said("threads", "block size", 1024)
    grid_threads: int | None = _said("threads", "threads of the whole grid")
    loops: int | None = _said("loops", "loops in the kernel's text")
    loop_depth: int | None = _said("loops", "how deep loops are nested")
    branches: int | None = _said("statements", "if statements")
    barriers: int | None = _said("calls", "block-wide barriers in the text")
    atomics: int | None = _said("calls", "atomic operations in the text")


@dataclass(frozen=True, slots=True)
class Binary:
    """From the target's compiler (registers to occupancy) and from a disassembler where there is one (the rest)."""

    registers: int | None = _said("registers", "of a thread", 255)
    spill_bytes: int | None = _said("bytes", "registers stored to and loaded from local memory, a thread")
    local_bytes: int | None = _said("bytes", "stack frame of a thread, spills included")
    shared_bytes: int | None = _said("bytes", "static and dynamic shared memory of a block")
    occupancy: float | None = _said("share", "resident warps of those a multiprocessor has room for", 1)
    occupancy_limit: str | None = _said("name", "what keeps more blocks out: threads, blocks, registers or shared")
    instructions: int | None = _said("instructions", "SASS instructions of the kernel, as they stand")
    float_share: float | None = _said("share", "of them, floating-point arithmetic outside the tensor cores", 1)
    tensor_share: float | None = _said("share", "of them, tensor-core operations", 1)
    integer_share: float | None = _said("share", "of them, integer and address arithmetic, moves and comparisons", 1)
    memory_share: float | None = _said("share", "of them, loads, stores and atomics of any memory", 1)
    control_share: float | None = _said("share", "of them, branches, barriers and the like", 1)
    access_bytes: float | None = _said("bytes", "mean width of a thread's global load or store", 16)
    wide_share: float | None = _said("share", "global loads and stores of 16 bytes a thread", 1)
    local_accesses: int | None = _said("instructions", "loads and stores of local memory")


@dataclass(frozen=True, slots=True)
class Access:
    """From the recorder: one run at the first timed sizes on the host device, all launches together."""

    recorded_share: float | None = _said("share", "blocks that were executed; counts are scaled to the whole grid", 1)
    warp_instructions: float | None = _said("instructions", "of warps, estimated from the CPU's code")
    requested_bytes: float | None = _said("bytes", "that threads ask global memory for")
    distinct_bytes: float | None = _said("bytes", "different 32-byte sectors of them: what DRAM moves at the least")
    sectors_a_request: float | None = _said("sectors", "32-byte sectors that a warp's global request touches", 64)
    useful_share: float | None = _said("share", "bytes that threads asked for among the sectors moved", 1)
    bank_conflicts: float | None = _said("passes", "passes over shared memory for each that would do", 32)
    atomic_queue: float | None = _said("updates", "atomic updates of the busiest address")
    barriers_a_warp: float | None = _said("barriers", "block-wide barriers that a warp waits at")
    shuffles_a_warp: float | None = _said("shuffles", "warp-wide exchanges of a warp")


_ACTIVE, _ELAPSED = ".avg.pct_of_peak_sustained_active", ".avg.pct_of_peak_sustained_elapsed"
_STALLED = "smsp__warp_issue_stalled_{}_per_warp_active.pct"


@dataclass(frozen=True, slots=True)
class Counters:
    """From Nsight Compute: hardware counters of one run on cold caches. Of several launches the longest counts, where
    the table does not say otherwise."""

    cycles: float | None = _said("cycles", "a multiprocessor had work", metric="sm__cycles_active.avg", over=SUM)
    warps_active: float | None = _said("%", "resident warps of those that fit", 100, "sm__warps_active" + _ACTIVE)
    limit_blocks: float | None = _said(
        "blocks", "that fit by number", metric="launch__occupancy_limit_blocks", over=LEAST
    )
    limit_registers: float | None = _said(
        "blocks", "that fit by registers", metric="launch__occupancy_limit_registers", over=LEAST
    )
    limit_shared: float | None = _said(
        "blocks", "that fit by shared memory", metric="launch__occupancy_limit_shared_mem", over=LEAST
    )
    registers: float | None = _said("registers", "of a thread", 255, "launch__registers_per_thread")
    instructions: float | None = _said("instructions", "of warps executed", metric="sm__inst_executed.sum", over=SUM)
    fp32: float | None = _said(
        "%",
        "of the FP32 pipe's peak",
        100,
        f"sm__inst_executed_pipe_fp32{_ACTIVE} or sm__inst_executed_pipe_fma{_ACTIVE}",
    )
    tensor: float | None = _said("%", "of the tensor pipe's peak", 100, "sm__inst_executed_pipe_tensor" + _ACTIVE)
    dram_read_bytes: float | None = _said("bytes", "read from DRAM", metric="dram__bytes_read.sum", over=SUM)
    dram_write_bytes: float | None = _said("bytes", "written to DRAM", metric="dram__bytes_write.sum", over=SUM)
    dram: float | None = _said("%", "of DRAM's peak rate", 100, "dram__throughput" + _ELAPSED)
    dram_bytes_per_s: float | None = _said("bytes/s", "moved by DRAM", metric="dram__bytes.sum.per_second")
    dram_gpu: float | None = _said(
        "%", "of DRAM's peak rate, over the GPU's time", 100, "gpu__dram_throughput" + _ELAPSED
    )
    l1_hits: float | None = _said("%", "of sectors found in the L1", 100, "l1tex__t_sector_hit_rate.pct")
    l2_hits: float | None = _said("%", "of sectors found in the L2", 100, "lts__t_sector_hit_rate.pct")
    l1: float | None = _said("%", "of the L1's peak rate", 100, "l1tex__throughput" + _ACTIVE)
    l2: float | None = _said("%", "of the L2's peak rate", 100, "lts__throughput" + _ACTIVE)
    stalled_memory: float | None = _said(
        "%", "of warps wait for a memory dependency", 100, _STALLED.format("memory_dependency")
    )
    stalled_short: float | None = _said(
        "%", "of warps wait for shared memory or a special function", 100, _STALLED.format("short_scoreboard")
    )
    stalled_long: float | None = _said(
        "%", "of warps wait for global or local memory", 100, _STALLED.format("long_scoreboard")
    )
    stalled_barrier: float | None = _said("%", "of warps wait at a barrier", 100, _STALLED.format("barrier"))
    stalled_branch: float | None = _said(
        "%", "of warps wait for a branch target", 100, _STALLED.format("branch_resolving")
    )
    uniform_branches: float | None = _said(
        "%", "of a warp's threads that take one branch together", 100,
        "smsp__sass_average_branch_targets_threads_uniform.pct",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Roofline:
    """A measured time against this device's measured ceilings: cold, and with what the L2 may keep left out."""

    read_bytes: float | None = _said("bytes", "all inputs, once")
    written_bytes: float | None = _said("bytes", "all outputs, once")
    copy_bytes_per_s: float | None = _said("bytes/s", "measured device-to-device copy, read and written together")
    fraction: float | None = _said("share", "of the copy rate: all inputs once and all outputs once, on cold caches", 2)
    kept_bytes: float | None = _said("bytes", "outputs that may still be in the L2 when the clock stops")
    drained_fraction: float | None = _said("share", "of the copy rate, outputs that the L2 may keep left out", 1.05)
    instructions_per_s: float | None = _said("instructions/s", "measured peak of thread-level FP32 instructions")
    issue_fraction: float | None = _said("share", "of that peak, by the instructions recorded or counted", 1.05)


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """One cause that holds a kernel back (a key of BOTTLENECKS), its ``share`` of the time (0 to 1), and what shows
    it; ``line``: 1-based in the candidate's source, where one line does, and its ``code``."""

    name: str
    share: float
    evidence: str = ""
    line: int | None = None
    code: str = ""


BOTTLENECKS: dict[str, str] = {
    "uncoalesced": "neighbouring threads touch addresses far apart, so that requests move sectors they do not use",
    "atomics": "threads queue at the same addresses to update them one after the other",
    "latency": "too few warps and loads are in flight to hide the time until data arrives",
    "occupancy": "registers, shared memory or the block size keep further blocks off the SMs, so that latency shows",
    "bandwidth": "the bytes that have to move between DRAM, L2 and the SMs take this long",
    "compute": "arithmetic instructions fill the issue slots",
    "shared-conflicts": "lanes of a warp hit the same bank of shared memory and wait for each other",
    "instructions": "loads, stores and the arithmetic around them fill the issue slots and the L1's data path",
    "launch": "starting kernels and blocks takes longer than their work",
}
"""The causes that actions aim at, in words."""


@dataclass(frozen=True, slots=True)
class Features:
    """Everything known of a candidate but its time. ``bottlenecks``: largest share first."""

    source: Source | None = None
    binary: Binary | None = None
    access: Access | None = None
    counters: Counters | None = None
    roofline: Roofline | None = None
    bottlenecks: tuple[Bottleneck, ...] = ()

    def merged(self, other: Features) -> Features:
        """These features with what ``other`` knows put over them, field by field; its bottlenecks, if any, replace."""
        groups = {name: _over(getattr(self, name), getattr(other, name)) for name in GROUPS}
        return Features(**groups, bottlenecks=other.bottlenecks or self.bottlenecks)

    def quoting(self, source: str) -> Self:
        """These features with the lines that the bottlenecks are about quoted from the candidate's source."""
        lines = source.splitlines()
        causes = (
            dataclasses.replace(b, code=lines[b.line - 1].strip()) if b.line and b.line <= len(lines) else b
            for b in self.bottlenecks
        )
        return dataclasses.replace(self, bottlenecks=tuple(causes))

    def to_json(self) -> dict[str, Any]:
        """Groups and fields that are known, with the version of the schema."""
        found: dict[str, Any] = {"version": VERSION}
        for name in GROUPS:
            if (group := getattr(self, name)) is not None:
                found[name] = {k: v for k, v in dataclasses.asdict(group).items() if v is not None}
        if self.bottlenecks:
            found["bottlenecks"] = [dataclasses.asdict(b) for b in self.bottlenecks]
        return found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse; what was stored before there was a schema (numbers by name) too. Raises ValueError, saying which
        version it is, for what a newer fsr wrote, and for fields that this version does not have."""
        if "version" not in data:
            return cls._from_names(data)
        if data["version"] != VERSION:
            raise ValueError(f"features of schema version {data['version']}; this fsr reads {VERSION} and before")
        try:
            groups = {name: kind(**data[name]) for name, kind in GROUPS.items() if name in data}
            return cls(**groups, bottlenecks=tuple(Bottleneck(**b) for b in data.get("bottlenecks", ())))
        except TypeError as unknown:
            raise ValueError(f"features that this fsr does not know: {unknown}") from None

    @classmethod
    def _from_names(cls, data: Mapping[str, Any]) -> Self:
        """What versions before the schema stored."""
        source = {k: int(data[k]) for k in ("launches", "threads_per_block", "grid_threads") if k in data}
        binary: dict[str, Any] = {k: int(data[k]) for k in ("registers", "spill_bytes", "shared_bytes") if k in data}
        shares = {k.removeprefix("bound:"): float(v) for k, v in data.items() if k.startswith("bound:")}
        causes = sorted((Bottleneck(k, v) for k, v in shares.items() if k in BOTTLENECKS), key=lambda b: -b.share)
        return cls(
            Source(**source) if source else None, Binary(**binary) if binary else None, bottlenecks=tuple(causes)
        )


GROUPS: dict[str, type[Any]] = {
    "source": Source, "binary": Binary, "access": Access, "counters": Counters, "roofline": Roofline,
}  # fmt: skip


def _over(under: Any, over: Any) -> Any:
    if under is None or over is None:
        return under if over is None else over
    known = {f.name: getattr(over, f.name) for f in dataclasses.fields(over) if getattr(over, f.name) is not None}
    return dataclasses.replace(under, **known)


@dataclass(frozen=True, slots=True)
class Definition:
    """One feature of the schema. ``most``: the end of its range, which begins at 0; ``metric``: of Nsight Compute;
    ``over``: what stands for a plan of several launches, LONGEST, SUM or LEAST."""

    group: str
    name: str
    kind: str
    unit: str
    meaning: str
    most: float
    metric: str
    over: str


DEFINITIONS: tuple[Definition, ...] = tuple(
    Definition(group, f.name, str(f.type).removesuffix(" | None"), **f.metadata)
    for group, kind in GROUPS.items()
    for f in dataclasses.fields(kind)
)
"""Every feature there is: what docs/features.md lists."""
