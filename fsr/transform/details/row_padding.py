"""shared-row-padding: rows of flat shared memory, one word more for each whose length is even, so that neighbouring
threads that step by rows find them in different banks.

What a kernel cuts out of one array by pointers (``float *b = &memory[rows * length]``) is moved apart by as much. Each
element that it touches must be ``row * length + place``, the place a loop's variable below the length, and the row
within what belongs to the pointer: shown for all sizes of the contract.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from fsr.analysis.types import aliases, resolved
from fsr.hardware.c_types import element_bytes
from fsr.records import Candidate, Launch
from fsr.source.form import (
    Binary,
    Call,
    Declare,
    Expr,
    For,
    Index,
    Literal,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Stmt,
    Unary,
)  # fmt: skip
from fsr.source.mapping import map_expr, map_own_exprs, map_stmts
from fsr.source.walk import (
    Block,
    blocks_of,
    exprs_of,
    fresh,
    integer,
    names_assigned,
    names_in,
    opaque_names,
    walk_expr,
    walk_stmts,
)
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import always
from fsr.transform.target import Target, part_of, region_in, target_of, targets

_WORD, _GAIN = 4, 1.8
_Loops = Mapping[str, For]


@dataclass(frozen=True, slots=True)
class RowPadding:
    """``a[t * length + x]`` becomes ``a[t * a_row + x]``, with ``a_row = length + (length + 1) % 2``."""

    name: str = "shared-row-padding"
    aims_at: frozenset[str] = frozenset(["shared-conflicts"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Dynamic shared arrays of words of which every element that is used is one of a row."""
        for target in targets(subject):
            for found in _memories(target):
                yield Move(self.name, region_in(target, f"shared:{found.declared.name}"), (), _GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with longer rows."""
        target = target_of(subject, move)
        name = part_of(move).removeprefix("shared:")
        found = next(f for f in _memories(target) if f.declared.name == name)
        return _padded(target, move, found)


@dataclass(frozen=True)
class _Region:
    """What a pointer stands for. ``length``: of its rows; ``places``: row and place that each index tells."""

    name: str
    offset: Expr
    length: Expr
    places: Mapping[Expr, tuple[Expr, Expr]]


@dataclass(frozen=True)
class _Memory:
    declared: Declare
    regions: tuple[_Region, ...]  # in memory's order


def _padded(target: Target, move: Move, found: _Memory) -> Candidate:
    name, taken = found.declared.name, set(target.names)
    called = dict[str, str]()
    for region in found.regions:
        called[region.name] = fresh(f"{region.name}_row", taken)
        taken.add(called[region.name])
    places = {region.name: region.places for region in found.regions}

    def change(e: Expr) -> Expr:
        match e:
            case Index(Name(text) as base, index) if text in places:
                row, place = places[text][index]
                return Index(base, Binary("+", Binary("*", row, Name(called[text])), place))
        return e

    def longer(s: Stmt) -> Stmt | list[Stmt]:
        if not isinstance(s, Declare) or s.name not in places:
            return s
        number = next(n for n, region in enumerate(found.regions) if region.name == s.name)
        length = found.regions[number].length
        odd = Binary("+", length, Binary("%", Binary("+", length, Literal("1")), Literal("2")))
        begun = Unary("&", Index(Name(name), _moved(found.regions, number)))
        return [Declare("const int", called[s.name], odd), replace(s, init=begun, span=None)]

    body = map_stmts(target.kernel.body, lambda s: longer(map_own_exprs(s, change)))
    launch = target.launch
    more = " + ".join(_extra_text(target, found.regions, n) for n in range(len(found.regions)))

    def wider(old: Launch) -> Launch:
        return replace(old, shared_bytes=f"{launch.shared_bytes} + {_WORD} * ({more})")

    return rewritten(target, move, replace(target.kernel, body=body), launch=wider)


def _moved(regions: tuple[_Region, ...], number: int) -> Expr:
    """Where a region begins now: as far behind as the rows before it have grown."""
    at = regions[number].offset
    for one, after in pairwise(regions[: number + 1]):
        size = after.offset if one.offset == Literal("0") else Binary("-", after.offset, one.offset)
        at = Binary("+", Binary("+", at, Binary("/", size, one.length)), Literal("1"))
    return at


def _extra_text(target: Target, regions: tuple[_Region, ...], number: int) -> str:
    """How many words a region grows by at most, as a size expression."""
    length = target.size_text(regions[number].length)
    return f"({_size_text(target, regions, number)}) // ({length}) + 1"


def _size_text(target: Target, regions: tuple[_Region, ...], number: int) -> str:
    """How many words a region has, as a size expression."""
    first = target.size_text(regions[number].offset)
    if number + 1 < len(regions):
        return f"({target.size_text(regions[number + 1].offset)}) - ({first})"
    return f"({target.launch.shared_bytes}) // {_WORD} - ({first})"


# ---------------------------------------------------------------- what is there


def _memories(target: Target) -> Iterator[_Memory]:
    names = aliases(target.source)
    shared = [s for s in walk_stmts(target.kernel.body) if isinstance(s, Declare) and "extern" in s.qualifiers]
    if len(shared) != 1 or "__shared__" not in shared[0].qualifiers or len(shared[0].dims) != 1:
        return
    declared = shared[0]
    if element_bytes(resolved(declared.type, names)) != _WORD or not _once(target, declared.name):
        return
    offsets = _pointers(target, declared)
    if not offsets or not _elements_only(target, declared.name, offsets):
        return
    regions = tuple(r for name, at in offsets.items() if (r := _region(target, name, at)) is not None)
    if len(regions) == len(offsets) and all(_fits(target, regions, n) for n in range(len(regions))):
        yield _Memory(declared, regions)


def _once(target: Target, name: str) -> bool:
    """Whether one variable has a name."""
    stmts = list(walk_stmts(target.kernel.body))
    own = sum((isinstance(s, Declare) and s.name == name) or (isinstance(s, For) and s.var == name) for s in stmts)
    return own == 1 and all(p.name != name for p in target.kernel.params)


def _pointers(target: Target, array: Declare) -> dict[str, Expr]:
    """Variables of the outermost block that are set once, to an element of the array, and at which."""
    found, assigned = dict[str, Expr](), names_assigned(target.kernel.body)
    for s in target.kernel.body:
        if not isinstance(s, Declare) or s.init is None or s.dims or "*" not in s.type or s.name in assigned:
            continue
        if not _once(target, s.name) or s.type.replace("*", "").replace("const", "").strip() != array.type:
            continue
        match s.init:
            case Name(array.name):
                found[s.name] = Literal("0")
            case Unary("&", Index(Name(array.name), at)) | Binary("+", Name(array.name), at):
                found[s.name] = at
    return found


def _elements_only(target: Target, name: str, offsets: Mapping[str, Expr]) -> bool:
    """Whether the array is named to set pointers only, and these as elements only, of which no address is taken."""
    own = {name, *offsets}

    def hide(e: Expr) -> Expr:
        match e:
            case Index(Name(text), index) if text in offsets:
                return Call(Name(""), (index,))
        return e

    for s in walk_stmts(target.kernel.body):
        if isinstance(s, OpaqueStmt) and own & opaque_names(s.text):
            return False
        for e in [offsets[s.name]] if isinstance(s, Declare) and s.name in offsets else exprs_of(s):
            left = map_expr(e, hide)
            parts = list(walk_expr(left))
            addresses = any(isinstance(x, Unary) and x.op == "&" and isinstance(x.operand, Call) for x in parts)
            if addresses or own & names_in(left):
                return False
            if any(isinstance(x, OpaqueExpr) and own & opaque_names(x.text) for x in parts):
                return False
    return True


def _region(target: Target, name: str, offset: Expr) -> _Region | None:
    """What a pointer stands for; None where an element is not one of a row, or rows differ in length."""
    lengths, places = list[Expr](), dict[Expr, tuple[Expr, Expr]]()
    for index, loops in _indices(target.kernel.body, name, {}):
        split = _split(target, index, loops)
        if split is None:
            return None
        row, length, place = split
        places[index] = row, place
        lengths.append(length)
    same, changing = {target.poly(x) for x in lengths}, names_assigned(target.kernel.body)
    if any(names_in(x) & changing for x in (offset, *lengths)):
        return None
    if len(same) != 1 or target.size_text(lengths[0]) is None or target.size_text(offset) is None:
        return None
    return _Region(name, offset, lengths[0], places)


def _indices(block: Block, name: str, loops: _Loops) -> Iterator[tuple[Expr, _Loops]]:
    """The indices of a pointer's elements, each with the loops around it that count up by whole steps."""
    for s in block:
        for e in exprs_of(s):
            for x in walk_expr(e):
                if isinstance(x, Index) and x.base == Name(name):
                    yield x.index, loops
        inside = loops
        if isinstance(s, For):
            counted = s.relation == "<" and (integer(s.step) or 0) > 0 and s.var not in names_assigned(s.body)
            inside = {n: f for n, f in loops.items() if n != s.var} | ({s.var: s} if counted else {})
        for nested in blocks_of(s):
            yield from _indices(nested, name, inside)


def _split(target: Target, index: Expr, loops: _Loops) -> tuple[Expr, Expr, Expr] | None:
    """(row, length, place) of ``row * length + place``."""
    match index:
        case Binary("+", Binary("*", a, b), Name(place)) | Binary("+", Name(place), Binary("*", a, b)):
            loop = loops.get(place)
            if loop is None or (integer(loop.start) or 0) < 0 or integer(loop.start) is None:
                return None
            for row, length in ((a, b), (b, a)):
                if target.poly(loop.bound) == target.poly(length) and _many(target, row, loops) is not None:
                    return row, length, Name(place)
    return None


def _many(target: Target, row: Expr, loops: _Loops) -> str | None:
    """How many values a row's number has from 0 on, as a size expression; None where that is not known."""
    single = target.poly(row).single or ""
    if single.startswith("threadIdx."):
        return target.launch.block["xyz".index(single[-1])]
    loop = loops.get(row.text) if isinstance(row, Name) else None
    if loop is None or integer(loop.start) is None or (integer(loop.start) or 0) < 0:
        return None
    return target.size_text(loop.bound)


def _fits(target: Target, regions: tuple[_Region, ...], number: int) -> bool:
    """Whether all rows of a region are its own, whatever the sizes."""
    region, words = regions[number], _size_text(target, regions, number)
    length = target.size_text(region.length)
    counts = {
        _many(target, row, loops)
        for index, loops in _indices(target.kernel.body, region.name, {})
        for row, _ in [region.places[index]]
    }
    told = [f"({count}) * ({length}) <= ({words})" for count in counts]
    return None not in counts and all(always(target.contract, x) for x in (f"({length}) >= 1", *told))
