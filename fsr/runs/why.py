"""Why a run ended as it did, in a sentence: what was found, what stood in the way, what would settle it."""

from __future__ import annotations

from fsr.records import SLOWER_ELSEWHERE, Outcome, Status, VerdictKind
from fsr.report.words import ratio_text, rejected_text
from fsr.runs.promoting import reason
from fsr.runs.state import Ended, RunState
from fsr.search.proposal import Trial

_LEAST_HOPE = 1.005  # of a speed-up that is not clear: shown as more than 1x


def why(state: RunState, winner: Trial | None, *, actions: int, predicted: bool) -> str:
    """One sentence for a person. ``actions``: how many were looked for; ``predicted``: whether times are."""
    if winner is not None:
        return f"the fastest of {state.told} candidates that passed every held-out test and the final"
    if state.unjudged is not None:
        speed = state.speedup_of(state.unjudged)
        found = f"{state.unjudged.proposal.move} looked {ratio_text(speed)} as fast" if speed else "one looked faster"
        return f"out of budget: {found}, but its verdict needs more time: give about {state.needed_s:g} s in all"
    if state.refusals:
        return _refused(*state.refusals[0], tried=state.told, predicted=predicted)
    if state.ended is Ended.TOO_SHORT or (state.ended is Ended.BUDGET and not state.told):
        return f"out of budget: testing the original left no time to try a candidate: give about {state.needed_s:g} s"
    if state.ended is Ended.STOPPED and not state.told:
        return "stopped before a candidate was tried"
    if not state.told:
        return (
            f"nothing applied: none of the {actions} actions found a place in this kernel where it is sure to keep the "
            "result (docs/actions.md says what each looks for)"
        )
    rejected = rejected_text(state.rejected)
    more = {Ended.BUDGET: "; a longer budget would try more", Ended.STOPPED: "; it was stopped early"}
    tail = more.get(state.ended, "") if state.ended is not None else ""
    near = "; those slower elsewhere were faster at the timed sizes only" if SLOWER_ELSEWHERE in state.rejected else ""
    told = f"none of the {state.told} candidates tried was faster than the original ({rejected or 'none was wrong'}"
    if state.told == 1:
        told = f"the one candidate tried was not faster than the original ({rejected or 'its results were right'}"
    return f"{told}{near}){tail}"


def _refused(trial: Trial, outcome: Outcome, *, tried: int, predicted: bool) -> str:
    """Of the fastest, which promotion refused."""
    best = f"of {tried} candidates tried the best, {trial.proposal.move}, "
    if tried == 1:
        best = f"the one candidate tried, {trial.proposal.move}, "
    kind = outcome.evidence.get("kind")
    if outcome.status < Status.SLOW:
        return f"{best}failed its held-out tests: {reason(outcome)}"
    if kind == VerdictKind.AMBIGUOUS.value:
        if _no_faster(outcome):
            return f"{best}is no faster: {reason(outcome)}"
        settle = "timing on the GPU itself (--device cuda:0)" if predicted else "a longer budget on an idle GPU"
        return f"{best}is not clearly faster: {reason(outcome)}; {settle} would settle it"
    return f"{best}did not stand: {reason(outcome)}"


def _no_faster(outcome: Outcome) -> bool:
    """Whether the middle of what was found is no gain, so that nothing remains to be settled."""
    match outcome.evidence.get("verdict"):
        case {"speedup": float(speedup)}:
            return speedup < _LEAST_HOPE
    return False
