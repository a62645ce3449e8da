"""Which blocks of a kernel write given elements: a guess, which spares a case that is judged in part the others.

What they leave out, or get wrong, is to be asked of all blocks before it is told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fsr.backends.protocol import Array
from fsr.evaluation.testing import Runnable, run_blocks
from fsr.records import Case
from fsr.testgen.parts import FEW, Part
from fsr.testgen.placing import place
from fsr.testgen.values import CaseData, changed, outputs

PROBES = 3  # blocks at random on which the guess is tried
AS_GUESSED = 0.9  # of what such a block writes
PROBE_S = 5.0
STRIDE = 1 << 20  # elements looked at together
Places = Mapping[str, Array]


class BlockMap:
    """Which block of a kernel writes an element, by a guess from a few: that what a block writes is what the first one
    does, moved by a fixed distance for each step in each dimension of the grid."""

    def __init__(self, grid: tuple[int, int, int], owners: Mapping[str, Array]) -> None:
        self._grid, self._owners = math.prod(grid), owners

    @staticmethod
    def unknown() -> BlockMap:
        """Of a kernel of which nothing is known."""
        return BlockMap((0, 0, 0), {})

    @staticmethod
    def guessed(what: Runnable, case: Case, data: CaseData) -> BlockMap:
        """From runs of single blocks; of no block where no guess holds. Raises DeviceFault."""
        launches, buffers = place(what.contract, what.plan, case, data)
        if len(launches) != 1 or math.prod(launches[0].grid) <= FEW:
            return BlockMap.unknown()
        grid = launches[0].grid
        names = outputs(what.contract, case)
        with what.device.prepare(what.image, launches, buffers) as ready:
            seen = {name: np.zeros(0, np.int64) for name in names}

            def writes(block: int) -> dict[str, Array]:
                run_blocks(ready, [block], PROBE_S)
                got = ready.read()
                now = {name: changed(got[name], data.arrays[name]) for name in names}
                new = {name: np.setdiff1d(now[name], seen[name], assume_unique=True) for name in names}
                seen.update(now)
                return new

            guess = _Guess.made(grid, writes)
            holds = guess is not None and guess.holds(case, writes)
            return BlockMap(grid, guess.owners(data)) if guess is not None and holds else BlockMap.unknown()

    def blocks(self, part: Part) -> tuple[int, ...]:
        """Those that write what is judged; () for all, where that is not known, or half of all would run."""
        if not self._owners:
            return ()
        needed = np.unique(np.concatenate([self._owners[name][at] for name, at in part.places.items()]))
        if not len(needed) or needed[0] < 0 or 2 * len(needed) > self._grid:
            return ()
        return tuple(int(b) for b in needed)


@dataclass(frozen=True, slots=True)
class _Guess:
    """``pattern``: what the block in the middle of the grid writes, by output; ``steps``: by how much that moves for a
    step in x, y and z."""

    grid: tuple[int, int, int]
    pattern: Places
    steps: Mapping[str, tuple[int, ...]]

    @staticmethod
    def made(grid: tuple[int, int, int], writes: Callable[[int], Places]) -> _Guess | None:
        """From the block in the middle and one neighbour in each dimension; None where they are not alike."""
        middle = [size // 2 for size in grid]
        pattern = writes(_number(grid, middle))
        steps: dict[str, tuple[int, ...]] = dict.fromkeys(pattern, ())
        for axis, size in enumerate(grid):
            sign = 1 if middle[axis] + 1 < size else -1
            beside = [at + sign * (axis == i) for i, at in enumerate(middle)]
            other = writes(_number(grid, beside)) if size > 1 else pattern
            for name, own in pattern.items():
                if not len(own) or len(own) != len(other[name]) or np.ptp(other[name] - own):
                    return None
                steps[name] += (sign * int(other[name][0] - own[0]),)
        return _Guess(grid, pattern, steps)

    def _moved(self, name: str, blocks: Array) -> Array:
        """By how much what these blocks write stands apart from the pattern."""
        x, y = self.grid[:2]
        at = (blocks % x, blocks // x % y, blocks // (x * y))
        return np.asarray(
            sum((a - size // 2) * step for a, size, step in zip(at, self.grid, self.steps[name], strict=True))
        )

    def holds(self, case: Case, writes: Callable[[int], Places]) -> bool:
        """Whether some other blocks write what is guessed."""
        rng = np.random.default_rng([case.seed % 2**32, 707])
        for block in rng.choice(math.prod(self.grid), PROBES, replace=False):
            for name, seen in writes(int(block)).items():
                guessed = self.pattern[name] + self._moved(name, block)
                if len(np.intersect1d(guessed, seen, assume_unique=True)) < AS_GUESSED * len(seen):
                    return False
        return True

    def owners(self, data: CaseData) -> dict[str, Array]:
        """The block of every element; -1 for none. What blocks at the end of a row write beyond it, by the guess, is
        what others begin with, which come later."""
        blocks = np.arange(math.prod(self.grid))
        last = blocks % self.grid[0] == self.grid[0] - 1
        found = {}
        for name, pattern in self.pattern.items():
            owners = np.full(data.arrays[name].size, -1, np.int64)
            for some in (blocks[last], blocks[~last]):
                for part in np.array_split(some, max(1, len(some) * len(pattern) // STRIDE)):
                    at = (self._moved(name, part)[:, None] + pattern[None, :]).reshape(-1)
                    inside = (at >= 0) & (at < len(owners))
                    owners[at[inside]] = np.repeat(part, len(pattern))[inside]
            found[name] = owners
        return found


def _number(grid: tuple[int, int, int], at: Sequence[int]) -> int:
    return at[0] + grid[0] * (at[1] + grid[1] * at[2])
