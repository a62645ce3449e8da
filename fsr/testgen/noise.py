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
    number, and for integers. ``wild``, ``tame``: whether some sample is no number, and whether some is one; the truth
    counts among the former where it is none, but the original's answer is. ``most``: the largest magnitude that is
    finite among samples and answer."""

    error: Mapping[str, Array]
    wild: Mapping[str, Array]
    tame: Mapping[str, Array]
    most: Mapping[str, Array]

    @classmethod
    def of(cls, first: Mapping[str, Array], runs: Sequence[Mapping[str, Array]], truth: Mapping[str, Array]) -> Noise:
        """What noisy ``runs`` of an original tell whose answer is ``first``."""
        error, wild, tame, most = {}, {}, {}, {}
        for name, right in truth.items():
            answers = [doubled(a[name]) for a in (first, *runs)] if is_float(runs[0][name].dtype) else []
            worst, largest = np.zeros(right.shape), np.zeros(right.shape)
            wild[name], tame[name] = np.zeros(right.shape, bool), np.zeros(right.shape, bool)
            if answers:
                wild[name] |= np.isfinite(answers[0]) & ~np.isfinite(doubled(right))
            for number, answer in enumerate(answers):
                finite = np.isfinite(answer)
                np.fmax(largest, np.where(finite, np.abs(answer), 0.0), out=largest)
                if number:
                    wild[name] |= ~finite
                    tame[name] |= finite
                    with np.errstate(invalid="ignore", over="ignore"):
                        off = np.abs(answer - doubled(right))
                    np.fmax(worst, np.where(np.isfinite(off), off, 0.0), out=worst)
            error[name], most[name] = worst, largest
        return cls(error, wild, tame, most)

    def with_more(self, other: Noise) -> Noise:
        """What these samples and others tell."""
        worst, most = (
            {name: np.maximum(a, two[name]) for name, a in one.items()}
            for one, two in ((self.error, other.error), (self.most, other.most))
        )
        wild, tame = (
            {name: a | two[name] for name, a in one.items()}
            for one, two in ((self.wild, other.wild), (self.tame, other.tame))
        )
        return Noise(worst, wild, tame, most)

    def undecided(self, name: str) -> Array:
        """Where it is rounding that decides if there is an answer, as of the root of n Σx² - (Σx)² where all x are
        alike."""
        return np.asarray(self.wild[name] & self.tame[name])

    @property
    def decides(self) -> bool:
        """Whether there is any such element. Of its likes, which differ by chance alone, a few samples miss some."""
        return any(np.any(self.undecided(name)) for name in self.wild)
