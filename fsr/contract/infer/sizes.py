"""The sizes of an inferred kernel, and the ranges to test and to time them in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fsr.contract.infer.finding import Finding
from fsr.contract.model import Argument, Size
from fsr.expressions import evaluate_int, names

_TOTAL_TIMED = {1: (16777216,), 2: (4096, 4096), 3: (1024, 1024, 1024)}
MOST_TIMED, MOST_TESTED = 1 << 26, 1 << 31  # elements of the largest buffer, and blocks of a launch at most


def sizes_of(found: Finding, args: Sequence[Argument | None]) -> list[Size]:
    """Every named size: the scalars that are sizes, and names that only the launch knows."""
    wanted: list[str] = []
    for argument in args:
        if argument is not None:
            wanted += [n for text in argument.shape for n in sorted(names(text))]
            wanted += sorted(names(argument.value)) if argument.value else []
    if found.launch is not None:
        wanted += [n for text in (*found.launch.grid, found.launch.shared_bytes) for n in sorted(names(text))]
    ordered = list(dict.fromkeys(wanted))
    by_row = _row_sizes(found)
    sizes = [_size(found, name, i, len(ordered), by_row) for i, name in enumerate(ordered)]
    return _fitting(sizes, found, [a for a in args if a is not None])


def _fitting(sizes: list[Size], found: Finding, args: Sequence[Argument]) -> list[Size]:
    """The sizes, halved together until what they make together is no more than can be timed, and tested."""
    while (
        any(s.timed[0] > 16 for s in sizes) and _extent({s.name: s.timed[0] for s in sizes}, found, args) > MOST_TIMED
    ):
        sizes = [replace(s, timed=(max(1, s.timed[0] // 2),), maximum=max(1, s.maximum // 2)) for s in sizes]
    while _extent({s.name: s.maximum for s in sizes}, found, args) >= MOST_TESTED:
        smaller = [replace(s, maximum=max(s.timed[0], s.maximum // 2)) for s in sizes]
        if smaller == sizes:
            break
        sizes = smaller
    return sizes


def _extent(values: Mapping[str, int], found: Finding, args: Sequence[Argument]) -> int:
    """The elements of the largest buffer, or the blocks of the launch, if these are more."""
    grid = () if found.launch is None else found.launch.grid
    shapes = [[evaluate_int(text, values) for text in shape] for shape in (*(a.shape for a in args), grid)]
    return max(math.prod(shape) for shape in shapes)


def _row_sizes(found: Finding) -> set[str]:
    """Sizes that a thread or block runs over by itself, one row each."""
    assert found.walk is not None
    ends = {p.single for a in found.walk.accesses for n, p in a.bounds.items() if n[0] == "@" and n[1] not in "gbt"}
    outer = {p.single for p in (*found.walk.guards.values(), *found.bounds.values())}
    return {e for e in ends if e} if len([o for o in outer if o]) == 1 else set()


def _size(found: Finding, name: str, index: int, count: int, by_row: set[str]) -> Size:
    low = 1 if name in found.nonempty else 0
    if count == 2 and by_row:
        timed = 1024 if name in by_row else 8192
        return Size(name, low, 8192 if name in by_row else 65536, (timed,))
    timed = _TOTAL_TIMED.get(count, (256,) * count)[index]
    return Size(name, low, timed * 4, (timed,))
