"""What hardware counters add to a predicted cause: how busy each unit really was, and what warps really waited for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fsr.features.schema import Bottleneck, Counters, Features

PREDICTED_WEIGHT = 0.5  # of the prediction's share where counters speak of the cause too


def judged(features: Features) -> tuple[Bottleneck, ...]:
    """The causes, largest first: as predicted from the recording, weighed and shown by the counters where those were
    read; from the counters alone where nothing was recorded."""
    if features.counters is None:
        return features.bottlenecks
    seen = {name: view(features.counters) for name, view in _VIEWS.items()}
    told = {name: found for name, found in seen.items() if found is not None and found[0] > 0.0}
    total = sum(weight for weight, _ in told.values())
    if not total:
        return features.bottlenecks
    causes = {cause.name: cause for cause in features.bottlenecks}
    weight = PREDICTED_WEIGHT if causes else 0.0
    for name, (busy, words) in told.items():
        held = causes.get(name, Bottleneck(name, 0.0))
        share = weight * held.share + (1.0 - weight) * busy / total
        evidence = "; ".join(filter(None, (held.evidence, f"counted: {words}")))
        causes[name] = replace(held, share=share, evidence=evidence)
    for name in set(causes) - set(told):
        causes[name] = replace(causes[name], share=weight * causes[name].share)
    whole = sum(cause.share for cause in causes.values())
    ordered = sorted(causes.values(), key=lambda cause: (-cause.share, cause.name))
    return tuple(replace(cause, share=cause.share / whole) for cause in ordered)


# Each view: how strongly the counters speak for a cause (0 to 1), and in which words; None where they are silent.

_View = Callable[[Counters], "tuple[float, str] | None"]


def _bandwidth(c: Counters) -> tuple[float, str] | None:
    busy = {"DRAM": c.dram if c.dram is not None else c.dram_gpu, "the L2": c.l2}
    unit, share = max(((u, s) for u, s in busy.items() if s is not None), key=lambda one: one[1], default=("", None))
    return None if share is None else ((share / 100.0) ** 2, f"{unit} at {share:.0f} % of its peak rate")


def _compute(c: Counters) -> tuple[float, str] | None:
    pipes = {"FP32 pipe": c.fp32, "tensor pipe": c.tensor}
    pipe, share = max(((p, s) for p, s in pipes.items() if s is not None), key=lambda one: one[1], default=("", None))
    return None if share is None else ((share / 100.0) ** 2, f"{pipe} at {share:.0f} % of its peak")


def _instructions(c: Counters) -> tuple[float, str] | None:
    return None if c.l1 is None else ((c.l1 / 100.0) ** 2, f"L1 at {c.l1:.0f} % of its peak rate")


def _latency(c: Counters) -> tuple[float, str] | None:
    if c.stalled_long is None:
        return None
    busiest = max(share or 0.0 for share in (c.dram, c.l2, c.l1, c.fp32, c.tensor)) / 100.0
    words = f"{c.stalled_long:.0f} % of warps wait for global memory"
    return c.stalled_long / 100.0 * (1.0 - busiest) ** 2, words


def _conflicts(c: Counters) -> tuple[float, str] | None:
    if c.stalled_short is None or c.stalled_short < 20.0:
        return None
    return c.stalled_short / 200.0, f"{c.stalled_short:.0f} % of warps wait for shared memory"


def _occupancy(c: Counters) -> tuple[float, str] | None:
    if c.warps_active is None or c.stalled_long is None or c.warps_active > 60.0:
        return None
    weight = (1.0 - c.warps_active / 100.0) * c.stalled_long / 200.0
    return weight, f"{c.warps_active:.0f} % of the warps that fit are resident"


_VIEWS: dict[str, _View] = {
    "bandwidth": _bandwidth, "compute": _compute, "instructions": _instructions, "latency": _latency,
    "shared-conflicts": _conflicts, "occupancy": _occupancy,
}  # fmt: skip
