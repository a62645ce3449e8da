"""What a candidate does to each of several timed configurations: one may be slower where all in all it is faster."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fsr.contract.model import Contract
from fsr.records import Json, Timing
from fsr.search.proposal import Trial

CLEARLY_SLOWER = 1.03  # times the original's time: a few samples vary by as much as a percent or two


def speedups(original: Trial | None, trial: Trial) -> list[float]:
    """Over the original at each of the timed configurations, in their order; empty where there is one, or the times of
    each are not known."""
    old, new = (_each(one.outcome.timing if one is not None else None) for one in (original, trial))
    return [a / b for a, b in zip(old, new, strict=True)] if len(old) == len(new) and all(new) else []


def _each(timing: Timing | None) -> tuple[float, ...]:
    return timing.each_ns if timing is not None else ()


def slower_at_some(found: list[float]) -> bool:
    """Whether speed-ups say that it is used with gain at some of the configurations and with loss at others."""
    return any(s > 1.0 for s in found) and any(s * CLEARLY_SLOWER < 1.0 for s in found)


def where_faster(contract: Contract, found: list[float]) -> list[Mapping[str, int]]:
    """The configurations at which it is faster; all of them where nothing is known of each."""
    timed = contract.timed_sizes()
    return [sizes for sizes, s in zip(timed, found, strict=True) if s > 1.0] if found else [*timed]


def gain_where_faster(found: list[float]) -> float:
    """By what it would be faster in the geometric mean, were it used there alone."""
    return math.exp(sum(math.log(max(s, 1.0)) for s in found) / len(found)) if found else 1.0


def told(contract: Contract, found: list[float]) -> tuple[dict[str, Json], ...]:
    """The same as a final tells it, with what a few samples leave open."""
    return tuple(
        {"sizes": dict(sizes), "speedup": s, "low": s / CLEARLY_SLOWER, "high": s * CLEARLY_SLOWER}
        for sizes, s in zip(contract.timed_sizes() if found else [], found, strict=True)
    )
