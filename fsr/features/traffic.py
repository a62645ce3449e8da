"""Where a launch's recorded accesses are served: L1, L2 or DRAM, as far as sizes and reuse tell.

A recording knows, for each source line, the sectors that warps asked for, those that each block asked for once, and
those of the whole grid. Reuse within a line is taken as close in time (the next iteration, the neighbouring warp); the
same buffer read again by another line is a second pass, which finds only what the caches still hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from fsr.devices.protocol import AccessSite, LaunchProfile
from fsr.features.occupancy import Occupancy
from fsr.features.targets import Target

SECTOR, LINE = 32, 128
_L1_USABLE, _L2_USABLE = 0.7, 0.7  # what replacement leaves of a cache for reuse at a distance
_SCATTERED = 2.0  # sectors for one that would do, from which on a request counts as scattered
_SMALLEST_L1 = 16 * 1024  # what the carve-out for shared memory always leaves


@dataclass(frozen=True, slots=True)
class SiteTraffic:
    """One site's demand. ``passes``: of the L1's data path; ``ideal_passes``: of a coalesced access of these lanes;
    ``l2_sectors``: that leave the L1; ``dram_bytes``; ``useful_bytes``: DRAM bytes that lanes asked for;
    ``latency_ns``: mean of one request."""

    site: AccessSite
    passes: float
    ideal_passes: float
    l2_sectors: float
    ideal_l2_sectors: float
    dram_bytes: float
    useful_bytes: float
    latency_ns: float


@dataclass(frozen=True, slots=True)
class Residency:
    """What runs at one time: blocks on the whole GPU and an SM, SMs in use, bytes of L1 left an SM."""

    blocks: int
    blocks_per_sm: float
    sms: int
    warps_per_sm: float
    l1_bytes: float


def residency(launch: LaunchProfile, occupancy: Occupancy, target: Target) -> Residency:
    """How a grid fills the GPU at its start."""
    sms = max(1, min(launch.blocks, target.sm_count))
    blocks = min(launch.blocks, max(1, occupancy.blocks) * target.sm_count)
    per_sm = blocks / sms
    warps = -(-launch.threads_per_block // target.warp_size)
    shared = (launch.shared_bytes + target.reserved_shared_bytes) if launch.shared_bytes else 0
    l1 = max(_SMALLEST_L1, target.l1_bytes - per_sm * shared)
    return Residency(blocks, per_sm, sms, per_sm * warps, l1)


@dataclass(slots=True)
class _Hits:
    """Shares of reuse that the caches catch, for one launch."""

    streams: float  # scattered streams: a thread comes back to its sector
    second_pass_l1: dict[str, float] = field(default_factory=dict)
    second_pass_l2: float = 1.0


def launch_traffic(
    launch: LaunchProfile, resident: Residency, target: Target, footprint_bytes: float
) -> tuple[SiteTraffic, ...]:
    """The demand of every global-memory site, reads before writes before atomics, in line order.

    ``footprint_bytes``: distinct bytes of all buffers. The first touch of a byte comes from DRAM: timing starts cold.
    """
    sites = sorted((s for s in launch.sites if s.space == "global"), key=lambda s: (_ORDER[s.kind], s.line))
    hits = _hits(sites, launch, resident, target)
    seen: dict[tuple[str, str], set[int]] = {}
    found = []
    for site in sites:
        lines = seen.setdefault((site.buffer, site.kind), set())
        first = not lines
        found.append(_demand(site, hits, target, first=first, near=first or site.line in lines))
        lines.add(site.line)
    return tuple(_with_untold_bytes(found, footprint_bytes))


_ORDER = {"read": 0, "write": 1, "atomic": 2}


def useful_sectors(site: AccessSite) -> float:
    """Sectors that a coalesced access of the same lanes would need."""
    return min(site.sectors, site.lanes * site.bytes / SECTOR)


def block_sectors(site: AccessSite) -> float:
    """Distinct sectors of each block, summed; where not recorded, between those of the grid and those requested."""
    return site.block_sectors or math.sqrt(max(site.unique_sectors, 1.0) * site.sectors)


def request_lines(site: AccessSite) -> float:
    """128-byte lines over all requests; where not recorded, each sector too many counts as a line of its own."""
    useful = useful_sectors(site)
    return site.lines or max(site.requests, useful / (LINE / SECTOR)) + max(0.0, site.sectors - useful)


def _hits(sites: list[AccessSite], launch: LaunchProfile, resident: Residency, target: Target) -> _Hits:
    window = 0.0
    per_block: dict[str, float] = {}
    for site in sites:
        if site.kind != "read" or not site.requests:
            continue
        if site.sectors > _SCATTERED * useful_sectors(site):
            window += resident.warps_per_sm * request_lines(site) / site.requests * LINE
        per_block[site.buffer] = max(per_block.get(site.buffer, 0.0), block_sectors(site) * SECTOR / launch.blocks)
    hits = _Hits(streams=min(1.0, _L1_USABLE * resident.l1_bytes / window) if window else 1.0)
    for buffer, size in per_block.items():
        hits.second_pass_l1[buffer] = _fitting(_L1_USABLE * resident.l1_bytes, size * resident.blocks_per_sm)
    grid = {b: max(s.unique_sectors for s in sites if s.buffer == b) * SECTOR for b in {s.buffer for s in sites}}
    live = sum(grid.values()) * min(1.0, resident.blocks / launch.blocks)
    hits.second_pass_l2 = _fitting(_L2_USABLE * target.l2_bytes, live)
    return hits


def _fitting(room: float, wanted: float) -> float:
    """The share of a cyclic walk over ``wanted`` bytes that a cache of ``room`` bytes catches: least-recently-used
    replacement loses it quickly once it no longer fits."""
    if wanted <= room:
        return 1.0
    return max(0.0, 1.0 - 2.0 * (wanted - room) / wanted)


def _demand(site: AccessSite, hits: _Hits, target: Target, *, first: bool, near: bool) -> SiteTraffic:
    useful, own = useful_sectors(site), min(site.sectors, block_sectors(site))
    scattered = site.sectors > _SCATTERED * useful
    if site.kind == "read":
        caught = hits.streams if scattered else 1.0
        l2 = own + (1.0 - caught) * (site.sectors - own)
        if not first:
            l2 *= 0.1 if near else 1.0 - hits.second_pass_l1[site.buffer]
    else:
        l2 = site.sectors  # the L1 writes through and merges nothing
    if first:
        dram = site.unique_sectors * SECTOR
    else:
        dram = 0.0 if near else site.unique_sectors * SECTOR * (1.0 - hits.second_pass_l2)
    dram = min(dram, l2 * SECTOR)
    passes = max(site.requests, request_lines(site) / 2.0, site.sectors * SECTOR / LINE)
    ideal = max(site.requests, useful * SECTOR / LINE)
    beyond_l1 = min(1.0, l2 / site.sectors) if site.sectors else 0.0
    beyond_l2 = min(beyond_l1, dram / SECTOR / site.sectors) if site.sectors else 0.0
    queue = (passes / site.requests - 1.0) * 2.0 / target.clock_ghz if site.requests else 0.0
    latency = target.l1_latency_ns + beyond_l1 * (target.l2_latency_ns - target.l1_latency_ns)
    latency += beyond_l2 * (target.dram_latency_ns - target.l2_latency_ns) + queue
    wanted = min(dram, site.lanes * site.bytes)
    return SiteTraffic(site, passes, ideal, l2, min(l2, useful), dram, wanted, latency)


def _with_untold_bytes(found: list[SiteTraffic], footprint_bytes: float) -> list[SiteTraffic]:
    """Sites on one buffer that touch different parts of it look like second passes. The footprint shows them: when
    all distinct sectors together fit in the buffers, every one of them is a first touch."""
    distinct = sum(t.site.unique_sectors for t in found if t.site.kind != "atomic") * SECTOR
    if distinct > 1.02 * footprint_bytes:
        return found
    return [t if t.site.kind == "atomic" else _first_touch(t) for t in found]


def _first_touch(traffic: SiteTraffic) -> SiteTraffic:
    site = traffic.site
    dram = site.unique_sectors * SECTOR
    return SiteTraffic(
        site, traffic.passes, traffic.ideal_passes, max(traffic.l2_sectors, site.unique_sectors),
        max(traffic.ideal_l2_sectors, min(site.unique_sectors, useful_sectors(site))), dram,
        min(dram, site.lanes * site.bytes), traffic.latency_ns,
    )  # fmt: skip


def shared_passes(sites: tuple[AccessSite, ...]) -> tuple[float, float]:
    """Wavefronts of shared memory, and those that the same lanes need without bank conflicts."""
    total = ideal = 0.0
    for site in sites:
        if site.space == "shared":
            total += max(site.wavefronts, site.requests)
            ideal += max(site.requests, min(site.wavefronts, site.lanes * site.bytes / LINE))
    return total, ideal


def buffers_moved(traffic: tuple[SiteTraffic, ...]) -> Mapping[str, float]:
    """DRAM bytes by buffer."""
    moved: dict[str, float] = {}
    for part in traffic:
        moved[part.site.buffer] = moved.get(part.site.buffer, 0.0) + part.dram_bytes
    return moved
