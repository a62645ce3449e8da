"""The clock of a run: what stages may take, and when a budget is told to be too small."""

from __future__ import annotations

import pytest

from fsr.runs.budget import Budget, rounded_up


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def budget(total_s: float, **more: float) -> tuple[Budget, Clock]:
    clock = Clock()
    return Budget(total_s, clock=clock, **more), clock  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("total_s", "baseline_s", "sanitized", "reserve_s"),
    [
        (60.0, 2.0, True, 12.0),  # the usual share
        (60.0, 10.0, True, 18.0),  # a promotion is expected to cost more
        (60.0, 10.0, False, 12.0),  # but not without sanitizers
        (300.0, 40.0, True, 54.0),
        (10.0, 3.0, True, 3.9),  # most of what testing the original has left
    ],
)
def test_what_testing_the_original_took_and_sanitizers_decide_the_room_for_promotion(
    total_s: float, baseline_s: float, sanitized: bool, reserve_s: float
) -> None:
    found, clock = budget(total_s, sanitized=sanitized)
    clock.now += baseline_s
    found.baseline_took(baseline_s)
    assert found.reserve_s == pytest.approx(reserve_s, rel=1e-3)
    assert found.enough_to_try()


def test_the_search_leaves_room_for_what_a_promotion_costs_here() -> None:
    found, clock = budget(60.0)
    clock.now += 20.0
    found.baseline_took(20.0)
    assert found.reserve_s == pytest.approx(0.6 * 39.5)  # nearly what promoting is expected to take, 24 s
    assert found.search_left_s == pytest.approx(0.4 * 39.5)
    found.promotion_took(9.0)
    assert found.reserve_s == 12.0  # cheaper than it was feared to be: the usual share


def test_an_original_that_takes_half_of_the_budget_leaves_time_to_try_and_to_judge() -> None:
    found, clock = budget(60.0)
    clock.now += 30.0
    found.baseline_took(30.0)
    assert found.enough_to_try()
    assert found.search_left_s > 10
    clock.now += found.search_left_s
    assert found.enough_to_promote()


def test_pauses_and_earlier_lives() -> None:
    found, clock = budget(60.0, spent_s=10.0)
    clock.now += 5.0
    found.pause()
    clock.now += 1000.0
    assert found.elapsed_s == 15.0
    found.go_on()
    found.go_on()
    clock.now += 1.0
    assert found.elapsed_s == 16.0


def test_a_budget_that_is_too_small_says_what_would_be_enough() -> None:
    found, clock = budget(20.0)
    clock.now += 18.0
    found.baseline_took(18.0)
    assert not found.enough_to_try()
    needed = found.needed_s()
    assert 18.0 * 2 < needed < 18.0 * 6
    again, clock = budget(needed)
    clock.now += 18.0
    again.baseline_took(18.0)
    assert again.enough_to_try()
    assert again.search_left_s >= again.evaluation_s


def test_room_to_promote_is_asked_for_before_each_try() -> None:
    found, clock = budget(60.0)
    found.baseline_took(5.0)
    found.promotion_took(10.0)
    clock.now += 52.0
    assert found.enough_to_promote()
    clock.now += 5.0
    assert not found.enough_to_promote()


@pytest.mark.parametrize(("seconds", "told"), [(1.0, 5), (41.0, 45), (61.0, 90), (599.0, 600), (601.0, 660)])
def test_figures_that_a_person_would_type(seconds: float, told: float) -> None:
    assert rounded_up(seconds) == told


def test_a_verdict_may_overrun_the_budget_within_what_is_promised() -> None:
    clock = [0.0]
    found = Budget(60.0, clock=lambda: clock[0])
    clock[0] = 58.0
    assert found.left_s < 2.0
    clock[0] += found.verdict_left_s
    assert 60.0 < clock[0] <= 60.0 * 1.1 + 5.0


def test_the_search_goes_on_while_there_is_nothing_to_promote() -> None:
    found, clock = budget(60.0)
    clock.now += 15.0
    found.baseline_took(15.0)
    kept = found.search_left_s
    found.found = False
    assert found.search_left_s > kept
    assert found.left_s > found.search_left_s > 0


def test_whoever_has_patience_gets_a_verdict_after_the_budget_and_no_more_search() -> None:
    found, clock = budget(100.0, patience_s=200.0, predicted=True)
    clock.now += 10.0
    found.baseline_took(10.0)
    clock.now += 140.0
    assert found.search_left_s < 0
    assert found.promotion_left_s == pytest.approx(149.5)
    assert found.enough_to_promote()
    clock.now += 149.0
    assert not found.enough_to_promote()


def test_a_search_that_finds_nothing_better_hands_its_time_to_the_verdict() -> None:
    found, clock = budget(60.0)
    found.predicted = True
    clock.now += 5.0
    found.baseline_took(5.0)
    assert found.reserve_s == 12.0
    clock.now += 15.0
    found.gained()
    assert found.reserve_s == 12.0
    clock.now += 10.0
    assert found.reserve_s == 22.0
    clock.now += 10.0
    assert found.reserve_s == 2.5 * 12.0  # more than that no promotion was seen to take
    found.found = False  # nothing to judge: the search may go on
    assert found.reserve_s == 6.0
    found.found = True
    found.gained()
    assert found.reserve_s == 12.0
    clock.now += 10.0
    found.promotion_took(4.0)  # known now
    assert found.reserve_s == 12.0


def test_beside_a_gpu_an_original_that_takes_long_makes_a_verdict_dear() -> None:
    found, clock = budget(60.0)
    found.sanitized = True
    clock.now += 3.0
    found.baseline_took(2.5, original_s=0.16)
    assert found.promotion_s == 1.2 * 2.5 + 6.0 + 16.0
    assert found.reserve_s == found.promotion_s
    found.gained()
    clock.now += 12.0  # nothing better came: it may take some more than that, and no more
    assert found.reserve_s == min(1.3 * 25.0, 0.6 * (60.0 - 0.5 - 3.0))
    found.baseline_took(2.5, original_s=0.01)
    assert found.reserve_s == pytest.approx(1.3 * found.promotion_s)
