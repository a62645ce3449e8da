"""Many cases of a few elements each, with other values every time, and cases that go through the values of one size
while the others are small.

What goes wrong where several things meet mostly does so among a few of them already (the small scope hypothesis: D.
Jackson, Software Abstractions, 2006), and there it is common: three rows whose numbers only look like a run's are rare
among hundreds of numbers. Each such case costs next to nothing. What goes wrong at some values of a size, as a bin that
is told by a rounded quotient, is met by many of its values.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fsr.contract.model import Contract, Size
from fsr.records import Case
from fsr.testgen.cases import families_of, new_case, stream
from fsr.testgen.fitting import clip, fit

SMALL, SWEPT = 40, 16  # cases in which all is small, and values of a size that is gone through
_FEW, _FEWER = 9, 4  # elements along a size
_MOST_SWEPT, _MOST_VALUES = 48, 1024  # cases of all sizes together; the largest value that is tried


def small_cases(contract: Contract, seed: int, max_elements: int) -> list[Case]:
    """The cases; none where a contract has no size that varies."""
    rng = stream("small worlds", contract, seed)
    varying = [s for s in contract.sizes if s.minimum < s.maximum]
    if not varying:
        return []
    families = [str(f) for f in rng.permutation(families_of(contract))]
    found = [
        new_case(f"few {n}", fit(contract, _few(contract, _FEW, rng), max_elements), families[n % len(families)], rng)
        for n in range(SMALL)
    ]
    each = max(1, min(SWEPT, _MOST_SWEPT // len(varying)))
    for size in varying:
        for value in _values(size, each, rng):
            sizes = fit(contract, _few(contract, _FEWER, rng) | {size.name: value}, max_elements, pinned=size.name)
            found.append(new_case(f"few but {size.name} {value}", sizes, "normal", rng))
    return found


def _few(contract: Contract, most: int, rng: np.random.Generator) -> dict[str, int]:
    return {s.name: clip(s, max(s.minimum, 1) + int(rng.integers(most))) for s in contract.sizes}


def _values(size: Size, count: int, rng: np.random.Generator) -> Iterator[int]:
    """Some values of a size that are not small, each once."""
    low, high = size.minimum + _FEW, min(size.maximum, max(size.minimum + _FEW, _MOST_VALUES))
    if low <= high:
        yield from sorted({int(v) for v in rng.integers(low, high + 1, count)} | {high})
