"""Tiles of elements that a few blocks have to themselves, and which repetitions of a launch keep to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fsr.analysis.thread_state import Visit
from fsr.contract.model import repeats_of
from fsr.expressions import evaluate_int
from fsr.records import STEP, Launch
from fsr.transform.launch.spread_threads import BLOCKS, WIDTHS, Fit, Spread

Span = tuple[int, int]


@dataclass(frozen=True)
class Bound:
    """What a repetition must be told to keep to a tile: a value that is at most ``most``. ``text``: in C, of the
    kernel's parameters; ``value``: as a size expression, of the repetition's number too."""

    text: str
    value: str
    most: int


@dataclass(frozen=True)
class Rows:
    """The rows of a grid, and the elements of one in each buffer that has whole ones."""

    count: int
    lengths: Mapping[str, int]

    @property
    def sampled(self) -> list[int]:
        """Those that are looked at."""
        return sorted({0, min(1, self.count - 1), self.count // 2, self.count - 1})


@dataclass(frozen=True)
class Turn:
    """Repetitions that are told the same numbers, at sizes of which one is given. ``reach``: of each buffer, by block,
    the first and the last element that it goes to; ``fits``: or what tiles hold all, where threads are spread out."""

    numbers: tuple[int, ...]
    scalars: Mapping[str, int]
    grid: int
    reach: Mapping[str, Mapping[int, Span]]
    fits: Mapping[str, frozenset[Fit]] = field(default_factory=dict)


@dataclass(frozen=True)
class Tile:
    """``blocks`` have so many ``elements`` of each buffer to themselves in every repetition within the ``bound``; in
    all where there is none. ``spread``: how many times fewer threads have these elements, by repetition."""

    blocks: int
    elements: Mapping[str, int]
    bound: Bound | None
    spread: Spread | None = None

    def starts(self, launch: Launch, sizes: Mapping[str, int]) -> int:
        """Of a joined launch, those repetitions that do anything."""
        repeats = repeats_of(launch, sizes)
        if self.bound is None:
            return min(repeats, 1)
        told = [evaluate_int(self.bound.value, {**sizes, STEP: step}) for step in range(repeats)]
        kept = [value <= self.bound.most for value in told]
        return sum(not (at and kept[at - 1] and here) for at, here in enumerate(kept))


def between(text: str, value: str, keeping: Sequence[int], beyond: Sequence[int]) -> Bound | None:
    """The bound that all of the first keep, and none of the others."""
    return Bound(text, value, max(keeping)) if max(keeping) < min(beyond) else None


def sampled(grid: int) -> list[int]:
    """The first and the last block of some tiles, of each number of blocks that make one, and where halves, quarters
    and so on begin: in between, a step may leave whole tiles alone."""
    found = {grid >> part for part in range(1, grid.bit_length())}
    for blocks in BLOCKS:
        for tile in _tiles(grid, blocks):
            found |= {tile * blocks, min(tile * blocks + blocks, grid) - 1}
    return sorted(found)


def _tiles(grid: int, blocks: int) -> list[int]:
    last = (grid - 1) // blocks
    return sorted({0, min(1, last), last // 2, last})


def widen(reach: dict[int, Span], visit: Visit, part: list[int], rows: Rows) -> None:
    """Take in what a visit goes to."""
    assert visit.offsets is not None
    shape = (len(rows.sampled), len(part), -1)
    begins = np.asarray(rows.sampled)[:, None, None] * rows.lengths.get(visit.array, 0)
    lanes, offsets = visit.lanes.reshape(shape), visit.offsets.reshape(shape) - begins
    least = np.where(lanes, offsets, np.iinfo(np.int64).max).min(axis=(0, 2))
    most = np.where(lanes, offsets, np.iinfo(np.int64).min).max(axis=(0, 2))
    for block, low, high in zip(part, least.tolist(), most.tolist(), strict=True):
        if low <= high:
            before = reach.get(block, (low, high))
            reach[block] = min(low, before[0]), max(high, before[1])


def elements_of(turns: Sequence[Turn], blocks: int, threads: int) -> tuple[dict[str, int], list[Turn]]:
    """The fewest elements for each buffer of which most repetitions keep to a tile, and these repetitions."""
    elements, keeping = dict[str, int](), list(turns)
    for name in sorted({name for turn in turns for name in turn.reach}):
        kept = {w: [t for t in turns if _keeps(t, name, blocks, blocks * threads * w)] for w in WIDTHS}
        width = max(WIDTHS, key=lambda w: len(kept[w]))
        elements[name] = blocks * threads * width
        own = {id(turn) for turn in kept[width]}
        keeping = [turn for turn in keeping if id(turn) in own]
    return elements, keeping


def _keeps(turn: Turn, name: str, blocks: int, elements: int) -> bool:
    """Whether tiles of so many blocks hold all that any of these goes to."""
    own = turn.reach.get(name, {}).items()
    return all(low // elements == high // elements == block // blocks for block, (low, high) in own)


def spread_elements(turns: Sequence[Turn], spread: Spread, blocks: int, threads: int
                    ) -> tuple[dict[str, int], list[Turn]]:  # fmt: skip
    """The same where threads are spread out."""
    elements, keeping = dict[str, int](), list(turns)
    for name in sorted({name for turn in turns for name in turn.fits}):
        kept = {w: [t for t in turns if name not in t.fits or (spread, blocks, w) in t.fits[name]] for w in WIDTHS}
        width = max(WIDTHS, key=lambda w: len(kept[w]))
        elements[name] = blocks * threads * width
        own = {id(turn) for turn in kept[width]}
        keeping = [turn for turn in keeping if id(turn) in own]
    return elements, keeping
