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
from fsr.analysis.thread_state import Visit
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
from fsr.transform.sizes import sample_sizes
from fsr.transform.target import Target

BLOCKS = (1, 2, 4, 8, 16)  # whose elements make a tile
WIDTHS = (1, 2, 4, 8)  # elements of a tile for each thread
MOST_STEPS = 4096
_SIZES = 12  # assignments that are looked at
_LANES = 1 << 14  # threads that are gone through at once
_BITS = 62  # that a number may be shifted
_TOLD = 3  # numbers of a repetition of which each combination is tried as what decides

Known = Mapping[str, "Values | int"]
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
    the first and the last element that it goes to."""

    numbers: tuple[int, ...]
    scalars: Mapping[str, int]
    grid: int
    reach: Mapping[str, Mapping[int, Span]]


@dataclass(frozen=True)
class Tile:
    """``blocks`` have so many ``elements`` of each buffer to themselves in every repetition within the ``bound``; in
    all where there is none."""

    blocks: int
    elements: Mapping[str, int]
    bound: Bound | None

    def starts(self, steps: Steps, sizes: Mapping[str, int]) -> int:
        """Of a joined launch, those repetitions that do anything."""
        repeats = repeats_of(steps.launch, sizes)
        if self.bound is None:
            return min(repeats, 1)
        told = [evaluate_int(self.bound.value, {**sizes, STEP: step}) for step in range(repeats)]
        kept = [value <= self.bound.most for value in told]
        return sum(not (at and kept[at - 1] and here) for at, here in enumerate(kept))


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
        """What repetitions keep to tiles of so many blocks; None where none does, or that cannot be told. As few as
        will do of what repetitions are told decides."""
        used = [name for name in self.told if name in names_mentioned(self.target.kernel.body)]
        counts = range(len(used) + 1) if len(used) <= _TOLD else (len(used),)
        for deciding in (c for count in counts for c in combinations(used, count)):
            turns = _turns(self._read, deciding)
            if turns:
                elements, keeping = _elements(turns, blocks, self.threads)
                own = {id(turn) for turn in keeping}
                beyond = [turn for turn in turns if id(turn) not in own]
                bound = self._bound(deciding, keeping, beyond) if beyond else None
                if keeping and (bound is not None or not beyond):
                    return Tile(blocks, elements, bound)
        return None

    @cached_property
    def _read(self) -> _Read:
        """What tells where its threads go: not what other kernels are, nor flags, which most candidates differ in."""
        source, plan = self.target.source, self.target.candidate.plan
        others = [k for k in parse_kernels(source).values() if k.name != self.target.kernel.name]
        return _Read(
            with_definitions(source, others, lambda _: ()), self.launch, plan.scratch, self.target.contract, self
        )

    def gone_through(self, deciding: tuple[str, ...]) -> Iterator[Turn | None]:
        """At the timed sizes and some others, each combination of what decides once; the last is None where it is not
        known what threads go to."""
        values, contract = [self.told[name].value for name in deciding], self.target.contract
        sampled = {tuple(s.items()): s for s in (*contract.timed_sizes(), *sample_sizes(contract))}
        seen = set[tuple[object, ...]]()
        for sizes in list(sampled.values())[:_SIZES]:
            grid, known = evaluate_int(self.launch.grid[0], sizes), self._scalars(sizes)
            rows = self._rows_at(sizes)
            steps = range(repeats_of(self.launch, sizes)) if values else range(1)
            for numbers in dict.fromkeys(tuple(evaluate_int(v, {**sizes, STEP: s}) for v in values) for s in steps):
                alike = (grid, rows.count, tuple(sorted(known.items())), numbers)
                if grid <= 0 or rows.count <= 0 or alike in seen:
                    continue
                seen.add(alike)
                reach = self._reach(known | dict(zip(deciding, numbers, strict=True)), grid, rows)
                if reach is None:
                    yield None
                    return
                yield Turn(numbers, known, grid, reach)

    def _bound(self, deciding: tuple[str, ...], keeping: Sequence[Turn], beyond: Sequence[Turn]) -> Bound | None:
        """What tells those apart: a number that they are told, or what another leaves when that is taken from it."""
        for at, name in enumerate(deciding) if keeping else ():
            told = self.told[name].value
            own = [turn.numbers[at] for turn in keeping], [turn.numbers[at] for turn in beyond]
            found = _between(name, told, *own)
            for other in keeping[0].scalars if found is None and min(*own[0], *own[1]) >= 0 else ():
                whole = [t.scalars.get(other, 0) for t in keeping], [t.scalars.get(other, 0) for t in beyond]
                size = self.target.size_text(Name(other))
                if size is None or min(*whole[0], *whole[1]) < 0 or max(*own[0], *own[1]) > _BITS:
                    continue
                less = [[n - m for n, m in zip(w, o, strict=True)] for w, o in zip(whole, own, strict=True)]
                shifted = [[n >> m for n, m in zip(w, o, strict=True)] for w, o in zip(whole, own, strict=True)]
                found = found or _between(f"(long long){other} - (long long){name}", f"({size}) - ({told})", *less)
                found = found or _between(f"((long long){other} >> {name})", f"({size}) >> ({told})", *shifted)
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

    def _reach(self, known: Known, grid: int, rows: Rows) -> dict[str, dict[int, Span]] | None:
        """What blocks go to of the buffers that any of them writes, from where their row begins."""
        blocks, found = _sampled(grid), list[tuple[list[int], list[Visit]]]()
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
        if any(v.offsets is None or v.kind == "other" for _, gone in found for v in gone if v.array in own):
            return None
        if not own or any(self._overlaps(name) or (rows.count > 1 and name not in rows.lengths) for name in own):
            return None
        reach: dict[str, dict[int, Span]] = {name: {} for name in own}
        for part, gone in found:
            for visit in (v for v in gone if v.array in own):
                _widen(reach[visit.array], visit, part, rows)
        return reach

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


@lru_cache(maxsize=64)
def _turns(read: _Read, deciding: tuple[str, ...]) -> tuple[Turn, ...] | None:
    """See :meth:`Steps.gone_through`; None where it is not known. It may take seconds, and candidates ask for the same
    again and again."""
    turns = list(read.steps.gone_through(deciding))
    return None if None in turns else tuple(t for t in turns if t is not None)


def _between(text: str, value: str, keeping: Sequence[int], beyond: Sequence[int]) -> Bound | None:
    """The bound that all of the first keep, and none of the others."""
    return Bound(text, value, max(keeping)) if max(keeping) < min(beyond) else None


def _sampled(grid: int) -> list[int]:
    """The first and the last block of some tiles, of each number of blocks that make one."""
    found = set[int]()
    for blocks in BLOCKS:
        for tile in _tiles(grid, blocks):
            found |= {tile * blocks, min(tile * blocks + blocks, grid) - 1}
    return sorted(found)


def _tiles(grid: int, blocks: int) -> list[int]:
    last = (grid - 1) // blocks
    return sorted({0, min(1, last), last // 2, last})


def _widen(reach: dict[int, Span], visit: Visit, part: list[int], rows: Rows) -> None:
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


def _elements(turns: Sequence[Turn], blocks: int, threads: int) -> tuple[dict[str, int], list[Turn]]:
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
    """Whether tiles of so many blocks hold all that these go to."""
    for tile in _tiles(turn.grid, blocks):
        for block in {tile * blocks, min(tile * blocks + blocks, turn.grid) - 1}:
            low, high = turn.reach.get(name, {}).get(block, (tile * elements, tile * elements))
            if low < tile * elements or high >= (tile + 1) * elements:
                return False
    return True


def steps_of(target: Target) -> Steps | None:
    """A repeated launch whose threads are of one axis, and have to do with memory alone."""
    launch, kernel = target.launch, target.kernel
    flat = all(extent == "1" for extent in (launch.grid[2], *launch.block[1:]))
    if not flat or launch.reshaped or not launch.block[0].isdigit():
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
