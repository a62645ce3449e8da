"""Sizes that fit: how many elements a case has, and smaller sizes for one that has too many."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from fsr.contract.model import Contract, Size
from fsr.expressions import evaluate_int, names

FIXED_ROOM, FIXED_ELEMENTS = 64, 3 << 17  # a table of 4096 rows leaves sizes so much of their own, up to so many


def named_in(extents: Iterable[str]) -> frozenset[str]:
    """The sizes that expressions mention, extents of a shape say."""
    return frozenset[str]().union(*map(names, extents))


def elements(contract: Contract, sizes: Mapping[str, int]) -> int:
    """Elements of all buffer arguments together, and of the scratch buffers of the contract's plan beyond what these
    have at the smallest sizes: what a case costs, to first order."""
    arguments = sum(math.prod(contract.shape(a, sizes)) for a in contract.buffers())
    return arguments + (_scratch(contract, sizes) if contract.plan.scratch else 0)


def _scratch(contract: Contract, sizes: Mapping[str, int]) -> int:
    """Scores of all positions by all, say, are the square of the arguments; a workspace of one length costs nothing
    more at one size than at another."""
    least = {name: min(low, sizes.get(name, low)) for name, low in smallest(contract).items()}
    return sum(
        max(evaluate_int(one.count, sizes) - max(evaluate_int(one.count, least), 0), 0) for one in contract.plan.scratch
    )


def clip(size: Size, value: int) -> int:
    """The legal value nearest to one."""
    return min(max(value, size.minimum), size.maximum)


def smallest(contract: Contract) -> dict[str, int]:
    """The smallest sizes that are any: 1, or what the contract asks for where it allows no 1."""
    return {s.name: clip(s, 1) for s in contract.sizes}


def fit(contract: Contract, sizes: dict[str, int], max_elements: int, pinned: str = "") -> dict[str, int]:
    """Halve the largest size that is not pinned until all buffers together have :func:`room`; then the pinned one."""
    most = room(contract, max_elements)
    while elements(contract, sizes) > most:
        less = halved(contract, sizes, pinned) or halved(contract, sizes)
        if less is None:
            break
        sizes = less
    return dict(sizes)


def room(contract: Contract, max_elements: int) -> int:
    """Elements that a case of ``max_elements`` may have: some more where extents that no size changes fill them. Tiles
    that a size counts are no such extents: of products of matrices a case takes as the cube of that."""
    fixed = sum(math.prod(int(x) for x in a.shape if x.isdigit()) for a in contract.buffers())
    return max(max_elements, min(FIXED_ROOM * fixed, FIXED_ELEMENTS))


def halved(contract: Contract, sizes: Mapping[str, int], pinned: str = "") -> dict[str, int] | None:
    """The sizes with the largest that is not pinned about half as large, odd; None where all are as small as may be."""
    lows = smallest(contract)
    free = [name for name in sizes if name != pinned and sizes[name] > lows[name]]
    if not free:
        return None
    name = max(free, key=lambda n: sizes[n])
    half = (sizes[name] // 2) | 1 if sizes[name] > 3 else sizes[name] - 1
    return {**sizes, name: max(lows[name], half)}
