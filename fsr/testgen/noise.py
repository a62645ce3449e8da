"""How far an original's own rounding may carry its answers, as samples tell (see noisy.cuh)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fsr.hardware.dtypes import doubled, is_float
from fsr.testgen.values import Array


@dataclass(frozen=True, slots=True)
class Noise:
    """Of each output, element by element. ``error``: how far the samples are from the truth; 0 where either is no
    number, and for integers. ``undecided``: whether it is rounding that decides if there is an answer, as of the root
    of n Σx² - (Σx)² where all x are alike: some of the samples are finite and others not, or some and the original's
    answer are and the truth is not. ``most``: the largest magnitude that is finite among samples and answer."""

    error: Mapping[str, Array]
    undecided: Mapping[str, Array]
    most: Mapping[str, Array]

    @classmethod
    def of(cls, first: Mapping[str, Array], runs: Sequence[Mapping[str, Array]], truth: Mapping[str, Array]) -> Noise:
        """What noisy ``runs`` of an original tell whose answer is ``first``."""
        error, undecided, most = {}, {}, {}
        for name, right in truth.items():
            answers = [doubled(a[name]) for a in (first, *runs)] if is_float(runs[0][name].dtype) else []
            worst, largest = np.zeros(right.shape), np.zeros(right.shape)
            wild, tame = np.zeros(right.shape, bool), np.zeros(right.shape, bool)
            if answers:
                wild |= np.isfinite(answers[0]) & ~np.isfinite(doubled(right))
            for number, answer in enumerate(answers):
                finite = np.isfinite(answer)
                np.fmax(largest, np.where(finite, np.abs(answer), 0.0), out=largest)
                if number:
                    wild, tame = wild | ~finite, tame | finite
                    with np.errstate(invalid="ignore", over="ignore"):
                        off = np.abs(answer - doubled(right))
                    np.fmax(worst, np.where(np.isfinite(off), off, 0.0), out=worst)
            error[name], undecided[name], most[name] = worst, wild & tame, largest
        return cls(error, undecided, most)

    @property
    def decides(self) -> bool:
        """Whether there is any element of which rounding decides if there is an answer. Of its likes, which differ by
        chance alone, a few samples miss some."""
        return any(np.any(elements) for elements in self.undecided.values())
