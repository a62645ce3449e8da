"""What every proposer must do, whoever thinks behind it; and a scripted one to try a search with."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fsr.identity import candidate_from_json, candidate_hash, to_json
from fsr.records import Candidate, Outcome
from fsr.search.proposal import Proposal, Rules, Space, Trial
from fsr.search.proposers.protocol import Proposer, Suggestion, View
from fsr.search.refinement import Refinement
from tests.search.scripted import BASELINE, CONTRACT, Knob, settings, timed

AT_ONCE_S = 0.5  # a call of a proposer that thinks for longer holds up the whole run
ACTIONS = (Knob("tile", (8, 16, 32, 64), 2.0), Knob("unroll", (1, 2, 4), 1.2))


def noted(number: int, **more: int) -> Candidate:
    """A candidate that differs from the original by a comment, and sets knobs."""
    lines = "".join(f"// {name}={value}\n" for name, value in {"note": number, **more}.items())
    return Candidate(f"{BASELINE.source}{lines}", BASELINE.plan, (f"note@kernel[v={number}]",))


@dataclass
class Scripted:
    """Gives the suggestions of a script, one a call, as long as it has some. ``every``: only in every n-th call, as
    one would that is slow; ``fails_after``: calls after which it raises."""

    name: str
    script: Iterable[Suggestion]
    every: int = 1
    fails_after: int | None = None
    thinking: bool = False
    calls: int = 0
    ids: list[int] = field(default_factory=list)
    heard: list[int] = field(default_factory=list)
    closed: bool = False

    def __post_init__(self) -> None:
        self.script = iter(self.script)

    def suggest(self, view: View) -> Suggestion | None:
        self.calls += 1
        if self.fails_after is not None and self.calls > self.fails_after:
            raise RuntimeError("out of order")
        return next(self.script, None) if self.calls % self.every == 0 else None  # type: ignore[call-overload]

    def asked(self, proposal: int, suggestion: Suggestion) -> None:
        self.ids.append(proposal)

    def told(self, trial: Trial, parent: Trial | None) -> None:
        self.heard.append(trial.proposal.id)

    def close(self) -> None:
        self.closed = True


def cost(candidate: Candidate) -> Outcome:
    """tile=32 with unroll=4 is the planted optimum."""
    knobs = settings(candidate)
    time_ns = 1000.0 / {8: 1.5, 16: 2.0, 32: 4.0, 64: 3.0}.get(knobs.get("tile", 0), 1.0)
    return timed(time_ns / {2: 1.1, 4: 1.3}.get(knobs.get("unroll", 0), 1.0), threads_per_block=knobs.get("tile", 1))


def search(*proposers: Proposer) -> Refinement:
    """A search whose original was told."""
    refinement = Refinement(BASELINE, Space(Rules(CONTRACT), ACTIONS), proposers)
    first = refinement.ask()
    assert first is not None
    refinement.tell(first.id, timed(1000.0))
    return refinement


@contextmanager
def at_once() -> Iterator[None]:
    """What is done inside neither thinks nor waits for long. That other processes had the cores does not count:
    ``schedstat`` tells how long this thread was ready and was not let run (Documentation/scheduler/sched-stats)."""
    kept = Path("/proc/thread-self/schedstat")

    def let_run_s() -> float:
        held_up_ns = int(kept.read_text().split()[1]) if kept.exists() else 0
        return time.monotonic() - held_up_ns / 1e9

    began = let_run_s()
    yield
    assert let_run_s() - began < AT_ONCE_S


class ProposerConformance:
    """A subclass gives :meth:`proposer`, a new one of the same seed and script at every call."""

    steps = 8
    patience_s = 60.0  # for what thinks in the background

    def proposer(self) -> Proposer:
        raise NotImplementedError

    def next(self, refinement: Refinement) -> Proposal | None:
        """The next proposal, waiting for what is thought about."""
        until = time.monotonic() + self.patience_s
        while (proposal := refinement.ask()) is None and refinement.thinking and time.monotonic() < until:
            time.sleep(0.01)
        return proposal

    def drive(self, refinement: Refinement, steps: int, told: Callable[[Proposal], None] = lambda p: None) -> list[str]:
        """Hashes of the proposals of so many steps."""
        hashes = []
        for _ in range(steps):
            proposal = self.next(refinement)
            if proposal is None:
                break
            hashes.append(proposal.hash)
            told(proposal)
            refinement.tell(proposal.id, cost(proposal.candidate))
        return hashes

    def test_it_has_suggestions_and_says_where_they_come_from(self) -> None:
        refinement = search(self.proposer())
        found: list[Proposal] = []
        assert self.drive(refinement, self.steps, found.append)
        name = self.proposer().name
        for proposal in found:
            assert (proposal.proposer, bool(proposal.move), bool(proposal.origin)) == (name, True, True)
            assert proposal.parent is None or proposal.parent < proposal.id
            json.dumps(to_json(proposal))
            assert candidate_hash(candidate_from_json(to_json(proposal.candidate))) == proposal.hash
        refinement.close()

    def test_every_call_returns_at_once(self) -> None:
        proposer = self.proposer()
        refinement = search(proposer)
        for _ in range(self.steps):
            with at_once():
                suggestion = proposer.suggest(refinement.view())
            if suggestion is not None:
                proposer.asked(1, suggestion)
        with at_once():
            proposer.close()

    def test_it_comes_to_an_end_or_says_that_it_thinks(self) -> None:
        refinement = search(self.proposer())
        self.drive(refinement, 1000)
        assert refinement.ask() is None
        refinement.close()
        assert not refinement.thinking

    def test_a_search_is_restored_from_what_was_logged(self) -> None:
        """A fresh one, told what the first was asked and told, leads to the same best; nothing is proposed twice."""
        first, log = search(self.proposer()), list[Proposal]()
        self.drive(first, self.steps, log.append)
        again = search(self.proposer())
        for proposal in log:
            again.restore(proposal)
            again.tell(proposal.id, cost(proposal.candidate))
        assert [t.proposal.hash for t in again.ranked()] == [t.proposal.hash for t in first.ranked()]
        following = list[Proposal]()
        self.drive(again, self.steps, following.append)
        assert not {p.hash for p in following} & {p.hash for p in log}
        first.close()
        again.close()
