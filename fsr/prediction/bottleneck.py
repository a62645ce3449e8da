"""What holds a plan back, in the words that actions aim at.

A launch is limited by resources (DRAM, L2, the L1's data path, issue, atomics, latency). A developer wants to know what
about the kernel causes it: loads that are not coalesced, bank conflicts, too few warps. This module divides the time.
"""

from __future__ import annotations

from collections.abc import Mapping

from fsr.backends.protocol import LaunchProfile
from fsr.features.access import shared_passes
from fsr.features.occupancy import Occupancy
from fsr.prediction.traffic import Residency, SiteTraffic

NORM = 4.0  # of the p-norm that joins limits: two equal ones cost 19 % more than one


def attribute(
    launch: LaunchProfile,
    limits: Mapping[str, float],
    body: float,
    occupied: Occupancy,
    resident: Residency,
    traffic: tuple[SiteTraffic, ...],
) -> dict[str, float]:
    """The body's time divided among bottlenecks: each limit weighs as it does in the norm, so that what is hidden
    behind a longer one gets next to nothing."""
    weights = {name: value**NORM for name, value in limits.items()}
    scale = body / (sum(weights.values()) or 1.0)
    parts: dict[str, float] = {}

    def give(limit: str, shares: Mapping[str, float]) -> None:
        left = 1.0 - sum(shares.values())
        for name, share in [*shares.items(), (_PLAIN[limit], left)]:
            if share > 0:
                parts[name] = parts.get(name, 0.0) + weights[limit] * scale * share

    dram = sum(t.dram_bytes for t in traffic)
    l2 = sum(t.l2_sectors for t in traffic)
    give("dram", {"uncoalesced": _excess(dram, sum(t.useful_bytes for t in traffic))})
    give("l2", {"uncoalesced": _excess(l2, sum(t.ideal_l2_sectors for t in traffic))})
    give("l1", _l1_shares(launch, traffic))
    give("issue", {"instructions": _memory_share(launch)})
    give("units", {})
    give("tensor", {})
    give("atomics", {})
    give("latency", {"occupancy": _occupancy_share(launch, occupied, resident)})
    give("blocks", {})
    return parts


_PLAIN = {
    "dram": "bandwidth", "l2": "bandwidth", "l1": "instructions", "issue": "compute", "tensor": "compute",
    "units": "compute", "atomics": "atomics", "latency": "latency", "blocks": "launch",
}  # fmt: skip


def _excess(total: float, needed: float) -> float:
    return max(0.0, 1.0 - needed / total) if total else 0.0


def _l1_shares(launch: LaunchProfile, traffic: tuple[SiteTraffic, ...]) -> dict[str, float]:
    shared, conflict_free = shared_passes(launch.sites)
    passes = sum(t.passes for t in traffic)
    total = passes + shared + launch.shuffles
    if not total:
        return {}
    wasted = passes - sum(t.ideal_passes for t in traffic)
    return {"uncoalesced": max(0.0, wasted / total), "shared-conflicts": (shared - conflict_free) / total}


def _memory_share(launch: LaunchProfile) -> float:
    """How much of the issue slots goes to accesses and what belongs to them: about four instructions of addresses and
    loop control each."""
    if not launch.warp_instructions:
        return 0.0
    requests = sum(s.requests for s in launch.sites)
    return min(1.0, 5.0 * requests / launch.warp_instructions)


def _occupancy_share(launch: LaunchProfile, occupied: Occupancy, resident: Residency) -> float:
    """How much of the waiting comes from resources that keep further blocks out; none when the grid is too small
    to fill the SMs anyway."""
    if launch.blocks <= resident.blocks and resident.blocks < occupied.blocks * resident.sms:
        return 0.0
    return 1.0 - occupied.fraction
