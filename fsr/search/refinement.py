"""The refinement loop as ask and tell: steady state, no generations.

``ask`` hands out a proposal with an id, ``tell`` takes its outcome back, in any order. What is proposed comes from the
proposers; the loop keeps the book, shares the evaluations out, and is rebuilt from a log without asking anybody again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from fsr.errors import HarnessError
from fsr.features.schema import Features
from fsr.identity import candidate_hash
from fsr.records import Candidate, Outcome, Status
from fsr.search.archive import Archive
from fsr.search.proposal import Proposal, Space, Trial, strict
from fsr.search.proposers.protocol import Proposer, Punctual, Suggestion, View
from fsr.search.sharing import Sharing

REPEATS = 8  # suggestions of what is known, of one proposer, before another is asked
BASELINE = "baseline"
T = TypeVar("T")


class Refinement:
    """The search over candidates of one kernel.

    Args:
        baseline: the user's kernel; proposal 0.
        space: what the actions may do to a candidate.
        proposers: where proposals come from; asked in this order where they are worth the same.
        known: hashes already known to fail; they are never proposed.
        on_fault: told the name of a proposer that raised, and what; it is not asked again. By default it raises.
    """

    def __init__(
        self,
        baseline: Candidate,
        space: Space,
        proposers: Sequence[Proposer],
        *,
        known: Iterable[str] = (),
        punctual: Iterable[Punctual] = (),
        on_fault: Callable[[str, Exception], None] = strict,
    ) -> None:
        self.space, self.archive, self.sharing = space, Archive(), Sharing()
        self._baseline, self._on_fault = baseline, on_fault
        self._punctual = {proposer.name: proposer for proposer in punctual}
        self._proposers = {**self._punctual, **{proposer.name: proposer for proposer in proposers}}
        if len(self._proposers) != len(proposers) + len(self._punctual):
            raise HarnessError("two proposers of one name")
        self._seen: set[str] = set(known)
        self._open: dict[int, Proposal] = {}
        self._trials: dict[int, Trial] = {}
        self._next_id = 0

    # ------------------------------------------------------------ the two calls

    def ask(self, seconds_left: float | None = None, evaluations_left: int | None = None) -> Proposal | None:
        """The next proposal; None while nobody has anything new (wait for outcomes, for those that are thinking, or the
        space is done).

        The first is always the baseline, and nothing else is handed out until it was told."""
        if self._next_id == 0:
            return self._issue("", Suggestion(self._baseline, None, BASELINE, BASELINE))
        if 0 not in self._trials:
            return None
        view = self.view(seconds_left, evaluations_left)
        first = [name for name in self._punctual if name in self._proposers]
        rest = [name for name in self._proposers if name not in self._punctual]
        for name in (*first, *self.sharing.order(rest)):
            if self._waits(name, view):
                return None
            for _ in range(REPEATS):
                suggestion = self._from(name, lambda p: p.suggest(view))
                if suggestion is None:
                    break
                if not self._known(suggestion.candidate):
                    return self._issue(name, suggestion)
        return None

    def tell(self, proposal_id: int, outcome: Outcome) -> Trial:
        """The outcome of a proposal. Raises HarnessError for an unknown id or a second tell."""
        if proposal_id not in self._open:
            told = " (it was told before)" if proposal_id in self._trials else ""
            raise HarnessError(f"tell for proposal {proposal_id}, which is not open{told}")
        proposal = self._open.pop(proposal_id)
        trial = self._trials[proposal_id] = Trial(proposal, outcome)
        before = self.archive.best
        self.archive.add(trial)
        if proposal.proposer:
            gain = 0.0
            if self.archive.best is trial and before is not None:
                gain = math.log((before.time_ns or 1.0) / (trial.time_ns or 1.0))
            self.sharing.told(proposal.proposer, outcome.status, gain, proposal.cost)
        parent = self._trials.get(proposal.parent) if proposal.parent is not None else None
        for name in list(self._proposers):
            self._from(name, lambda p: p.told(trial, parent))
        return trial

    def add(self, suggestion: Suggestion) -> Proposal | None:
        """A proposal that no proposer made, open until it is told; None for a candidate that was there before."""
        return None if self._known(suggestion.candidate) else self._issue("", suggestion)

    def restore(self, proposal: Proposal) -> None:
        """Open a proposal as an earlier life of this run logged it. Raises HarnessError out of order."""
        if proposal.id != self._next_id:
            raise HarnessError(f"the log asked for proposal {proposal.id} where {self._next_id} comes next")
        self._enter(proposal)

    def close(self) -> None:
        """End the proposers."""
        for name in list(self._proposers):
            self._from(name, lambda p: p.close())
        self._proposers.clear()

    # ------------------------------------------------------------ what is known

    @property
    def thinking(self) -> bool:
        """Whether a proposer may still have suggestions without another outcome."""
        return any(self._from(name, lambda p: p.thinking) for name in list(self._proposers))

    @property
    def open(self) -> list[Proposal]:
        """Proposals handed out and not yet told, oldest first."""
        return list(self._open.values())

    @property
    def trials(self) -> list[Trial]:
        """Everything told, in the order of telling."""
        return list(self._trials.values())

    def view(self, seconds_left: float | None = None, evaluations_left: int | None = None) -> View:
        """The search as proposers see it now."""
        elites, trials = tuple(self.archive.elites()), tuple(self._trials.values())
        return View(
            self._baseline, self.space, elites, trials, self._next_id, self._known, seconds_left, evaluations_left
        )

    def trial(self, proposal_id: int) -> Trial:
        """What is known of a told proposal. Raises KeyError."""
        return self._trials[proposal_id]

    def ranked(self) -> list[Trial]:
        """All candidates that are right so far as they were tested, fastest first (the baseline among them)."""
        right = [t for t in self._trials.values() if t.time_ns is not None]
        return sorted(right, key=lambda t: (t.time_ns or math.inf, t.proposal.id))

    def settle(self, proposal_id: int, outcome: Outcome) -> None:
        """Replace the outcome of a screened candidate by what it is after its full tests, and rebuild the archive.

        Raises HarnessError for one that is not screened."""
        held = self._trials[proposal_id].outcome.status
        if held is not Status.SCREENED:
            raise HarnessError(f"proposal {proposal_id}, which is {held.name.lower()}, was owed no tests")
        self._replace(proposal_id, outcome)

    def demote(self, proposal_id: int, outcome: Outcome) -> None:
        """Replace a trial's outcome by a worse one (it failed promotion) and rebuild the archive."""
        held = self._trials[proposal_id]
        if outcome.status >= held.outcome.status:
            raise HarnessError(f"demote of proposal {proposal_id} from {held.outcome.status} to {outcome.status}")
        self._replace(proposal_id, outcome)

    def enrich(self, proposal_id: int, features: Features) -> None:
        """Add features to what is known of a told proposal, for what is proposed next. Raises KeyError."""
        outcome = self._trials[proposal_id].outcome
        self._replace(proposal_id, replace(outcome, features=outcome.features.merged(features)))

    def _replace(self, proposal_id: int, outcome: Outcome) -> None:
        self._trials[proposal_id] = Trial(self._trials[proposal_id].proposal, outcome)
        self.archive = Archive()
        for trial in self._trials.values():
            self.archive.add(trial)

    def _waits(self, name: str, view: View) -> bool:
        punctual = self._punctual.get(name)
        return punctual is not None and bool(self._from(name, lambda _: punctual.waits(view)))

    def _known(self, candidate: Candidate) -> bool:
        return candidate_hash(candidate) in self._seen

    # ------------------------------------------------------------ proposers

    def _from(self, name: str, call: Callable[[Proposer], T]) -> T | None:
        """What a proposer answers; one that raises is told of, and not asked again."""
        try:
            return call(self._proposers[name])
        except Exception as fault:
            del self._proposers[name]
            self._on_fault(name, fault)
            return None

    def _issue(self, name: str, told: Suggestion) -> Proposal:
        proposal = Proposal(
            self._next_id, told.candidate, candidate_hash(told.candidate), told.parent, told.move, told.kind, name,
            told.provenance, told.untrusted or self._of_untrusted(told.parent), told.cost, told.worth,
        )  # fmt: skip
        self._enter(proposal)
        return proposal

    def _of_untrusted(self, parent: int | None) -> bool:
        """Whether a model wrote what a suggestion was made from: a rewrite of that text is no safer."""
        return parent is not None and parent in self._trials and self._trials[parent].proposal.untrusted

    def _enter(self, proposal: Proposal) -> None:
        self._seen.add(proposal.hash)
        self._open[proposal.id] = proposal
        self._next_id = proposal.id + 1
        if proposal.proposer:
            self.sharing.asked(proposal.proposer)
        if proposal.proposer in self._proposers:
            told = Suggestion(
                proposal.candidate, proposal.parent, proposal.move, proposal.origin, proposal.provenance,
                proposal.untrusted, proposal.cost, proposal.worth,
            )  # fmt: skip
            self._from(proposal.proposer, lambda p: p.asked(proposal.id, told))
