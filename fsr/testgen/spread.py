"""Sizes that few draws reach: any value of a small range, and several at their most together.

An index that is divided by way of a float is wrong for one divisor of eight (41, 47, 55, ...), which no landmark is; a
halo is too wide only where the radius and the dilation both are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fsr.contract.model import Contract, Size
from fsr.testgen.fitting import clip, elements, fit, smallest

SMALL_RANGE = 4096  # values of a size that are gone through in so many even steps as there are cases
SPREAD, TOGETHER = 16, 8  # cases
TILE = 128  # of threads or elements, as most kernels deal lines out
MOST_TILES = 4


def spread_sizes(contract: Contract, rng: np.random.Generator, max_elements: int) -> Iterator[dict[str, int]]:
    """Sizes of small ranges in even steps, each in an order of its own (McKay, Beckman, Conover, "A comparison of three
    methods for selecting values of input variables", Technometrics 1979); others middling. None where no size has one
    that landmarks do not go through."""
    ranged = [s for s in contract.sizes if TILE // 8 <= s.maximum - s.minimum < SMALL_RANGE]
    if not ranged:
        return
    drawn = {s.name: _strata(s, rng) for s in ranged}
    for number in range(SPREAD):
        sizes = {s.name: clip(s, int(rng.integers(2, 20))) for s in contract.sizes}
        sizes |= {name: int(values[number]) for name, values in drawn.items()}
        pinned = ranged[number % len(ranged)].name
        least = elements(contract, smallest(contract) | {pinned: sizes[pinned]})
        yield fit(contract, sizes, max(max_elements, least + least // 4), pinned=pinned)


def sizes_together(contract: Contract, rng: np.random.Generator, max_elements: int) -> Iterator[dict[str, int]]:
    """Several sizes at their upper ends at once, as far as there is room, the others a little past whole tiles."""
    bounded = [s for s in contract.sizes if s.minimum < s.maximum < SMALL_RANGE]
    if len(bounded) < 2:
        return
    for _ in range(TOGETHER):
        sizes = {s.name: clip(s, int(rng.integers(1, 4))) for s in contract.sizes}
        order = [contract.sizes[i] for i in rng.permutation(len(contract.sizes))]
        for size in order:
            past = TILE * int(rng.integers(1, MOST_TILES)) + int(rng.integers(1, 9))
            for value in (size.maximum, past, past % TILE)[int(size not in bounded or rng.integers(4) == 0) :]:
                more = {**sizes, size.name: clip(size, value)}
                if elements(contract, more) <= max_elements:
                    sizes = more
                    break
        yield sizes


def _strata(size: Size, rng: np.random.Generator) -> np.ndarray:
    low = clip(size, 1)
    count = size.maximum - low + 1
    places = (np.arange(SPREAD) + rng.random(SPREAD)) * count / SPREAD
    return low + rng.permutation(places.astype(np.int64))
