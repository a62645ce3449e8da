"""What candidates were refused for at promotion, and which others that makes suspect."""

from __future__ import annotations

from dataclasses import dataclass, field

from fsr.records import Outcome, Status
from fsr.search.proposal import Trial

_FLAGS = "compile-flags@"


@dataclass(slots=True)
class Refusals:
    """Refusals of a run. ``seeds``: of the cases at which candidates were wrong, in the order of their finding."""

    seeds: dict[int, None] = field(default_factory=dict)
    _blamed: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)  # by why and beginning: later moves

    def note(self, trial: Trial, outcome: Outcome) -> None:
        """A candidate was refused: wrong; or slower at other sizes, which its first move is to blame for, unless it has
        flags of the compiler: these act on what runs at other sizes too, where the original was left as it is."""
        if outcome.slower_elsewhere:
            self._blame("slower", trial, frozenset(move for move in _later(trial) if move.startswith(_FLAGS)))
        if outcome.status < Status.SLOW:
            self._blame("wrong", trial, _later(trial))
            seed = outcome.evidence.get("seed")
            if isinstance(seed, int):
                self.seeds[seed] = None

    def suspect(self, trial: Trial) -> bool:
        """Whether a candidate has all moves that others were refused for."""
        first, later = _beginning(trial), _later(trial)
        return any(blamed <= later for (_, begun), blamed in self._blamed.items() if begun == first)

    def _blame(self, why: str, trial: Trial, later: frozenset[str]) -> None:
        """These moves after a first one like the trial's, so far as all that were refused for that have them; where
        they have none in common, the first one alone."""
        key = why, _beginning(trial)
        self._blamed[key] = self._blamed.get(key, later) & later


def _beginning(trial: Trial) -> str:
    """The first move of a candidate without its parameters."""
    return next(iter(trial.proposal.candidate.actions), "").partition("[")[0]


def _later(trial: Trial) -> frozenset[str]:
    """The moves of a candidate after the first."""
    return frozenset(trial.proposal.candidate.actions[1:])
