"""Schedules of what is computed as actions: each a list of named decisions, whatever the original's threads did."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from fsr.contract.flags import asked_of
from fsr.records import Candidate
from fsr.source.names import words
from fsr.transform.computed import (
    attention_split,
    attention_tiles,
    columns,
    contraction,
    contraction_split,
    elements,
    in_threads,
    look_back,
    pack_scatters,
    permute,
    pipelined,
    points,
    register_tile,
    row_decisions,
    rows,
    rows_columns,
    scan,
    scan_columns,
    shared_scatters,
    sliding,
    split_rows,
    standing_rows,
    streamed_rows,
    tensor,
    warpgroup,
)  # fmt: skip
from fsr.transform.computed.assembly import Written, assembled
from fsr.transform.computed.scene import Scene, cuttings
from fsr.transform.plain.c_text import LONGEST_LINE, NotPlain
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import always

Params = Mapping[str, int | str]


@dataclass(frozen=True)
class Family:
    """One way to make a part. ``configurations``: its decisions with guesses of the gain, best first, none where it
    does not apply; ``written``: the kernels (NotPlain where the text cannot be written); ``rows_first``: whether it
    reads all of a row before it writes there, or each element by the thread that writes it, so that results may take
    the place of what other points read; ``boxes``: whether it writes no element that stays as it is
    (:attr:`Part.box`); ``adds``: whether it makes the parts that add where data tells, and no others; ``looks_up``:
    likewise those that look up records (:attr:`Part.looks_up`)."""

    configurations: Callable[[Scene], Iterator[tuple[dict[str, int | str], float]]]
    written: Callable[[Scene, Params], list[Written]]
    rows_first: bool = False
    boxes: bool = False
    adds: bool = False
    looks_up: bool = False


@dataclass(frozen=True)
class FromComputation:
    """Writes the kernel anew from what it computes: every part that the family can make by its decisions, what is left
    by the first decisions of the first of ``others`` that can. Legal because what is computed was checked against the
    original, and no part touches what another writes."""

    name: str
    family: Family
    aims_at: frozenset[str]
    others: tuple[Family, ...] = ()

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Each configuration of the first part that the family can make, as a move."""
        for found in cuttings(subject):
            first = next((s for s in found if _possible(self.family, s)), None)
            if first is None or self.family.looks_up != _looks_up(found):
                continue
            offered = False
            for params, gain in self.family.configurations(first):
                kernels = self._kernels(found, params)
                if kernels is not None and (not subject.keep_launch or _keeps_launch(kernels, subject)):
                    offered = True
                    yield Move(self.name, "plan", tuple(params.items()), gain)
            if offered:
                return

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """See Action.apply."""
        ways = (self._kernels(found, dict(move.params)) for found in cuttings(subject))
        fitting = (k for k in ways if k is not None and (not subject.keep_launch or _keeps_launch(k, subject)))
        return assembled(next(fitting), move.name)

    def _kernels(self, found: Sequence[Scene], params: Params) -> list[Written] | None:
        """The kernels of one way to cut; None where some part cannot be made, or none by the family."""
        own = [_tried(self.family, s, params) if _possible(self.family, s) else None for s in found]
        if not any(own):
            return None
        kernels = list[Written]()
        for scene, made in zip(found, own, strict=True):
            made = made or next(filter(None, (_by_default(other, scene) for other in self.others)), None)
            if made is None:
                return None
            kernels += made
        return kernels


@dataclass(frozen=True)
class RowsAndColumns:
    """Two parts of what is computed, one of rows and one of columns of the same elements, by kernels that read those
    once (:mod:`fsr.transform.computed.rows_columns`)."""

    name: str
    aims_at: frozenset[str]

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Each configuration, as a move."""
        for found in () if subject.keep_launch else self._found(subject):
            for params, gain in rows_columns.configurations(found):
                if _written(partial(rows_columns.written, found, params)) is not None:
                    yield Move(self.name, "plan", tuple(params.items()), gain)
            return

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """See Action.apply."""
        return assembled(rows_columns.written(next(self._found(subject)), dict(move.params)), move.name)

    def _found(self, subject: Subject) -> Iterator[rows_columns.Both]:
        for scenes in cuttings(subject):
            for pair in itertools.permutations(scenes) if len(scenes) == 2 and not _adds(scenes) else ():
                found = rows_columns.both(*pair)
                if found is not None:
                    yield found


def _adds(scenes: Sequence[Scene]) -> bool:
    return any(s.part.adds for s in scenes)


def _looks_up(scenes: Sequence[Scene]) -> bool:
    return any(s.part.looks_up for s in scenes)


def _keeps_launch(kernels: Sequence[Written], subject: Subject) -> bool:
    """Whether grids, blocks and arguments are those of the original, at all sizes."""
    made, launches = assembled(kernels, ""), subject.candidate.plan.launches
    if len(made.plan.launches) != len(launches) or made.plan.scratch != subject.candidate.plan.scratch:
        return False
    for new, old in zip(made.plan.launches, launches, strict=True):
        pairs = zip((*new.grid, *new.block), (*old.grid, *old.block), strict=True)
        if new.args != old.args or not all(a == b or always(subject.contract, f"({a}) == ({b})") for a, b in pairs):
            return False
    return True


def _possible(family: Family, scene: Scene) -> bool:
    return _first(family, scene) is not None


def _first(family: Family, scene: Scene) -> Params | None:
    """The family's first decisions; None where it cannot make the part."""

    def think() -> Params | None:
        if scene.part.adds != family.adds or scene.part.looks_up != family.looks_up:
            return None
        by_points = scene.part.by_points or (family.boxes and bool(scene.part.box))
        if not family.rows_first and (scene.part.repeats or not by_points):
            return None
        params, _ = next(family.configurations(scene), (None, 0.0))
        return params

    return scene.once(("first", family), think)


def _tried(family: Family, scene: Scene, params: Params) -> list[Written] | None:
    return _written(partial(family.written, scene, params))


def _written(write: Callable[[], list[Written]]) -> list[Written] | None:
    """The kernels; None where they cannot be written, or have lines that nobody reads."""
    try:
        made = write()
    except NotPlain:
        return None
    short = all(len(line) <= LONGEST_LINE for kernel in made for line in kernel.lines)
    return made if short and not any(map(_asks_for_more, made)) else None


def _asks_for_more(kernel: Written) -> bool:
    """Whether the host would have to know more than sizes to launch it: flags and positions, which only kernels are
    given."""
    texts = (*kernel.grid, *kernel.block, kernel.shared_bytes, *(s.count for s in kernel.scratch))
    return bool(asked_of(kernel.scene.target.contract) & words(" ".join(texts)))


def _by_default(family: Family, scene: Scene) -> list[Written] | None:
    def think() -> list[Written] | None:
        params = _first(family, scene)
        return None if params is None else _tried(family, scene, params)

    return scene.once(("default", family), think)


_COLUMNS = Family(columns.configurations, columns.written)
_IN_THREADS = Family(in_threads.configurations, in_threads.written)
_STANDING = Family(standing_rows.configurations, standing_rows.written, rows_first=True)
_ELEMENTS = Family(elements.configurations, elements.written)
_PERMUTE = Family(permute.configurations, permute.written)
_CONTRACTION = Family(contraction.configurations, contraction.written, boxes=True)
_ROWS = Family(row_decisions.configurations, rows.written, rows_first=True)
_RECORDS = Family(row_decisions.looking_up, rows.written, rows_first=True, looks_up=True)
_STREAMED = Family(streamed_rows.configurations, streamed_rows.written, rows_first=True)
_TENSOR = Family(tensor.configurations, tensor.written)
_WARPGROUP = Family(warpgroup.configurations, warpgroup.written)
_PIPELINED = Family(pipelined.configurations, pipelined.written, boxes=True)
_REGISTER_TILE = Family(register_tile.configurations, register_tile.written)
_SLIDING = Family(sliding.configurations, sliding.written)
_ATTENTION = Family(attention_tiles.configurations, attention_tiles.written)
_SPLIT_CONTRACTION = Family(contraction_split.configurations, contraction_split.written)
_SPLIT_ATTENTION = Family(attention_split.configurations, attention_split.written)
_POINTS = Family(points.configurations, points.written, rows_first=True)
_SCAN = Family(scan.configurations, scan.written, rows_first=True)
_SCAN_COLUMNS = Family(scan_columns.configurations, scan_columns.written, rows_first=True)
_LOOK_BACK = Family(look_back.configurations, look_back.written, rows_first=True)
_SPLIT = Family(split_rows.configurations, split_rows.written)
_PACK_SCATTERS = Family(pack_scatters.configurations, pack_scatters.written, adds=True)
_SHARED_SCATTERS = Family(shared_scatters.configurations, shared_scatters.written, adds=True)
_ONE_BY_ONE = Family(pack_scatters.one_by_one, pack_scatters.written, adds=True)
_EVERY = (
    _ATTENTION, _CONTRACTION, _ROWS, _COLUMNS, _PERMUTE, _ELEMENTS, _REGISTER_TILE, _SCAN, _SCAN_COLUMNS, _SPLIT,
    _IN_THREADS, _ONE_BY_ONE,
)  # fmt: skip

_MEMORY = frozenset({"uncoalesced", "bandwidth", "latency"})
_PRODUCTS = _MEMORY | {"compute", "instructions"}

FROM_COMPUTATION: tuple[FromComputation | RowsAndColumns, ...] = (
    RowsAndColumns("fold-rows-columns", _MEMORY | {"atomics", "occupancy"}),
    *(
        FromComputation(name, family, aims_at, _EVERY)
        for name, family, aims_at in (
            ("warpgroup-contraction", _WARPGROUP, _PRODUCTS),
            ("tensor-contraction", _TENSOR, _PRODUCTS),
            ("split-contraction", _SPLIT_CONTRACTION, _PRODUCTS),
            ("split-attention", _SPLIT_ATTENTION, _MEMORY | {"compute", "launch"}),
            ("tile-attention", _ATTENTION, _MEMORY | {"compute", "launch"}),
            ("tile-contraction", _CONTRACTION, _PRODUCTS),
            ("pipeline-contraction", _PIPELINED, _PRODUCTS),
            ("stream-rows", _STREAMED, frozenset({"bandwidth", "latency", "occupancy"})),
            ("fold-rows", _ROWS, _MEMORY | {"occupancy"}),
            ("fold-records", _RECORDS, _MEMORY | {"instructions"}),
            ("split-rows", _SPLIT, frozenset({"bandwidth", "latency", "occupancy", "atomics"})),
            ("fold-points", _POINTS, frozenset({"latency", "occupancy", "compute", "instructions"})),
            ("fold-columns", _COLUMNS, _MEMORY | {"atomics"}),
            ("fold-in-threads", _IN_THREADS, _MEMORY | {"occupancy", "instructions"}),
            ("columns-in-threads", _STANDING, _MEMORY | {"occupancy", "instructions"}),
            ("scan-look-back", _LOOK_BACK, _MEMORY | {"occupancy", "launch"}),
            ("scan-tiles", _SCAN, _MEMORY | {"occupancy"}),
            ("scan-columns", _SCAN_COLUMNS, _MEMORY | {"occupancy"}),
            ("tile-permute", _PERMUTE, frozenset({"uncoalesced", "bandwidth"})),
            ("register-tile", _REGISTER_TILE, frozenset({"bandwidth", "instructions", "latency", "compute"})),
            ("slide-window", _SLIDING, frozenset({"bandwidth", "instructions", "latency", "compute"})),
            ("shared-scatters", _SHARED_SCATTERS, frozenset({"atomics"})),
            ("pack-scatters", _PACK_SCATTERS, frozenset({"atomics", "instructions", "latency"})),
            ("pack-elements", _ELEMENTS, frozenset({"bandwidth", "instructions", "latency", "launch"})),
        )
    ),
)
