"""Neighbourhoods: one array read at several constant offsets from the point, on one path through the core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fsr.analysis.accesses import Access
from fsr.analysis.domain import Domain
from fsr.analysis.guards import is_pure
from fsr.analysis.point_accesses import Inits, accesses, once_set
from fsr.analysis.polynomial import Poly, constant
from fsr.contract.model import Contract
from fsr.source.form import Assign, Binary, Call, Declare, Expr, ExprStmt, If, Index, Stmt, Ternary
from fsr.source.walk import identifiers, names_assigned, nodes, subexprs, without_comments
from fsr.transform.placement import dtype_of, may_alias

REACH = 16  # rows: an offset further away is another array in the same memory, not a neighbour


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Reads of one array around the point. ``offsets``: (dx, dy) of each read by its expression; ``first``: one of the
    reads, from whose index the others follow. ``dtype``: its elements."""

    array: str
    dtype: str
    first: Access
    offsets: dict[Expr, tuple[int, int]]

    def columns(self) -> dict[int, tuple[int, int]]:
        """For each dx that is read, the smallest and the largest dy."""
        found: dict[int, tuple[int, int]] = {}
        for dx, dy in self.offsets.values():
            low, high = found.get(dx, (dy, dy))
            found[dx] = (min(low, dy), max(high, dy))
        return dict(sorted(found.items()))

    def box(self) -> tuple[int, int, int, int]:
        """Smallest and largest dx, smallest and largest dy."""
        dx, dy = [d[0] for d in self.offsets.values()], [d[1] for d in self.offsets.values()]
        return min(dx), max(dx), min(dy), max(dy)


@dataclass(frozen=True, slots=True)
class Level:
    """One step down the path: declarations, then a condition that the path takes as it is or negated."""

    lets: tuple[Declare, ...]
    test: Expr
    taken: bool


@dataclass(frozen=True, slots=True)
class Stencil:
    """A domain whose core has one path (``levels`` of conditions, then ``leaf``) that reads neighbourhoods."""

    domain: Domain
    values: Inits
    levels: tuple[Level, ...]
    leaf: tuple[Stmt, ...]
    neighbourhoods: tuple[Neighbourhood, ...]


def stencil(found: Domain, contract: Contract) -> Stencil | None:
    """The path with the most neighbour reads; None when no array is read at several rows, may be written, or the
    conditions of the path read memory."""
    if set(found.axes) != {"x", "y"}:
        return None
    values = once_set(found)
    every = accesses(found, values)
    if every is None or found.flat is not None:
        return None
    best: Stencil | None = None
    for levels, leaf in _paths(found.core, ()):
        around = _neighbourhoods(leaf, every, found, contract)
        count = sum(len(n.offsets) for n in around)
        if count > sum(len(n.offsets) for n in best.neighbourhoods) if best else around:
            best = Stencil(found, values, levels, leaf, around)
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
    straight = straight_line(leaf)
    groups: dict[tuple[str, Poly, Poly], list[tuple[Access, int, int]]] = {}
    for one in every:
        place = _offset(one, found) if one.expr in straight and not one.writes else None
        if place is not None:
            stride, rest, dx, dy = place
            groups.setdefault((one.pointer, stride, rest), []).append((one, dx, dy))
    stored = [a.pointer for a in every if a.writes]
    result = []
    for (array, _, _), reads in groups.items():
        dtype = dtype_of(contract, found.launch, found, array)
        shared = any(may_alias(contract, found.launch, found, array, s) for s in stored)
        if len({dy for _, _, dy in reads}) > 1 and dtype is not None and not shared:
            first, dx, dy = reads[0]
            near = {r.expr: (x - dx, y - dy) for r, x, y in reads}
            result.append(Neighbourhood(array, dtype, first, near))
    return tuple(result)


def _offset(one: Access, found: Domain) -> tuple[Poly, Poly, int, int] | None:
    """The row stride, the part of the index that is the same for all neighbours, dx and dy; None when the index is not
    row * stride + column + constants."""
    x, y = found.axes["x"].var, found.axes["y"].var
    stride, along = found.poly(one.offset).coefficient(y), found.poly(one.offset).coefficient(x)
    uniform = {p.name for p in found.form.params} | {n for s in found.uniform for n in identifiers(s)}
    if stride is None or along != constant(1) or not stride.terms or stride.value in (1, -1):
        return None
    rest = found.poly(one.offset).without(y).without(x)
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
    return stride, left - constant(fixed), fixed, best[2]


def straight_line(core: Sequence[Stmt]) -> set[Index]:
    """The element references that every point evaluates: in top-level statements, under no condition."""
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
    return result
