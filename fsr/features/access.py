"""What a recording says of a plan's accesses: per site for the prediction, and summed up as features."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fsr.backends.protocol import AccessProfile, AccessSite
from fsr.features.schema import Access

SECTOR, LINE = 32, 128
WARP = 32
_WIDEST = 16  # bytes that one lane reads or writes at a time


def access_features(profile: AccessProfile) -> Access:
    """The recording of one run, all launches together, each as often as it is made; what has no denominator is None."""
    launches = [launch for launch in profile.launches for _ in range(launch.times)]
    blocks = sum(launch.blocks for launch in launches)
    warps = sum(launch.blocks * -(-launch.threads_per_block // WARP) for launch in launches)
    sites = [as_vector(s) for launch in launches for s in launch.sites if s.space == "global"]
    moved, requests = sum(s.sectors for s in sites), sum(s.requests for s in sites)
    passes, ideal = shared_passes(s for launch in launches for s in launch.sites)
    return Access(
        recorded_share=_share(sum(launch.sampled_blocks for launch in launches), blocks),
        warp_instructions=sum(launch.warp_instructions for launch in launches),
        requested_bytes=sum(s.lanes * s.bytes for s in sites),
        distinct_bytes=sum(s.unique_sectors for s in sites) * SECTOR,
        sectors_a_request=_share(moved, requests),
        useful_share=_share(sum(useful_sectors(s) for s in sites), moved),
        bank_conflicts=_share(passes, ideal),
        atomic_queue=max((s.max_same_address for s in sites if s.kind == "atomic"), default=0.0),
        barriers_a_warp=_share(sum(launch.barriers for launch in launches), warps),
        shuffles_a_warp=_share(sum(launch.shuffles for launch in launches), warps),
    )


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def as_vector(site: AccessSite) -> AccessSite:
    """The site as the GPU's compiler makes it. Where each thread walks over 2, 4, 8 or 16 neighbouring elements and
    the warp covers whole lines, the recording (of the CPU's code, which copies structs by their members) has an
    access an element; the GPU's code has one of up to 16 bytes."""
    if site.kind == "atomic" or not site.requests or site.bytes >= _WIDEST:
        return site
    factor = round(site.sectors / useful_sectors(site)) if site.sectors else 1
    fills = site.sectors <= 1.1 * factor * useful_sectors(site) and request_lines(site) <= 1.5 * factor * site.requests
    again = site.sectors >= 0.9 * factor * max(site.unique_sectors, 1.0)
    if factor not in (2, 4, 8, 16) or factor * site.bytes > _WIDEST or not (fills and again):
        return site
    return replace(
        site, bytes=site.bytes * factor, requests=site.requests / factor, lanes=site.lanes / factor,
        sectors=site.sectors / factor, lines=site.lines / factor,
    )  # fmt: skip


def useful_sectors(site: AccessSite) -> float:
    """Sectors that a coalesced access of the same lanes would need."""
    return min(site.sectors, site.lanes * site.bytes / SECTOR)


def request_lines(site: AccessSite) -> float:
    """128-byte lines over all requests; where not recorded, each sector too many counts as a line of its own."""
    useful = useful_sectors(site)
    return site.lines or max(site.requests, useful / (LINE / SECTOR)) + max(0.0, site.sectors - useful)


def shared_passes(sites: Iterable[AccessSite]) -> tuple[float, float]:
    """Wavefronts of shared memory, and those that the same lanes need without bank conflicts."""
    total = ideal = 0.0
    for site in sites:
        if site.space == "shared":
            total += max(site.wavefronts, site.requests)
            ideal += max(site.requests, min(site.wavefronts, site.lanes * site.bytes / LINE))
    return total, ideal


def constant_conflicts(sites: Iterable[AccessSite]) -> float:
    """Passes of constant memory beyond one a request: a warp's different words are read one after the other."""
    return sum(max(0.0, s.wavefronts - s.requests) for s in sites if s.space == "constant")
