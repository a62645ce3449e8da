"""The result of a refinement: the JSON object that scripts read, and all a person is told from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fsr.evaluation.jobs import roofline_of
from fsr.features.schema import BOTTLENECKS, Features, Roofline
from fsr.identity import to_json
from fsr.prediction.measured import judged
from fsr.records import Basis, Json, Outcome, Timing
from fsr.runs.kernel import Kernel
from fsr.runs.state import RunState
from fsr.search.proposal import Trial


def result_of(
    state: RunState, kernel: Kernel, target: str, winner: Trial | None, output: Mapping[str, str], seconds: float
) -> dict[str, Json]:
    """The object that ``fsr refine --json`` prints; see docs/command-line.md for its fields.

    ``winner``: the promoted trial or None. ``output``: kind to path of the files written."""
    report = state.baseline
    assert report is not None
    timing = report.outcome.timing
    assert timing is not None
    device: dict[str, Any] = dict(to_json(report.device))  # type: ignore[arg-type]
    if timing.basis is Basis.PREDICTED:
        device["target"] = target
    tests = winner.outcome if winner is not None else report.outcome
    searched = report.outcome if winner is None else winner.outcome
    return {
        "status": "unchanged" if winner is None else "improved",
        "entry": kernel.contract.entry,
        "run": state.run,
        "basis": timing.basis.value,
        "device": device,
        "baseline": {"median_ns": timing.median_ns, "bottlenecks": bottlenecks_told(report.outcome.features)},
        "best": None if winner is None else best_of(winner, timing, roofline_of(searched, report)),
        "tests": {"cases": tests.cases, "passed": tests.passed},
        "evaluated": state.told,
        "rejected": dict(state.rejected),
        "candidates_per_second": round(state.rate, 3),
        "device_busy_share": round(state.device_busy, 3),
        "counters_share": round(state.counting_s / max(seconds, 1e-9), 4),
        "output": output.get("source"),
        "files": dict(output),
        "interrupted": state.interrupted,
        "notes": list(state.notes),
        "seconds": round(seconds, 2),
    }


def best_of(winner: Trial, baseline: Timing, roofline: Roofline | None) -> dict[str, Json]:
    """The ``best`` part: time, speed-up with its interval, what was done, where it stands on the roofline."""
    outcome: Outcome = winner.outcome
    verdict: Any = outcome.evidence["verdict"]
    time_ns = outcome.timing.median_ns if outcome.timing is not None else None
    return {
        "median_ns": time_ns,
        "speedup": verdict["speedup"],
        "speedup_ci95": list(verdict["ci95"]),
        "speedup_back_to_back": outcome.evidence.get("back_to_back"),
        "candidate": winner.proposal.hash,
        "actions": list(winner.proposal.candidate.actions),
        "roofline_fraction": roofline.fraction if roofline is not None else None,
        "roofline": Features(roofline=roofline).to_json().get("roofline"),
        "bottlenecks": bottlenecks_told(outcome.features),
        "held_out": outcome.evidence.get("held_out"),
        "sanitizers": outcome.evidence.get("sanitizers"),
        "plan": to_json(winner.proposal.candidate.plan),
    }


def bottlenecks_told(features: Features) -> list[Json]:
    """What holds a candidate back, largest share first, each with its evidence and the line of code it is about."""
    return [
        {
            "name": b.name,
            "share": round(b.share, 4),
            "means": BOTTLENECKS[b.name],
            "evidence": b.evidence,
            "code": b.code,
        }
        for b in judged(features)
    ]
