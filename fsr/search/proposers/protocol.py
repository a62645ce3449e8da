"""What a proposer is: it is shown the search, and gives suggestions when it has them.

It is called in the run's thread, so every call returns at once; what thinks for longer thinks in a thread of its own
(:class:`fsr.search.proposers.background.Background`). A run is restored from its log, never by asking again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from fsr.records import Candidate, Json, Status
from fsr.search.policy import bottlenecks_of
from fsr.search.proposal import Space, Trial


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A candidate that a proposer would like to see evaluated.

    parent: id of the trial that it was made from, None for none. move: what was done, in words that stay the same
    between runs. kind: how it was made ('action', 'retune', 'given', a model's role). provenance: what the proposer
    needs to know it again when a run is resumed, and what a log should tell. untrusted: a model wrote the text.
    cost: what making it took, in evaluations. worth: what is thought of its speed, the larger the better, so that of
    several that wait for the device the most promising is tried first; None where nobody knows, which goes before all.
    """

    candidate: Candidate
    parent: int | None
    move: str
    kind: str
    provenance: Mapping[str, Json] = field(default_factory=dict)
    untrusted: bool = False
    cost: float = 0.0
    worth: float | None = None


@dataclass(frozen=True, slots=True)
class View:
    """The search at one moment; it does not change, and may be read from any thread.

    elites: the fastest of each design, fastest first; their outcomes carry features. trials: all that was told, in the
    order of telling. asked: how many proposals there were so far. known: whether a candidate was proposed before, or is
    known to fail. seconds_left, evaluations_left: of the budget, None for no limit.
    """

    baseline: Candidate
    space: Space
    elites: tuple[Trial, ...]
    trials: tuple[Trial, ...]
    asked: int
    known: Callable[[Candidate], bool]
    seconds_left: float | None = None
    evaluations_left: int | None = None

    @property
    def failed(self) -> list[Trial]:
        """What was tried and was not right, with its evidence, in the order of telling."""
        return [trial for trial in self.trials if trial.outcome.status < Status.SLOW]

    @property
    def bottlenecks(self) -> dict[str, float]:
        """What holds the fastest back: name to share of its time; empty where nothing is known."""
        return bottlenecks_of(self.elites[0].outcome.features) if self.elites else {}


class Proposer(Protocol):
    """A source of suggestions. Whatever a method raises costs the run this proposer, and nothing else."""

    @property
    def name(self) -> str:
        """Unique in a run, and the same when it is resumed: its share and the log go by it."""

    @property
    def thinking(self) -> bool:
        """Whether suggestions may still come without another outcome; a run that has nothing else to do waits."""

    def suggest(self, view: View) -> Suggestion | None:
        """A suggestion that is ready, or None. Returns at once."""

    def asked(self, proposal: int, suggestion: Suggestion) -> None:
        """A suggestion of this proposer got its id: it will be evaluated. When a run is resumed, this is called for
        every suggestion in its log, in the order of then, between the calls of ``told``."""

    def told(self, trial: Trial, parent: Trial | None) -> None:
        """An outcome, of whichever proposer's suggestion, and the trial that it was made from."""

    def close(self) -> None:
        """The run is over; ends what the proposer started. Nothing is called afterwards."""


class Punctual(Proposer, Protocol):
    """A proposer whose suggestions have a place in the run: it is asked before all others."""

    def waits(self, view: View) -> bool:
        """Whether nobody is to be asked before another outcome is told, so that its next suggestion gets its id."""
