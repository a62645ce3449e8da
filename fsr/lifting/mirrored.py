"""A few terms of one form that differ by the dimension that an index of theirs is: the factors of ``a[i, k] * a[j, k]``
(products of a matrix and its transpose, covariances, similarities), in whatever order a run shows them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from fsr.lifting.points import Points

_MOST_TERMS, _MOST_WAYS = 4, 16
_NONE: list[list[int]] = []

Vectors = Sequence[Sequence[tuple[int, ...]]]  # of each sample's terms


def orders(
    points: Points, by: Sequence[Sequence[int]], indices: Callable[[int], tuple[int, ...]], sizes: Sequence[str]
) -> Iterator[Sequence[Sequence[int]]]:
    """The terms of each sample, as many everywhere, in orders in which those at one place may be one expression: as
    they are, by their indices, by the dimensions that these are."""
    yield by
    yield [sorted(items, key=indices) for items in by]
    found = by_dimension(points, by, [[indices(k) for k in items] for items in by], sizes)
    if found:
        yield found


def by_dimension(
    points: Points, by: Sequence[Sequence[int]], vectors: Vectors, sizes: Sequence[str]
) -> list[list[int]]:
    """The terms of each sample in such an order that at each place every index is one dimension, or the same for all
    terms of a sample; none where there is no such order, or too many might be one. ``by``: as many terms at every
    sample; ``vectors``: their indices."""
    count = len(by[0])
    if not 2 <= count <= _MOST_TERMS or len({len(v) for items in vectors for v in items}) != 1:
        return _NONE
    every = np.array(vectors, np.int64)  # samples, terms, indices
    apart = [c for c in range(every.shape[2]) if (every[:, :, c] != every[:, :1, c]).any()]
    loops = [n for n in points.columns if n not in sizes]
    fitting = [[v for v in loops if (every[:, :, c] == points.columns[v][:, None]).any(1).all()] for c in apart]
    ways = list(itertools.islice(itertools.product(*fitting), _MOST_WAYS + 1)) if apart else []
    if len(ways) > _MOST_WAYS:
        return _NONE
    there = every[:, :, apart].tolist()
    for chosen in itertools.combinations(ways, count):
        wanted = np.stack([np.stack([points.columns[v] for v in way], 1) for way in chosen], 1).tolist()
        if all(sorted(a) == sorted(b) for a, b in zip(there, wanted, strict=True)):
            return [_placed(items, a, b) for items, a, b in zip(by, there, wanted, strict=True)]
    return _NONE


def _placed(items: Sequence[int], there: Sequence[list[int]], wanted: Sequence[list[int]]) -> list[int]:
    left, found = list(zip(items, there, strict=True)), list[int]()
    for place in wanted:
        k = next(k for k, (_, at) in enumerate(left) if at == place)
        found.append(left.pop(k)[0])
    return found
