"""Cases drawn to go where others do not: code that runs for few data, or none, of the ordinary cases.

A search guided by coverage, as fuzzers do it (Zalewski, "American Fuzzy Lop", 2013; LLVM's libFuzzer): inputs are drawn
widely, and those that run what few others ran are kept.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fsr.backends.protocol import Coverage
from fsr.contract.model import Contract, Size
from fsr.records import Case, CaseKind
from fsr.testgen.aimed import value_families
from fsr.testgen.cases import families_of, new_case, stream
from fsr.testgen.fitting import clip, fit
from fsr.testgen.numbers import numbers

ENOUGH = 3  # cases that run a part: what one case alone shows, other values of it may hide
DRAWS = 160
ELEMENTS = 1 << 18  # of all buffers: an image that few threads look into may have to be large
MOST = 12  # cases kept
FEW = 32  # a size below it is often drawn anyway
CLOSE = 0.25  # chance of each step towards a number that a source names to be the last: three steps, and more at times
Run = Callable[[Case], Coverage | None]


@dataclass(frozen=True, slots=True)
class Covered:
    """``cases``: those that were drawn and kept. ``never``: lines that no case ran."""

    cases: tuple[Case, ...]
    never: tuple[int, ...]


class _Tally:
    """How many cases ran each part. Functions of which none ran any part are left out: one that is inlined where it is
    called stands for itself once more, where nothing calls it; that a call is never come to shows where it stands."""

    def __init__(self) -> None:
        self.parts: dict[int, tuple[int, int]] = {}
        self.counts = Counter[int]()

    def add(self, seen: Coverage) -> None:
        self.parts |= seen.parts
        self.counts.update(seen.ran)

    def fewer(self, count: int) -> set[int]:
        """Parts that fewer cases ran."""
        called = {self.parts[part][0] for part in self.counts}
        return {part for part, (function, _) in self.parts.items() if function in called and self.counts[part] < count}


def covering(known: Iterable[Case], drawn: Iterable[Case], run: Run) -> Covered:
    """Cases of ``drawn``, at most :data:`MOST`, that run parts which fewer than :data:`ENOUGH` of ``known`` run.
    ``run``: what a case goes through; None where it does not run."""
    tally, kept = _Tally(), list[Case]()
    for case in known:
        if (seen := run(case)) is not None:
            tally.add(seen)
            if not tally.parts:  # no tool here tells them
                return Covered((), ())
        if tally.counts and not tally.fewer(ENOUGH):
            return Covered((), ())
    for case in drawn:
        rare = tally.fewer(ENOUGH)
        if not rare or len(kept) == MOST:
            break
        seen = run(case)
        if seen is not None and seen.ran & rare:
            kept.append(case)
            tally.add(seen)
    lines = {tally.parts[part][1] for part in tally.fewer(1)}
    ran = {tally.parts[part][1] for part in tally.counts}
    return Covered(tuple(kept), tuple(sorted(lines - ran)))


def wide_draws(contract: Contract, seed: int, source: str) -> Iterator[Case]:
    """:data:`DRAWS` cases of all kinds of values, those around the numbers of the source among them. One size after
    another is drawn evenly or about a number of the source, the others evenly in their logarithms, as large as there is
    room."""
    rng = stream("coverage", contract, seed)
    named = sorted(n for n in numbers(source) if n >= FEW)
    names = [s.name for s in contract.sizes]
    families = ["normal", "uniform", *value_families(source), *families_of(contract)]
    for number in range(DRAWS):
        pinned = names[number % len(names)] if names else ""
        sizes = {s.name: _drawn(s, rng, named if s.name == pinned else None) for s in contract.sizes}
        fitted = fit(contract, sizes, ELEMENTS, pinned=pinned)
        family = families[number % 2] if number % 4 < 2 else families[int(rng.integers(len(families)))]
        yield new_case(f"coverage {number}", fitted, family, rng, CaseKind.HELD_OUT)


def _drawn(size: Size, rng: np.random.Generator, named: Sequence[int] | None) -> int:
    """A size of a draw. ``named``: numbers that the source may treat it apart at; None for one that gives way."""
    low, high = clip(size, 1), size.maximum
    if high < 1:
        return high
    about = [n for n in named or () if low <= n <= high]
    if about and rng.integers(2):
        off = int(rng.geometric(CLOSE)) - 1
        drawn = about[int(rng.integers(len(about)))] + (off if rng.integers(2) else -off)
    elif named is not None and rng.integers(2):
        drawn = int(rng.integers(low, high, endpoint=True))
    else:
        drawn = round(math.exp(rng.uniform(math.log(low), math.log(high))))
    return clip(size, drawn)
