"""What a run has done so far: what the progress display shows and the result is made from."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fsr.evaluation.spec import BaselineReport
from fsr.records import SLOWER_ELSEWHERE, Json, Outcome, Status
from fsr.search.proposal import Trial
from fsr.search.sharing import Account


class Ended(enum.StrEnum):
    """Why a search ended."""

    BUDGET = "budget"
    EVALUATIONS = "evaluations"
    SPACE = "space"  # nothing new to propose
    STOPPED = "stopped"
    TOO_SHORT = "too short"  # testing the original left no time to try anything


@dataclass(slots=True)
class RunState:
    """A run in progress. ``phase``: 'baseline', 'search', 'paused', 'promotion', 'done'. Times in seconds since start.

    unjudged: the candidate for whose promotion the time did not suffice. refusals: those that did not stand, with
    what promotion said. defects: faults of actions, by action. shares: name of a proposer to its account. models: name
    of a model to its bill and what its answers were. needed_s: a budget that would be enough."""

    run: str
    entry: str
    budget_s: float
    phase: str = "baseline"
    elapsed_s: float = 0.0
    search_started_s: float = 0.0
    search_ended_s: float | None = None
    baseline: BaselineReport | None = None
    best: Trial | None = None
    told: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    device_busy: float = 0.0
    counting_s: float = 0.0  # of the device, spent on hardware counters
    stopped: bool = False
    ended: Ended | None = None
    needed_s: float = 0.0
    unjudged: Trial | None = None
    refusals: list[tuple[Trial, Outcome]] = field(default_factory=list)
    defects: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    shares: Mapping[str, Account] = field(default_factory=dict)
    models: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unstated: Counter[str] = field(default_factory=Counter)  # candidates that are wrong on values that callers may pass

    @property
    def found(self) -> bool:
        """Whether the best so far is not the original itself."""
        return self.best is not None and self.best.proposal.id > 0

    def count(self, outcome: Outcome) -> None:
        """Note a told candidate."""
        self.told += 1
        beside = outcome.status is Status.SLOW and outcome.slower_elsewhere
        self.statuses[SLOWER_ELSEWHERE if beside else outcome.status.name.lower()] += 1
        self._count_unstated(outcome)

    def settle(self, outcome: Outcome) -> None:
        """Note what became of a candidate that was told as screened."""
        self.statuses[Status.SCREENED.name.lower()] -= 1
        self.statuses[outcome.status.name.lower()] += 1
        self._count_unstated(outcome)

    def _count_unstated(self, outcome: Outcome) -> None:
        if outcome.status is Status.WRONG and "unlimited" in outcome.evidence:
            self.unstated[str(outcome.evidence["unlimited"])] += 1

    def note_unstated(self) -> None:
        """Note candidates that were refused on values of which the contract does not say that callers never pass
        them: with limits they may be right, and the winner another."""
        count = sum(self.unstated.values())
        if count:
            names = " and ".join(sorted(self.unstated))
            self.notes.append(
                f"{count} candidate{'s' if count > 1 else ''} failed on huge or tiny values of {names}, for which the "
                "contract gives no limits: if callers never pass such values, say low and high, and refine again"
            )

    def action_failed(self, action: str, fault: Exception) -> None:
        """Note, once, that an action raised on this kernel; the search goes on without its moves."""
        note = f"a fault of fsr: the action {action} failed on this kernel ({type(fault).__name__}: {fault})"
        if note not in self.notes:
            self.notes.append(note)

    def proposer_failed(self, proposer: str, fault: Exception) -> None:
        """Note that a proposer raised; the search goes on without it."""
        self.notes.append(f"the proposer {proposer} failed and was left out ({type(fault).__name__}: {fault})")

    @property
    def rejected(self) -> dict[str, int]:
        """Candidates that were not right or clearly slower, by status."""
        right = {status.name.lower() for status in Status if status >= Status.SCREENED}
        return {name: count for name, count in sorted(self.statuses.items()) if name not in right}

    @property
    def rate(self) -> float:
        """Candidates a second of the search."""
        until_s = self.elapsed_s if self.search_ended_s is None else self.search_ended_s
        return self.told / max(until_s - self.search_started_s, 1e-9) if self.told else 0.0

    @property
    def speedup(self) -> float | None:
        """Baseline time over the best screened time."""
        return None if self.best is None else self.speedup_of(self.best)

    def speedup_of(self, trial: Trial) -> float | None:
        """Baseline time over the screened time of a trial; None where one is not known."""
        if self.baseline is None or self.baseline.outcome.timing is None or trial.time_ns is None:
            return None
        return self.baseline.outcome.timing.median_ns / trial.time_ns


Progress = Callable[[RunState], None]
"""Called often from the run's own thread; must return quickly."""
