"""Accesses whose neighbouring threads are far apart in memory, and the tile that brings them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fsr.analysis.accesses import Access
from fsr.analysis.domain import Domain
from fsr.analysis.point_accesses import Inits, accesses, once_set
from fsr.analysis.polynomial import constant
from fsr.contract.model import Contract
from fsr.hardware.c_types import dtype_bytes
from fsr.source.emit import emit_expr, emit_stmts
from fsr.source.form import Assign, Binary, Declare, Expr, ExprStmt, Index, Name, OpaqueExpr, Stmt, Ternary
from fsr.source.mapping import rewrite
from fsr.source.names import indent
from fsr.source.walk import nodes, subexprs
from fsr.transform.placement import dtype_of, may_alias
from fsr.transform.points import at_point, unrolled

Reads = tuple[Access, ...]


@dataclass(frozen=True, slots=True)
class Transposed:
    """A two-dimensional domain with accesses that are contiguous along y instead of x. ``reads`` are made for every
    point; ``write`` is the store that is made last for every point, if it is one of them. ``element_bytes``: the
    largest element that goes through a tile."""

    domain: Domain
    values: Inits
    reads: Reads
    write: Access | None
    element_bytes: int


def transposed(found: Domain, contract: Contract) -> Transposed | None:
    """The accesses that a tile can turn round; None when there are none, or they cannot be shown to be independent."""
    if set(found.axes) != {"x", "y"}:
        return None
    values = once_set(found)
    every = accesses(found, values)
    if every is None or not any(_along(a, "x", found) for a in every):
        return None  # nothing is coalesced now: exchanging the ids is simpler
    stored = [a for a in every if a.writes]
    straight = straight_line(found.core)
    reads: list[Access] = []
    for one in every:
        new = found.poly(one.offset) not in [found.poly(r.offset) for r in reads if r.pointer == one.pointer]
        if _along(one, "y", found) and not one.writes and one.expr in straight and new:
            if any(may_alias(contract, found.launch, found, one.pointer, s.pointer) for s in stored):
                return None
            reads.append(one)
    write = _write(found, every, straight, contract)
    if len(reads) > 2 or (not reads and write is None):
        return None
    sizes = [_bytes(contract, found, a.pointer) for a in (*reads, *([write] if write else []))]
    if any(s is None for s in sizes):
        return None
    return Transposed(found, values, tuple(reads), write, max(s for s in sizes if s is not None))


def _along(one: Access, axis: str, found: Domain) -> bool:
    """Whether neighbours along the axis touch neighbouring elements, and neighbours along the other do not."""
    own = found.poly(one.offset).coefficient(found.axes[axis].var)
    other = found.poly(one.offset).coefficient(found.axes["x" if axis == "y" else "y"].var)
    return own == constant(1) and other is not None and other.value not in (0, 1, -1)


def _bytes(contract: Contract, found: Domain, array: str) -> int | None:
    return dtype_bytes(dtype_of(contract, found.launch, found, array) or "")


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


def _write(found: Domain, every: Sequence[Access], straight: set[Index], contract: Contract) -> Access | None:
    """The store along y that may wait for a barrier: a plain assignment for every point, to an array that the core
    touches nowhere else."""
    candidates = [a for a in every if a.writes and _along(a, "y", found) and a.expr in straight]
    if len(candidates) != 1:
        return None
    one = candidates[0]
    plain = [s for s in found.core if isinstance(s, Assign) and s.target == one.expr and s.op == "="]
    others = [a for a in every if a is not one]
    if len(plain) != 1 or any(may_alias(contract, found.launch, found, one.pointer, a.pointer) for a in others):
        return None
    return one


def element_type(found: Domain, array: str) -> str:
    """The C type of an array parameter's elements, as the kernel spells it."""
    return " ".join(w for w in found.form.param(array).type.replace("*", " ").split() if w not in ("const", "volatile"))


def transpose_body(t: Transposed, tile: int, rows: int) -> str:
    """The kernel body for blocks of tile x rows threads, each block a tile x tile square of points."""
    count = tile // rows
    lines = [s.rstrip() for s in emit_stmts(t.domain.uniform).splitlines()]
    for number, read in enumerate(t.reads):
        lines.append(f"__shared__ {element_type(t.domain, read.pointer)} $tile_in{number}[{tile}][{tile + 1}];")
    if t.write is not None:
        lines.append(f"__shared__ {element_type(t.domain, t.write.pointer)} $tile_out[{tile}][{tile + 1}];")
    lines += [f"const {t.domain.axes[a].type} ${a}_block = blockIdx.{a} * {tile};" for a in "xy"]
    step = f"threadIdx.y + $i * {rows}"
    across = {"x": f"$x_block + {step}", "y": "$y_block + threadIdx.x"}
    if t.reads:
        fetch = [f"$tile_in{n}[{step}][threadIdx.x] = {_element(r)};" for n, r in enumerate(t.reads)]
        lines += [*unrolled("$i", count, at_point(t.domain, t.values, across, fetch)), "__syncthreads();"]
    own = {"x": "$x_block + threadIdx.x", "y": f"$y_block + {step}"}
    core = emit_stmts(_through_tiles(t, step)).splitlines()
    lines += unrolled("$i", count, at_point(t.domain, t.values, own, core))
    if t.write is not None:
        put = [f"{_element(t.write)} = $tile_out[threadIdx.x][{step}];"]
        lines += ["__syncthreads();", *unrolled("$i", count, at_point(t.domain, t.values, across, put))]
    return "\n".join(indent(lines)) + "\n"


def _element(one: Access) -> str:
    return emit_expr(Index(Name(one.pointer), one.offset))


def _through_tiles(t: Transposed, step: str) -> tuple[Stmt, ...]:
    """The core with the accesses that go through tiles replaced by their places in the tiles."""
    parts: dict[Expr, Expr] = {}
    place = OpaqueExpr(step)
    for number, read in enumerate(t.reads):
        parts[read.expr] = Index(Index(Name(f"$tile_in{number}"), OpaqueExpr("threadIdx.x")), place)
    if t.write is not None:
        parts[t.write.expr] = Index(Index(Name("$tile_out"), place), OpaqueExpr("threadIdx.x"))
    changed = rewrite(t.domain.core, lambda e: parts.get(e))
    assert not any(isinstance(n, Index) and n in parts for n in nodes(changed))
    return changed
