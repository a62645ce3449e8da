"""Sizes that stand in a relation to one another: equal, products and sums that are equal though no size is.

``oh * ow == h * w`` is true of a copy, and of 2 by 3 made 3 by 2. Sizes drawn one by one hardly ever meet so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from fsr.contract.model import Contract, Size
from fsr.testgen.cases import HOST_ELEMENTS
from fsr.testgen.draws import Array
from fsr.testgen.fitting import elements, named_in

SMOOTH = (2, 3, 4, 6, 8, 9, 12, 16, 18, 24, 32, 36, 48, 64)  # their products and sums meet often
TRIED = 4000
MOST = {2: 1, 3: 2}  # cases, by how many sizes there are
MOST_OF_MORE = 4
SIDE_BY_SIDE, OF_BUFFERS = 40.0, 2.0  # what a relation counts between the last axes of two buffers, between two buffers
WORTH = 1.0  # what a case must add


def related_sizes(contract: Contract, rng: np.random.Generator) -> list[dict[str, int]]:
    """A few choices of all sizes in which as many relations hold as can be."""
    free = [s for s in contract.sizes if s.minimum < s.maximum]
    if len(free) < 2:
        return []
    tried = {s.name: rng.choice(_values(s), TRIED) for s in contract.sizes}
    known = list(_relations(contract, [s.name for s in free], tried))
    holds = np.array([true for _, true in known])
    weights = np.array([weight for weight, _ in known])
    found: list[dict[str, int]] = []
    for _ in range(MOST.get(len(free), MOST_OF_MORE)):
        gains = weights @ holds
        for at in np.argsort(-gains, kind="stable")[:64]:
            sizes = {name: int(values[at]) for name, values in tried.items()}
            if gains[at] >= WORTH and elements(contract, sizes) <= HOST_ELEMENTS:
                found.append(sizes)
                weights = np.where(holds[:, at], 0.0, weights)
                break
    return found


def _values(size: Size) -> Array:
    kept = [v for v in SMOOTH if size.minimum <= v <= size.maximum]
    low = max(size.minimum, 1)
    return np.array(kept or [v for v in (low, low + 1, 2 * low) if v <= size.maximum] or [size.maximum])


def _relations(contract: Contract, names: list[str], at: dict[str, Array]) -> Iterator[tuple[float, Array]]:
    """What each relation counts, and where it holds."""
    for a, b in itertools.combinations(names, 2):
        yield 1.0, at[a] == at[b]
        yield 0.25, (at[a] == 2 * at[b]) | (at[b] == 2 * at[a])
    for three in itertools.combinations(names, 3):
        for c in three:
            a, b = (n for n in three if n != c)
            yield 0.5, at[a] * at[b] == at[c]
            yield 0.5, at[a] + at[b] == at[c]
    for four in itertools.combinations(names, 4):
        for b in four[1:]:
            a, (c, d) = four[0], (n for n in four[1:] if n != b)
            weight = _weight(contract, {a, b}, {c, d})
            other = (at[a] != at[c]) & (at[a] != at[d])
            yield weight, other & (at[a] * at[b] == at[c] * at[d])
            yield weight, other & (at[a] + at[b] == at[c] + at[d])
            for one, two in ((c, d), (d, c)):  # a product and a sum of the same sizes, in the same order or not
                yield weight, (at[a] == at[one]) & (at[b] == at[two]) & (at[a] != at[b])


def _weight(contract: Contract, first: set[str], second: set[str]) -> float:
    weight = 0.5
    for one, other in itertools.permutations(contract.buffers(), 2):
        for axes, counts in ((slice(-2, None), SIDE_BY_SIDE), (slice(None), OF_BUFFERS)):
            if first <= named_in(one.shape[axes]) - named_in(other.shape) and second <= named_in(other.shape[axes]):
                weight = max(weight, counts)
    return weight
