"""Neighbourhoods: one array read at several constant offsets from the point, on one path through the core."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from fsr.analysis.accesses import Access
from fsr.analysis.domain import Domain
from fsr.analysis.guards import is_pure
from fsr.analysis.point_accesses import Inits, accesses, once_set
from fsr.analysis.polynomial import Poly, constant
from fsr.contract.model import Contract
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    Scope,
    Stmt,
    Ternary,
    number,
)
from fsr.source.mapping import substitute
from fsr.source.walk import identifiers, jumps, names_assigned, nodes, subexprs, without_comments
from fsr.transform.placement import dtype_of, may_alias

FEW = 5  # reads that loops go over: fewer are kept by the caches
_TURNS = 64  # of one loop
REACH = 16  # rows: an offset further away is another array in the same memory, not a neighbour


@dataclass(frozen=True, slots=True)
class Offset:
    """How far a read is from the point: ``dx`` and ``dy``, and as often as told by counters of loops ``across`` and
    ``down`` from there."""

    dx: int
    dy: int
    across: tuple[tuple[str, int], ...] = ()
    down: tuple[tuple[str, int], ...] = ()

    def since(self, first: Offset) -> Offset:
        """From another place that no counter moves."""
        return replace(self, dx=self.dx - first.dx, dy=self.dy - first.dy)

    def places(self, turns: Mapping[str, range]) -> Iterator[tuple[int, int]]:
        """Every (dx, dy) in all turns of the loops."""
        names = sorted({name for name, _ in (*self.across, *self.down)})
        for values in product(*(turns[n] for n in names)):
            at = dict(zip(names, values, strict=True))
            yield (
                self.dx + sum(k * at[n] for n, k in self.across),
                self.dy + sum(k * at[n] for n, k in self.down),
            )


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Reads of one array around the point. ``offsets``: of each read by its expression; ``reads``: every (dx, dy);
    ``first``: one of the reads, from whose index without counters the others follow. ``dtype``: its elements."""

    array: str
    dtype: str
    first: Expr
    offsets: dict[Expr, Offset]
    reads: frozenset[tuple[int, int]]

    @property
    def loops(self) -> bool:
        """Whether loops go over it."""
        return any(o.across or o.down for o in self.offsets.values())

    def columns(self) -> dict[int, tuple[int, int]]:
        """For each dx that is read, the smallest and the largest dy."""
        found: dict[int, tuple[int, int]] = {}
        for dx, dy in self.reads:
            low, high = found.get(dx, (dy, dy))
            found[dx] = (min(low, dy), max(high, dy))
        return dict(sorted(found.items()))

    def box(self) -> tuple[int, int, int, int]:
        """Smallest and largest dx, smallest and largest dy."""
        dx, dy = [d[0] for d in self.reads], [d[1] for d in self.reads]
        return min(dx), max(dx), min(dy), max(dy)


@dataclass(frozen=True, slots=True)
class Level:
    """One step down the path: declarations, then a condition that the path takes as it is or negated."""

    lets: tuple[Declare, ...]
    test: Expr
    taken: bool


@dataclass(frozen=True, slots=True)
class Stencil:
    """A domain whose core has one path (``levels`` of conditions, then ``leaf``) that reads neighbourhoods. ``turns``:
    the counters of loops of constant length in the leaf."""

    domain: Domain
    values: Inits
    levels: tuple[Level, ...]
    leaf: tuple[Stmt, ...]
    neighbourhoods: tuple[Neighbourhood, ...]
    turns: Mapping[str, range]


def stencil(found: Domain, contract: Contract) -> Stencil | None:
    """The path with the most neighbour reads; None when no array is read at several rows, may be written, or the
    conditions of the path read memory."""
    if set(found.axes) != {"x", "y"}:
        return None
    values = once_set(found)
    every = accesses(found, values)
    if every is None:
        return None
    best: Stencil | None = None
    for levels, leaf in _paths(found.core, ()):
        around = _neighbourhoods(leaf, every, found, contract)
        count = sum(len(n.reads) for n in around)
        if count > sum(len(n.reads) for n in best.neighbourhoods) if best else around:
            best = Stencil(found, values, levels, leaf, around, constant_turns(leaf, found))
    return best


def _paths(body: Sequence[Stmt], above: tuple[Level, ...]) -> list[tuple[tuple[Level, ...], tuple[Stmt, ...]]]:
    """Every body on the way down through ifs that stand last, with the conditions that lead there."""
    body = without_comments(body)
    found = [(above, body)]
    if not body or not isinstance(body[-1], If):
        return found
    last, lets = body[-1], tuple(s for s in body[:-1] if isinstance(s, Declare) and s.init is not None and is_pure(s))
    hidden = any(isinstance(n, Index | Call) for n in nodes(last.test))
    if len(lets) != len(body) - 1 or hidden or {d.name for d in lets} & set(names_assigned(tuple(body))):
        return found
    for taken, branch in ((True, last.then), (False, last.orelse)):
        found += _paths(branch, (*above, Level(lets, last.test, taken)))
    return found


def _neighbourhoods(
    leaf: Sequence[Stmt], every: Sequence[Access], found: Domain, contract: Contract
) -> tuple[Neighbourhood, ...]:
    """Arrays read around the point in the straight-line part of a leaf, at two rows at least, and never written."""
    turns = constant_turns(leaf, found)
    straight = straight_line(leaf, turns)
    groups: dict[tuple[str, Poly, Poly], list[tuple[Access, Offset]]] = {}
    for one in every:
        place = _offset(one, found, turns) if one.expr in straight and not one.writes else None
        if place is not None:
            stride, rest, offset = place
            groups.setdefault((one.pointer, stride, rest), []).append((one, offset))
    stored = [a.pointer for a in every if a.writes]
    result = []
    for (array, _, _), reads in groups.items():
        dtype = dtype_of(contract, found.launch, found, array)
        shared = any(may_alias(contract, found.launch, found, array, s) for s in stored)
        near = {r.expr: offset.since(reads[0][1]) for r, offset in reads}
        every_place = frozenset(place for offset in near.values() for place in offset.places(turns))
        first = substitute(reads[0][0].offset, dict.fromkeys(turns, number(0)))
        around = Neighbourhood(array, dtype or "", first, near, every_place)
        few = len(every_place) < FEW and around.loops
        if len({dy for _, dy in every_place}) > 1 and dtype is not None and not (shared or few):
            result.append(around)
    return tuple(result)


def _offset(one: Access, found: Domain, turns: Mapping[str, range]) -> tuple[Poly, Poly, Offset] | None:
    """The row stride, the part of the index that is the same for all neighbours, and the offset; None when the index
    is not row * stride + column + constants and counters."""
    x, y = found.axes["x"].var, found.axes["y"].var
    stride, along = found.poly(one.offset).coefficient(y), found.poly(one.offset).coefficient(x)
    uniform = {p.name for p in found.form.params} | {n for s in found.uniform for n in identifiers(s)}
    if stride is None or along != constant(1) or not stride.terms or stride.value in (1, -1):
        return None
    rest = found.poly(one.offset).without(y).without(x)
    across, down = [], []
    for name in sorted(rest.names() & turns.keys()):
        factor = rest.coefficient(name) or constant(0)
        steps = factor.over(stride) or constant(0)
        if (factor.value or 0) and abs(factor.value or 0) <= REACH:
            across.append((name, factor.value or 0))
        elif steps.value:
            down.append((name, steps.value))
        else:
            return None
        rest = rest.without(name)
    if {n for n in (*rest.names(), *stride.names()) if not n.endswith(".z")} - uniform - set(found.constants):
        return None
    best: tuple[int, int, int, Poly] | None = None
    for dy in sorted(range(-REACH, REACH + 1), key=abs):
        left = rest - stride * constant(dy)
        fixed = next((c for m, c in left.terms if m == ()), 0)
        terms = len(left.terms) - (1 if fixed else 0)
        if abs(fixed) <= REACH and (best is None or (terms, abs(fixed)) < best[:2]):
            best = (terms, abs(fixed), dy, left)
    if best is None:
        return None
    left = best[3]
    fixed = next((c for m, c in left.terms if m == ()), 0)
    return stride, left - constant(fixed), Offset(fixed, best[2], tuple(across), tuple(down))


def constant_turns(leaf: Sequence[Stmt], found: Domain) -> dict[str, range]:
    """The values of each counter of the loops of constant length that every point goes through whole."""
    result: dict[str, range] = {}
    for s in without_comments(leaf):
        match s:
            case Scope(body):
                result |= constant_turns(body, found)
            case For(type=str()) if not jumps(s.body) and s.relation in ("<", "<="):
                first, end, step = (found.poly(e).value for e in (s.start, s.bound, s.step))
                if first is None or end is None or step is None or step <= 0:
                    continue
                turns = range(first, end + (s.relation == "<="), step)
                if 0 < len(turns) <= _TURNS and s.var not in names_assigned(s.body):
                    result |= {s.var: turns} | constant_turns(s.body, found)
    return result


def straight_line(core: Sequence[Stmt], turns: Collection[str] = ()) -> set[Index]:
    """The element references that every point evaluates: in statements under no condition, and in loops of these
    counters."""
    result: set[Index] = set()

    def visit(expr: Expr) -> None:
        match expr:
            case Ternary(test=test):
                visit(test)
                return
            case Binary(op="&&" | "||", left=left):
                visit(left)
                return
            case Index():
                result.add(expr)
        for child in subexprs(expr):
            visit(child)

    for stmt in core:
        match stmt:
            case Declare(init=init) if init is not None:
                visit(init)
            case Assign(target=target, value=value):
                visit(target)
                visit(value)
            case ExprStmt(expr=expr):
                visit(expr)
            case Scope(body=body):
                result |= straight_line(body, turns)
            case For(var=var, body=body) if var in turns:
                result |= straight_line(body, turns)
    return result
