"""What a run has done so far: what the progress display shows and the result is made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from fsr.evaluation.spec import BaselineReport
from fsr.records import Outcome, Status
from fsr.search.proposal import Trial


@dataclass(slots=True)
class RunState:
    """A run in progress. ``phase``: 'baseline', 'search', 'promotion', 'done'. Times in seconds since start."""

    run: str
    entry: str
    budget_s: float
    phase: str = "baseline"
    elapsed_s: float = 0.0
    search_started_s: float = 0.0
    baseline: BaselineReport | None = None
    best: Trial | None = None
    told: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    device_busy: float = 0.0
    counting_s: float = 0.0  # of the device, spent on hardware counters
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)

    def count(self, outcome: Outcome) -> None:
        """Note a told candidate."""
        self.told += 1
        self.statuses[outcome.status.name.lower()] += 1

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
        right = {Status.CORRECT.name.lower(), Status.PROMOTED.name.lower()}
        return {name: count for name, count in sorted(self.statuses.items()) if name not in right}

    @property
    def rate(self) -> float:
        """Candidates a second since the search began."""
        return self.told / max(self.elapsed_s - self.search_started_s, 1e-9) if self.told else 0.0

    @property
    def speedup(self) -> float | None:
        """Baseline time over the best screened time."""
        if self.baseline is None or self.baseline.outcome.timing is None or self.best is None:
            return None
        best_ns = self.best.time_ns
        return None if best_ns is None else self.baseline.outcome.timing.median_ns / best_ns


Progress = Callable[[RunState], None]
"""Called often from the run's own thread; must return quickly."""
