"""What earlier runs say of a move: the more alike, the more it counts."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from fsr.records import Status
from fsr.search.experience import Experience, Where
from fsr.search.policy import Belief, Policy
from fsr.search.prior import MOST_KERNELS, Prior, difference, prior
from fsr.search.proposers.deterministic import Deterministic
from fsr.search.refinement import Refinement
from fsr.transform.protocol import Move
from tests.conformance.proposers import cost, search
from tests.search.learned import TRAITS, gain, learned
from tests.search.scripted import BASELINE, Knob, deterministic, failed, timed

TILE = Where("tile", (("v", 8),), True, "")


def belief(*experience: Experience, where: Where = TILE) -> Belief | None:
    return prior(TRAITS, "predicted", "sm_90", experience).of(where)


def shift(*experience: Experience, where: Where = TILE) -> float:
    found = belief(*experience, where=where)
    assert found is not None
    return found.shift


def test_it_is_between_no_shift_and_what_the_guess_missed() -> None:
    wrong = gain("tile", 8.0, 2.0, v=8)
    one = shift(learned(wrong))
    more = shift(*(learned(wrong, kernel=f"k{n}") for n in range(5)))
    assert math.log(2.0 / 8.0) < more < one < 0.0


def test_nobody_has_a_word_on_what_nobody_tried() -> None:
    assert belief() is None
    assert belief(learned(gain("unroll", 1.1, 1.0))) is None


def test_a_kernel_counts_less_the_more_it_differs() -> None:
    moves = (gain("tile", 2.0, 4.0, v=8),)
    near = learned(*moves)
    other = learned(*moves, traits={"folds": "max", "points": 17.0})
    far = learned(*moves, traits={"folds": "", "points": 2.0, "fold length": 0.0, "held back by": "launch"})
    assert shift(near) > shift(other) > 0.0
    assert belief(far) is None  # it is not listened to at all


def test_measured_outweighs_predicted_and_one_kernel_is_one_word() -> None:
    up, down = gain("tile", 2.0, 4.0, v=8), gain("tile", 2.0, 1.0, v=8)
    assert shift(learned(up), learned(down, basis="measured", kernel="m")) < 0.0
    again = [learned(up, kernel="same") for _ in range(3)]
    assert shift(*again) == pytest.approx(shift(learned(up, kernel="same")))


def test_what_predictions_do_not_show_says_nothing_of_a_clock() -> None:
    unseen = learned(gain("tile", 1.05, 1.0, v=8))
    assert shift(unseen) < 0.0
    assert prior(TRAITS, "measured", "NVIDIA H200", [unseen]).of(TILE) is None
    seen = learned(gain("tile", 1.05, 1.5, v=8))
    assert prior(TRAITS, "measured", "NVIDIA H200", [seen]).of(TILE) is not None


def test_another_fsr_and_other_hardware_count_less() -> None:
    up = gain("tile", 2.0, 4.0, v=8)
    assert shift(learned(up)) > shift(learned(up, hardware="sm_80")) > shift(learned(up, fsr="0.0.1")) > 0.0


def test_parameters_that_are_nearer_count_more() -> None:
    both = learned(gain("tile", 2.0, 4.0, v=8), gain("tile", 2.0, 1.0, v=64))
    at = {v: shift(both, where=Where("tile", (("v", v),), True, "")) for v in (8, 16, 32, 64)}
    assert at[8] > at[16] > at[32] > at[64]


def test_it_does_not_depend_on_the_order_and_comes_back_from_json() -> None:
    many = [learned(gain("tile", 2.0, 1.0 + n / 7, v=8), kernel=f"k{n}", traits={"points": 20.0 - n / 9})
            for n in range(2 * MOST_KERNELS)]  # fmt: skip
    one, other = (prior(TRAITS, "predicted", "sm_90", order) for order in (many, many[::-1]))
    assert len(one.neighbours) == MOST_KERNELS
    assert json.dumps(one.to_json()) == json.dumps(other.to_json())
    assert Prior.from_json(json.loads(json.dumps(one.to_json()))).of(TILE) == other.of(TILE)


def test_differences_are_between_none_and_one() -> None:
    assert difference(TRAITS, TRAITS) == 0.0
    assert difference(TRAITS, {}) == pytest.approx(0.5)
    assert difference({"folds": "max+sum"}, {"folds": "sum"}) == pytest.approx(0.5)
    assert difference({"points": 0.0}, {"points": 80.0}) == 1.0


ACTIONS = (Knob("tile", (4, 8, 16, 32, 64), 1.1), Knob("idle", (1, 2, 3, 4, 5), 4.0), Knob("unroll", (1, 2, 4), 1.2))


def found_after(seed: int, known: Prior | None) -> int:
    """Evaluations until the planted tile is found where the guesses are wrong."""
    refinement = Refinement(BASELINE, deterministic(ACTIONS).space, [Deterministic(seed, prior=known)])
    for count in range(200):
        proposal = refinement.ask()
        assert proposal is not None
        refinement.tell(proposal.id, cost(proposal.candidate))
        if "// tile=32" in proposal.candidate.source:
            return count
    raise AssertionError("never")


def test_wrong_guesses_are_overcome_in_half_the_evaluations() -> None:
    earlier = learned(
        *(gain("tile", 1.1, g, v=v) for v, g in ((4, 0.8), (8, 1.3), (16, 2.0), (32, 4.0), (64, 2.0))),
        *(gain("idle", 4.0, 1.0, v=v) for v in range(1, 6)),
    )
    known = prior(TRAITS, "predicted", "sm_90", [earlier])
    pairs = [(found_after(seed, known), found_after(seed, None)) for seed in range(40)]
    assert sum(one for one, _ in pairs) <= 0.5 * sum(other for _, other in pairs)


def test_its_own_outcomes_have_the_last_word() -> None:
    """Earlier runs that were all mistaken cost a few evaluations, never the optimum."""
    mistaken = [learned(gain("idle", 4.0, 8.0, v=1), gain("tile", 1.1, 0.5, v=32), kernel=f"k{n}") for n in range(9)]
    known = prior(TRAITS, "predicted", "sm_90", mistaken)
    assert max(found_after(seed, known) for seed in range(20)) <= 60  # of 143 candidates


def asked(known: Prior | None, evaluations: int = 12) -> list[tuple[str, str]]:
    """Hash and, of what earlier runs spoke of, what they said."""
    refinement, found = search(Deterministic(3, prior=known)), list[tuple[str, str]]()
    for _ in range(evaluations):
        proposal = refinement.ask()
        if proposal is None:
            break
        refinement.tell(proposal.id, timed(1000.0) if proposal.id == 0 else cost(proposal.candidate))
        found.append((proposal.hash, str(proposal.provenance.get("experience", ""))))
    return found


def test_without_experience_a_run_is_as_it_is_today_and_with_equal_experience_equal() -> None:
    known = prior(TRAITS, "predicted", "sm_90", [learned(gain("tile", 2.0, 0.7, v=8), gain("unroll", 1.2, 3.0, v=4))])
    assert asked(Prior(())) == asked(None)
    assert asked(known) == asked(Prior.from_json(known.to_json()))
    assert [h for h, _ in asked(known)] != [h for h, _ in asked(None)]
    words = [said for _, said in asked(known) if said]
    assert "1 earlier run of kernels alike (all predicted)" in words[0]


def test_what_many_found_to_gain_nothing_comes_after_the_rest_until_it_gains_here() -> None:
    many = [
        learned(gain("flag", 1.05, 1.0, v=1), gain("flag", 1.05, 1.0, False, v=1), kernel=f"k{n}") for n in range(9)
    ]
    known = prior(TRAITS, "predicted", "sm_90", many)
    flag, other = Knob("flag", (1,), 1.05), Knob("other", (1, 2, 3, 4), 1.5)
    refinement = Refinement(BASELINE, deterministic((flag, other)).space, [Deterministic(0, prior=known)])
    moves = []
    while (proposal := refinement.ask()) is not None:
        refinement.tell(proposal.id, timed(1000.0 / (1 + 9 * ("other=" in proposal.candidate.source))))
        moves.append(proposal.move)
    assert moves[-1].startswith("flag")
    policy, told = Policy(), known.of(Where("flag", (("v", 1),), True, ""))
    move = Move("flag", "kernel", (("v", 1),), 1.05)
    assert policy.dull(move, told)
    assert not policy.dull(move, None)
    policy.learn(move, 1000.0, timed(800.0))
    assert not policy.dull(move, told)


def test_what_was_screened_only_counts_as_its_time_says() -> None:
    flag, move = Knob("flag", (1,), 1.05), Move("flag", "kernel", (("v", 1),), 1.05)
    estimates = []
    for outcome in [replace(timed(1010.0), status=status) for status in (Status.CORRECT, Status.SCREENED, Status.SLOW)]:
        policy = Policy()
        policy.learn(move, 1000.0, outcome)
        estimates.append(policy.estimate(flag, move, {}))
    assert estimates[0] == estimates[1] > estimates[2]


def test_what_is_refused_of_moves_that_round_otherwise_says_nothing_of_the_others() -> None:
    action = Knob("tile", (8,), 2.0)
    plain, single = (Move("tile", "plan", (("rows", 4), *more), 1.6) for more in ((), (("single", 1),)))
    policy = Policy()
    before = policy.estimate(action, plain, {}), policy.estimate(action, single, {})
    for _ in range(2):
        policy.started(single)
        policy.learn(single, 1000.0, failed())
    assert policy.estimate(action, plain, {}) == before[0]
    assert policy.estimate(action, single, {}) < before[1]
    assert policy.bonus(plain) > policy.bonus(single)
