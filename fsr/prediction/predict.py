"""Predicted time of a plan on a target GPU, from a recording of its accesses.

A launch's time is the launch overhead and, over it, several limits of which the largest counts most (their p-norm):
DRAM and L2 bytes, the L1's and shared memory's data path, instruction issue, atomics, and the latency of a warp's own
path times the waves of blocks, which is what binds when too few warps are in flight (Little's law). The structure
follows Hong and Kim, "An Analytical Model for a GPU Architecture", ISCA 2009, and Volkov, "Understanding Latency
Hiding on GPUs", 2016; constants are named where they stand. Times rank candidates; they are no measurements. What a
recording does not show is not in them, but for what fsr.prediction.compiled adds of flags and hints.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from fsr.backends.protocol import AccessProfile, AccessSite, LaunchProfile
from fsr.features.access import LINE, SECTOR, constant_conflicts, shared_passes
from fsr.features.occupancy import Occupancy, occupancy
from fsr.hardware.gpus import Target
from fsr.prediction.bottleneck import NORM, attribute
from fsr.prediction.traffic import Residency, SiteTraffic, fitting, launch_traffic, residency
from fsr.records import Resources

# A ratio of two predictions for one kernel counts as right within this factor. Measured on an H200 (CUDA 13.0), it
# holds for 94 % of the pairs among 447 candidates of ten kernels, on which the figures below were chosen, for 93 %
# among 180 other candidates of those kernels (67 % for the worst kernel, a GEMM, some of whose flags and hints a
# recording does not show), and for the original against the fastest of each of the ten. Other kernels may do worse.
ERROR_FACTOR = 1.5

# Figures marked [m] were measured on an H200 with CUDA 13.0 over some 400 candidates of ten kernels.
_DRAM_EFFICIENCY = 0.9  # [m] of the published bandwidth, reached by streams of 16-byte accesses
_SCATTERED_DRAM = 0.6  # of that, when each request opens many DRAM pages
_ISSUE_EFFICIENCY = 0.85
_CYCLES_ALONE = 2.4  # a warp instruction, when its warp is alone: 4 to 5 cycles latency, two independent at a time
_ORDINARY_REGISTERS, _MOST_INDEPENDENT = 48.0, 2.2  # at most one instruction a cycle
_TILE_SAVING = 1.6  # [m] instructions that the CPU's code has and a register tile's GPU code has not
_TILE_READS = 0.1  # of a tile's instructions read shared memory, at least: 0.12 to 0.3 of a product's
_LOADS_IN_FLIGHT = 4.0  # of a loop: nvcc unrolls by four
_ADDRESS_REGISTERS, _REGISTERS_PER_LOAD = 8.0, 2.0  # what is left of a thread's registers holds loads under way
_HOISTING_REGISTERS = 24  # up to these, a loop that reads and writes does not read ahead of its writes
_TENSOR_EFFICIENCY = 0.85  # as of other instructions
# Results an SM and clock ("Throughput of Native Arithmetic Instructions", CUDA C++ Programming Guide): of population
# counts, leading zeros, reciprocals, roots, exponentials, logarithms.
_SPECIAL_PER_CLOCK, _UNIT_EFFICIENCY = 16.0, 0.9
_SHARED_CYCLES, _SHUFFLE_CYCLES, _BARRIER_CYCLES = 23.0, 23.0, 40.0  # Jia et al. 2018, Luo et al. 2024
_SAME_ADDRESS_NS = 1.76  # [m] a lane of a global atomic on one address: 4.19 million float sums take 7.37 ms
_SAME_ADDRESS_WARP_NS = 0.78  # [m] the same of a warp's sum of 4-byte integers: 262,144 of them take 204 us
_ATOMIC_SECTOR_NS = 3.1  # [m] one sector of scattered atomics in the slice of its line: 16.8 million on 1 KB, 4.33 ms
_SPREAD_SECTOR_NS = (
    1.05  # [m] the same over many lines: 67 million float sums take 183 us one by one, 96 us in fours (H100)
)
_SPREAD_LINES, _SPREAD_LANES = 16, 4.0  # of a slice, from which on they are many; lanes that a sector serves at once
_SHARED_PASS_CYCLES = 1.0  # a wavefront of shared memory
_CONSTANT_PASS_CYCLES = 2.0  # each further word of a request: 119 million of an AES in 1,064 us, on an H100
_SHARED_ATOMIC_CYCLES = 2.0  # [m] a lane of a shared atomic on one address
_PARTIAL_WRITE = 2.9  # [m] an L2 sector written in part, against a whole one: a transpose by columns
_BLOCK_START_NS = 0.62  # [m] one block after the other on the whole GPU: 131,072 blocks of streams take 82 us
_FRAME_UNIT = 8  # bytes that a thread's frame of local memory is rounded up to
_DRAIN = 0.1  # [m] a block's place falls free with its last warp: for each doubling beyond eight
_WARP_START_NS = 200.0  # [m] from a block's place falling free to its warps' first load


@dataclass(frozen=True, slots=True)
class LaunchPrediction:
    """One launch, which the plan may make several times: its time, its limits by name of resource (ns, each alone), and
    what it was computed from."""

    entry: str
    time_ns: float
    overhead_ns: float
    limits: Mapping[str, float]
    parts: Mapping[str, float]
    occupancy: Occupancy
    resident: Residency
    traffic: tuple[SiteTraffic, ...]
    profile: LaunchProfile


@dataclass(frozen=True, slots=True)
class Prediction:
    """A plan's predicted time. ``parts`` divides it among the bottlenecks of fsr.prediction.bottleneck (ns, summing to
    ``time_ns``); ``binds`` is the largest."""

    time_ns: float
    binds: str
    parts: Mapping[str, float]
    launches: tuple[LaunchPrediction, ...]


def predict(profile: AccessProfile, resources: Mapping[str, Resources], target: Target, footprint: float) -> Prediction:
    """The time of one run of a plan on cold caches.

    ``resources`` by entry (missing or None: not limiting), ``footprint`` distinct bytes of all buffers. A launch that
    cannot run on the target (too many registers or too much shared memory) takes infinitely long.
    """
    kept = fitting(target.l2_bytes, footprint)
    warm: dict[str, float] = {}
    launches: list[LaunchPrediction] = []
    for launch in profile.launches:
        needs = resources.get(launch.entry, Resources())
        launches.append(_predict_launch(launch, needs, target, warm, first=not launches))
        warm |= {site.buffer: kept for site in launch.sites if site.space == "global"}
    parts: dict[str, float] = {}
    for predicted in launches:
        for name, value in predicted.parts.items():
            parts[name] = parts.get(name, 0.0) + value * predicted.profile.times
    ordered = dict(sorted(parts.items(), key=lambda item: -item[1]))
    return Prediction(
        sum(p.time_ns * p.profile.times for p in launches), next(iter(ordered), "launch"), ordered, tuple(launches)
    )


def _predict_launch(
    launch: LaunchProfile, needs: Resources, target: Target, warm: Mapping[str, float], *, first: bool
) -> LaunchPrediction:
    launch = _with_arrays(launch, needs)
    shared = max(launch.shared_bytes, needs.static_shared_bytes or 0)
    occupied = occupancy(target, launch.threads_per_block, needs.registers, shared)
    resident = residency(launch, occupied, target)
    overhead = target.launch_ns if first else target.next_launch_ns
    traffic = launch_traffic(launch, resident, target, warm)
    limits = _limits(launch, needs, target, occupied, resident, traffic)
    body = sum(value**NORM for value in limits.values()) ** (1.0 / NORM) + _ramp_ns(traffic)
    if occupied.blocks == 0:
        body, parts = math.inf, {"occupancy": math.inf}
    else:
        parts = attribute(launch, limits, body, occupied, resident, traffic)
    parts["launch"] = parts.get("launch", 0.0) + overhead
    return LaunchPrediction(
        launch.entry, overhead + body, overhead, limits, parts, occupied, resident, traffic, launch
    )  # fmt: skip


def _with_arrays(launch: LaunchProfile, needs: Resources) -> LaunchProfile:
    """The launch without accesses to local memory where the compiler keeps its arrays in registers: where the frame
    that it tells of holds no more than spilled registers, each of which is stored and loaded once at least."""
    if needs.local_bytes is None or needs.local_bytes > (needs.spill_bytes or 0) / 2 + _FRAME_UNIT:
        return launch
    return replace(launch, sites=tuple(s for s in launch.sites if s.space != "local"))


# ---------------------------------------------------------------- limits


def _limits(
    launch: LaunchProfile,
    needs: Resources,
    target: Target,
    occupied: Occupancy,
    resident: Residency,
    traffic: tuple[SiteTraffic, ...],
) -> dict[str, float]:
    clock = target.clock_ghz
    per_sm = launch.blocks / resident.sms
    busy = resident.sms * per_sm / math.ceil(per_sm)  # SMs that work on average until the last one is done
    global_passes = sum(t.passes for t in traffic)
    shared_total, _ = shared_passes(launch.sites)
    tile = _independence(needs.registers)
    issue_width = min(target.issue_per_clock * _ISSUE_EFFICIENCY, resident.warps_per_sm)
    spilled = _spills(launch, needs.spill_bytes or 0, target)
    l2_rate = min(target.l2_bytes_per_s * 1e-9, resident.sms * target.sm_to_l2 * clock)
    return {
        "dram": sum(_dram_ns(t, target) for t in traffic),
        "l2": sum(_l2_cost(t) for t in traffic) * SECTOR / l2_rate,
        "l1": (
            global_passes
            + _SHARED_PASS_CYCLES * (shared_total / tile + launch.shuffles)
            + 2 * spilled
            + _CONSTANT_PASS_CYCLES * constant_conflicts(launch.sites)
        )
        / (busy * clock),  # a tile's neighbouring elements of shared memory are read together, by 16 bytes
        "issue": (_instructions(launch, tile) + 2 * spilled) / (busy * issue_width * clock),
        "atomics": _atomics_ns(launch.sites, target, busy),
        "latency": _path_ns(launch, needs.registers, target, traffic) * _waves(launch, occupied, target),
        "units": _units_ns(launch, target) / busy,
        "tensor": launch.tensor_operations / (_tensor_rate(target) * busy),
        "blocks": launch.blocks * _BLOCK_START_NS,
    }


def _tensor_rate(target: Target) -> float:
    """Operations of halves that the tensor cores of one multiprocessor do in a nanosecond."""
    return target.tensor_flops_per_s * 1e-9 * target.mma_share * _TENSOR_EFFICIENCY / target.sm_count


def _units_ns(launch: LaunchProfile, target: Target) -> float:
    """What the busiest of the narrower units takes on one multiprocessor."""
    did, lanes = launch.arithmetic, target.warp_size
    cycles = max(did.special / _SPECIAL_PER_CLOCK, did.doubles / target.fp64_per_clock)
    return cycles * lanes / _UNIT_EFFICIENCY / target.clock_ghz


def _dram_ns(traffic: SiteTraffic, target: Target) -> float:
    scattered = traffic.site.sectors > 4.0 * max(traffic.site.requests, traffic.ideal_passes * 4.0)
    efficiency = _DRAM_EFFICIENCY * (_SCATTERED_DRAM if scattered and traffic.site.kind == "read" else 1.0)
    return traffic.dram_bytes / (target.memory_bytes_per_s * 1e-9 * efficiency)


def _spills(launch: LaunchProfile, spill_bytes: int, target: Target) -> float:
    """Warp accesses to spilled registers: each that stands in the code, as often as the kernel's loop goes round, but
    no more than half of what is executed: a value that is brought back is for an instruction that uses it."""
    warps = launch.blocks * -(-launch.threads_per_block // target.warp_size)
    reads = max((s.requests for s in launch.sites if s.space == "global" and s.kind == "read"), default=0.0)
    rounds = max(1.0, launch.barriers / warps, reads / warps / _LOADS_IN_FLIGHT)
    return min(spill_bytes / 4 * warps * rounds, launch.warp_instructions / 2)


def _l2_cost(traffic: SiteTraffic) -> float:
    """Sectors as the L2 feels them: writing a part of one costs more than all of it."""
    site = traffic.site
    partial = site.kind == "write" and site.sectors * SECTOR > 1.3 * site.lanes * site.bytes
    return traffic.l2_sectors * (_PARTIAL_WRITE if partial else 1.0)


def _ramp_ns(traffic: tuple[SiteTraffic, ...]) -> float:
    """Until the first data arrives nothing else goes on."""
    return _WARP_START_NS + max((t.latency_ns for t in traffic if t.site.kind == "read"), default=0.0)


def _atomics_ns(sites: tuple[AccessSite, ...], target: Target, busy_sms: float) -> float:
    """Sectors of atomics spread over the L2 slices (a line lives in one), the queue at the busiest address, and
    the queues of shared-memory atomics."""
    spread = shared = 0.0
    busiest: dict[str, float] = {}
    for site in (s for s in sites if s.kind == "atomic"):
        if site.space == "shared":
            shared += site.serial
            continue
        if not _one_a_warp(site):
            spread += _sectors_ns(site, target.l2_slices)
        busiest[site.buffer] = busiest.get(site.buffer, 0.0) + _queue_ns(site)
    return max([spread, *busiest.values()]) + shared * _SHARED_ATOMIC_CYCLES / busy_sms / target.clock_ghz


def _sectors_ns(site: AccessSite, slices: int) -> float:
    """What the sectors of a site take, in as many slices as they lie in."""
    lines = site.unique_sectors * SECTOR / LINE
    if lines < _SPREAD_LINES * slices:
        return site.sectors * _ATOMIC_SECTOR_NS / max(1.0, min(slices, lines))
    return max(site.sectors, site.lanes / _SPREAD_LANES) * _SPREAD_SECTOR_NS / slices


def _queue_ns(site: AccessSite) -> float:
    """The queue at a site's busiest address."""
    if _one_a_warp(site):
        return site.requests * _SAME_ADDRESS_WARP_NS
    queue = max(site.max_same_address, site.serial) if site.unique_sectors < 2 else site.max_same_address
    return queue * _SAME_ADDRESS_NS


def _one_a_warp(site: AccessSite) -> bool:
    """Whether compilers make one atomic a warp (a count of its lanes, or REDUX): of integers whose address is one for
    all lanes. Sums of floats have an order."""
    return site.integers and site.bytes == 4 and site.serial > 0.999 * site.lanes


def _waves(launch: LaunchProfile, occupied: Occupancy, target: Target) -> float:
    """How many times in a row the GPU is filled; a last wave that is nearly empty costs at most half of one more."""
    rounds = launch.blocks / (max(1, occupied.blocks) * target.sm_count)
    if rounds <= 1.0:
        return 1.0
    draining = 1.0 + _DRAIN * max(0.0, math.log2(launch.threads_per_block / 256))
    return max(1.0, min(math.ceil(rounds), rounds + 0.5)) * draining


def _independence(registers: int | None) -> float:
    """How much more a warp overlaps with itself than ordinary code does. Registers tell: what holds many values at a
    time, such as a tile of sums, has that many instructions that do not wait for each other."""
    return min(_MOST_INDEPENDENT, max(1.0, (registers or 0) / _ORDINARY_REGISTERS))


def _instructions(launch: LaunchProfile, tile: float) -> float:
    """Warp instructions on the GPU. A register tile that is fed from shared memory saves some of the CPU's; other code
    with as many registers, unrolled or jammed, does not."""
    reads = sum(s.requests for s in launch.sites if s.space == "shared" and s.kind == "read")
    fed = reads >= _TILE_READS * launch.warp_instructions
    return launch.warp_instructions / (min(tile, _TILE_SAVING) if fed else 1.0)


def _path_ns(launch: LaunchProfile, registers: int | None, target: Target, traffic: tuple[SiteTraffic, ...]) -> float:
    """How long one warp takes from its start to its end when nothing but its own latencies hold it back."""
    warps = launch.blocks * -(-launch.threads_per_block // target.warp_size)
    clock = target.clock_ghz
    tile = _independence(registers)
    reads = [t for t in traffic if t.site.kind == "read"]
    in_flight = _in_flight(launch, reads, warps, registers)
    waiting = sum(t.site.requests * t.latency_ns for t in reads) / warps / in_flight
    waiting = max([waiting, *(t.latency_ns * min(1.0, t.site.requests / warps) for t in reads)])
    shared = sum(s.requests for s in launch.sites if s.space == "shared" and s.kind == "read")
    cycles = (
        (_instructions(launch, tile) * _CYCLES_ALONE + shared * _SHARED_CYCLES / _LOADS_IN_FLIGHT) / tile
        + launch.shuffles * _SHUFFLE_CYCLES
        + launch.barriers * _BARRIER_CYCLES
    )
    return _WARP_START_NS + waiting + cycles / warps / clock


def _in_flight(launch: LaunchProfile, reads: list[SiteTraffic], warps: float, registers: int | None) -> float:
    """Loads that a warp has under way at a time: all of a straight line; four of a loop, if there are registers for
    them and no write in between that may change what they read; never more than stand between two barriers."""
    per_warp = [t.site.requests / warps for t in reads]
    barriers = launch.barriers / warps
    # Barriers outnumber the loads of a line by far where they belong to another loop (a reduction's steps).
    between = sum(n / (1.0 + barriers) if n >= barriers / 2 else n for n in per_warp)
    if all(n <= 1.01 for n in per_warp):
        return max(1.0, min(float(len(reads)), between))
    wanted = max(_LOADS_IN_FLIGHT, min(len(reads), 8.0))
    words = sum(n * max(1.0, t.site.bytes / 4) for n, t in zip(per_warp, reads, strict=True)) / sum(per_warp)
    room = ((registers or 255) - _ADDRESS_REGISTERS) / _REGISTERS_PER_LOAD / words
    changing = [s for s in launch.sites if s.kind == "atomic" or (s.kind == "write" and s.space == "global")]
    written = sum(s.requests for s in changing) / warps
    if (registers or 255) <= _HOISTING_REGISTERS and written >= 0.9 * max(per_warp):
        room = min(room, len(reads))
    return max(1.0, min(wanted, room, between))
