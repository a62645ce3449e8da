"""Faster, slower or neither: from paired samples with known truth; and how samples are taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from fsr.backends.protocol import TimedPrepared
from fsr.evaluation.timing import TimingPolicy, paired, screen
from fsr.evaluation.verdict import classify, paired_verdict, predicted_verdict
from fsr.records import Basis, VerdictKind


def samples(median: float, noise: float, seed: int, count: int = 40) -> list[float]:
    return [float(x) for x in median * np.random.default_rng(seed).normal(1.0, noise, count)]


def test_equal_times_are_told_as_faster_in_at_most_one_of_a_hundred_seeds() -> None:
    told = [paired_verdict(samples(100, 0.03, 2 * s), samples(100, 0.03, 2 * s + 1), s).kind for s in range(100)]
    assert told.count(VerdictKind.FASTER) <= 1


def test_ten_percent_are_found_in_at_least_95_of_a_hundred_seeds() -> None:
    told = [paired_verdict(samples(110, 0.03, 2 * s), samples(100, 0.03, 2 * s + 1), s) for s in range(100)]
    assert sum(v.kind is VerdictKind.FASTER for v in told) >= 95
    assert sum(v.ci95[0] <= 1.1 <= v.ci95[1] for v in told) >= 85


def test_drift_that_both_share_does_not_hide_a_gain() -> None:
    drift = np.linspace(1.0, 1.5, 40)
    verdict = paired_verdict([*(110 * drift)], [*(100 * drift)], 3)
    assert verdict.speedup == pytest.approx(1.1)
    assert (verdict.pairs, verdict.basis) == (40, Basis.MEASURED)


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [
        (1.006, 1.2, VerdictKind.FASTER),
        (1.004, 1.2, VerdictKind.AMBIGUOUS),
        (0.9, 0.994, VerdictKind.SLOWER),
        (0.996, 1.004, VerdictKind.SAME),
        (0.9, 1.2, VerdictKind.AMBIGUOUS),
    ],
)
def test_only_an_interval_clear_of_one_decides(low: float, high: float, kind: VerdictKind) -> None:
    assert classify(low, high) is kind


def test_unequal_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="3 and 2 samples"):
        paired_verdict([1.0, 1.0, 1.0], [1.0, 1.0])


def test_a_predicted_gain_within_the_models_error_is_none() -> None:
    assert predicted_verdict(120.0, 100.0, 1.3).kind is VerdictKind.AMBIGUOUS
    verdict = predicted_verdict(200.0, 100.0, 1.3)
    assert (verdict.kind, verdict.basis) == (VerdictKind.FASTER, Basis.PREDICTED)
    assert verdict.ci95 == (pytest.approx(2 / 1.3), pytest.approx(2.6))


class Clocked:
    """A prepared plan whose runs take what a function of the run's number says."""

    def __init__(self, time_of: Callable[[int], float], log: list[str] | None = None, name: str = "") -> None:
        self.time_of, self.runs, self.log, self.name = time_of, 0, log, name
        self.place = 1.0  # what its memory's place costs

    def time_ns(self) -> float:
        self.runs += 1
        if self.log is not None:
            self.log.append(self.name)
        return self.time_of(self.runs) * self.place

    def exchange(self, other: Clocked) -> None:
        self.place, other.place = other.place, self.place


def clocked(time_of: Callable[[int], float], log: list[str] | None = None, name: str = "") -> TimedPrepared:
    return Clocked(time_of, log, name)  # type: ignore[return-value]  # only its clock is asked


def runs_of(prepared: TimedPrepared) -> int:
    return prepared.runs  # type: ignore[attr-defined,no-any-return]


POLICY = TimingPolicy(final_pairs=8, final_budget_ns=0.0)


def test_a_clearly_slower_candidate_costs_few_samples() -> None:
    slow, near = clocked(lambda _: 200.0), clocked(lambda _: 105.0)
    timing, decided = screen(slow, 100.0, POLICY)
    assert decided
    assert len(timing.samples_ns) == POLICY.screening_samples
    timing, decided = screen(near, 100.0, POLICY)
    assert not decided
    assert len(timing.samples_ns) == POLICY.screening_most


def test_the_warm_up_is_no_sample() -> None:
    timing, _ = screen(clocked(lambda run: 1e9 if run == 1 else 100.0), None, POLICY)
    assert max(timing.samples_ns) == 100.0


def test_long_kernels_are_screened_within_the_budget() -> None:
    timing, _ = screen(clocked(lambda _: 60e6), None, POLICY)
    assert len(timing.samples_ns) == POLICY.screening_samples


def test_neither_side_profits_from_where_its_memory_lies() -> None:
    sides = [[clocked(lambda _: 100.0) for _ in range(2)] for _ in range(2)]
    for lucky in sides[0]:
        lucky.place = 0.97  # type: ignore[attr-defined]
    first, second = paired(*sides, replace(POLICY, final_pairs=16))
    assert sorted(first) == sorted(second)
    assert paired_verdict(first, second).kind is not VerdictKind.FASTER


def test_pairs_alternate_who_goes_first_and_rotate_the_inputs() -> None:
    log: list[str] = []
    old = [clocked(lambda _: 2.0, log, f"a{i}") for i in range(3)]
    new = [clocked(lambda _: 1.0, log, f"b{i}") for i in range(3)]
    first, second = paired(old, new, POLICY)
    assert (first, second) == ([2.0] * 8, [1.0] * 8)
    assert log[6:12] == ["a0", "b0", "b1", "a1", "a2", "b2"]  # after a warm-up of each


def test_samples_under_a_low_clock_are_taken_again() -> None:
    clocks = iter([1980, 900, 1980])
    old = clocked(lambda _: 2.0)
    first, _ = paired([old], [clocked(lambda _: 1.9)], replace(POLICY, final_pairs=17), lambda: next(clocks))
    assert len(first) == 17
    assert runs_of(old) == 1 + 17 + 1


def test_a_used_up_budget_ends_the_final_with_at_least_four_pairs() -> None:
    first, second = paired([clocked(lambda _: 2.0)], [clocked(lambda _: 1.0)], POLICY, budget_s=0.0)
    assert len(first) == len(second) == 4


def test_short_kernels_are_sampled_until_the_gpu_time_is_used() -> None:
    policy = replace(POLICY, final_budget_ns=300.0)
    first, second = paired([clocked(lambda _: 2.0)], [clocked(lambda _: 1.0)], policy)
    assert sum(first) + sum(second) == 300.0
    most = replace(policy, final_most_pairs=50)
    assert len(paired([clocked(lambda _: 2.0)], [clocked(lambda _: 1.0)], most)[0]) == 50
