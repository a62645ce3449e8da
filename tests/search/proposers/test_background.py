"""A proposer that takes its time holds up nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from fsr.search.proposers.background import Background
from fsr.search.proposers.deterministic import Deterministic
from fsr.search.proposers.protocol import Suggestion, View
from tests.conformance.proposers import ProposerConformance, noted, search
from tests.search.scripted import timed


def thinks(view: View) -> Iterator[Suggestion]:
    """Three suggestions, then no more."""
    if len(view.trials) < 6:
        for number in range(3):
            time.sleep(0.02)
            yield Suggestion(noted(number), 0, f"think {number}", "model", {"prompt": number}, untrusted=True)


class TestBackground(ProposerConformance):
    steps = 2

    def proposer(self) -> Background:
        return Background("slow", thinks)


def test_nothing_waits_for_it_and_its_suggestion_is_taken_when_it_has_one() -> None:
    release = threading.Event()

    def slow(view: View) -> Iterator[Suggestion]:
        release.wait()  # whoever waited for it would wait forever
        yield Suggestion(noted(1), 0, "at last", "model")

    refinement = search(Deterministic(0), Background("slow", slow))
    for _ in range(5):
        proposal = refinement.ask()
        assert proposal is not None
        assert proposal.proposer == "deterministic"
        refinement.tell(proposal.id, timed(1000.0))
    assert not release.is_set()
    release.set()
    while (proposal := refinement.ask()) is None or proposal.proposer != "slow":  # the test's own limit ends it
        time.sleep(0.01)
        if proposal is not None:
            refinement.tell(proposal.id, timed(1000.0))
    assert (proposal.proposer, proposal.move) == ("slow", "at last")
    refinement.close()


def test_what_it_raises_costs_the_run_this_proposer_only() -> None:
    def broken(view: View) -> Iterator[Suggestion]:
        yield Suggestion(noted(1), 0, "first", "model")
        raise ValueError("the model is gone")

    told: list[tuple[str, str]] = []
    refinement = search(Background("broken", broken), Deterministic(0))
    refinement._on_fault = lambda name, fault: told.append((name, str(fault)))
    while not told:
        proposal = refinement.ask()
        if proposal is not None:
            refinement.tell(proposal.id, timed(1000.0))
        time.sleep(0.01)
    assert told == [("broken", "the model is gone")]
    assert not refinement.thinking


def test_suggestions_ahead_are_bounded_and_closing_ends_the_thread() -> None:
    made: list[int] = []

    def endless(view: View) -> Iterator[Suggestion]:
        for number in range(10_000):
            made.append(number)
            yield Suggestion(noted(number), 0, f"think {number}", "model")

    proposer = Background("endless", endless)
    proposer.suggest(search().view())
    while not made:
        time.sleep(0.01)
    time.sleep(0.3)
    assert len(made) <= 8
    proposer.close()
    assert proposer._thread is not None
    proposer._thread.join(120)
    assert not proposer._thread.is_alive()
