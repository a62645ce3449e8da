"""The result of a refinement: the object that scripts read, and all a person is told from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from fsr.evaluation.jobs import roofline_of
from fsr.features.schema import BOTTLENECKS, Features, Roofline
from fsr.identity import to_json
from fsr.prediction.measured import judged
from fsr.records import Basis, Json, Timing
from fsr.runs.kernel import Kernel
from fsr.runs.state import RunState
from fsr.search.proposal import Trial


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended; docs/command-line.md says what each field means.

    status: 'improved' or 'unchanged'. kernels: those that the contract's plan launches, ``entry`` among them. best: of
    the winner, None when unchanged. why: in a sentence. proposers: name to what it proposed, what was right, its gains
    and its cost in evaluations. models: name to tokens, seconds, dollars and what its answers were. defects: faults of
    actions, by action."""

    status: str
    entry: str
    kernels: tuple[str, ...]
    run: str
    basis: str
    device: Mapping[str, Json]
    baseline: Mapping[str, Json]
    best: Mapping[str, Any] | None
    why: str
    tests: Mapping[str, int]
    evaluated: int
    rejected: Mapping[str, int]
    defects: Mapping[str, Mapping[str, int]]
    proposers: Mapping[str, Mapping[str, Json]]
    models: Mapping[str, Mapping[str, Json]]
    candidates_per_second: float
    device_busy_share: float
    counters_share: float
    output: str | None
    files: Mapping[str, str]
    interrupted: bool
    notes: tuple[str, ...]
    seconds: float

    @property
    def speedup(self) -> float:
        """Of the winner over the original; 1.0 when unchanged."""
        return 1.0 if self.best is None else float(self.best["speedup"])

    def to_json(self) -> dict[str, Json]:
        """The object that ``fsr refine --json`` prints."""
        told = to_json(self)
        assert isinstance(told, dict)
        return told

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Result:
        """The inverse of :meth:`to_json`. Raises KeyError for an object of another version."""
        given: dict[str, Any] = {f.name: told[f.name] for f in fields(cls)}
        return cls(**given | {name: tuple(told[name]) for name in ("kernels", "notes")})


def result_of(
    state: RunState, kernel: Kernel, target: str, winner: Trial | None, files: Mapping[str, str], why: str
) -> Result:
    """The result of a run that has come to its end. ``winner``: the promoted trial, None without one. ``files``: kind
    to path of what was written."""
    report = state.baseline
    assert report is not None
    timing = report.outcome.timing
    assert timing is not None
    device: dict[str, Any] = dict(to_json(report.device))  # type: ignore[arg-type]
    if timing.basis is Basis.PREDICTED:
        device["target"] = target
    tested = winner.outcome if winner is not None else report.outcome
    return Result(
        status="unchanged" if winner is None else "improved",
        entry=kernel.contract.entry,
        kernels=kernel.contract.plan.entries,
        run=state.run,
        basis=timing.basis.value,
        device=device,
        baseline={"median_ns": timing.median_ns, "bottlenecks": bottlenecks_told(report.outcome.features)},
        best=None if winner is None else best_of(winner, timing, roofline_of(winner.outcome, report)),
        why=why,
        tests={"cases": tested.cases, "passed": tested.passed},
        evaluated=state.told,
        rejected=state.rejected,
        defects=state.defects,
        proposers={
            name: {"proposed": a.proposed, "right": a.right, "gains": a.gains, "cost": round(a.cost, 2)}
            for name, a in state.shares.items()
        },
        models=dict(state.models),
        candidates_per_second=round(state.rate, 3),
        device_busy_share=round(state.device_busy, 3),
        counters_share=round(state.counting_s / max(state.elapsed_s, 1e-9), 4),
        output=files.get("source"),
        files=dict(files),
        interrupted=state.stopped,
        notes=tuple(state.notes),
        seconds=round(state.elapsed_s, 2),
    )


def best_of(winner: Trial, baseline: Timing, roofline: Roofline | None) -> dict[str, Json]:
    """The ``best`` part: time, speed-up with its interval, what was done, where it stands on the roofline."""
    outcome = winner.outcome
    verdict: Any = outcome.evidence["verdict"]
    time_ns = outcome.timing.median_ns if outcome.timing is not None else None
    return {
        "median_ns": time_ns,
        "speedup": verdict["speedup"],
        "speedup_ci95": list(verdict["ci95"]),
        "speedup_back_to_back": outcome.evidence.get("back_to_back"),
        "candidate": winner.proposal.hash,
        "actions": list(winner.proposal.candidate.actions),
        "proposer": winner.proposal.proposer,
        "roofline_fraction": roofline.fraction if roofline is not None else None,
        "roofline": Features(roofline=roofline).to_json().get("roofline"),
        "bottlenecks": bottlenecks_told(outcome.features),
        "held_out": outcome.evidence.get("held_out"),
        "sanitizers": outcome.evidence.get("sanitizers"),
        "adequacy": outcome.evidence.get("adequacy"),
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
