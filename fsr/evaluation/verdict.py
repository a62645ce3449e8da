"""Deciding whether a challenger is faster than the incumbent, from paired samples.

The interval is a percentile bootstrap (Efron 1979) of the ratio of medians, resampling pairs, so that drift
of the machine during the measurement cancels. The verdicts follow the manner of nvbench's comparison.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fsr.records import Basis, Verdict, VerdictKind

MARGIN = 0.005  # a gain that half a percent would explain is not told as one
RESAMPLES = 2000


def ratio_interval(
    incumbent_ns: npt.NDArray[np.float64], challenger_ns: npt.NDArray[np.float64], seed: int = 0
) -> tuple[float, float, float]:
    """(speed-up, low, high): the ratio of medians incumbent / challenger and its 95 % bootstrap interval.

    Both arrays have shape (pairs,), in nanoseconds; sample i of each was taken in the same pair."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(incumbent_ns), size=(RESAMPLES, len(incumbent_ns)))
    ratios = np.median(incumbent_ns[drawn], axis=1) / np.median(challenger_ns[drawn], axis=1)
    low, high = np.percentile(ratios, [2.5, 97.5])
    return float(np.median(incumbent_ns) / np.median(challenger_ns)), float(low), float(high)


def classify(low: float, high: float) -> VerdictKind:
    """FASTER when the whole interval lies above 1 + margin, SLOWER when below 1 - margin, SAME when it lies
    within the margins, else AMBIGUOUS."""
    if low > 1.0 + MARGIN:
        return VerdictKind.FASTER
    if high < 1.0 - MARGIN:
        return VerdictKind.SLOWER
    if low >= 1.0 - MARGIN and high <= 1.0 + MARGIN:
        return VerdictKind.SAME
    return VerdictKind.AMBIGUOUS


def paired_verdict(incumbent_ns: list[float], challenger_ns: list[float], seed: int = 0) -> Verdict:
    """The verdict on paired samples of equal count (at least 2). Raises ValueError on unequal counts."""
    if len(incumbent_ns) != len(challenger_ns) or len(incumbent_ns) < 2:
        raise ValueError(f"{len(incumbent_ns)} and {len(challenger_ns)} samples: expected equal counts of at least 2")
    speedup, low, high = ratio_interval(np.asarray(incumbent_ns), np.asarray(challenger_ns), seed)
    return Verdict(classify(low, high), speedup, (low, high), len(incumbent_ns), Basis.MEASURED)


def predicted_verdict(incumbent_ns: float, challenger_ns: float, error_factor: float) -> Verdict:
    """A verdict on two predicted times. The interval is the model's own: its ratios were seen to be right
    within ``error_factor`` (at least 1), so it is [ratio / factor, ratio * factor]."""
    ratio = incumbent_ns / challenger_ns
    low, high = ratio / error_factor, ratio * error_factor
    return Verdict(classify(low, high), ratio, (low, high), 0, Basis.PREDICTED)
