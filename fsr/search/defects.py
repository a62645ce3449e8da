"""What deterministic actions got wrong: every count here is a fault of an action, to be mended, not a bad idea."""

from __future__ import annotations

from collections.abc import Iterable

from fsr.records import Status
from fsr.search.proposal import Trial

DETERMINISTIC = frozenset({"action", "retune"})  # origins whose candidates come from actions alone
_KINDS = {
    Status.COMPILE_FAILED: "not compiled",
    Status.CRASHED: "crashed",
    Status.TIMED_OUT: "timed out",
    Status.WRONG: "wrong",
}


def defects_of(trials: Iterable[Trial]) -> dict[str, dict[str, int]]:
    """How many candidates of each deterministic action failed in a way that its preconditions should have excluded.

    By action, then by kind: 'refused' (by the static guard), 'not compiled', 'crashed', 'timed out', 'wrong'; kinds
    and actions without any are left out, both are in alphabetical order. A candidate counts for the last action on
    its way, since what it was made from was right; one that changed an earlier move of that way counts for the move
    that it changed. Candidates that do not fit the device (INVALID after the guard) are no fault of an action."""
    found: dict[str, dict[str, int]] = {}
    for trial in trials:
        kind = _kind(trial)
        if kind and trial.proposal.origin in DETERMINISTIC:
            counts = found.setdefault(trial.proposal.move.partition("@")[0], {})
            counts[kind] = counts.get(kind, 0) + 1
    return {action: dict(sorted(found[action].items())) for action in sorted(found)}


def _kind(trial: Trial) -> str | None:
    outcome = trial.outcome
    if outcome.status is Status.INVALID:
        return "refused" if outcome.stage == "guard" else None
    return _KINDS.get(outcome.status)
