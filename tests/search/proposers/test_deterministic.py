"""The proposer that needs no model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fsr.search.prior import prior
from fsr.search.proposal import Proposal, Space
from fsr.search.proposers.deterministic import Deterministic
from fsr.search.proposers.protocol import Suggestion
from fsr.transform.protocol import Move, Subject
from tests.conformance.proposers import ProposerConformance, Scripted, cost, noted, search
from tests.search.learned import TRAITS, gain, learned
from tests.search.scripted import Knob, deterministic, settings, timed


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


class TestWithExperience(TestDeterministic):
    """Equal experience gives equal runs, and a run that was resumed goes on by what it began with."""

    def proposer(self) -> Deterministic:
        earlier = learned(gain("tile", 2.0, 0.7, v=8), gain("tile", 2.0, 5.0, v=32), gain("unroll", 1.2, 1.0, v=4))
        return Deterministic(7, [noted(1)], prior(TRAITS, "predicted", "sm_90", [earlier]))


def test_a_guess_takes_no_more_than_two_of_what_is_asked_before_the_first_answer() -> None:
    actions = (Knob("wrong", (1, 2, 3, 4, 5, 6), 8.0), Knob("right", (1, 2), 2.0))
    refinement = deterministic(actions, 0)
    refinement.tell(refinement.ask().id, timed(1000.0))  # type: ignore[union-attr]
    asked = [refinement.ask().move for _ in range(4)]  # type: ignore[union-attr]
    assert sum(move.startswith("wrong") for move in asked) == 2
    assert sum(move.startswith("right") for move in asked) == 2


def test_what_no_prediction_shows_is_asked_for_once_and_then_last() -> None:
    refinement = deterministic((Knob("hint", (1, 2, 3, 4), 1.1), Knob("tile", (1, 2, 3, 4), 1.05)), 0)
    refinement.tell(refinement.ask().id, timed(1000.0))  # type: ignore[union-attr]
    asked = []
    for _ in range(5):
        proposal = refinement.ask()
        assert proposal is not None
        asked.append(proposal.move.split("@")[0])
        refinement.tell(proposal.id, timed(1000.0 + len(asked) * (asked[-1] == "tile")))
    assert asked.count("hint") == 1


class Grid(Knob):
    """Two parameters of two values each."""

    def moves(self, subject: Subject) -> Iterator[Move]:
        for n, move in enumerate(super().moves(subject)):
            yield replace(move, params=(*move.params, ("w", n % 2)), gain=self.gain * 0.98**n)


def test_of_two_that_are_tried_at_once_the_second_mostly_shares_no_parameter_with_the_first() -> None:
    apart = 0
    for seed in range(20):
        refinement = deterministic((Grid("grid", (1, 1, 2, 2), 1.3),), seed)
        refinement.tell(refinement.ask().id, timed(1000.0))  # type: ignore[union-attr]
        first, second = (refinement.ask().move[len("grid@kernel[") : -1].split(",") for _ in range(2))  # type: ignore[union-attr]
        apart += not set(first) & set(second)
    assert apart >= 14  # by chance a third


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


class Anew(Knob):
    """Writes a kernel anew, which the original alone says how."""

    def moves(self, subject: Subject) -> Iterator[Move]:
        if not subject.candidate.actions:
            yield from super().moves(subject)


def test_kernels_are_written_anew_after_a_hint_took_the_originals_place_among_the_elites() -> None:
    refinement = deterministic((Knob("hint", (1, 2), 1.1),), 0)
    refinement.tell(refinement.ask().id, timed(1000.0))  # type: ignore[union-attr]
    refinement.tell(refinement.ask().id, timed(950.0))  # type: ignore[union-attr]
    assert [t.proposal.id for t in refinement.archive.elites()] == [1]
    refinement.space = Space(refinement.space.rules, (*refinement.space.actions, Anew("anew", (1, 2), 2.0)))
    asked = [proposal.move for proposal in iter(refinement.ask, None)]
    assert sum(move.startswith("anew") for move in asked) == 2


def test_two_moves_that_gain_together_alone_are_met_when_nothing_else_is_left() -> None:
    refinement = deterministic((Knob("wide", (1,), 1.1), Knob("unroll", (1, 2), 1.1), Knob("hopeless", (1,), 1.1)), 0)
    refinement.tell(refinement.ask().id, timed(1000.0))  # type: ignore[union-attr]
    found: dict[frozenset[str], float] = {}
    while (proposal := refinement.ask()) is not None:
        names = frozenset(settings(proposal.candidate))
        both = {"wide", "unroll"} <= names
        found[names] = 700.0 if both else 1500.0 if "hopeless" in names else 1020.0
        refinement.tell(proposal.id, timed(found[names]))
    assert found[frozenset(["wide", "unroll"])] == 700.0
