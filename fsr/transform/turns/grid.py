"""Grids of which blocks have turns in strides: ``for (i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
i += gridDim.x * blockDim.x)``. Where nothing else knows how many blocks there are, another number of them does the
same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.calls import is_atomic
from fsr.analysis.conditions import exclusive, negation
from fsr.analysis.polynomial import Poly, symbol
from fsr.analysis.threads import AXES
from fsr.source.form import Binary, Expr, For, If, Literal, Member, Name, Return, Scope
from fsr.source.mapping import replace_stmt, rewrite
from fsr.source.walk import (
    Block,
    blocks_of,
    contains_barrier,
    contains_opaque,
    contains_warp_wide,
    walk_exprs,
    walk_stmts,
)
from fsr.transform.launch.cooperation import cooperates, hands_on_ids
from fsr.transform.sizes import ever
from fsr.transform.target import Target
from fsr.transform.turns.dealt import may_be_dealt
from fsr.transform.turns.shared import counts_up
from fsr.transform.turns.strides import known_elsewhere

_THREADS = frozenset(["threadIdx", "blockDim"])
_FLAT = (
    symbol("threadIdx.x") + symbol("blockDim.x") * symbol("blockIdx.x"), symbol("blockDim.x") * symbol("gridDim.x")
)  # fmt: skip


@dataclass(frozen=True)
class StridedGrid:
    """``axis``: of the grid, along which there may be any number of blocks. ``turns``: how many there are of all
    blocks, and ``stride``: how many of them a block has at a time, as size expressions; None where that is not known.
    ``any_size``: whether blocks may have any number of threads along x, which ``stride`` is then. ``gathers``: whether
    something is left to do behind the turns, for each block."""

    axis: str
    turns: str | None
    stride: str | None
    any_size: bool
    gathers: bool


def strided_grid(target: Target) -> StridedGrid | None:
    """The axis along which a launch may have another number of blocks; None where that cannot be shown."""
    body = target.kernel.body
    if contains_opaque(body) or hands_on_ids(target, body):
        return None
    for axis in AXES:
        loops = tuple(_loops(body, target, axis))
        ids = frozenset({f"blockIdx.{axis}", f"gridDim.{axis}"})
        plain = _unguarded(target, loops)
        if not loops or known_elsewhere(plain, loops, ids):
            continue
        found = _found(plain, loops, axis)
        if may_be_dealt(plain, loops, axis, apart=_has_one_each(plain, found)):
            return found
    return None


def _has_one_each(target: Target, found: StridedGrid) -> bool:
    """Whether there are sizes at which each block has one turn, so that no turn touches what is another one's there.
    They do the same where a block has several, as nothing else knows how many blocks there are. (The tests have the
    last word.)"""
    if found.turns is None or found.stride is None:
        return False
    grid, turns = target.launch.grid[AXES.index(found.axis)], f"ceil_div({found.turns}, {found.stride})"
    return ever(target.contract, f"(1 if ({turns}) > 1 else 0) if ({grid}) == ({turns}) else 0")


def _unguarded(target: Target, loops: tuple[For, ...]) -> Target:
    """The target without a test in front of the loops whether a thread has a turn at all: one that has none gathers
    nothing, and adds nothing, where no others wait for it."""
    body = target.kernel.body
    if contains_barrier(body) or contains_warp_wide(body):
        return target
    for s in body:
        if not isinstance(s, If) or s.orelse:
            continue
        inside = all(any(loop is x for x in walk_stmts(s.then)) for loop in loops)
        if s.then == (Return(),) and all(_asks(negation(s.test), loop, target) for loop in loops):
            body = replace_stmt(body, s, ())
        elif inside and all(_asks(s.test, loop, target) for loop in loops):
            body = replace_stmt(body, s, (Scope(s.then),))
    return replace(target, kernel=replace(target.kernel, body=body))


def _asks(test: Expr, loop: For, target: Target) -> bool:
    """Whether a test is that of the loop's first turn."""
    match test:
        case Binary(op, left, right):
            return op == loop.relation and all(
                target.known.poly(a) == target.known.poly(b) for a, b in ((left, loop.start), (right, loop.bound))
            )
    return False


def _loops(body: Block, target: Target, axis: str) -> Iterator[For]:
    """The outermost loops by the grid's stride."""
    for s in body:
        if isinstance(s, For) and counts_up(s, target) and _stride(s, target, axis) is not None:
            yield s
        else:
            for block in blocks_of(s):
                yield from _loops(block, target, axis)


def _stride(loop: For, target: Target, axis: str) -> Poly | None:
    """What a block has at a time of a loop whose turns begin at ``own + stride * blockIdx`` and go on by ``stride *
    gridDim``: whatever the number of blocks, all of them together have each turn once."""
    block, grid = f"blockIdx.{axis}", f"gridDim.{axis}"
    start, step = (target.known.poly(e, target.numbers) for e in (loop.start, loop.step))
    stride = step.coefficient(grid)
    if stride is None or stride == Poly() or step.without(grid) != Poly() or loop.relation not in ("<", "<="):
        return None
    own = start - stride * symbol(block)
    unknown = (stride.names() | own.names()) & {block, grid}
    return None if unknown or stride.depends_on(target.known.changed) else stride


def _found(target: Target, loops: tuple[For, ...], axis: str) -> StridedGrid:
    loop = loops[0]
    bound = exclusive(loop.bound, loop.relation)
    heads = {(target.known.poly(x.start), target.known.poly(x.step)) for x in loops}
    flat = axis == "x" and heads == {_FLAT} and target.launch.block[1:] == ("1", "1")
    any_size = flat and not cooperates(target) and not known_elsewhere(target, loops, _THREADS)
    stride = _stride(loop, target, axis)
    text = target.launch.block[0] if flat else target.poly_text(stride) if stride is not None else None
    rest = target.kernel.body
    for turns in loops:
        rest = replace_stmt(rest, turns, ())
    gathers = any(is_atomic(e) for e in walk_exprs(rest))
    told = _with_extents(target.known.expand(bound), target)
    any_size = any_size and told == target.known.expand(bound)
    return StridedGrid(axis, target.size_text(told), text, any_size, gathers)


def _with_extents(e: Expr, target: Target) -> Expr:
    """An expression with the block's extents that are numbers in the place of ``blockDim``."""
    known = {("blockDim", axis): extent for axis, extent in zip(AXES, target.launch.block, strict=True)}

    def change(part: Expr) -> Expr | None:
        extent = (
            known.get((part.base.text, part.name)) if isinstance(part, Member) and isinstance(part.base, Name) else None
        )
        return Literal(extent) if extent is not None and extent.isdigit() else None

    return rewrite(e, change)
