"""A quality-diversity archive: the fastest candidate of each cell of a grid of descriptors, right so far as it was
tested.

After MAP-Elites (Mouret and Clune 2015, arXiv 1504.04909). The descriptors are what a kernel developer would
call a different design: how many threads a block, how much shared memory, how many launches, how much work a
thread. It is rebuilt from the stored outcomes, never saved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from fsr.features.descriptor import Cell, descriptor
from fsr.records import Status
from fsr.search.proposal import Trial


class Archive:
    """Elites by cell, and the best of all that passed their full tests."""

    def __init__(self) -> None:
        self._cells: dict[Cell, Trial] = {}
        self.best: Trial | None = None

    def add(self, trial: Trial) -> bool:
        """Offer a trial; True when it became its cell's elite. Trials without a time are ignored."""
        time_ns = trial.time_ns
        if time_ns is None:
            return False
        tested = trial.outcome.status >= Status.CORRECT
        if tested and (self.best is None or time_ns < (self.best.time_ns or math.inf)):
            self.best = trial
        cell = descriptor(trial.outcome.features)
        held = self._cells.get(cell)
        if held is None or time_ns < (held.time_ns or math.inf):
            self._cells[cell] = trial
            return True
        return False

    def elites(self) -> list[Trial]:
        """All elites, fastest first; ties by id, so that the order is the same in every process."""
        return sorted(self._cells.values(), key=lambda t: (t.time_ns or math.inf, t.proposal.id))

    def holds(self, proposal_id: int) -> bool:
        """Whether a trial is an elite."""
        return any(trial.proposal.id == proposal_id for trial in self._cells.values())

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.elites())

    def __len__(self) -> int:
        return len(self._cells)
