"""Predicted time of a plan on a target GPU, from what the host device recorded.

A bound-and-bottleneck model: each resource a launch uses gives a time, and the launch takes a little more than
the longest of them. In the manner of the roofline model (Williams, Waterman and Patterson 2009) with the
latency terms of Hong and Kim (2009). Good for ranking candidates of one kernel; docs/benchmarks.md says how good.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fsr.devices.protocol import AccessProfile, AccessSite, LaunchProfile
from fsr.features.occupancy import Occupancy, occupancy
from fsr.features.targets import Target
from fsr.records import Resources

ERROR_FACTOR = 1.5  # a predicted ratio of two candidates is trusted within this factor
SECTOR = 32
OVERLAP = 4.0  # exponent of the norm that joins the terms: infinity would be perfect overlap
LOADS_IN_FLIGHT = 4.0  # independent loads a warp keeps in flight, without unrolling
SCATTERED = 16  # sectors a request from which each lane is taken to touch a line of its own


@dataclass(frozen=True, slots=True)
class Prediction:
    """``time_ns`` of the whole plan; ``parts``: bottleneck name to the time it alone would take, in ns, summed over
    launches; ``binds``: the name of the largest part. ``occupancy``: of the longest launch."""

    time_ns: float
    binds: str
    parts: Mapping[str, float]
    occupancy: float = 0.0


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a launch sits on the target."""

    warps: float  # in the whole grid
    held: Occupancy
    sms: float  # multiprocessors that get work
    resident_warps: float  # per multiprocessor, at most what the grid has
    waves: float  # rounds of resident blocks, at least 1


def predict(
    profile: AccessProfile, resources: Mapping[str, Resources], target: Target, footprint_bytes: float
) -> Prediction:
    """The predicted time of a recorded plan.

    ``resources``: the target compiler's, by entry. ``footprint_bytes``: of all distinct buffers together; what fits
    the L2 is read from DRAM once."""
    total, parts, longest = 0.0, dict[str, float](), (0.0, 0.0)
    for launch in profile.launches:
        shape = _shape(launch, resources.get(launch.entry, Resources()), target)
        terms = _terms(launch, shape, target, footprint_bytes)
        time_ns = target.launch_ns + float(sum(t**OVERLAP for t in terms.values()) ** (1 / OVERLAP))
        total += float(time_ns)
        longest = max(longest, (time_ns, shape.held.share(target)))
        for name, value in {**terms, "launch": target.launch_ns}.items():
            parts[name] = parts.get(name, 0.0) + value
    binds = max(parts, key=lambda name: parts[name]) if parts else "launch"
    return Prediction(max(total, target.launch_ns), binds, parts, longest[1])


def _shape(launch: LaunchProfile, needs: Resources, target: Target) -> _Shape:
    per_block = -(-launch.threads_per_block // target.warp_size)
    shared = max(launch.shared_bytes, needs.static_shared_bytes or 0)
    held = occupancy(launch.threads_per_block, needs.registers, shared, target)
    slots = max(held.blocks, 1) * target.sm_count
    waves = max(1.0, launch.blocks / slots)
    sms = min(float(target.sm_count), float(launch.blocks))
    resident = min(float(max(held.warps, per_block)), launch.blocks * per_block / max(sms, 1.0))
    return _Shape(launch.blocks * per_block, held, max(sms, 1.0), max(resident, 1.0), waves)


def _terms(launch: LaunchProfile, shape: _Shape, target: Target, footprint_bytes: float) -> dict[str, float]:
    """Each resource's time in ns."""
    clock_ns = 1e3 / target.clock_mhz
    per_sm = clock_ns / shape.sms
    globals_ = [s for s in launch.sites if s.space == "global"]
    plain = [s for s in globals_ if s.kind != "atomic"]
    l2_sectors, dram_bytes = _traffic(plain, shape, target, footprint_bytes)
    tail = math.ceil(shape.waves) / shape.waves if shape.waves < 8 else 1.0
    saturation = min(1.0, shape.sms / (0.6 * target.sm_count))
    terms = {
        "bandwidth": tail * dram_bytes / (target.dram_bytes_per_s * saturation) * 1e9,
        "uncoalesced": max(
            tail * l2_sectors * SECTOR / (target.l2_bytes_per_s * saturation) * 1e9,
            tail * sum(_l1_cycles(s) for s in plain) * per_sm,
        ),
        "shared-conflicts": tail * sum(s.wavefronts for s in launch.sites if s.space == "shared") * per_sm,
        "instructions": tail * launch.warp_instructions / target.issue_per_clock * per_sm,
        "atomics": _atomics([s for s in globals_ if s.kind == "atomic"], target),
        "latency": _latency(launch, plain, shape, target, l2_sectors, dram_bytes),
    }
    serial = sum(s.serial for s in launch.sites if s.space == "shared" and s.kind == "atomic")
    terms["shared-conflicts"] += 2.0 * serial * per_sm
    return terms


def _l1_cycles(site: AccessSite) -> float:
    """Cycles of one multiprocessor's L1: 128 bytes a cycle where lanes share lines, one line a cycle or two where
    they do not."""
    if not site.requests:
        return 0.0
    each = site.sectors / site.requests
    return float(site.requests * (max(1.0, each / 4) if each <= SCATTERED else each / 2))


def _traffic(sites: Iterable[AccessSite], shape: _Shape, target: Target, footprint_bytes: float) -> tuple[float, float]:
    """(sectors asked of the L2, bytes moved to and from DRAM)."""
    sites = list(sites)
    l2_sectors, first, again = 0.0, 0.0, 0.0
    buffers: dict[tuple[str, str], list[AccessSite]] = {}
    for site in sites:
        buffers.setdefault((site.buffer, site.kind), []).append(site)
    for (_, kind), group in buffers.items():
        unique = max(s.unique_sectors for s in group)
        asked = sum(s.sectors if kind == "write" else _past_l1(s, shape, target) for s in group)
        asked = max(asked, unique)
        l2_sectors += asked
        first += unique
        again += asked - unique
    spill = max(0.0, 1.0 - 0.8 * target.l2_bytes / footprint_bytes) if footprint_bytes else 0.0
    scattered = any(s.requests and s.sectors / s.requests > SCATTERED for s in sites)
    return l2_sectors, SECTOR * (first + again * spill * (0.6 if scattered else 0.1))


def _past_l1(site: AccessSite, shape: _Shape, target: Target) -> float:
    """Sectors of a reading site that miss the L1: the first touch of each, and repeats that were evicted since."""
    if not site.requests:
        return 0.0
    each = site.sectors / site.requests
    line = 128 if each > SCATTERED else 32  # a scattered sector occupies a whole line
    held = shape.resident_warps * each * line
    evicted = min(1.0, max(0.02, (held / target.l1_bytes) ** 2 * 0.5))
    repeats = max(0.0, site.sectors - site.unique_sectors)
    return min(site.sectors, site.unique_sectors + repeats * evicted)


def _atomics(sites: Iterable[AccessSite], target: Target) -> float:
    """Atomics on one address go one after the other; others share the L2."""
    sites = list(sites)
    serial = sum(s.max_same_address for s in sites) / target.same_address_atomics_per_s
    spread = sum(s.lanes for s in sites) / target.atomics_per_s
    return max(serial, spread) * 1e9


def _latency(
    launch: LaunchProfile, sites: list[AccessSite], shape: _Shape, target: Target, l2_sectors: float, dram: float
) -> float:
    """A warp's chain of loads and barriers, times the rounds of warps that follow each other."""
    reads = [s for s in sites if s.kind == "read"]
    requests = sum(s.requests for s in reads)
    sectors = sum(s.sectors for s in reads)
    clock_ns = 1e3 / target.clock_mhz
    chain = 0.0
    if requests and sectors:
        far = min(1.0, dram / SECTOR / sectors)
        near = max(0.0, min(1.0, l2_sectors / sectors) - far)
        each = far * target.dram_latency_ns + near * target.l2_latency_ns + (1 - far - near) * target.l1_latency_ns
        depth = requests / shape.warps
        chain += each * max(1.0, depth / LOADS_IN_FLIGHT) if depth else 0.0
    chain += (launch.barriers * 30 + launch.shuffles * 25) / shape.warps * clock_ns
    shared = sum(s.requests for s in launch.sites if s.space == "shared")
    chain += shared / shape.warps * 25 / LOADS_IN_FLIGHT * clock_ns
    chain += launch.warp_instructions / shape.warps * 4 / LOADS_IN_FLIGHT * clock_ns
    return chain * shape.waves
