"""Taking times on a device with a clock: cheap screening, and the paired final.

Screening spends milliseconds on candidates that are clearly slower, since most are. The final alternates
incumbent and challenger, A B B A, so that neither profits from the machine's drift, and lets them exchange their
memory after each such round, so that neither profits from where its buffers lie.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fsr.backends.protocol import TimedPrepared
from fsr.records import Basis, Timing

BATCH_RUNS, BATCH_NS = 16, 20e6  # launches of a batch, and nanoseconds that are enough for one
SEPARATED = 1.2  # slower by so much in every sample


@dataclass(frozen=True, slots=True)
class TimingPolicy:
    """How much to measure; part of the cache key through ``version``."""

    version: int = 2
    screening_samples: int = 3
    screening_budget_ns: float = 100e6  # GPU time for a candidate that is not clearly slower
    screening_most: int = 15
    decided_at: float = 1.15  # slower than the incumbent by this factor after the first samples: stop
    hopeless_at: float = 2.5  # slower by this factor and so many nanoseconds, in the warm-up or in one sample: stop
    hopeless_ns: tuple[float, float] = (100e6, 10e6)
    final_pairs: int = 30
    final_budget_ns: float = 0.5e9  # at least this much GPU time in the final
    final_most_pairs: int = 400
    separated_pairs: int = 8  # as many decide a final where every sample of one lies far beyond all of the other
    usual_clock_share: float = 0.75  # samples below this share of the usual SM clock are discarded
    clock_retries: int = 20


def screen(prepared: TimedPrepared, incumbent_ns: float | None, policy: TimingPolicy) -> tuple[Timing, bool]:
    """(timing, decided): screening samples of one prepared plan; ``decided`` when it is clearly slower.

    ``incumbent_ns`` is the best time so far on the same sizes, None for the baseline."""
    warm_up = prepared.time_ns()  # module load, first touch
    hopeless = [math.inf if incumbent_ns is None else policy.hopeless_at * incumbent_ns + x for x in policy.hopeless_ns]
    samples = [warm_up] if warm_up > hopeless[0] else []
    while len(samples) < policy.screening_samples and not any(s > hopeless[1] for s in samples):
        samples.append(prepared.time_ns())
    if incumbent_ns is not None and min(samples) > policy.decided_at * incumbent_ns:
        return _timing(samples, "screening, stopped as clearly slower"), True
    while len(samples) < policy.screening_most and sum(samples) < policy.screening_budget_ns:
        samples.append(prepared.time_ns())
    return _timing(samples, "screening"), False


def paired(
    incumbent: Sequence[TimedPrepared],
    challenger: Sequence[TimedPrepared],
    policy: TimingPolicy,
    clock_mhz: Callable[[], int | None] = lambda: None,
    budget_s: float = 20.0,
) -> tuple[list[float], list[float]]:
    """Paired samples in nanoseconds, A B B A over rotated input sets, then the same with memory exchanged.

    ``incumbent[i]`` and ``challenger[i]`` are the two plans on input set i. Samples taken while the SM clock
    stands below policy.usual_clock_share of the highest seen are discarded and taken again. ``budget_s`` is a
    wall-clock limit; the pairs taken so far are returned when it is reached (at least 4). Plans that take long are
    measured less often where the two are far apart: see _separated."""
    for prepared in (*incumbent, *challenger):
        prepared.time_ns()
    first: list[float] = []
    second: list[float] = []
    usual, retries, turn = 0, 0, 0
    crossed = [False] * len(incumbent)
    deadline = time.monotonic() + budget_s
    while len(first) < policy.final_pairs or sum(first) + sum(second) < policy.final_budget_ns:
        if len(first) >= policy.final_most_pairs or (len(first) >= 4 and time.monotonic() > deadline):
            break
        if sum(first) + sum(second) >= policy.final_budget_ns and _separated(first, second, policy):
            break
        number, visit = turn % len(incumbent), turn // len(incumbent)
        a, b = incumbent[number], challenger[number]
        if crossed[number] != (visit // 2 % 2 == 1):
            a.exchange(b)
            crossed[number] = not crossed[number]
        if (visit + number) % 2 == 0:
            a_ns, b_ns = a.time_ns(), b.time_ns()
        else:
            b_ns, a_ns = b.time_ns(), a.time_ns()
        turn += 1
        clock = clock_mhz() if turn % 8 == 1 else None
        if clock is not None:
            usual = max(usual, clock)
            if clock < policy.usual_clock_share * usual and retries < policy.clock_retries:
                retries += 1
                time.sleep(0.05)
                continue
        first.append(a_ns)
        second.append(b_ns)
    return first, second


def _separated(first: Sequence[float], second: Sequence[float], policy: TimingPolicy) -> bool:
    """Whether all samples of one plan lie far beyond all of the other. Eight and eight that are alike do so by chance,
    even without the distance, twice in 12870 times (Mann and Whitney 1947)."""
    if len(first) < policy.separated_pairs:
        return False
    return min(first) > SEPARATED * max(second) or min(second) > SEPARATED * max(first)


def back_to_back(incumbent: TimedPrepared, challenger: TimedPrepared, batches: int = 5) -> float:
    """Incumbent over challenger time when each is launched in a loop, the caches as the runs before left them: the
    ratio of the medians of alternating batches. The other regime that users time in; the final is on cold caches.
    A batch has fewer launches where they take long, since the clock's grain does not matter there."""
    slowest_ns = max(incumbent.time_batch_ns(1), challenger.time_batch_ns(1))
    runs = max(1, min(BATCH_RUNS, int(BATCH_NS / max(slowest_ns, 1.0))))
    if runs > 1:
        incumbent.time_batch_ns(runs)
        challenger.time_batch_ns(runs)
    pairs = [(incumbent.time_batch_ns(runs), challenger.time_batch_ns(runs)) for _ in range(batches)]
    return float(np.median([a for a, _ in pairs]) / np.median([b for _, b in pairs]))


def _timing(samples: list[float], note: str) -> Timing:
    return Timing(Basis.MEASURED, float(np.median(samples)), tuple(samples), note)
