"""What shows a bottleneck: the line, or the figures, that a developer would check."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from fsr.backends.protocol import AccessSite
from fsr.features.access import LINE, SECTOR, useful_sectors
from fsr.features.schema import Bottleneck
from fsr.hardware.gpus import Target
from fsr.prediction.predict import LaunchPrediction, Prediction
from fsr.prediction.traffic import SiteTraffic

SMALLEST = 0.02  # shares below are left out, but never the largest

Shown = tuple[str, int | None]  # evidence and the line that it is about


def bottlenecks(prediction: Prediction, target: Target) -> tuple[Bottleneck, ...]:
    """The causes that a prediction divides its time among, largest first, each with what shows it."""
    total = sum(prediction.parts.values()) or 1.0
    shares = sorted(((value / total, name) for name, value in prediction.parts.items()), reverse=True)
    if math.isinf(total):  # it cannot be launched
        shares = [(1.0, prediction.binds)]
    return tuple(
        Bottleneck(name, share, *_shown(name, prediction, target))
        for i, (share, name) in enumerate(shares)
        if share >= SMALLEST or i == 0
    )


def _shown(name: str, prediction: Prediction, target: Target) -> Shown:
    """The evidence, taken from the launch to which the cause costs most."""
    launch = max(prediction.launches, key=lambda one: one.parts.get(name, 0.0) * one.profile.times, default=None)
    return ("", None) if launch is None else _EVIDENCE[name](launch, target)


# ---------------------------------------------------------------- causes that one line shows


def _uncoalesced(launch: LaunchPrediction, target: Target) -> Shown:
    worst = max(launch.traffic, key=lambda t: t.site.sectors - useful_sectors(t.site), default=None)
    return ("", None) if worst is None else (site_words(worst.site, worst), worst.site.line or None)


def _conflicts(launch: LaunchPrediction, target: Target) -> Shown:
    return _worst(launch, lambda s: s.wavefronts - s.requests if s.space == "shared" else 0.0)


def _atomics(launch: LaunchPrediction, target: Target) -> Shown:
    return _worst(launch, lambda s: max(s.serial, s.max_same_address) if s.kind == "atomic" else 0.0)


def _worst(launch: LaunchPrediction, cost: Callable[[AccessSite], float]) -> Shown:
    site = max(launch.profile.sites, key=cost, default=None)
    return ("", None) if site is None or cost(site) <= 0 else (site_words(site), site.line or None)


# ---------------------------------------------------------------- causes that figures show


def _bandwidth(launch: LaunchPrediction, target: Target) -> Shown:
    dram = sum(t.dram_bytes for t in launch.traffic)
    l2 = sum(t.l2_sectors for t in launch.traffic) * SECTOR
    return f"{dram / 1e6:.3g} MB pass DRAM and {l2 / 1e6:.3g} MB the L2", None


def _waiting(launch: LaunchPrediction, target: Target) -> Shown:
    return "; ".join(residence_words(launch, target)), None


def _issue(launch: LaunchPrediction, target: Target) -> Shown:
    total, requests = launch.profile.warp_instructions, sum(s.requests for s in launch.profile.sites)
    share = requests / total if total else 0.0
    return f"{total:.3g} warp instructions, {share:.0%} of them loads, stores and atomics", None


def _launching(launch: LaunchPrediction, target: Target) -> Shown:
    return f"{launch.profile.blocks} blocks to start, and {duration(launch.overhead_ns)} for the kernel itself", None


_EVIDENCE: dict[str, Callable[[LaunchPrediction, Target], Shown]] = {
    "uncoalesced": _uncoalesced, "shared-conflicts": _conflicts, "atomics": _atomics, "bandwidth": _bandwidth,
    "latency": _waiting, "occupancy": _waiting, "compute": _issue, "instructions": _issue, "launch": _launching,
}  # fmt: skip


# ---------------------------------------------------------------- words


def duration(time_ns: float) -> str:
    """A time a human reads: '12.3 us', '4.57 ms'."""
    if math.isinf(time_ns):
        return "forever (it cannot be launched)"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if time_ns >= size:
            return f"{time_ns / size:.3g} {unit}"
    return f"{time_ns:.3g} ns"


def residence_words(launch: LaunchPrediction, target: Target) -> Iterator[str]:
    """How much of the GPU a launch fills at a time, and what keeps more out."""
    occupied, resident = launch.occupancy, launch.resident
    if occupied.blocks == 0:
        yield f"no block fits on an SM: {_LIMIT_WORDS[occupied.limit]}"
        return
    if resident.sms < target.sm_count:
        yield f"only {resident.sms} of {target.sm_count} SMs get a block"
    starved = resident.blocks == launch.profile.blocks and resident.blocks_per_sm < occupied.blocks
    reason = "the grid is too small for more" if starved else _LIMIT_WORDS[occupied.limit]
    room = target.max_threads_per_sm // target.warp_size
    yield f"{resident.warps_per_sm:.0f} of {room} warps run on an SM at a time: {reason}"


_LIMIT_WORDS = {
    "threads": "threads are the limit",
    "blocks": "the number of blocks an SM holds is the limit: larger blocks would fill it",
    "registers": "registers are the limit",
    "shared": "shared memory is the limit",
}


def site_words(site: AccessSite, traffic: SiteTraffic | None = None) -> str:
    """One site: what is accessed and whether the lanes of a warp do it well together."""
    verb = {"read": "reads", "write": "writes", "atomic": "updates atomically"}[site.kind]
    what = f"{verb} {'shared ' if site.space == 'shared' else ''}'{site.buffer}', {site.bytes} bytes a thread"
    if site.kind == "atomic":
        return f"{what}: {_atomic_words(site)}"
    if site.space == "shared":
        needed = max(site.requests, site.lanes * site.bytes / LINE)
        ways = site.wavefronts / needed if needed else 1.0
        return f"{what}: {f'{ways:.1f} passes where one would do (bank conflicts)' if ways > 1.1 else 'no conflicts'}"
    moved = site.sectors / site.requests if site.requests else 0.0
    needed = useful_sectors(site) / site.requests if site.requests else 0.0
    judged = "coalesced" if moved <= 1.3 * max(needed, 1.0) else f"{needed:.0f} would do if neighbours were adjacent"
    words = f"{what}: {moved:.1f} sectors of 32 bytes a request, {judged}"
    if traffic and site.kind == "read" and site.sectors:
        words += f"; {_served_words(traffic)}"
    return words


def _atomic_words(site: AccessSite) -> str:
    together = site.serial / site.requests if site.requests else 0.0
    words = f"up to {together:.1f} lanes of a warp hit one address at a time"
    if site.max_same_address >= 2:
        words += f", {site.max_same_address:.3g} updates queue at the busiest address"
    return words


def _served_words(traffic: SiteTraffic) -> str:
    l2 = traffic.l2_sectors / traffic.site.sectors
    if l2 < 0.02:
        return "the L1 serves nearly all of it"
    return f"{min(l2, 1.0):.0%} goes to the L2, {traffic.dram_bytes / 1e6:.3g} MB come from DRAM"
