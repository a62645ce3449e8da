"""What a benchmark comes to: the figures that docs/benchmarks.md tells, with those that fall short."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from fsr.bench.results import Record, geometric_mean

LARGE_BYTES = 100e6  # below, caches and launches decide rather than the copy rate
OVER_NAIVE, AGAINST_PEER, COPY_SHARE = 15.0, 1.0, 0.85  # what is aimed at


@dataclass(frozen=True, slots=True)
class Summary:
    """over_naive: geometric mean of all, a failure counted as 1, what the user is left with. against_peer: geometric
    mean of the best peer's time over the winner's, where there is a peer; behind: those below what the suite aims at,
    the farthest first. copy_share: median of the memory-bound ones that move over 100 MB; slow: those of them below
    the share that is aimed at, the slowest first."""

    basis: str
    count: int
    improved: int
    failed: tuple[str, ...]
    over_naive: float | None
    against_peer: float | None
    compared: int
    behind: tuple[str, ...]
    copy_share: float | None
    streaming: int
    slow: tuple[str, ...]


def summed_up(records: Iterable[Record]) -> Summary:
    """The figures of records."""
    every = list(records)
    compared = {r.workload: x for r in every if (x := r.against_peer)}
    streaming = {
        r.workload: share
        for r in every
        if r.memory_bound and (r.bytes or 0.0) > LARGE_BYTES and (share := r.copy_share) is not None
    }
    behind = sorted((x / r.least, r.workload) for r in every if (x := r.against_peer) and x < r.least)
    return Summary(
        basis=" and ".join(sorted({r.basis for r in every})),
        count=len(every),
        improved=sum(r.status == "improved" for r in every),
        failed=tuple(r.workload for r in every if r.status == "failed"),
        over_naive=geometric_mean(r.speedup or 1.0 for r in every),
        against_peer=geometric_mean(compared.values()),
        compared=len(compared),
        behind=tuple(name for _, name in behind),
        copy_share=statistics.median(streaming.values()) if streaming else None,
        streaming=len(streaming),
        slow=tuple(name for name, share in sorted(streaming.items(), key=lambda x: x[1]) if share < COPY_SHARE),
    )
