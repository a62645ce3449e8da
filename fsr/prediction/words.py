"""What holds a kernel back, in plain words and line by line: the text of ``fsr features KERNEL``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fsr.backends.protocol import AccessSite
from fsr.hardware.gpus import Target
from fsr.prediction.bottleneck import bottlenecks
from fsr.prediction.predict import LaunchPrediction, Prediction
from fsr.prediction.traffic import LINE, SiteTraffic, useful_sectors

_TELLING = 0.05  # lines that carry less of their launch's demand are left out


@dataclass(frozen=True, slots=True)
class LineRemark:
    """What one source line does to the memory system. ``line`` is 1-based in the candidate's source; ``weight`` its
    share of the launch's L1 and shared-memory passes."""

    line: int
    weight: float
    words: str


def explain(prediction: Prediction, target: Target, source: str, where: Callable[[int], str] = "line {}".format) -> str:
    """The whole report: predicted time, causes by share, then for each launch its occupancy and telling lines.

    ``source`` is the candidate's text that the recording's lines count in; ``where`` names such a line to the user.
    """
    text = source.splitlines()
    parts = [f"predicted {duration(prediction.time_ns)} on {target.name}", "", "what the time goes to:"]
    parts += [f"  {cause.share:4.0%}  {cause.name}: {cause.words}" for cause in bottlenecks(prediction.parts)]
    for launch in prediction.launches:
        parts += ["", *_launch_words(launch, target)]
        for remark in line_remarks(launch):
            code = text[remark.line - 1].strip() if 0 < remark.line <= len(text) else ""
            parts.append(f"  {where(remark.line)}: {remark.words}")
            if code:
                parts.append(f"      {code if len(code) <= 100 else code[:97] + '...'}")
    return "\n".join(parts)


def duration(time_ns: float) -> str:
    """A time a human reads: '12.3 us', '4.57 ms'."""
    if math.isinf(time_ns):
        return "forever (it cannot be launched)"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if time_ns >= size:
            return f"{time_ns / size:.3g} {unit}"
    return f"{time_ns:.3g} ns"


def _launch_words(launch: LaunchPrediction, target: Target) -> Iterator[str]:
    profile, occupied = launch.profile, launch.occupancy
    yield (
        f"{launch.entry}: {profile.blocks} blocks of {profile.threads_per_block} threads, "
        f"{duration(launch.time_ns)}"
    )  # fmt: skip
    if occupied.blocks == 0:
        yield f"  no block fits on an SM: {_LIMIT_WORDS[occupied.limit]}"
        return
    if launch.resident.sms < target.sm_count:
        yield f"  only {launch.resident.sms} of {target.sm_count} SMs get a block"
    starved = launch.resident.blocks == profile.blocks and launch.resident.blocks_per_sm < occupied.blocks
    reason = "the grid is too small for more" if starved else _LIMIT_WORDS[occupied.limit]
    room = target.max_threads_per_sm // target.warp_size
    yield f"  {launch.resident.warps_per_sm:.0f} of {room} warps run on an SM at a time: {reason}"
    slowest = sorted(launch.limits.items(), key=lambda item: -item[1])[:3]
    yield "  limits, each alone: " + ", ".join(f"{_RESOURCE_WORDS[k]} {duration(v)}" for k, v in slowest)


_LIMIT_WORDS = {
    "threads": "threads are the limit",
    "blocks": "the number of blocks an SM holds is the limit: larger blocks would fill it",
    "registers": "registers are the limit",
    "shared": "shared memory is the limit",
}
_RESOURCE_WORDS = {
    "dram": "DRAM", "l2": "L2", "l1": "L1 and shared memory", "issue": "instruction issue", "atomics": "atomics",
    "latency": "waiting for data", "blocks": "starting blocks",
}  # fmt: skip


def line_remarks(launch: LaunchPrediction) -> list[LineRemark]:
    """The lines that ask most of the memory system, heaviest first."""
    passes = {id(t.site): t.passes for t in launch.traffic}
    sites = [s for s in launch.profile.sites if s.space in ("global", "shared")]
    demand = [(passes.get(id(s), max(s.wavefronts, s.requests)) + s.serial, s) for s in sites]
    total = sum(weight for weight, _ in demand) or 1.0
    traffic = {id(t.site): t for t in launch.traffic}
    remarks = [
        LineRemark(site.line, weight / total, site_words(site, traffic.get(id(site))))
        for weight, site in demand
        if weight / total >= _TELLING and site.line > 0
    ]
    return sorted(remarks, key=lambda remark: (-remark.weight, remark.line))


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
