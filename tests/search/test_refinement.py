"""Ask and tell: order, determinism, duplicates, what failures and gains teach."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from fsr.errors import HarnessError
from fsr.features.schema import Binary, Bottleneck, Features
from fsr.identity import candidate_hash
from fsr.records import Candidate, Outcome, Status
from fsr.search.proposal import Proposal, Rules, Space
from fsr.search.refinement import Refinement
from fsr.transform.protocol import Move, Subject
from tests.search.scripted import BASELINE, CONTRACT, Knob, deterministic, failed, settings, timed

ACTIONS = (Knob("tile", (8, 16, 32, 64), 2.0), Knob("unroll", (1, 2, 4), 1.2), Knob("bad", (1, 2, 3, 4, 5, 6), 1.5))


def cost(candidate: Candidate) -> Outcome:
    """tile=32 with unroll=4 is the planted optimum; 'bad' never works."""
    knobs = settings(candidate)
    if "bad" in knobs:
        return failed()
    time_ns = 1000.0 / {8: 1.5, 16: 2.0, 32: 4.0, 64: 3.0}.get(knobs.get("tile", 0), 1.0)
    return timed(time_ns / {2: 1.1, 4: 1.3}.get(knobs.get("unroll", 0), 1.0), threads_per_block=knobs.get("tile", 1))


def fresh(seed: int = 0, **more: object) -> Refinement:
    return deterministic(ACTIONS, seed, **more)  # type: ignore[arg-type]


def drive(refinement: Refinement, steps: int) -> list[Proposal]:
    proposals = []
    for _ in range(steps):
        proposal = refinement.ask()
        if proposal is None:
            break
        refinement.tell(proposal.id, cost(proposal.candidate))
        proposals.append(proposal)
    return proposals


def test_the_baseline_comes_first_and_alone() -> None:
    refinement = fresh()
    first = refinement.ask()
    assert first is not None
    assert (first.id, first.origin, first.candidate) == (0, "baseline", BASELINE)
    assert refinement.ask() is None
    refinement.tell(0, timed(1000.0))
    assert refinement.ask() is not None


def test_outcomes_may_come_in_any_order() -> None:
    refinement = fresh()
    refinement.tell(refinement.ask().id, timed(1000.0))  # type: ignore[union-attr]
    asked = [refinement.ask() for _ in range(5)]
    for proposal in reversed(asked):
        assert proposal is not None
        refinement.tell(proposal.id, cost(proposal.candidate))
    assert refinement.open == []
    assert len(refinement.trials) == 6


def test_a_second_tell_and_an_unknown_id_are_refused() -> None:
    refinement = fresh()
    refinement.tell(refinement.ask().id, timed(1000.0))  # type: ignore[union-attr]
    with pytest.raises(HarnessError, match="told before"):
        refinement.tell(0, timed(900.0))
    with pytest.raises(HarnessError, match="not open"):
        refinement.tell(77, timed(900.0))


def test_no_candidate_is_proposed_twice_and_the_space_ends() -> None:
    refinement = fresh()
    proposals = drive(refinement, 500)
    hashes = [p.hash for p in proposals]
    assert len(hashes) == len(set(hashes))
    assert len(proposals) < 500
    assert refinement.ask() is None


def test_known_failures_are_never_proposed() -> None:
    tiles = [Space(Rules(CONTRACT), ACTIONS).replay(BASELINE, (f"tile@kernel[v={v}]",)) for v in (8, 16)]
    known = [candidate_hash(c) for c in tiles if c is not None]
    assert len(known) == 2
    refinement = fresh(known=known)
    assert not {p.hash for p in drive(refinement, 500)} & set(known)


def test_given_candidates_come_right_after_the_baseline() -> None:
    given = Space(Rules(CONTRACT), ACTIONS).replay(BASELINE, ("tile@kernel[v=32]",))
    assert given is not None
    proposals = drive(fresh(given=[given]), 3)
    assert proposals[1].origin == "given"
    assert proposals[1].candidate == given


def test_the_same_seed_and_outcomes_give_the_same_proposals() -> None:
    first, second = drive(fresh(5), 40), drive(fresh(5), 40)
    assert [p.hash for p in first] == [p.hash for p in second]
    assert [p.hash for p in drive(fresh(6), 40)] != [p.hash for p in first]


def test_asks_that_find_nothing_change_nothing() -> None:
    def run(idle: int) -> list[str]:
        refinement, found = fresh(3), []
        for _ in range(12):
            for _ in range(idle):
                if not refinement.trials:
                    refinement.ask()
            proposal = refinement.ask() if refinement.trials or not refinement.open else refinement.open[0]
            assert proposal is not None
            found.append(proposal.hash)
            refinement.tell(proposal.id, cost(proposal.candidate))
        return found

    assert run(0) == run(2)


def test_a_log_of_the_calls_rebuilds_the_search() -> None:
    """Nobody is asked again, and both go on alike."""
    shuffler, refinement, again = random.Random(1), fresh(9), fresh(9)
    calls: list[Proposal | tuple[int, Outcome]] = []
    for _ in range(60):
        if refinement.open and shuffler.random() < 0.5:
            chosen = shuffler.choice(refinement.open)
            outcome = cost(chosen.candidate)
            refinement.tell(chosen.id, outcome)
            calls.append((chosen.id, outcome))
        else:
            proposal = refinement.ask()
            if proposal is not None:
                calls.append(proposal)
    for call in calls:
        if isinstance(call, Proposal):
            again.restore(call)
        else:
            again.tell(*call)
    assert [p.hash for p in again.open] == [p.hash for p in refinement.open]
    assert [t.proposal.hash for t in again.ranked()] == [t.proposal.hash for t in refinement.ranked()]
    for _ in range(10):
        following = [(r.ask(), r.ask()) for r in (refinement, again)]
        assert following[0] == following[1]


def test_a_log_with_a_gap_is_refused() -> None:
    with pytest.raises(HarnessError, match="asked for proposal 4"):
        fresh().restore(Proposal(4, BASELINE, "h", None, "m", "action"))


def test_a_candidate_that_fails_promotion_is_no_elite_any_more() -> None:
    refinement = fresh()
    drive(refinement, 30)
    best = refinement.archive.best
    assert best is not None
    refinement.demote(best.proposal.id, failed())
    assert refinement.archive.best is not None
    assert refinement.archive.best.proposal.id != best.proposal.id
    assert best.proposal.id not in [t.proposal.id for t in refinement.ranked()]
    with pytest.raises(HarnessError, match="demote"):
        refinement.demote(refinement.archive.best.proposal.id, timed(1.0))


def test_the_planted_optimum_is_found_in_most_seeds_within_a_sixth_of_the_space() -> None:
    """5 x 4 settings of two knobs (each may be unset), and six dead ends on each of them: 140 candidates."""
    found = 0
    for seed in range(100):
        refinement = fresh(seed)
        drive(refinement, 23)
        best = refinement.archive.best
        found += best is not None and settings(best.proposal.candidate) == {"tile": 32, "unroll": 4}
    assert found >= 80, f"{found} of 100 seeds"


def test_failures_make_an_action_rarer() -> None:
    refinement = fresh(2)
    proposals = drive(refinement, 18)
    bad = [i for i, p in enumerate(proposals) if "bad" in settings(p.candidate)]
    assert len(bad) <= 9
    assert refinement.trials[0].outcome.status is Status.CORRECT


def test_a_move_that_is_wrong_wherever_it_is_tried_is_given_up() -> None:
    actions = (Knob("bad", (1, 2, 3, 4, 5, 6), 3.0), Knob("tile", (8, 16, 32, 64), 1.1), Knob("unroll", (1, 2, 4), 1.1))
    refinement = deterministic(actions)
    moves = Counter(p.move for p in drive(refinement, 500) if p.origin == "action")
    assert {moves[f"bad@kernel[v={v}]"] for v in range(1, 7)} == {3}
    best = refinement.archive.best
    assert best is not None
    assert settings(best.proposal.candidate) == {"tile": 32, "unroll": 4}


def test_features_that_come_later_are_kept_and_move_an_elite_to_its_cell() -> None:
    refinement = fresh()
    drive(refinement, 4)
    before = refinement.trials[1].outcome.features
    found = Features(binary=Binary(shared_bytes=4096), bottlenecks=(Bottleneck("atomics", 0.9),))
    refinement.enrich(1, found)
    assert refinement.trials[1].outcome.features == before.merged(found)
    assert before.source is not None
    assert refinement.trials[1].outcome.features.source == before.source
    with pytest.raises(KeyError):
        refinement.enrich(77, Features())


def test_a_space_asks_an_action_once_for_a_candidate() -> None:
    asked: list[str] = []

    class Counted(Knob):
        def moves(self, subject: Subject) -> Iterator[Move]:
            asked.append(subject.candidate.source)
            return super().moves(subject)

    space = Space(Rules(CONTRACT), (Counted("tile", (8, 16)), Counted("unroll", (2,))))
    path = ("tile@kernel[v=8]", "unroll@kernel[v=2]")
    first = space.replay(BASELINE, path)
    assert first is not None
    assert settings(first) == {"tile": 8, "unroll": 2}
    assert len(asked) == len(set(asked)) == 2
    assert space.replay(BASELINE, path) is first
    assert [m.name for _, m in space.moves(BASELINE)] == ["tile@kernel[v=8]", "tile@kernel[v=16]", "unroll@kernel[v=2]"]
    assert len(asked) == 3  # the second knob was not asked about the original before
