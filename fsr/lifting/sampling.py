"""At which sizes a plan is watched, at which it is checked, and which elements of an output are looked at."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from fsr.contract.model import Contract, Size, concrete_launches
from fsr.errors import ContractError
from fsr.expressions import evaluate_int

# Small, unlike each other in every column and every row, so that no relation between sizes looks like a law.
_STEPS = ((3, 5, 4, 6, 2, 7, 8), (6, 4, 7, 3, 5, 2, 9), (5, 7, 3, 8, 4, 6, 2), (4, 9, 6, 2, 7, 3, 5))
_LONG = (301, 530, 263)  # more than a block, each size in its turn
_CHECKS = ((37, 70, 41, 9, 5, 6, 3), (19, 34, 23, 5, 4, 3, 2), (9, 11, 8, 7, 5, 4, 3))
_LONG_CHECKS = (2311, 700, 290, 150)
WATCHED_ELEMENTS, CHECKED_ELEMENTS = 1 << 15, 1 << 17
_WATCHED_THREADS, _CHECKED_THREADS = 1 << 15, 1 << 17
MOST_CELLS, _ALONG = 81, 5


def watched_sizes(contract: Contract) -> list[list[dict[str, int]]]:
    """Sets of sizes to watch at, each as far as the contract allows: a few small ones; then ones of which each size in
    its turn is larger than a block. Empty when even the smallest are too many elements."""
    count = 4 if len(contract.sizes) > 2 else 3
    small = [_row(contract, row) for row in _STEPS[:count]]
    fitting = [c for c in small if _fits(contract, c, WATCHED_ELEMENTS, _WATCHED_THREADS)]
    if len(fitting) < len(small):
        least = {s.name: max(s.minimum, 1) for s in contract.sizes}
        steps = [least, *({**least, s.name: min(least[s.name] + 1, s.maximum)} for s in contract.sizes)]
        fitting += [c for c in steps if _fits(contract, c, 8 * WATCHED_ELEMENTS, 4 * _WATCHED_THREADS)]
    long = [
        {**row, s.name: _near(s, _LONG[(n + turn) % len(_LONG)])}
        for n, s in enumerate(contract.sizes)
        for turn, row in enumerate(small[: max(1, 3 // len(contract.sizes))])
    ]
    long = [c for c in long if _fits(contract, c, WATCHED_ELEMENTS, _WATCHED_THREADS)]
    sets = [_distinct(fitting), _distinct([*long, *fitting[: 3 if len(long) < 3 else 2]])]
    return [found for n, found in enumerate(sets) if found and found not in sets[:n]]


def checked_sizes(contract: Contract, watched: Sequence[Mapping[str, int]]) -> list[dict[str, int]]:
    """Sizes to check at: larger ones that were not watched, each size in its turn far larger, a watched one. At least
    the last where the contract has no others."""
    found = []
    for row in _CHECKS:
        sizes = _row(contract, row)
        if sizes not in watched and _fits(contract, sizes, CHECKED_ELEMENTS, _CHECKED_THREADS):
            found.append(sizes)
            break
    for n, s in enumerate(contract.sizes):
        for length in _LONG_CHECKS:
            sizes = {**_row(contract, _STEPS[n % 3]), s.name: _near(s, length)}
            if sizes not in watched and _fits(contract, sizes, CHECKED_ELEMENTS, _CHECKED_THREADS):
                found.append(sizes)
                break
    if not found:
        for more in (3, 2, 1):
            sizes = {s.name: min(max(w[s.name] for w in watched) + more, s.maximum) for s in contract.sizes}
            if sizes not in watched and _fits(contract, sizes, 8 * CHECKED_ELEMENTS, 4 * _CHECKED_THREADS):
                found.append(sizes)
                break
    return _distinct([*found, dict(watched[-1])])


def _row(contract: Contract, row: Sequence[int]) -> dict[str, int]:
    return {s.name: _near(s, row[n % len(row)]) for n, s in enumerate(contract.sizes)}


def _near(size: Size, value: int) -> int:
    low = max(size.minimum, 1)
    return min(max(value, low + value - 2 if low > 2 else low), size.maximum)


def _fits(contract: Contract, sizes: Mapping[str, int], elements: int, threads: int) -> bool:
    try:
        total = sum(math.prod(contract.shape(a, sizes)) for a in contract.buffers())
        launches = concrete_launches(contract.plan, contract, sizes, {})
    except ContractError:
        return False
    return total <= elements and sum(math.prod(x.grid) * math.prod(x.block) for x in launches) <= threads


def _distinct(found: Sequence[dict[str, int]]) -> list[dict[str, int]]:
    return list({tuple(sorted(c.items())): c for c in found}.values())


# ---------------------------------------------------------------- buffers as arrays


def view(shape: Sequence[str]) -> tuple[str, ...]:
    """A buffer's dimensions: a product of names that stands for one is taken apart, ``rows * cols`` into two."""
    return tuple(itertools.chain.from_iterable(map(_factors, shape)))


def _factors(text: str) -> Iterator[str]:
    parts = [p.strip() for p in _top_level(text)]
    if any(not p for p in parts) or sum(bool(re.search(r"[A-Za-z_]", p)) for p in parts) < 2:
        yield text
        return
    held = ""
    for p in parts:
        if re.search(r"[A-Za-z_]", p):
            yield f"{held}{p}"
            held = ""
        else:
            held = f"{held}{p} * "
    if held:
        yield held.removesuffix(" * ")


def _top_level(text: str) -> list[str]:
    parts, depth, start = list[str](), 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0 and letter in "+-/%" and text[at - 1 : at + 1] != "**":
            return [text]
        if depth == 0 and letter == "*" and "**" not in text:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def shape_at(dims: Sequence[str], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """A view's extents."""
    return tuple(evaluate_int(d, sizes) for d in dims)


def cells(shape: Sequence[int]) -> list[tuple[int, ...]]:
    """Elements of an output to look at: all of a small one, else a grid of first, middle and last indices."""
    along = [list(range(n)) for n in shape]
    width = _ALONG + 3
    while math.prod(map(len, along)) > MOST_CELLS and width > 2:
        along = [_some(n, width) for n in shape]
        width -= 1
    return list(itertools.product(*along))


def _some(n: int, count: int) -> list[int]:
    if n <= count:
        return list(range(n))
    middle = [round(1 + (n - 2) * k / (count - 1)) for k in range(1, count - 2)]
    return sorted({0, 1, *middle, n - 1})[:count] if count > 2 else [0, n - 1]
