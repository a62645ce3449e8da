"""What a search leaves: what each move gained over what it was made on, and nothing of the source."""

from __future__ import annotations

import json
import math

import pytest

from fsr.records import Status
from fsr.search.experience import FORMAT, MOST_MOVES, Experience, Where, gained, where
from fsr.search.policy import FAILURE
from fsr.search.proposal import Trial
from fsr.search.refinement import Refinement
from fsr.transform.protocol import Move
from tests.conformance.proposers import cost
from tests.search.learned import gain, learned
from tests.search.scripted import Knob, deterministic, failed, timed


def searched(evaluations: int, *actions: Knob) -> Refinement:
    refinement = deterministic(actions, 1)
    for _ in range(evaluations):
        proposal = refinement.ask()
        if proposal is None:
            break
        wrong = "bad" in proposal.candidate.source
        refinement.tell(proposal.id, failed() if wrong else cost(proposal.candidate))
    return refinement


def test_gains_are_over_what_the_move_was_made_on() -> None:
    refinement = searched(40, Knob("tile", (8, 16), 2.0), Knob("unroll", (1, 4), 1.2))
    by_path = {t.proposal.candidate.actions: t for t in refinement.trials}
    found = {(g.where.action, dict(g.where.params)["v"], g.where.first): g for g in gained(refinement.trials)}
    assert len(found) == 8  # each value of each knob, on the original and on the other knob
    after = [t for path, t in by_path.items() if len(path) == 2 and path[-1] == "unroll@kernel[v=4]"]
    expected = [
        math.log((by_path[t.proposal.candidate.actions[:-1]].time_ns or 0.0) / (t.time_ns or 1.0)) for t in after
    ]
    got = found["unroll", 4, False]
    assert (got.count, got.gain) == (len(after), pytest.approx(sum(expected) / len(after), abs=1e-4))
    assert got.guess == pytest.approx(math.log(1.2), abs=1e-4)


def test_what_was_not_right_counts_as_a_failure() -> None:
    found = gained(searched(6, Knob("bad", (1, 2), 2.0), Knob("tile", (8, 16), 1.5)).trials)
    bad = [g for g in found if g.where.action == "bad"]
    assert bad
    assert {(g.gain, g.failed) for g in bad} == {(round(FAILURE, 4), 1)}
    assert [g.failed for g in found if g.where.action == "tile"] == [0] * (len(found) - len(bad))


def test_a_move_says_nothing_of_the_source() -> None:
    refinement = searched(1)
    parent = refinement.trials[0]
    inner = Move("restate", "plan", (("as", "row-per-warp@my_kernel#2[threads=128,cache=register]"),), 3.0)
    told = where(Move("unroll", "loop:my_variable", (("factor", 4),), 1.1), parent)
    assert told == Where("unroll", (("factor", 4),), True, "")
    params = (("as", "row-per-warp"), ("as threads", 128), ("as cache", "register"))
    assert where(inner, parent) == Where("restate", params, True, "")


def test_it_knows_what_held_the_parent_back() -> None:
    refinement = deterministic((Knob("tile", (8,), 2.0),))
    assert refinement.ask() is not None
    refinement.tell(0, timed(1000.0, **{"bound:latency": 0.7, "bound:bandwidth": 0.3}))
    assert where(Move("tile", "kernel"), refinement.trials[0]).bottleneck == "latency"


def test_it_comes_back_from_json_and_another_format_is_refused() -> None:
    one = learned(gain("tile", 2.0, 3.0, size=8), gain("unroll", 1.1, 1.0, first=False, how="full"))
    text = json.dumps(one.to_json())
    back = Experience.from_json(json.loads(text))
    assert json.dumps(back.to_json()) == text
    assert back.moves[0].where == one.moves[0].where
    with pytest.raises(ValueError, match="format"):
        Experience.from_json({**one.to_json(), "format": FORMAT + 1})


def test_a_long_run_leaves_a_bounded_number() -> None:
    refinement = searched(1)
    original = refinement.trials[0]
    many = Knob("many", tuple(range(2 * MOST_MOVES)), 1.1)
    refinement = deterministic((many,), 1)
    while (proposal := refinement.ask()) is not None:
        refinement.tell(proposal.id, timed(1000.0 + proposal.id))
    assert len(gained(refinement.trials)) == MOST_MOVES
    assert gained([original]) == ()
    assert gained([Trial(original.proposal, failed(Status.CRASHED))]) == ()
