"""What the turns of a loop read, as tiles: ``a[i * n + k]`` is the same for all threads of a row of the block, and
``b[j * n + k]`` for all of a column, as the polynomials of their places show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce

from fsr.analysis.polynomial import Poly, constant, symbol
from fsr.analysis.types import is_integer
from fsr.source.form import Binary, Expr, For, If, Jump, Scope, Ternary, While
from fsr.source.walk import Block, exprs_of, jumps, names_mentioned, subexprs, walk_stmts
from fsr.transform.details.places import Place
from fsr.transform.jam.extents import has_constructor
from fsr.transform.slices.slices import OfBuffer, SlicedBuffer
from fsr.transform.target import Target

MOST_WIDTH = 16  # elements of a line that a turn touches
IDS = {axis: frozenset([f"threadIdx.{axis}", f"blockIdx.{axis}"]) for axis in "xy"}


@dataclass(frozen=True)
class Tile(OfBuffer):
    """A part of a buffer of which all threads of a row of the block (``axis`` y), or all of a column (x), touch the
    same elements in a turn. ``first``: the place of the first of these, without what the turn adds; ``step``: what the
    loop's variable is multiplied with; ``width``: elements a turn; ``columns``: which of these each place is;
    ``sure``: whether each turn touches all of them in any case."""

    axis: str
    first: Poly
    step: Poly
    width: int
    columns: Mapping[Poly, Poly] = field(hash=False)
    sure: bool = True

    def column(self, at: Poly) -> Poly | None:
        """Which of a turn's elements a place is, of constants and of variables of loops within; None where it is in
        none of them."""
        return self.columns.get(at)

    @property
    def apart(self) -> Poly:
        """How far apart the lines of neighbouring threads are; 0 where only blocks tell them apart."""
        return self.first.coefficient(f"threadIdx.{self.axis}") or constant(0)


@dataclass(frozen=True)
class Reads:
    """``tiles`` of both axes; ``steady``: what a thread reads that stays the same in all turns, with its buffer;
    ``common``: what all threads read alike in a turn; both in any case; ``names``: of the buffers, and of the pointers
    into them."""

    tiles: tuple[Tile, ...] = ()
    steady: tuple[tuple[SlicedBuffer, Expr], ...] = ()
    common: tuple[tuple[SlicedBuffer, Expr], ...] = ()
    names: frozenset[str] = frozenset()

    def __add__(self, other: Reads) -> Reads:
        steady, common = self.steady + other.steady, self.common + other.common
        return Reads(self.tiles + other.tiles, steady, common, self.names | other.names)

    @property
    def places(self) -> frozenset[Expr]:
        """What is read in tiles."""
        return frozenset(p.expr for t in self.tiles for p in t.of.places if p.at in t.columns)


def reads_of(target: Target, loop: For) -> Reads | None:
    """All that a loop reads of the buffers that the kernel is given; None where that is not in tiles of both axes, at
    places that data tells, or may be written."""
    found = list[Reads]()
    for param in target.kernel.params:
        if not param.is_pointer or not _reached(target, loop, param.name):
            continue
        if param.name not in target.unaliased or param.type.count("*") != 1 or "volatile" in param.type:
            return None
        buffer = SlicedBuffer(target, param)
        if not buffer.cell[1] or not buffer.found() or buffer.written:
            return None
        buffer = buffer.afresh()
        if not buffer.collect(loop.body, {}, frozenset()) or buffer.given:
            return None
        one = _of_buffer(buffer, loop)
        if one is None:
            return None
        found.append(one)
    all_of = reduce(Reads.__add__, found, Reads())
    return all_of if {t.axis for t in all_of.tiles} == {"x", "y"} else None


def _reached(target: Target, loop: For, name: str) -> bool:
    """Whether a loop mentions a parameter, or a pointer that is made of it."""
    buffer, mentioned = SlicedBuffer(target, target.kernel.param(name)), names_mentioned(loop.body)
    return name in mentioned or (buffer.pointed() and bool(mentioned & buffer.names))


def _of_buffer(buffer: SlicedBuffer, loop: For) -> Reads | None:
    groups = dict[tuple[Poly, Poly], list[_Spanned]]()
    steady, common = list[tuple[SlicedBuffer, Expr]](), list[tuple[SlicedBuffer, Expr]]()
    sure, several = _sure(buffer, loop.body), _with_several_ranges(loop.body)
    for place in buffer.places:
        parts = _parts(buffer, place, loop.var)
        if parts is None:
            return None
        first, step, rest = parts
        axes = _axes(first)
        if not axes or not step.terms:
            same = steady if axes else common
            same += [(buffer, place.expr)] if place.at in sure and not rest.symbols else []
        else:
            span = place.span(rest)
            if len(axes) > 1 or span is None or rest.depends_on(several):
                return None
            groups.setdefault((first, step), []).append((*span, place.at, rest))
    if groups and buffer.cell[2] > 1 and has_constructor(buffer.target, buffer.declared.type):
        return None
    tiles = tuple(tile for key, spans in groups.items() for tile in _tiles(buffer, key, spans, sure))
    each = buffer.poly(loop.step).value or 1
    fit = all(t.width <= min(abs(t.step.value or MOST_WIDTH) * each, MOST_WIDTH) for t in tiles)
    return Reads(tiles, tuple(steady), tuple(common), buffer.names) if fit else None


_Spanned = tuple[int, int, Poly, Poly]  # between which elements of a line a place lies, the place, and what it adds


def _tiles(buffer: SlicedBuffer, key: tuple[Poly, Poly], places: list[_Spanned], sure: set[Poly]) -> Iterator[Tile]:
    """Tiles for places of the same lines: those that lie close together are in one."""
    first, step = key
    together: list[list[_Spanned]] = []
    for place in sorted(places, key=lambda p: p[:2]):
        if together and place[1] - together[-1][0][0] < MOST_WIDTH:
            together[-1].append(place)
        else:
            together.append([place])
    for some in together:
        low, high = some[0][0], max(p[1] for p in some)
        columns = {at: rest - constant(low) for _, _, at, rest in some}
        axis, all_sure = _axes(first)[0], columns.keys() <= sure
        yield Tile(buffer, axis, first + constant(low), step, high - low + 1, columns, all_sure)


def _axes(first: Poly) -> list[str]:
    return [axis for axis in "xy" if first.depends_on(IDS[axis])]


def _parts(buffer: SlicedBuffer, place: Place, var: str) -> tuple[Poly, Poly, Poly] | None:
    """A place as where the thread's line begins, what the loop's variable is multiplied with, and what constants and
    variables of loops within add; None where it is no such sum."""
    target = buffer.target
    numbers = {p.name for p in target.kernel.params if is_integer(p.type)} - target.known.changed
    steady = numbers | {"blockIdx.z"} | target.constants.keys()
    step = place.at.coefficient(var)
    if step is None or not step.names() <= steady:
        return None
    first, rest = constant(0), constant(0)
    for names, count in place.at.without(var).terms:
        term = Poly(((names, count),))
        within = term.symbols & place.reach.keys()
        if within == term.symbols and not term.depends_on(["threadIdx", "blockIdx", *numbers]):
            rest = rest + term
        elif within or not term.names() <= steady | IDS["x"] | IDS["y"]:
            return None
        elif any(s[0] == "{" and symbol(s).depends_on(["threadIdx", "blockIdx"]) for s in term.symbols):
            return None  # text in which ids would have to be told
        else:
            first = first + term
    return first, step, rest


# ---------------------------------------------------------------- what each turn reads in any case


def _sure(buffer: SlicedBuffer, body: Block) -> set[Poly]:
    """The places that each turn of a loop touches, whatever the data."""
    found = set[Poly]()
    _note(buffer, body, found)
    return found


def _with_several_ranges(body: Block) -> set[str]:
    """The variables of several loops that do not have the same turns."""
    heads = dict[str, set[tuple[Expr, str, Expr, Expr]]]()
    for s in walk_stmts(body):
        if isinstance(s, For):
            heads.setdefault(s.var, set()).add((s.start, s.relation, s.bound, s.step))
    return {var for var, found in heads.items() if len(found) > 1}


def _note(buffer: SlicedBuffer, body: Block, found: set[Poly]) -> None:
    for s in body:
        if isinstance(s, Jump):
            return
        for e in exprs_of(s) if not isinstance(s, While) else ():
            _note_in(buffer, e, found)
        if isinstance(s, Scope) or (isinstance(s, For) and _has_turns(buffer, s) and not jumps(s.body)):
            _note(buffer, s.body, found)
        if isinstance(s, If | Scope) and jumps((s,)):
            return


def _has_turns(buffer: SlicedBuffer, loop: For) -> bool:
    start, bound = buffer.poly(loop.start).value, buffer.poly(loop.bound).value
    return start is not None and bound is not None and loop.relation in ("<", "<=") and start < bound


def _note_in(buffer: SlicedBuffer, e: Expr, found: set[Poly]) -> None:
    at = buffer.place(e)
    if at is not None:
        found.add(at)
        return
    parts = subexprs(e)
    maybe = isinstance(e, Ternary) or (isinstance(e, Binary) and e.op in ("&&", "||"))
    for part in parts[:1] if maybe else parts:
        _note_in(buffer, part, found)
