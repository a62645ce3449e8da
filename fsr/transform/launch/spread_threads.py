"""Threads that are spread out over elements: by repetition, one has more of them between itself and the next.

Rounds in which element ``2 * stride * t`` takes the better of itself and ``+ stride``, the sweeps of a scan up and down
a tree: thread t goes to elements near ``t * stride`` of what it would go to at first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fsr.analysis.thread_state import Visit
from fsr.analysis.word_values import Values

BLOCKS = (1, 2, 4, 8, 16)  # whose elements make a tile
WIDTHS = (1, 2, 4, 8)  # elements of a tile for each thread
_MOST_BITS = 30

Gone = tuple[list[int], list[Visit]]
"""Blocks, and what their threads go to."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How far threads are spread out: by a number that repetitions are told, or (``shifted``) by two to that."""

    name: str
    shifted: bool

    def of(self, told: int) -> int:
        """How many times fewer threads have a tile; 0 for what is none."""
        if self.shifted:
            return 1 << told if 0 <= told <= _MOST_BITS else 0
        return told if 0 < told < 1 << _MOST_BITS else 0

    @property
    def text(self) -> str:
        """The same in C."""
        return f"(1u << {self.name})" if self.shifted else f"(unsigned){self.name}"


Fit = tuple[Spread, int, int]
"""Tiles of so many blocks, and elements for each thread, that hold all of one turn."""


def spreads(told: Sequence[str]) -> list[Spread]:
    """The ways to spread threads out by what repetitions are told."""
    return [Spread(name, shifted) for name in told for shifted in (False, True)]


def fits_of(gone: Sequence[Gone], threads: int, told: Mapping[str, int]) -> dict[str, frozenset[Fit]]:
    """For each buffer the tiles that hold all that threads go to: every thread's own in the tile that it counts to."""
    found = dict[str, set[Fit]]()
    for part, visited in gone:
        ids = (np.asarray(part)[:, None] * threads + np.arange(threads)).ravel()
        for visit in visited:
            assert visit.offsets is not None
            own = set(_fits(ids[visit.lanes], visit.offsets[visit.lanes], threads, told))
            found[visit.array] = found.get(visit.array, own) & own
    return {name: frozenset(fits) for name, fits in found.items()}


def _fits(ids: Values, offsets: Values, threads: int, told: Mapping[str, int]) -> Iterator[Fit]:
    for spread in spreads(list(told)):
        times = spread.of(told[spread.name])
        for blocks in BLOCKS if times else ():
            tile = ids // max(blocks * threads // times, 1)
            for width in WIDTHS if blocks * threads % times == 0 else ():
                if np.array_equal(offsets // (blocks * threads * width), tile):
                    yield spread, blocks, width
