"""Which repetitions of a launch keep to tiles: what a few blocks read and write of what is written at all is theirs.

Nothing of that is read off the form of an index, which may be any (``i ^ j``, ``i / m * 2 * m + i % m``): its values
are worked out for some blocks of some sizes, for all numbers that repetitions are told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fsr.analysis.accesses import Access, accesses
from fsr.analysis.index_values import Known, Values, index_values
from fsr.contract.model import repeats_of
from fsr.errors import ContractError
from fsr.expressions import evaluate, evaluate_int, names
from fsr.records import STEP, Launch, ScalarArgument
from fsr.source.form import Expr, Index, Name, Param
from fsr.source.walk import names_in, walk_exprs
from fsr.transform.sizes import sample_sizes
from fsr.transform.target import Target

WIDTHS = (1, 2, 4)  # elements of a tile for each thread
MOST_STEPS = 4096
_SIZES = 12  # assignments that are looked at


@dataclass(frozen=True)
class Steps:
    """A launch that is repeated. ``threads``: of its blocks, which are one-dimensional; ``written``: buffers that it
    writes, all accesses by one index."""

    target: Target
    threads: int
    written: tuple[Param, ...]

    @property
    def launch(self) -> Launch:
        """See the class."""
        return self.target.launch

    @cached_property
    def told(self) -> dict[str, ScalarArgument]:
        """Parameters that are another number at each repetition."""
        pairs = zip(self.target.kernel.params, self.launch.args, strict=True)
        return {p.name: a for p, a in pairs if isinstance(a, ScalarArgument) and STEP in names(a.value)}

    @cached_property
    def _indices(self) -> tuple[Expr, ...]:
        """Of all that is read and written of these buffers."""
        own = {p.name for p in self.written}
        return tuple(self.target.known.expand(a.offset) for a in accesses(self.target.kernel) if a.array in own)

    @cached_property
    def deciding(self) -> tuple[str, ...]:
        """Those of ``told`` that indices depend on."""
        used = frozenset[str]().union(*map(names_in, self._indices))
        return tuple(name for name in self.told if name in used)

    def tile(self, blocks: int) -> Tile | None:
        """What repetitions keep to tiles of so many blocks; None where none does, or that cannot be told."""
        return next(filter(None, (self._tile(blocks, blocks * self.threads * width) for width in WIDTHS)), None)

    def _tile(self, blocks: int, elements: int) -> Tile | None:
        inside, beyond = set[tuple[int, ...]](), set[tuple[int, ...]]()
        for grid, known, numbers in self._turns:
            keeps = self._keeps(known | dict(zip(self.deciding, numbers, strict=True)), grid, blocks, elements)
            if keeps is None:
                return None
            (inside if keeps else beyond).add(numbers)
        if not inside or inside & beyond:
            return None
        if not beyond:
            return Tile(blocks, elements, None, 0)
        for at, name in enumerate(self.deciding):
            most = max(numbers[at] for numbers in inside)
            if most < min(numbers[at] for numbers in beyond):
                return Tile(blocks, elements, name, most)
        return None

    @cached_property
    def _turns(self) -> tuple[tuple[int, dict[str, Values | int], tuple[int, ...]], ...]:
        """At the timed sizes and some others: the grid, what the kernel is passed as far as sizes tell it, and what the
        deciding parameters are, each combination once."""
        values, contract = [self.told[name].value for name in self.deciding], self.target.contract
        sampled = {tuple(s.items()): s for s in (*contract.timed_sizes(), *sample_sizes(contract))}
        found = []
        for sizes in list(sampled.values())[:_SIZES]:
            grid, known = evaluate_int(self.launch.grid[0], sizes), self._scalars(sizes)
            steps = range(repeats_of(self.launch, sizes)) if values else range(1)
            each = {tuple(evaluate_int(v, {**sizes, STEP: step}) for v in values) for step in steps}
            found += [(grid, known, numbers) for numbers in each if grid]
        return tuple(found)

    def _scalars(self, sizes: Mapping[str, int]) -> dict[str, Values | int]:
        """The other numbers that the kernel is passed, as far as sizes tell."""
        found: dict[str, Values | int] = {}
        for param in self.target.kernel.params:
            text = None if param.is_pointer or param.name in self.told else self.target.size_text(Name(param.name))
            if text is not None and float(value := evaluate(text, sizes)).is_integer():  # others are no index
                found[param.name] = int(value)
        return found

    def _keeps(self, known: dict[str, Values | int], grid: int, blocks: int, elements: int) -> bool | None:
        """Whether tiles of so many blocks hold all that these access; None where an index is not known."""
        last = (grid - 1) // blocks
        for tile in sorted({0, min(1, last), last // 2, last}):
            first, end = tile * blocks, min(tile * blocks + blocks, grid)
            ids: Known = {"threadIdx.x": np.arange(self.threads), "blockDim.x": self.threads, "gridDim.x": grid}
            for block in sorted({first, end - 1}):
                for e in self._indices:
                    values = index_values(e, {**self.target.constants, **known, **ids, "blockIdx.x": block})
                    if values is None:
                        return None
                    if values.min() < tile * elements or values.max() >= (tile + 1) * elements:
                        return False
        return True


@dataclass(frozen=True, slots=True)
class Tile:
    """``blocks`` have ``elements`` of each buffer to themselves in every repetition in which the parameter ``name`` is
    at most ``most``; in all where there is none."""

    blocks: int
    elements: int
    name: str | None
    most: int

    def starts(self, steps: Steps, sizes: Mapping[str, int]) -> int:
        """Of a joined launch, those repetitions that do anything."""
        repeats = repeats_of(steps.launch, sizes)
        if self.name is None:
            return min(repeats, 1)
        value = steps.told[self.name].value
        kept = [evaluate_int(value, {**sizes, STEP: step}) <= self.most for step in range(repeats)]
        return sum(not (at and kept[at - 1] and here) for at, here in enumerate(kept))


def steps_of(target: Target) -> Steps | None:
    """A repeated launch whose kernel writes some buffers, each element by one index, and whose ids are of one axis."""
    launch, kernel = target.launch, target.kernel
    flat = all(extent == "1" for extent in (*launch.grid[1:], *launch.block[1:]))
    if not flat or launch.reshaped or not launch.block[0].isdigit() or kernel.template is not None:
        return None
    found = accesses(kernel)
    written = {a.array for a in found if a.writes}
    params = tuple(p for p in kernel.params if p.is_pointer and p.name in written)
    if not params or written != {p.name for p in params} or not all(_plain(a, target) for a in found):
        return None
    named = [e.text for e in walk_exprs(kernel.body) if isinstance(e, Name)]
    indexed = [e.base.text for e in walk_exprs(kernel.body) if isinstance(e, Index) and isinstance(e.base, Name)]
    if any(named.count(p.name) != indexed.count(p.name) or p.name not in target.passed for p in params):
        return None  # handed on as a whole
    try:
        if max(repeats_of(launch, sizes) for sizes in sample_sizes(target.contract)) > MOST_STEPS:
            return None
    except ContractError:
        return None
    return Steps(target, int(launch.block[0]), params)


def _plain(access: Access, target: Target) -> bool:
    """Whether an access is none that leaves open what it is of; reads of other memory may be so."""
    if access.array is None or access.kind in ("atomic", "opaque"):
        return False
    return not access.writes or (access.index is not None and access.array in target.unaliased)
