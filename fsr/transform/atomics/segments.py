"""segment-atomics: neighbouring elements that are added to one place are added up within a warp first.

What is sorted by the place it goes to (the entries of a sparse matrix by their row, edges by their end, particles by
their cell) sends one atomic a run in place of one an element. It is right for any order, and of use for runs: a
segmented reduction by shuffles (Bell and Garland, "Implementing Sparse Matrix-Vector Multiplication on
Throughput-Oriented Processors", SC 2009, the COO kernel).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.records import Candidate
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    ExprStmt,
    For,
    Index,
    Literal,
    Member,
    Name,
    Stmt,
    While,
    number,
)  # fmt: skip
from fsr.source.mapping import map_stmts
from fsr.source.walk import base_name, blocks_of, walk_stmts, without_casts
from fsr.transform.atomics.action import find
from fsr.transform.atomics.element_kernel import ElementKernel, element_kernel
from fsr.transform.atomics.global_atomics import Target, atomic_of, targets, typed
from fsr.transform.collectives import missing_helpers
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.rows.row_kernel import fresh
from fsr.transform.rows.share import plus, times
from fsr.transform.sizes import INT_LIMIT, largest
from fsr.transform.target import target_of

_THREADS = 256
_ROUNDS = (1, 4)  # times that a warp goes on to other elements
_SORTED_GAIN, _ANY_GAIN = 5.0, 1.05


@dataclass(frozen=True, slots=True)
class SegmentAtomics:
    """The action."""

    name: str = "segment-atomics"
    aims_at: frozenset[str] = frozenset(["atomics"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Warps that do 32 elements each, and such that do several times as many; where neighbours hardly go to one
        place, only if there are too many places for bins."""
        if subject.keep_launch:
            return
        for form in subject.kernels.values():
            kernel = element_kernel(subject, form)
            to = None if kernel is None else _scattered(kernel, subject)
            if kernel is None or to is None:
                continue
            gain = _SORTED_GAIN if _in_runs(kernel, to) else _ANY_GAIN
            bins = find(subject, form)
            if gain == _ANY_GAIN and bins is not None and bins.scattered is not None:
                continue  # a block's own bins serve places in any order
            for rank, rounds in enumerate(_ROUNDS):
                yield Move(self.name, kernel.target.region, (("rounds", rounds),), gain - 0.02 * rank)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate in which neighbours add up first."""
        target = target_of(subject, move)
        kernel = element_kernel(subject, target.kernel)
        to = None if kernel is None else _scattered(kernel, subject)
        assert kernel is not None
        assert to is not None
        form = replace(target.kernel, body=_body(kernel, to), launch_bounds=(str(_THREADS),))
        grid = f"ceil_div({kernel.count}, {_THREADS * int(move.param('rounds'))})"
        return rewritten(
            target, move, form, helpers=missing_helpers(target.source, ["fsr_add_runs"]),
            launch=lambda old: replace(old, grid=(grid, "1", "1"), block=(str(_THREADS), "1", "1")),
        )  # fmt: skip


def _scattered(kernel: ElementKernel, subject: Subject) -> Target | None:
    """The one atomic of an element, which adds; None where there is none, or a loop goes through it."""
    wanted = targets(kernel)
    last = largest(subject.contract, kernel.count)
    if not wanted or len(wanted) != 1 or last is None or last > INT_LIMIT - 2**24:
        return None
    (to,) = wanted.values()
    atomics = [s for s in walk_stmts(kernel.body) if atomic_of(s) is not None]
    inside = [s for loop in walk_stmts(kernel.body) if isinstance(loop, For | While)
              for block in blocks_of(loop) for s in walk_stmts(block)]  # fmt: skip
    return to if to.operation == "Add" and not to.fixed and len(atomics) == 1 and atomics[0] not in inside else None


def _in_runs(kernel: ElementKernel, to: Target) -> bool:
    """Whether the contract says that neighbours often go to one place, or the place is told by the number alone."""
    place = without_casts(kernel.target.declared_as(without_casts(to.index)))
    if not isinstance(place, Index):
        return True
    argument = kernel.target.argument(base_name(place) or "")
    return argument is not None and argument.constraints.sorted


def _body(kernel: ElementKernel, to: Target) -> tuple[Stmt, ...]:
    form, type_ = kernel.target.kernel, kernel.type
    base, lane, place, added = (Name(fresh(n, form)) for n in ("base", "lane", "place", "added"))
    block, thread, grid = (Member(Name(n), "x") for n in ("blockIdx", "threadIdx", "gridDim"))

    def kept(stmt: Stmt) -> Stmt | tuple[Stmt, ...]:
        found = atomic_of(stmt)
        if found is None:
            return stmt
        return (Assign(place, "=", found[1]), Assign(added, "=", typed(found[3], to, kernel)))

    end = Call(Name("min"), (Cast(type_, kernel.bound), plus(base, number(32))))
    work = For(type_, kernel.var, plus(base, lane), "<", end, number(32), map_stmts(kernel.body, kept))
    start: Expr = Binary("-", plus(times(block, number(_THREADS)), thread), lane)
    each: tuple[Stmt, ...] = (
        Declare("long long", place.text, Literal("-1")),
        Declare(to.type, added.text, Literal(to.identity)),
        work,
        ExprStmt(Call(Name("fsr_add_runs"), (Name(to.pointer), place, added))),
    )
    return (
        *kernel.before,
        Declare("const int", lane.text, Binary("%", thread, number(32))),
        For(type_, base.text, start, "<", kernel.bound, times(grid, number(_THREADS)), each),
    )
