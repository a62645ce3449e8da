"""A section's pieces as statements for all threads of the block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from fsr.analysis.threads import AXES
from fsr.source.form import Binary, Cast, Comment, Declare, Expr, For, If, Member, Name, Scope, Stmt, number
from fsr.source.walk import BARRIER, Block, fresh, integer, is_zero
from fsr.transform.rows.share import plus, times
from fsr.transform.sections.nests import Nest
from fsr.transform.sections.pieces import Branch, Common, Dealt, Meet, Own, Piece, Shared
from fsr.transform.target import Target

WARP = 32


class Text:
    """Writes sections. ``order``: whether neighbours have neighbouring turns of the inner or of the outer loop."""

    def __init__(self, target: Target, order: str, taken: set[str]) -> None:
        self._order, self._taken = order, taken
        self._launch, self._threads = target.launch, target.threads
        self.thread, self._all = self._name("thread_in_block"), self._name("threads_in_block")
        self._busy = 0  # threads that a loop of before keeps busy, up to the next barrier

    def head(self) -> Block:
        """What the kernel begins with: each thread's number in its block."""
        place: Expr | None = None
        extent: Expr | None = None
        for axis, size in reversed([*zip(AXES, self._launch.block, strict=True)]):
            if size == "1":
                continue
            wide = number(int(size)) if size.isdigit() else Member(Name("blockDim"), axis)
            own = Member(Name("threadIdx"), axis)
            place = own if place is None else Binary("+", Binary("*", place, wide), own)
            extent = wide if extent is None else Binary("*", extent, wide)
        found: tuple[Stmt, ...] = (Declare("const int", self.thread, place),)
        if self._threads is None:
            found += (Declare("const int", self._all, extent),)
        return found

    def section(self, shared: Shared) -> Block:
        """All statements in the section's place."""
        self._busy = 0
        opened = shared.opened
        first, last = (((BARRIER,) if meets else ()) for meets in (shared.first, shared.last))
        inner = self._block(shared, shared.pieces)
        if opened.test is not None:
            inner = (If(opened.test, inner),)
        whole = Scope((*opened.lead, *inner))
        return (*first, Comment("// all threads of the block share what one did"), whole, *last)

    def _block(self, shared: Shared, pieces: Sequence[Piece]) -> Block:
        return tuple(s for piece in pieces for s in self._piece(shared, piece))

    def _piece(self, shared: Shared, piece: Piece) -> Iterator[Stmt]:
        match piece:
            case Own(stmts):
                yield If(Binary("==", Name(self.thread), number(self._leader(shared))), stmts)
            case Dealt(nest):
                yield from self._dealt(nest)
            case Common(stmt):
                yield stmt
            case Branch(test, then, orelse):
                yield If(test, self._block(shared, then), self._block(shared, orelse))
            case Meet():
                self._busy = 0
                yield BARRIER

    def _leader(self, shared: Shared) -> int:
        place = 0
        for axis, size in reversed([*zip(AXES, self._launch.block, strict=True)]):
            place = place * (int(size) if size.isdigit() else 1) + shared.opened.section.alone.ids[f"threadIdx.{axis}"]
        return place

    # ------------------------------------------------------------ loops

    def _dealt(self, nest: Nest) -> Iterator[Stmt]:
        first = self._first(nest)
        if len(nest.loops) == 1:
            (loop,), (turns,) = nest.loops, nest.turns
            step = _scaled(self._count(), turns.step)
            yield replace(loop, type=_bare(loop), start=_moved(loop.start, first, turns.step), step=step,
                          relation=_relation(loop), body=nest.body, pragmas=())  # fmt: skip
            return
        counts = list[Expr]()
        for loop, turns in zip(nest.loops, nest.turns, strict=True):
            if turns.count is not None:
                counts.append(number(turns.count))
                continue
            name = self._name(f"turns_{loop.var}")
            yield Declare("const int", name, Cast("int", _length(loop, turns.step), "c"))
            counts.append(Name(name))
        turn = self._name("turn")
        whole: Expr = number(nest.count) if nest.count is not None else _product(counts)
        body = (*self._counters(nest, Name(turn), counts), *nest.body)
        yield For("int", turn, first, "<", whole, self._count(), body)

    def _counters(self, nest: Nest, turn: Expr, counts: Sequence[Expr]) -> Iterator[Stmt]:
        """What each loop's counter is in a turn of all."""
        places = [turn] * len(counts)
        inwards = range(len(counts))
        fast = list(reversed(inwards)) if self._order == "inner" else list(inwards)
        below = list[Expr]()
        for rank, at in enumerate(fast):
            place = Binary("/", turn, _product(below)) if below else turn
            places[at] = place if rank == len(fast) - 1 else Binary("%", place, counts[at])
            below.append(counts[at])
        for loop, turns, place in zip(nest.loops, nest.turns, places, strict=True):
            yield Declare(f"const {_bare(loop)}", loop.var, _moved(loop.start, place, turns.step))

    def _first(self, nest: Nest) -> Expr:
        """A thread's first turn. Short loops with no barrier between go to other warps, so that they go on at once."""
        threads, count = self._threads, nest.count
        if threads is None or count is None or count >= threads:
            return Name(self.thread)
        before, wide = self._busy, -(-count // WARP) * WARP
        if before + wide > threads:
            before = 0
        self._busy = before + wide
        own = Name(self.thread)
        return own if before == 0 else Binary("%", Binary("+", own, number(threads - before)), number(threads))

    def _count(self) -> Expr:
        return Name(self._all) if self._threads is None else number(self._threads)

    def _name(self, wanted: str) -> str:
        name = fresh(wanted, self._taken)
        self._taken.add(name)
        return name


def _bare(loop: For) -> str:
    return (loop.type or "int").removeprefix("const ")


def _relation(loop: For) -> str:
    if loop.relation != "!=":
        return loop.relation
    return "<" if (integer(loop.step) or 0) > 0 else ">"


def _scaled(e: Expr, factor: int) -> Expr:
    value = integer(e)
    if value is not None:
        return number(value * factor)
    return e if factor == 1 else Binary("*", e, number(factor))


def _moved(start: Expr, turn: Expr, step: int) -> Expr:
    """A counter's value some turns after its first."""
    if step < 0:
        return Binary("-", start, times(turn, number(-step)))
    moved = times(turn, number(step))
    return moved if is_zero(start) else plus(start, moved)


def _length(loop: For, step: int) -> Expr:
    """How many turns a loop has."""
    left, right = (loop.bound, loop.start) if step > 0 else (loop.start, loop.bound)
    found = left if is_zero(right) else Binary("-", left, right)
    more = abs(step) - 1 + ("=" in loop.relation and loop.relation != "!=")
    found = found if more == 0 else Binary("+", found, number(more))
    return found if abs(step) == 1 else Binary("/", found, number(abs(step)))


def _product(counts: Sequence[Expr]) -> Expr:
    values = [integer(c) for c in counts]
    if None not in values:
        return number(prod(v for v in values if v is not None))
    whole = counts[0]
    for count in counts[1:]:
        whole = Binary("*", whole, count)
    return whole
