"""The proposer that needs no model."""

from __future__ import annotations

from fsr.search.proposal import Proposal
from fsr.search.proposers.deterministic import Deterministic
from fsr.search.proposers.protocol import Suggestion
from tests.conformance.proposers import ProposerConformance, Scripted, cost, noted, search
from tests.search.scripted import Knob, deterministic, timed


class TestDeterministic(ProposerConformance):
    def proposer(self) -> Deterministic:
        return Deterministic(7, [noted(1)])

    def test_equal_seeds_and_outcomes_give_equal_runs_and_so_does_one_that_was_resumed(self) -> None:
        whole = self.drive(search(self.proposer()), 16)
        log: list[Proposal] = []
        self.drive(search(self.proposer()), 9, log.append)
        resumed = search(self.proposer())
        for proposal in log:
            resumed.restore(proposal)
            resumed.tell(proposal.id, cost(proposal.candidate))
        assert [p.hash for p in log] + self.drive(resumed, 7) == whole
        assert self.drive(search(Deterministic(8)), 16) != whole


def test_a_guess_takes_no_more_than_two_of_what_is_asked_before_the_first_answer() -> None:
    actions = (Knob("wrong", (1, 2, 3, 4, 5, 6), 8.0), Knob("right", (1, 2), 2.0))
    refinement = deterministic(actions, 0)
    refinement.tell(refinement.ask().id, timed(1000.0))  # type: ignore[union-attr]
    asked = [refinement.ask().move for _ in range(4)]  # type: ignore[union-attr]
    assert sum(move.startswith("wrong") for move in asked) == 2
    assert sum(move.startswith("right") for move in asked) == 2


def test_another_proposer_that_gains_nothing_changes_nothing_of_what_is_proposed() -> None:
    """Otherwise a model's noise could not be told from the luck of another seed."""

    def own(*others: Scripted) -> list[str]:
        refinement, hashes = search(*others, Deterministic(3)), []
        while len(hashes) < 20 and (proposal := refinement.ask()) is not None:
            hashes += [proposal.hash] if proposal.proposer == Deterministic.name else []
            refinement.tell(proposal.id, cost(proposal.candidate))
        return hashes

    noise = Scripted("model", (Suggestion(noted(number), 0, f"noise {number}", "coder") for number in range(100)))
    assert own(noise) == own()
    assert len(noise.ids) > 2
