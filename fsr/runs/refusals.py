"""What candidates were refused for at promotion, and which others that makes suspect."""

from __future__ import annotations

from dataclasses import dataclass, field

from fsr.evaluation.elsewhere import SLOWER_ELSEWHERE
from fsr.records import Outcome, Status
from fsr.search.proposal import Trial


@dataclass(slots=True)
class Refusals:
    """Refusals of a run. ``seeds``: of the cases at which candidates were wrong, in the order of their finding."""

    seeds: dict[int, None] = field(default_factory=dict)
    _blamed: dict[str, frozenset[str]] = field(default_factory=dict)  # by beginnings: the later moves

    def note(self, trial: Trial, outcome: Outcome) -> None:
        """A candidate was refused: wrong, or slower at other sizes, which its first move is to blame for."""
        if outcome.evidence.get("kind") == SLOWER_ELSEWHERE:
            self._blame(trial, frozenset())
        if outcome.status < Status.SLOW:
            self._blame(trial, _later(trial))
            seed = outcome.evidence.get("seed")
            if isinstance(seed, int):
                self.seeds[seed] = None

    def suspect(self, trial: Trial) -> bool:
        """Whether a candidate has all moves that others were refused for."""
        blamed = self._blamed.get(_beginning(trial))
        return blamed is not None and blamed <= _later(trial)

    def _blame(self, trial: Trial, later: frozenset[str]) -> None:
        """These moves after a first one like the trial's, so far as all that were refused have them; where they have
        none in common, the first one alone."""
        first = _beginning(trial)
        self._blamed[first] = self._blamed.get(first, later) & later


def _beginning(trial: Trial) -> str:
    """The first move of a candidate without its parameters."""
    return next(iter(trial.proposal.candidate.actions), "").partition("[")[0]


def _later(trial: Trial) -> frozenset[str]:
    """The moves of a candidate after the first."""
    return frozenset(trial.proposal.candidate.actions[1:])
