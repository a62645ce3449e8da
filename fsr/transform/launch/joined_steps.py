"""Which repetitions of a launch keep to tiles: what a few blocks read and write of what is written at all is theirs.

Nothing of that is read off the form of an index, which may be any (``i ^ j``, ``insert_zero(i, bit)``, what a loop or a
condition sets): some blocks of some sizes are gone through, for all numbers that repetitions are told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np

from fsr.analysis.accesses import accesses
from fsr.analysis.macros import hides_names
from fsr.analysis.visits import visits
from fsr.analysis.word_values import Values, kind_of
from fsr.contract.model import Contract, repeats_of
from fsr.errors import ContractError
from fsr.expressions import evaluate, evaluate_int, names
from fsr.records import STEP, Launch, ScalarArgument, Scratch
from fsr.source.braces import without_braces
from fsr.source.form import Cast, Declare, Expr, Literal, Name, Param
from fsr.source.mapping import substitute
from fsr.source.parse import parse_kernels
from fsr.source.rewrite import with_definitions
from fsr.source.types import plain_type
from fsr.source.walk import Block, names_mentioned, walk_stmts
from fsr.transform.launch.cooperation import cooperates
from fsr.transform.launch.joined_elements import element_of
from fsr.transform.launch.joined_tiles import (
    Bound,
    Rows,
    Span,
    Tile,
    Turn,
    between,
    elements_of,
    sampled,
    spread_elements,
    widen,
)
from fsr.transform.launch.spread_threads import Fit, Gone, fits_of, spreads
from fsr.transform.sizes import sample_sizes
from fsr.transform.target import Target

MOST_STEPS = 4096
_SIZES = 12  # assignments that are looked at
_LANES = 1 << 14  # threads that are gone through at once
_BITS = 62  # that a number may be shifted
_TOLD = 3  # numbers of a repetition of which each combination is tried as what decides
_SPREAD_TURNS = 512  # of which each thread is looked at

Known = Mapping[str, "Values | int"]


@dataclass(frozen=True)
class Steps:
    """A launch that is repeated. ``threads``: of its blocks, which are one-dimensional. Where its grid has two axes,
    each row of it has as large a part of every buffer to itself."""

    target: Target
    threads: int

    @property
    def launch(self) -> Launch:
        """See the class."""
        return self.target.launch

    @cached_property
    def told(self) -> dict[str, ScalarArgument]:
        """Parameters that are another number at each repetition."""
        pairs = zip(self.target.kernel.params, self.launch.args, strict=True)
        return {p.name: a for p, a in pairs if isinstance(a, ScalarArgument) and STEP in names(a.value)}

    @property
    def rows(self) -> str:
        """How many rows of blocks there are, as a size expression."""
        return self.launch.grid[1]

    def count(self, param: Param) -> str | None:
        """The elements of a row in a buffer, as a size expression."""
        element = element_of(self.target, param)
        return None if element is None else element.count if self.rows == "1" else f"({element.count}) // ({self.rows})"

    def tiles(self, tile: Tile) -> str:
        """How many tiles there are, as a size expression."""
        if tile.spread is None:
            return f"ceil_div({self.launch.grid[0]}, {tile.blocks})"
        each = [f"ceil_div({self.count(p)}, {tile.elements[p.name]})" for p in self.written(tile)]
        return each[0] if len(each) == 1 else f"max({', '.join(each)})"

    @cached_property
    def same(self) -> dict[str, str]:
        """For each pointer the first that is passed the same buffer, of those to what may be written if there are."""
        first = dict[str, str]()
        ordered = sorted(self.target.kernel.params, key=lambda p: "const" in p.type.split("*")[0])
        pointers = [p.name for p in ordered if p.is_pointer]
        return {name: first.setdefault(self.target.passed[name], name) for name in pointers}

    def _overlaps(self, name: str) -> bool:
        """Whether a buffer may share memory with another one."""
        others = [other for other, own in self.same.items() if own != self.same[name]]
        return any(self.target.may_alias(name, other) for other in others)

    @cached_property
    def _set(self) -> frozenset[str]:
        """Buffers that the kernel itself writes; its functions may write others."""
        found = {a.array for a in accesses(self.target.kernel) if a.kind in ("write", "update")}
        return frozenset(p.name for p in self.target.kernel.params if p.is_pointer and p.name in found)

    def written(self, tile: Tile) -> tuple[Param, ...]:
        """The buffers that are written."""
        return tuple(p for p in self.target.kernel.params if p.name in tile.elements)

    def tile(self, blocks: int) -> Tile | None:
        """What repetitions keep to tiles of so many blocks; None where none does, or that cannot be told."""
        of_blocks = None if self.launch.reshaped else self._tile_of_blocks(blocks)
        narrow = of_blocks is not None and max(of_blocks.elements.values()) <= 2 * blocks * self.threads
        if narrow and self._halves(of_blocks):
            return of_blocks
        of_threads = self._tile_of_threads(blocks)
        return of_threads if of_blocks is None or self._halves(of_threads) else of_blocks

    def _halves(self, tile: Tile | None) -> bool:
        """Whether half of the launches go, or more, at the last timed sizes."""
        sizes = self.target.contract.timed_sizes()[-1]
        return tile is not None and 2 * tile.starts(self.launch, sizes) <= repeats_of(self.launch, sizes)

    @cached_property
    def used(self) -> tuple[str, ...]:
        """Parameters that are another number at each repetition, of which the kernel makes anything."""
        return tuple(name for name in self.told if name in names_mentioned(self.target.kernel.body))

    def _tile_of_blocks(self, blocks: int) -> Tile | None:
        """A tile of neighbouring blocks. As few as will do of what repetitions are told decides."""
        counts = range(len(self.used) + 1) if len(self.used) <= _TOLD else (len(self.used),)
        for deciding in (c for count in counts for c in combinations(self.used, count)):
            turns = _turns(self._read, deciding, spread=False)
            if turns:
                elements, keeping = elements_of(turns, blocks, self.threads)
                found = self._bounded(Tile(blocks, elements, None), deciding, turns, keeping)
                if found is not None:
                    return found
        return None

    def _tile_of_threads(self, blocks: int) -> Tile | None:
        """A tile of fewer threads in one repetition than in another: of those ways that can be told, the one with the
        fewest launches."""
        turns = _turns(self._read, self.used, spread=True) if self.used and self.rows == "1" else None
        largest, best = self.target.contract.timed_sizes()[-1], list[Tile]()
        for spread in spreads(self.used) if turns else ():
            assert turns is not None
            elements, keeping = spread_elements(turns, spread, blocks, self.threads)
            found = self._bounded(Tile(blocks, elements, None, spread), self.used, turns, keeping)
            best += [found] if found is not None else []
        return min(best, key=lambda tile: tile.starts(self.launch, largest), default=None)

    def _bounded(self, tile: Tile, deciding: tuple[str, ...], turns: Sequence[Turn], keeping: Sequence[Turn]
                 ) -> Tile | None:  # fmt: skip
        """The tile with what tells the turns that keep to it; None where nothing does, or none keeps to it."""
        own = {id(turn) for turn in keeping}
        beyond = [turn for turn in turns if id(turn) not in own]
        bound = self._bound(deciding, keeping, beyond) if beyond else None
        return replace(tile, bound=bound) if keeping and (bound is not None or not beyond) else None

    @cached_property
    def _read(self) -> _Read:
        """What tells where its threads go: not what other kernels are, nor flags, which most candidates differ in."""
        source, plan = self.target.source, self.target.candidate.plan
        others = [k for k in parse_kernels(source).values() if k.name != self.target.kernel.name]
        return _Read(
            with_definitions(source, others, lambda _: ()), self.launch, plan.scratch, self.target.contract, self
        )

    def gone_through(self, deciding: tuple[str, ...], *, spread: bool) -> Iterator[Turn | None]:
        """At the timed sizes and some others, each combination of what decides once; the last is None where it is not
        known what threads go to. ``spread``: by thread, for each way of spreading them out."""
        for count, (numbers, known, grid, rows) in enumerate(self._combinations(deciding)):
            told = known | dict(zip(deciding, numbers, strict=True))
            gone = (
                None
                if spread and count >= _SPREAD_TURNS
                else self._gone(told, grid, rows, _parts(grid) if spread else sampled(grid))
            )
            if gone is None:
                yield None
                return
            reach, fits = dict[str, dict[int, Span]](), dict[str, frozenset[Fit]]()
            if spread:
                fits = fits_of(gone, self.threads, dict(zip(deciding, numbers, strict=True)))
            else:
                reach = _reach(gone, rows)
            yield Turn(numbers, known, grid, reach, fits)

    def _combinations(self, deciding: tuple[str, ...]) -> Iterator[tuple[tuple[int, ...], dict[str, int], int, Rows]]:
        """What decides, the other numbers, and the grid."""
        values, contract = [self.told[name].value for name in deciding], self.target.contract
        sampled = {tuple(s.items()): s for s in (*contract.timed_sizes(), *sample_sizes(contract))}
        seen = set[tuple[object, ...]]()
        for sizes in list(sampled.values())[:_SIZES]:
            known, rows = self._scalars(sizes), self._rows_at(sizes)
            for step in range(repeats_of(self.launch, sizes)) if values or self.launch.reshaped else range(1):
                now = {**sizes, STEP: step}
                grid, numbers = evaluate_int(self.launch.grid[0], now), tuple(evaluate_int(v, now) for v in values)
                alike = (grid, rows.count, tuple(sorted(known.items())), numbers)
                if grid > 0 and rows.count > 0 and alike not in seen:
                    seen.add(alike)
                    yield numbers, known, grid, rows

    def _bound(self, deciding: tuple[str, ...], keeping: Sequence[Turn], beyond: Sequence[Turn]) -> Bound | None:
        """What tells those apart: a number that they are told, or what another leaves when that is taken from it."""
        for at, name in enumerate(deciding) if keeping else ():
            told = self.told[name].value
            own = [turn.numbers[at] for turn in keeping], [turn.numbers[at] for turn in beyond]
            found = between(name, told, *own)
            for other in keeping[0].scalars if found is None and min(*own[0], *own[1]) >= 0 else ():
                whole = [t.scalars.get(other, 0) for t in keeping], [t.scalars.get(other, 0) for t in beyond]
                size = self.target.size_text(Name(other))
                if size is None or min(*whole[0], *whole[1]) < 0 or max(*own[0], *own[1]) > _BITS:
                    continue
                less = [[n - m for n, m in zip(w, o, strict=True)] for w, o in zip(whole, own, strict=True)]
                shifted = [[n >> m for n, m in zip(w, o, strict=True)] for w, o in zip(whole, own, strict=True)]
                found = found or between(f"(long long){other} - (long long){name}", f"({size}) - ({told})", *less)
                found = found or between(f"((long long){other} >> {name})", f"({size}) >> ({told})", *shifted)
            if found is not None:
                return found
        return None

    def _rows_at(self, sizes: Mapping[str, int]) -> Rows:
        """Of some sizes: a buffer whose rows are not whole has no length."""
        rows, lengths = evaluate_int(self.rows, sizes), dict[str, int]()
        for param in self.target.kernel.params if rows > 1 else ():
            element = element_of(self.target, param) if param.is_pointer else None
            if element is not None and (whole := evaluate_int(element.count, sizes)) % rows == 0:
                lengths[param.name] = whole // rows
        return Rows(rows, lengths)

    def _scalars(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The other numbers that the kernel is passed, as far as sizes tell."""
        found: dict[str, int] = {}
        for param in self.target.kernel.params:
            text = None if param.is_pointer or param.name in self.told else self.target.size_text(Name(param.name))
            if text is not None and float(value := evaluate(text, sizes)).is_integer():  # others are no index
                found[param.name] = int(value)
        return found

    def _gone(self, known: Known, grid: int, rows: Rows, blocks: list[int]) -> list[Gone] | None:
        """What some blocks go to of the buffers that any of them writes."""
        found = list[Gone]()
        each = max(_LANES // self.threads // len(rows.sampled), 1)
        for part in (blocks[at : at + each] for at in range(0, len(blocks), each)):
            more = {**self._constants, **known, **self._ids(part, grid, rows)}
            lanes = len(part) * self.threads * len(rows.sampled)
            gone = visits(self.target.source, self.target.kernel, more, lanes, self.same)
            if gone is None:
                return None
            found.append((part, gone))
        own = {self.same.get(n, n) for n in self._set} | {
            v.array for _, gone in found for v in gone if v.kind != "read"
        }
        found = [(part, [v for v in gone if v.array in own]) for part, gone in found]
        if any(v.offsets is None or v.kind == "other" for _, gone in found for v in gone):
            return None
        if not own or any(self._overlaps(name) or (rows.count > 1 and name not in rows.lengths) for name in own):
            return None
        return found

    @cached_property
    def _constants(self) -> dict[str, int]:
        """Those of the file: a template's numbers stand in the statements, in the types that they have."""
        own = {name for _, name in self.target.kernel.template_parameters}
        return {name: value for name, value in self.target.constants.items() if name not in own}

    def _ids(self, blocks: list[int], grid: int, rows: Rows) -> dict[str, Values | int]:
        """What the threads of some blocks are told of their places."""
        found: dict[str, Values | int] = {f"{v}.{axis}": 0 for v in ("threadIdx", "blockIdx") for axis in "yz"}
        found |= {f"{v}.{axis}": 1 for v in ("blockDim", "gridDim") for axis in "yz"}
        found |= {"blockDim.x": self.threads, "gridDim.x": grid, "gridDim.y": rows.count}
        found["threadIdx.x"] = np.tile(np.arange(self.threads), len(blocks) * len(rows.sampled))
        found["blockIdx.x"] = np.tile(np.repeat(np.asarray(blocks), self.threads), len(rows.sampled))
        found["blockIdx.y"] = np.repeat(np.asarray(rows.sampled), len(blocks) * self.threads)
        return found


@dataclass(frozen=True)
class _Read:
    """``text``: of the file without other kernels; ``steps``: the first to be asked."""

    text: str
    launch: Launch
    scratch: tuple[Scratch, ...]
    contract: Contract
    steps: Steps = field(compare=False)


def _parts(grid: int) -> list[int]:
    """Blocks where some parts of all end: of those behind, a guard may leave none."""
    return sorted({*sampled(grid), *(max((grid >> k) - 1, 0) for k in range(grid.bit_length()))})


def _reach(gone: Sequence[Gone], rows: Rows) -> dict[str, dict[int, Span]]:
    """What blocks go to, from where their row begins."""
    reach = dict[str, dict[int, Span]]()
    for part, visited in gone:
        for visit in visited:
            widen(reach.setdefault(visit.array, {}), visit, part, rows)
    return reach


@lru_cache(maxsize=64)
def _turns(read: _Read, deciding: tuple[str, ...], *, spread: bool) -> tuple[Turn, ...] | None:
    """See :meth:`Steps.gone_through`; None where it is not known. It may take seconds, and candidates ask for the same
    again and again."""
    turns = list(read.steps.gone_through(deciding, spread=spread))
    return None if None in turns else tuple(t for t in turns if t is not None)


def steps_of(target: Target) -> Steps | None:
    """A repeated launch whose threads are of one axis, and have to do with memory alone."""
    launch, kernel = target.launch, target.kernel
    flat = all(extent == "1" for extent in (launch.grid[2], *launch.block[1:]))
    if not flat or STEP in names(launch.grid[1]) or not launch.block[0].isdigit():
        return None
    pointers = {p.name for p in kernel.params if p.is_pointer}
    declared = {s.name for s in walk_stmts(kernel.body) if isinstance(s, Declare)}
    body = _instance(target)
    if body is None:
        return None
    seen = replace(target, kernel=replace(kernel, body=without_braces(body)))
    if pointers & declared or pointers != target.passed.keys() & pointers or cooperates(seen):
        return None
    if hides_names(kernel, target.source) or any(a.kind == "atomic" for a in accesses(kernel)):
        return None
    try:
        if max(repeats_of(launch, sizes) for sizes in sample_sizes(target.contract)) > MOST_STEPS:
            return None
    except ContractError:
        return None
    return Steps(seen, int(launch.block[0]))


def _instance(target: Target) -> Block | None:
    """The kernel's statements with the numbers that the launch puts for its template's parameters; None where these
    are types, or any number of them."""
    kernel, numbers = target.kernel, dict[str, Expr]()
    for part in kernel.template.split(",") if kernel.template else ():
        *kind, name = part.split("=")[0].split()
        if not kind or "..." in part or kind[0] in ("typename", "class", "template"):
            return None
        if name in target.constants and kind_of(plain := plain_type(" ".join(kind), target.aliases)) is not None:
            numbers[name] = Cast(plain, Literal(str(target.constants[name])))
    return substitute(kernel.body, numbers)
