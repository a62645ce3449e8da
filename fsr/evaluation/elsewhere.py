"""Times beside the timed sizes: what is faster only there is no win, and need not be searched from either."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace

from fsr.backends.protocol import can_judge
from fsr.evaluation.clock import measured, placed, predicted
from fsr.evaluation.session import TIMED_POISON, Session
from fsr.evaluation.spec import Binaries
from fsr.evaluation.timing import paired
from fsr.evaluation.verdict import classify, paired_verdict, predicted_verdict
from fsr.prediction.predict import ERROR_FACTOR
from fsr.records import Candidate, Case, Json, Plan, Sizes, Verdict, VerdictKind
from fsr.testgen import cases as case_lists
from fsr.testgen.values import CaseData, build

HELD_OUT_SLOWDOWN = 0.98  # a held-out size may be slower by 2 %
HELD_OUT_PAIRS, HELD_OUT_SEPARATED = 12, 5
GLANCE_SLOWDOWN = 0.9  # a few samples vary by several percent: what is slower than that needs no closer look
GLANCE_S = 0.5  # a size that takes the original longer is left to promotion


def held_out_sizes(session: Session, candidate: Candidate, binaries: Binaries) -> list[dict[str, Json]]:
    """Speed-up and the end of its interval at sizes near the timed ones."""
    cases = case_lists.held_out_timed_cases(session.contract, session.spec.seed)
    return [speedup_at(session, candidate, binaries, case) for case in cases]


def speedup_at(session: Session, candidate: Candidate, binaries: Binaries, case: Case) -> dict[str, Json]:
    """Speed-up over the original at the sizes of a case, and the ends of its interval (``sizes``, ``speedup``, ``low``,
    ``high``). Raises DeviceFault."""
    data = _data(session, case)
    if session.spec.predicted:
        old = predicted(session, session.baseline, session.spec.baseline.plan, case, data).timing.median_ns
        new = predicted(session, binaries, candidate.plan, case, data).timing.median_ns
        verdict = predicted_verdict(old, new, ERROR_FACTOR)
    else:
        verdict = _paired_at(session, binaries, candidate.plan, case, data)
    return told_at(case.sizes, verdict)


def told_at(sizes: Sizes, verdict: Verdict) -> dict[str, Json]:
    """A verdict at sizes as evidence has it: ``sizes``, ``speedup``, the ends of its interval (``low``, ``high``)."""
    return {"sizes": dict(sizes), "speedup": verdict.speedup, "low": verdict.ci95[0], "high": verdict.ci95[1]}


def slower_when_timed(told: dict[str, Json]) -> bool:
    """Whether a final found it slower at these sizes, which are timed: by less than at others, as pairs are many."""
    return classify(float(str(told["low"])), float(str(told["high"]))) is VerdictKind.SLOWER


def _paired_at(session: Session, binaries: Binaries, plan: Plan, case: Case, data: CaseData) -> Verdict:
    """Both by turns at one size. Raises DeviceFault."""
    policy = replace(
        session.spec.policy, final_pairs=HELD_OUT_PAIRS, final_budget_ns=0.0, separated_pairs=HELD_OUT_SEPARATED
    )
    with ExitStack() as stack:
        a = [placed(session, stack, session.baseline, session.spec.baseline.plan, case, data)]
        b = [placed(session, stack, binaries, plan, case, data)]
        return paired_verdict(*paired(a, b, policy), session.spec.seed)


def slower_at(session: Session, binaries: Binaries, plan: Plan) -> str:
    """The first held-out size at which a plan that is faster at the timed sizes looks clearly slower than the original,
    in words; '' when there is none. A glance, of a few samples, those beside the timed sizes first; where it leaves a
    doubt, as closely as promotion will. Without a clock, where a size costs seconds, it is left to promotion. Raises
    DeviceFault."""
    if session.spec.predicted:
        return ""
    for case in reversed(case_lists.held_out_timed_cases(session.contract, session.spec.seed)):
        original_ns = _original_ns(session, case)
        if original_ns is None:
            continue
        data = _data(session, case)
        speedup = original_ns / measured(session, binaries, plan, case, data, original_ns).timing.median_ns
        if GLANCE_SLOWDOWN <= speedup < HELD_OUT_SLOWDOWN:
            verdict = _paired_at(session, binaries, plan, case, data)
            speedup = verdict.speedup if verdict.ci95[1] < HELD_OUT_SLOWDOWN else 1.0
        if speedup < HELD_OUT_SLOWDOWN:
            sizes = ", ".join(f"{name}={value}" for name, value in case.sizes)
            return f"slower at {sizes}: {speedup:.2f}x"
    return ""


def _original_ns(session: Session, case: Case) -> float | None:
    """What the original takes at a held-out size, found out once; None where that is too dear for a glance."""
    if case not in session.held_out_ns:
        data, started = _data(session, case), time.monotonic()
        reading = measured(session, session.baseline, session.spec.baseline.plan, case, data, None)
        cheap = time.monotonic() - started <= GLANCE_S
        session.held_out_ns[case] = reading.timing.median_ns if cheap else None
    return session.held_out_ns[case]


def _data(session: Session, case: Case) -> CaseData:
    """Kept where the device draws and keeps them: what a function of the user's makes takes longer than all runs."""
    if can_judge(session.device):
        return session.timed_data(case)
    return build(session.contract, case, TIMED_POISON)
