"""Screening and the paired final on scripted clocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from fsr.evaluation.timing import BATCH_NS, TimingPolicy, back_to_back, paired, screen
from fsr.records import Basis


class Scripted:
    """A prepared plan whose samples are given; notes its name in ``order`` each time it is timed."""

    def __init__(self, sample: float | Callable[[int], float], order: list[str] | None = None, name: str = "") -> None:
        self.sample, self.order, self.name, self.timed = sample, order, name, 0

    def time_ns(self) -> float:
        self.timed += 1
        if self.order is not None:
            self.order.append(self.name)
        return self.sample(self.timed) if callable(self.sample) else self.sample

    def exchange(self, other: Scripted) -> None:
        """Its memory costs nothing."""


def plan(*arguments: Any) -> Any:
    """Typed as any prepared plan: only its clock is used."""
    return Scripted(*arguments)


POLICY = TimingPolicy()


def test_a_clearly_slower_candidate_costs_four_samples() -> None:
    slow = plan(2e6)
    timing, decided = screen(slow, 1e6, POLICY)
    assert decided
    assert slow.timed == 1 + POLICY.screening_samples
    assert (timing.median_ns, timing.basis) == (2e6, Basis.MEASURED)
    assert "clearly slower" in timing.note


@pytest.mark.parametrize(("slow_ns", "samples"), [(300e6, 1), (40e6, 2), (12e6, 4)])
def test_one_that_takes_long_and_is_far_slower_costs_fewer(slow_ns: float, samples: int) -> None:
    slow = plan(slow_ns)
    timing, decided = screen(slow, 1e6, POLICY)
    assert decided
    assert slow.timed == samples
    assert timing.median_ns == slow_ns


def test_a_candidate_near_the_incumbent_is_measured_to_the_end() -> None:
    near = plan(1.1e6)
    timing, decided = screen(near, 1e6, POLICY)
    assert not decided
    assert len(timing.samples_ns) == POLICY.screening_most


def test_the_baseline_has_no_incumbent_and_is_never_decided() -> None:
    timing, decided = screen(plan(50e6), None, POLICY)
    assert not decided
    assert len(timing.samples_ns) == 3, "three of 50 ms are already over 100 ms of GPU time"


def test_the_warm_up_sample_does_not_count() -> None:
    timing, decided = screen(plan(lambda nth: 90e6 if nth == 1 else 1e5), 1e5, POLICY)
    assert not decided
    assert timing.median_ns == 1e5
    assert max(timing.samples_ns) == 1e5


def test_one_slow_sample_of_three_does_not_decide() -> None:
    timing, decided = screen(plan(lambda nth: 5e6 if nth == 2 else 1e6), 1e6, POLICY)
    assert not decided
    assert timing.median_ns == 1e6


def test_the_final_alternates_and_swaps_who_is_first() -> None:
    order: list[str] = []
    paired([plan(1.0, order, "A")], [plan(1.0, order, "B")], TimingPolicy(final_pairs=4, final_budget_ns=0.0))
    assert "".join(order[2:]) == "ABBAABBA"


def test_the_final_rotates_over_input_sets() -> None:
    old, new = [plan(10.0 * i) for i in range(1, 4)], [plan(1.0 * i) for i in range(1, 4)]
    first, second = paired(old, new, TimingPolicy(final_pairs=6, final_budget_ns=0.0))
    assert first == [10, 20, 30, 10, 20, 30]
    assert second == [1, 2, 3, 1, 2, 3]


def test_the_final_goes_on_until_enough_gpu_time_was_seen() -> None:
    policy = TimingPolicy(final_pairs=5, final_budget_ns=1e6, final_most_pairs=1000)
    first, second = paired([plan(6e3)], [plan(4e3)], policy)
    assert len(first) == len(second) == 100


def test_the_final_has_a_largest_number_of_pairs_and_a_time_limit() -> None:
    policy = TimingPolicy(final_pairs=5, final_budget_ns=1e12, final_most_pairs=40)
    assert len(paired([plan(1.0)], [plan(1.0)], policy)[0]) == 40

    def slowly(_: int) -> float:
        time.sleep(0.002)
        return 1.0

    first, _ = paired([plan(slowly)], [plan(slowly)], TimingPolicy(), budget_s=0.0)
    assert len(first) == 4, "a verdict needs some pairs, whatever the budget"


def test_long_runs_far_apart_are_measured_less_often() -> None:
    assert len(paired([plan(80e6)], [plan(2e6)], POLICY)[0]) == POLICY.separated_pairs
    assert len(paired([plan(2e6)], [plan(80e6)], POLICY)[0]) == POLICY.separated_pairs
    near = paired([plan(80e6)], [plan(lambda nth: 79e6 if nth == 3 else 2e6)], POLICY)
    assert len(near[0]) == POLICY.final_pairs, "one sample lies near the other plan's"
    short = paired([plan(1e6)], [plan(1e5)], POLICY)
    assert len(short[0]) == POLICY.final_most_pairs, "short runs vary: the GPU time that is wanted decides"


class Batched(Scripted):
    """Notes how many launches each batch had."""

    def time_batch_ns(self, runs: int = 16, timeout_s: float = 10.0) -> float:
        self.timed += runs
        return self.time_of_one

    def __init__(self, time_of_one: float) -> None:
        super().__init__(time_of_one)
        self.time_of_one = time_of_one


def test_a_loop_of_long_launches_is_short() -> None:
    slow, fast = Batched(80e6), Batched(1e6)
    assert back_to_back(slow, fast) == 80.0  # type: ignore[arg-type]
    assert (slow.timed, fast.timed) == (6, 6), "one to see how long it takes, then five batches of one"
    slow, fast = Batched(1e4), Batched(2e4)
    assert back_to_back(slow, fast) == 0.5  # type: ignore[arg-type]
    assert slow.timed == 1 + 16 + 5 * 16
    slow, fast = Batched(BATCH_NS / 4), Batched(1e4)
    back_to_back(slow, fast)  # type: ignore[arg-type]
    assert fast.timed == 1 + 4 + 5 * 4, "both in batches of as many"


def test_samples_at_a_low_clock_are_taken_again() -> None:
    readings = iter([1980, 900, 1950])  # one at every eighth turn
    seen: list[float] = []

    def clock() -> int:
        return next(readings, 1980)

    def sample(nth: int) -> float:
        seen.append(nth)
        return float(nth)

    policy = TimingPolicy(final_pairs=20, final_budget_ns=0.0)
    first, second = paired([plan(sample)], [plan(5.0)], policy, clock)
    assert len(first) == len(second) == 20
    assert len(seen) == 1 + 20 + 1, "the warm-up, twenty pairs, and one that was discarded"
    assert 10.0 not in first, "turn nine, at 900 MHz"


def test_a_clock_that_stays_low_does_not_hold_the_final_up_for_ever() -> None:
    readings = iter([2000])
    policy = TimingPolicy(final_pairs=24, final_budget_ns=0.0, clock_retries=2)
    first, _ = paired([plan(1.0)], [plan(1.0)], policy, lambda: next(readings, 500))
    assert len(first) == 24


def test_a_device_that_does_not_tell_its_clock_is_timed_all_the_same() -> None:
    first, _ = paired([plan(1.0)], [plan(1.0)], TimingPolicy(final_pairs=9, final_budget_ns=0.0), lambda: None)
    assert len(first) == 9
