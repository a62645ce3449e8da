"""Verdicts: from paired samples to faster, slower, same or ambiguous."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.evaluation.verdict import MARGIN, classify, paired_verdict, predicted_verdict, ratio_interval
from fsr.records import Basis, VerdictKind


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [
        (1.2, 1.4, VerdictKind.FASTER),
        (1.004, 1.4, VerdictKind.AMBIGUOUS),  # half a percent is no gain
        (0.7, 0.9, VerdictKind.SLOWER),
        (0.9, 0.997, VerdictKind.AMBIGUOUS),
        (0.996, 1.004, VerdictKind.SAME),
        (0.9, 1.1, VerdictKind.AMBIGUOUS),
        (1.0, 1.0, VerdictKind.SAME),
        (1.0 + MARGIN, 1.2, VerdictKind.AMBIGUOUS),  # the whole interval must lie above
    ],
)
def test_the_whole_interval_decides(low: float, high: float, kind: VerdictKind) -> None:
    assert classify(low, high) is kind


def noisy(center: float, seed: int, count: int = 60) -> list[float]:
    return list(center * np.exp(np.random.default_rng(seed).normal(0, 0.01, count)))


def test_twice_as_fast_is_told_with_its_interval() -> None:
    verdict = paired_verdict(noisy(200e3, 1), noisy(100e3, 2))
    assert verdict.kind is VerdictKind.FASTER
    assert verdict.speedup == pytest.approx(2.0, rel=0.02)
    low, high = verdict.ci95
    assert low < verdict.speedup < high
    assert high - low < 0.1
    assert (verdict.pairs, verdict.basis) == (60, Basis.MEASURED)


def test_twice_as_slow_is_slower() -> None:
    verdict = paired_verdict(noisy(100e3, 1), noisy(200e3, 2))
    assert (verdict.kind, verdict.speedup) == (VerdictKind.SLOWER, pytest.approx(0.5, rel=0.02))


def test_identical_samples_are_the_same() -> None:
    samples = noisy(5e4, 3)
    verdict = paired_verdict(samples, samples)
    assert (verdict.kind, verdict.speedup, verdict.ci95) == (VerdictKind.SAME, 1.0, (1.0, 1.0))


def test_few_wild_samples_leave_it_open() -> None:
    rng = np.random.default_rng(5)
    old, new = list(rng.uniform(50, 150, 6)), list(rng.uniform(50, 150, 6))
    assert paired_verdict(old, new).kind is VerdictKind.AMBIGUOUS


def test_outliers_do_not_make_a_win() -> None:
    old, new = noisy(100e3, 1), noisy(100e3, 2)
    old[::10] = [5e6] * 6
    assert paired_verdict(old, new).kind in (VerdictKind.SAME, VerdictKind.AMBIGUOUS)


def test_drift_that_hits_both_of_a_pair_cancels() -> None:
    drift = np.linspace(1.0, 3.0, 80)
    old = 110.0 * drift
    new = 100.0 * drift
    _, low, high = ratio_interval(old, new)
    assert low == pytest.approx(1.1)
    assert high == pytest.approx(1.1)


def test_the_interval_is_a_function_of_samples_and_seed() -> None:
    old, new = np.asarray(noisy(2.0, 1)), np.asarray(noisy(1.9, 2))
    assert ratio_interval(old, new, 7) == ratio_interval(old, new, 7)
    assert ratio_interval(old, new, 7) != ratio_interval(old, new, 8)


@pytest.mark.parametrize(("old", "new"), [([1.0, 2.0], [1.0]), ([1.0], [1.0]), ([], [])])
def test_counts_that_do_not_pair_are_refused(old: list[float], new: list[float]) -> None:
    with pytest.raises(ValueError, match="expected equal counts of at least 2"):
        paired_verdict(old, new)


def test_a_prediction_wins_only_beyond_the_error_of_the_model() -> None:
    assert predicted_verdict(200.0, 100.0, 1.3).kind is VerdictKind.FASTER
    close = predicted_verdict(120.0, 100.0, 1.3)
    assert close.kind is VerdictKind.AMBIGUOUS
    assert close.ci95 == pytest.approx((1.2 / 1.3, 1.2 * 1.3))
    assert (close.basis, close.pairs) == (Basis.PREDICTED, 0)
    assert predicted_verdict(100.0, 200.0, 1.3).kind is VerdictKind.SLOWER
