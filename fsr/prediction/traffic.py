"""Where a launch's recorded accesses are served: L1, L2 or DRAM, as far as sizes and reuse tell.

A recording knows, for each source line, the sectors that warps asked for, those that it was the first of its block to
touch, and those of the whole grid. Reuse within a line is taken as close in time (the next iteration, the neighbouring
warp); a line that reads what others of its block have read is a second pass, which finds what the caches still hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from fsr.backends.protocol import AccessSite, LaunchProfile
from fsr.features.access import LINE, SECTOR, as_vector, request_lines, useful_sectors
from fsr.features.occupancy import Occupancy
from fsr.hardware.gpus import Target

_L1_USABLE, _L2_USABLE = 0.7, 0.7  # what replacement leaves of a cache for reuse at a distance
_KEPT_L1 = 0.25  # of the L1, that data which every block reads keeps for the next block
_SCATTERED = 2.0  # sectors for one that would do, from which on a request counts as scattered
_SMALLEST_L1 = 16 * 1024  # what the carve-out for shared memory always leaves
_PER_LINE = LINE / SECTOR
_REQUEST_CYCLES = 1.2  # a global request in the L1, at least: a naive GEMM of 1024 takes 341 us on an H200
_LINES_PER_CYCLE = 1.1  # tags looked up: the same GEMM, with two lines in every other request, 426 us
_ORDER = {"read": 0, "write": 1, "atomic": 2}
_NOTHING_WARM: Mapping[str, float] = {}


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


@dataclass(frozen=True, slots=True)
class _Hits:
    """Shares of reuse that the caches catch in one launch: ``streams`` of the steps of scattered streams (a thread
    coming back to its sector), ``second_pass_l1`` by buffer and ``second_pass_l2`` of data walked over again."""

    streams: float
    second_pass_l1: Mapping[str, float]
    second_pass_l2: float


def launch_traffic(
    launch: LaunchProfile, resident: Residency, target: Target, warm: Mapping[str, float] = _NOTHING_WARM
) -> tuple[SiteTraffic, ...]:
    """The demand of every global-memory site, reads before writes before atomics, in line order; then of local memory,
    which is taken to stay in the L1.

    The first touch of a byte comes from DRAM, since timing starts with cold caches; ``warm`` gives for buffers that
    earlier launches of the plan touched the share that the L2 still holds.
    """
    sites = [as_vector(s) for s in launch.sites if s.space == "global"]
    sites.sort(key=lambda s: (_ORDER[s.kind], s.line))
    own = _own_sectors([s for s in sites if s.kind == "read"])
    distinct: dict[str, float] = {}
    for site, sectors in own.items():
        distinct[site.buffer] = distinct.get(site.buffer, 0.0) + sectors
    hits = _hits(sites, distinct, launch, resident, target)
    found = []
    for site in sites:
        first = own.get(site, math.inf) >= 0.5 * min(site.sectors, distinct.get(site.buffer, 0.0))
        dram = site.unique_sectors * SECTOR
        dram *= 1.0 - warm.get(site.buffer, 0.0) if first else 1.0 - hits.second_pass_l2
        l2 = site.sectors  # the L1 writes through and merges nothing
        if site.kind == "read":
            l2 = site.sectors if site.past_l1 else _read_l2_sectors(site, own[site], distinct[site.buffer], hits)
            if (
                not site.past_l1 and site.unique_sectors * SECTOR <= _KEPT_L1 * resident.l1_bytes
            ):  # read by block after block on an SM
                l2 = min(l2, site.unique_sectors * resident.sms)
        found.append(_demand(site, l2, min(dram, l2 * SECTOR), target))
    found += [_demand(s, 0.0, 0.0, target) for s in launch.sites if s.space == "local"]
    return tuple(found)


def _own_sectors(reads: list[AccessSite]) -> dict[AccessSite, float]:
    """For each reading site the sectors that it is the first of its block to touch, summed over blocks. A recording
    without them is taken to lie between the sectors of the grid and those requested, the first line touching all."""
    if any(site.block_sectors for site in reads):
        return {site: min(site.block_sectors, site.sectors) for site in reads}
    own: dict[AccessSite, float] = {}
    for site in reads:
        again = any(other.buffer == site.buffer for other in own)
        own[site] = 0.0 if again else min(site.sectors, math.sqrt(max(site.unique_sectors, 1.0) * site.sectors))
    return own


def _hits(
    sites: list[AccessSite], distinct: Mapping[str, float], launch: LaunchProfile, resident: Residency, target: Target
) -> _Hits:
    streams: dict[str, float] = {}  # bytes of L1 lines that open streams of one SM take, by buffer
    for site in sites:
        if site.kind == "read" and site.requests and _scattered(site):
            lines = resident.warps_per_sm * request_lines(site) / site.requests * LINE
            streams[site.buffer] = max(streams.get(site.buffer, 0.0), lines)
    l1 = _L1_USABLE * resident.l1_bytes
    walked = sum(distinct.values()) * SECTOR / launch.blocks * resident.blocks_per_sm
    grid = {b: max(s.unique_sectors for s in sites if s.buffer == b) * SECTOR for b in {s.buffer for s in sites}}
    live = sum(grid[b] for b in distinct) * min(1.0, resident.blocks / launch.blocks)
    return _Hits(
        streams=min(1.0, l1 / (sum(streams.values()) or l1)),
        second_pass_l1={buffer: fitting(l1, walked) for buffer in distinct},
        second_pass_l2=fitting(_L2_USABLE * target.l2_bytes, live),
    )


def _scattered(site: AccessSite) -> bool:
    return site.sectors > _SCATTERED * useful_sectors(site)


def fitting(room: float, wanted: float) -> float:
    """The share of a cyclic walk over ``wanted`` bytes that a cache of ``room`` bytes catches: least-recently-used
    replacement loses it quickly once it no longer fits."""
    if wanted <= room:
        return 1.0
    return max(0.0, 1.0 - 2.0 * (wanted - room) / wanted)


def _read_l2_sectors(site: AccessSite, own: float, distinct: float, hits: _Hits) -> float:
    """First touches, what a second pass no longer finds, and what scattered streams lose between two steps."""
    again = max(0.0, min(site.sectors, distinct) - own)
    close = site.sectors - own - again
    lost = 1.0 - hits.streams if _scattered(site) else 0.0
    return own + again * (1.0 - hits.second_pass_l1[site.buffer]) + close * lost


def _demand(site: AccessSite, l2: float, dram: float, target: Target) -> SiteTraffic:
    useful = useful_sectors(site)
    ideal = max(site.requests * _REQUEST_CYCLES, useful / _PER_LINE)
    passes = max(ideal, request_lines(site) / _LINES_PER_CYCLE, site.sectors / _PER_LINE)
    beyond_l1 = min(1.0, l2 / site.sectors) if site.sectors else 0.0
    beyond_l2 = min(beyond_l1, dram / SECTOR / site.sectors) if site.sectors else 0.0
    latency = target.l1_latency_ns + beyond_l1 * (target.l2_latency_ns - target.l1_latency_ns)
    latency += beyond_l2 * (target.dram_latency_ns - target.l2_latency_ns)
    if site.requests:
        latency += max(0.0, passes / site.requests - _REQUEST_CYCLES) * 2.0 / target.clock_ghz
    return SiteTraffic(site, passes, ideal, l2, min(l2, useful), dram, min(dram, site.lanes * site.bytes), latency)
