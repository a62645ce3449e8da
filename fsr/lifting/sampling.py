"""At which sizes a plan is watched, at which it is checked, and which elements of an output are looked at."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from fsr.contract.model import Argument, Contract, Size, concrete_launches
from fsr.errors import ContractError
from fsr.expressions import evaluate_int
from fsr.records import Role
from fsr.testgen.fitting import smallest

Ints = np.ndarray[Any, np.dtype[np.int32]]
# Small, unlike each other in every column and every row, so that no relation between sizes looks like a law.
_STEPS = ((3, 5, 4, 6, 2, 7, 8), (6, 4, 7, 3, 5, 2, 9), (5, 7, 3, 8, 4, 6, 2), (4, 9, 6, 2, 7, 3, 5))
_FEW_STEPS = ((2, 1, 4, 3), (3, 2, 1, 4), (1, 4, 3, 5), (4, 3, 2, 1))  # where one more is a block of threads more
# Of extents and of distances in them: these are shorter than the half but in the last ones.
_HIGH = ((11, 9, 7, 5, 6), (8, 12, 6, 9, 5), (13, 7, 9, 6, 8), (5, 4, 6, 3, 7), (4, 6, 5, 7, 3))
_LOW = ((2, 3, 4), (3, 2, 2), (4, 3, 2), (7, 8, 6), (6, 7, 9))  # by 1 nothing is divided
_LONG = (301, 530, 263)  # more than a block, each size in its turn
_BLOCK, _MOST_BLOCK = 256, 4096  # elements that a block is taken to have; sizes grow with what it has by the contract
_CHECKS = ((37, 70, 41, 9, 5, 6, 3), (19, 34, 23, 5, 4, 3, 2), (9, 11, 8, 7, 5, 4, 3))
_NARROW = (1, 2, 3, 4)
_COUNTED = 4  # values of a size that is rather a choice
# Beyond borders that are a number of the source's own: nobody writes within so many of an edge.
# Even and odd, every way three times: what stands at a corner is not told by fewer.
_TURNED = (
    (19, 23, 13), (20, 24, 14), (26, 20, 15), (27, 21, 12), (22, 29, 17), (23, 30, 16), (24, 25, 19), (25, 26, 18),
    (29, 27, 11), (30, 22, 20), (21, 32, 10), (32, 31, 21), (1, 23, 13), (1, 24, 14), (23, 1, 15), (24, 1, 12),
)  # fmt: skip
_WIDE = (((19, 23, 12, 10), (26, 20, 14, 11), (22, 29, 10, 13)), ((41, 53, 31, 20), (57, 45, 27, 22), (49, 61, 24, 26)))
_LONG_CHECKS = (2311, 700, 290, 150)
_MOST_ELEMENTS = 1 << 20  # where few threads touch them, or no fewer are allowed
WATCHED_ELEMENTS, CHECKED_ELEMENTS = 1 << 15, 1 << 17
_WATCHED_THREADS, _CHECKED_THREADS = 1 << 15, 1 << 17
_IDLE_THREADS = 1 << 22  # of a launch that has as many at any sizes
MOST_CELLS, ALONG = 81, 5
TABLE_ELEMENTS = 1 << 20  # of an input that is as large at any sizes
PART_ELEMENTS = 1 << 26  # where even the least sizes are too many
FEW_BLOCKS, MOST_BLOCKS = 2, 12  # that run then
_FEW_ELEMENTS = 1 << 9  # so that sizes a few steps up are few, too
_WHOLE_NODES = 20_000  # of one run as a whole, beneath all elements that are looked at
ROOM_NODES = 300_000  # of a run with more blocks


def watched_sizes(contract: Contract) -> list[list[dict[str, int]]]:
    """Sets of sizes to watch at, each as far as the contract allows: a few small ones; then ones at which distances
    are shorter than what they lie in; then ones of which each size in its turn is larger than a block; then the small
    ones and such at which opposite edges are one. Empty when even the smallest are too many elements."""
    count = 4 if len(contract.sizes) > 2 else 3
    small = [_row(contract, row) for row in _STEPS[:count]]
    fitting = [c for c in small if _fits(contract, c, WATCHED_ELEMENTS, _WATCHED_THREADS)]
    if not fitting and all(_fits(contract, c, _MOST_ELEMENTS, 4 * _WATCHED_THREADS) for c in small):
        fitting = small  # as many threads at any sizes
    if len(fitting) < len(small):
        least = smallest(contract)
        steps = [least, *({**least, s.name: min(least[s.name] + 1, s.maximum)} for s in contract.sizes)]
        fitting += [c for c in steps if _fits(contract, c, _MOST_ELEMENTS, 4 * _WATCHED_THREADS)]
    sets = [_distinct(fitting), _short_distances(contract)]
    for block in sorted({_BLOCK, max([_BLOCK, *_per_block(contract)])}):
        long = _longer(contract, small, block)
        sets.append(_distinct([*long, *fitting[: 3 if len(long) < 3 else 2]]) if long or block == _BLOCK else [])
    sets.append(_distinct([*fitting, *_narrow(contract)]) if fitting else [])
    return [found for n, found in enumerate(sets) if found and found not in sets[:n]]


def _longer(contract: Contract, small: Sequence[Mapping[str, int]], block: int) -> list[dict[str, int]]:
    """Each size in its turn larger than a block of so many elements, the others small."""
    lengths = [n * block // _BLOCK for n in _LONG]
    found = [
        {**row, s.name: _near(s, lengths[(n + turn) % len(lengths)])}
        for n, s in enumerate(contract.sizes)
        for turn, row in enumerate(small[: max(1, 3 // len(contract.sizes))])
    ]
    return [c for c in found if _fits(contract, c, WATCHED_ELEMENTS, _WATCHED_THREADS)]


def _per_block(contract: Contract) -> list[int]:
    """By how many elements launches and buffers count blocks: the 1024 of ``ceil_div(n, 1024)``."""
    texts = [
        *(extent for a in contract.buffers() for extent in a.shape),
        *(g for x in contract.plan.launches for g in x.grid),
    ]
    found = (int(n) for text in texts for n in re.findall(r"ceil_div\([^()]*, *(\d+)\)", text))
    return [n for n in found if n <= _MOST_BLOCK]


def wide_sizes(contract: Contract) -> list[list[dict[str, int]]]:
    """Sets of sizes at which something is left within a border of a few elements, and within a thicker one."""
    sets = [_distinct([_row(contract, row) for row in rows]) for rows in _WIDE]
    fitting = [[c for c in found if _fits(contract, c, WATCHED_ELEMENTS, _WATCHED_THREADS)] for found in sets]
    return [found for found, all_ in zip(fitting, sets, strict=True) if len(found) == len(all_) > 1]


def turned_sizes(contract: Contract) -> list[dict[str, int]]:
    """Sizes at which every place of a short turn is at an edge, and at corners, of more than one of them."""
    found = _distinct([_row(contract, row) for row in _TURNED])
    return [c for c in found if _fits(contract, c, WATCHED_ELEMENTS, _WATCHED_THREADS)]


def smaller_sizes(contract: Contract) -> list[dict[str, int]]:
    """Sizes to watch at where a lot happens at the usual small ones; none where the contract allows no smaller ones."""
    count = 4 if len(contract.sizes) > 2 else 3
    usual, found = ([_row(contract, row) for row in rows[:count]] for rows in (_STEPS, _FEW_STEPS))
    most = [math.prod(row.values()) for row in (*usual, *found)]
    if 2 * max(most[count:]) > max(most[:count]) or len(_distinct(found)) < count:
        return []
    return [c for c in found if _fits(contract, c, WATCHED_ELEMENTS, _WATCHED_THREADS)]


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
    return _distinct([*found, *(c for c in _narrow(contract) if c not in watched), dict(watched[-1])])


def is_narrow(length: int) -> bool:
    """Whether a size is so small that opposite edges meet."""
    return length in _NARROW


def _narrow(contract: Contract) -> list[dict[str, int]]:
    """Sizes at which opposite edges, or what is a step or two from them, are one: each 1, 2 and so on beside each
    other; of more sizes than two one, or all but one."""
    row = _row(contract, _STEPS[0])
    if len(contract.sizes) < 3:
        along = [[*_NARROW, row[s.name]] for s in contract.sizes]
        found = [dict(zip(row, at, strict=True)) for at in itertools.product(*along)]
    else:
        found = [{**row, **thin} for w in _NARROW[:2] for thin in (dict.fromkeys(row, w), *({n: w} for n in row))]
        found += [{**dict.fromkeys(row, 1), n: w} for w in _NARROW[1:3] for n in row]
    low = {s.name: s for s in contract.sizes}
    found = [c for c in found if all(low[n].minimum <= v <= low[n].maximum for n, v in c.items())]
    return [c for c in _distinct(found) if c != row and _fits(contract, c, WATCHED_ELEMENTS, _WATCHED_THREADS)]


def distances(contract: Contract) -> list[str]:
    """The sizes that are no buffer's extent: a window's radius, a lag."""
    extents = {x for a in contract.buffers() for dim in a.shape for x in view((dim,))}
    return [s.name for s in contract.sizes if s.name not in extents]


def _short_distances(contract: Contract) -> list[dict[str, int]]:
    """Sizes of which those that are distances are short; none where all are, or there is none."""
    apart = distances(contract)
    own = [s for s in contract.sizes if s.name in apart]
    others = [s for s in contract.sizes if s.name not in apart]
    if not own or not others:
        return []
    rows = [
        {
            s.name: _near(s, row[n % len(row)])
            for group, row in ((others, high), (own, low))
            for n, s in enumerate(group)
        }
        for high, low in zip(_HIGH, _LOW, strict=True)
    ]
    return [c for c in _distinct(rows) if _fits(contract, c, WATCHED_ELEMENTS, _WATCHED_THREADS)]


def least_sizes(contract: Contract) -> dict[str, int] | None:
    """The smallest sizes that are any, to be watched in part; None where even they are too large."""
    sizes = smallest(contract)
    return sizes if _fits(contract, sizes, PART_ELEMENTS, PART_ELEMENTS) else None


def spread_sizes(contract: Contract) -> list[dict[str, int]]:
    """As few threads as sizes can be told apart with: the smallest ones, each in its turn a little larger than most
    fixed lengths of a few, and all unlike each other."""
    least = smallest(contract)
    most = {s.name: s.maximum for s in contract.sizes}
    more = 5 if _fits(contract, least, _FEW_ELEMENTS, _FEW_ELEMENTS) else 1
    rows = [{**least, n: low + more} for n, low in least.items()]
    rows += [{n: low + 1 + turn % 2 for turn, (n, low) in enumerate(least.items())}, least]
    found = [{n: min(v, most[n]) for n, v in row.items()} for row in rows]
    return [c for c in _distinct(found) if _fits(contract, c, PART_ELEMENTS, PART_ELEMENTS)]


def part_of(grid: Sequence[int], count: int, others: Sequence[int] = ()) -> list[int]:
    """The numbers of so many blocks of a grid at most: the first, the last, and some between, where a row of data may
    begin or end. ``others``: numbers to take blocks by in the middle's place."""
    x, y, _ = grid
    chosen = []
    for turn in range(count):
        ends = [
            [0, n - 1, n // 2, n // 2 - 1, n // 3, 1, n - 2, n // 5, n // 7, n // 4, n // 4 - 1, n // 9] for n in grid
        ]
        steps = (1, 1 if turn < 2 else 5, 1)
        at = [min(max(0, e[(turn * k) % len(e)]), n - 1) for e, k, n in zip(ends, steps, grid, strict=True)]
        chosen.append((at[2] * y + at[1]) * x + at[0])
    if others:
        chosen[2:] = [others[n] % math.prod(grid) for n in range(len(chosen[2:]))]
    return list(dict.fromkeys(chosen))


def some_threads(block: Sequence[int]) -> tuple[int, ...]:
    """The numbers of some threads of a block: of each dimension the first four, the last two, one in the middle."""
    along = [sorted({*range(min(n, 4)), n // 2, *range(max(n - 2, 0), n)}) for n in block]
    return tuple((z * block[1] + y) * block[0] + x for z in along[2] for y in along[1] for x in along[0])


def _row(contract: Contract, row: Sequence[int]) -> dict[str, int]:
    return {s.name: _near(s, row[n % len(row)]) for n, s in enumerate(contract.sizes)}


def _near(size: Size, value: int) -> int:
    """The value, or one of the size's own near to it; one after the other of a few that are all there are."""
    count = size.maximum - size.minimum + 1
    if 1 < count <= _COUNTED:
        return size.minimum + value % count
    low = max(size.minimum, 1)
    return min(max(value, low + value - 2 if low > 2 else low), size.maximum)


def _fits(contract: Contract, sizes: Mapping[str, int], elements: int, threads: int) -> bool:
    try:
        own = [a for a in contract.buffers() if not _is_table(contract, a)]
        total = sum(math.prod(contract.shape(a, sizes)) for a in own)
        return total <= elements and _threads(contract, sizes) <= max(threads, _always(contract))
    except ContractError:
        return False


def _threads(contract: Contract, sizes: Mapping[str, int]) -> int:
    """How many threads the launches have. Raises ContractError."""
    launches = concrete_launches(contract.plan, contract, sizes, {})
    return sum(math.prod(x.grid) * math.prod(x.block) for x in launches)


@lru_cache(maxsize=64)
def _always(contract: Contract) -> int:
    """How many threads there are at the smallest sizes, where they are no more at others: a grid of as many blocks as
    fill a GPU, most of which find nothing to do at small sizes. 0 where threads grow with sizes, are too many, or where
    there are no other sizes: they find enough to do then."""
    rows = [smallest(contract), _row(contract, _CHECKS[0])]
    if rows[0] == rows[1]:
        return 0
    try:
        few, many = (_threads(contract, r) for r in rows)
    except ContractError:  # a launch that there is at others alone
        return 0
    return few if few == many <= _IDLE_THREADS else 0


def _is_table(contract: Contract, a: Argument) -> bool:
    """Whether a buffer is only read and as large at any sizes: it takes room, and no work but of what reads it."""
    named = any(re.search(r"[A-Za-z_]", extent) for extent in a.shape)
    return bool(contract.sizes) and a.role is Role.IN and not named and math.prod(map(int, a.shape)) <= TABLE_ELEMENTS


def _distinct(found: Sequence[dict[str, int]]) -> list[dict[str, int]]:
    return list({tuple(sorted(c.items())): c for c in found}.values())


# ---------------------------------------------------------------- buffers as arrays


def view(shape: Sequence[str]) -> tuple[str, ...]:
    """A buffer's dimensions: a product of names that stands for one is taken apart, ``rows * cols`` into two, and so
    is a window of so many by so many beside a name, ``channels * 9`` into three."""
    return tuple(itertools.chain.from_iterable(map(_factors, shape)))


def _factors(text: str) -> Iterator[str]:
    parts = [p.strip() for p in _top_level(text)]
    named = [bool(re.search(r"[A-Za-z_]", p)) for p in parts]
    if any(not p for p in parts) or sum(named) + sum(map(bool, map(_window, parts))) < 2 or not any(named):
        yield text
        return
    held = ""
    for p, name in zip(parts, named, strict=True):
        if name:
            yield f"{held}{p}"
            held = ""
        elif window := _window(p):
            yield from window
        else:
            held = f"{held}{p} * "
    if held:
        yield held.removesuffix(" * ")


def _window(text: str) -> list[str]:
    """The sides of a window of so many elements: 3 and 3 of 9; none of what is no power of an odd number."""
    sides = ((side, rank) for side in range(3, 12, 2) for rank in (2, 3) if text == str(side**rank))
    return next(([str(side)] * rank for side, rank in sides), [])


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


def cells(shape: Sequence[int], beneath: float = 1.0) -> list[tuple[int, ...]]:
    """Elements of an output to look at: all of a small one, else a grid of first, middle and last indices.
    ``beneath``: how many nodes an element has; of many, few elements where these lie along one or two dimensions."""
    along = [list(range(n)) for n in shape]
    width = ALONG + 3
    most = int(np.clip(_WHOLE_NODES / max(beneath, 1.0), min(width ** len(shape), MOST_CELLS), MOST_CELLS))
    while math.prod(map(len, along)) > most and width > 2:
        along = [_some(n, width) for n in shape]
        width -= 1
    return list(itertools.product(*along))


def _some(n: int, count: int) -> list[int]:
    if n <= count:
        return list(range(n))
    middle = [round(1 + (n - 2) * k / (count - 1)) for k in range(1, count - 2)]
    return sorted({0, 1, *middle, n - 1})[:count] if count > 2 else [0, n - 1]
