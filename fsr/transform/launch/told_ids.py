"""What a kernel is told its threads' ids, and the extents of its launch, are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from fsr.analysis.braces import with_members_set
from fsr.analysis.threads import AXES
from fsr.source.form import Binary, Expr, Literal, Member, Name
from fsr.source.mapping import map_exprs
from fsr.source.walk import Block, walk_exprs
from fsr.transform.target import Target

Ids = Mapping[tuple[str, str], Expr]
"""By variable and axis: ('threadIdx', 'x')."""


def with_ids(body: Block, told: Ids) -> Block:
    """Statements with other expressions for ids and extents; those that are not told stay."""

    def change(e: Expr) -> Expr:
        return told.get((e.base.text, e.name), e) if isinstance(e, Member) and isinstance(e.base, Name) else e

    return map_exprs(body, change)


def as_told(target: Target) -> Target:
    """A kernel in which all mentions of ids are seen: what stands in braces (``int2 p = {threadIdx.x, y}``) is set
    member by member."""
    return replace(target, kernel=with_members_set(target.kernel, target.source, vectors=True))


def ids_in(body: Block) -> frozenset[tuple[str, str]]:
    """The ids and extents that statements ask for, and all else that has parts."""
    return frozenset(
        (e.base.text, e.name) for e in walk_exprs(body) if isinstance(e, Member) and isinstance(e.base, Name)
    )


def taken_apart(thread: Expr, extents: Sequence[int], *, within: bool) -> dict[tuple[str, str], Expr]:
    """What threadIdx and blockDim are in a block of these extents. ``thread``: a thread's number, x first; ``within``:
    it is less than their product, where it is not there are more blocks."""
    told: dict[tuple[str, str], Expr] = {}
    before, threads = 1, prod(extents)
    for axis, extent in zip(AXES, extents, strict=True):
        own = thread if before == 1 else Binary("/", thread, Literal(f"{before}u"))
        before *= extent
        own = own if within and before == threads else Binary("%", own, Literal(f"{extent}u"))
        told["threadIdx", axis] = own if extent > 1 else Literal("0u")
        told["blockDim", axis] = Literal(f"{extent}u")
    return told
