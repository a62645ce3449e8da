"""shared-atomics: what a block adds to few places of global memory, gathered in shared memory first, in any kernel.

private-bins deals the elements out anew and needs a kernel that is a loop over them; here the kernel stays as it is and
its atomics alone go to another place: a histogram beside other work, a block with a part of its own, a grid of rows.
Where the sizes say how many places there are, the launch gives as much memory as they take, and sizes at which that is
more than a block has keep to global memory. With fewer blocks, each of which does several blocks' work in turns, what
is gathered is added to memory less often.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fsr.records import Candidate, Launch, ScalarArgument
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    Literal,
    Name,
    Param,
    Stmt,
    Unary,
    number,
)  # fmt: skip
from fsr.source.mapping import map_stmts
from fsr.source.walk import BARRIER, fresh
from fsr.transform.atomics.block_tables import Room, Table, bytes_of, kept_in, rooms, tables
from fsr.transform.atomics.block_turns import Turns, turns
from fsr.transform.atomics.shared_places import Place, place_of
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.rows.share import plus, times
from fsr.transform.target import Target, target_of, targets
from fsr.transform.thread_number import thread_number

_COPIES = (1, 4)
_GAIN, _TOGETHER = 8.0, 0.5
_SPARSE_GAIN = 1.2
_DENSE = 8  # places for a thread of the block; where there are more, adding them up costs what it saves


@dataclass(frozen=True, slots=True)
class SharedAtomics:
    """The action."""

    name: str = "shared-atomics"
    aims_at: frozenset[str] = frozenset(["atomics", "latency"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """One a buffer, and one for all of them, with and without copies for warps that would meet at one place."""
        for target in targets(subject):
            plain, every = tables(target)
            found = [t for t in every if rooms(plain, [t], 1, keep_launch=subject.keep_launch)]
            together = [found] if len(found) > 1 else []
            for chosen in (*together, *([t] for t in found)):
                dense = sum(t.timed for t in chosen) <= _DENSE * (plain.threads or 1)
                gain = (_GAIN if dense else _SPARSE_GAIN) + (_TOGETHER if len(chosen) > 1 else 0.0)
                for copies in _COPIES:
                    if rooms(plain, chosen, copies, keep_launch=subject.keep_launch):
                        params = (("to", "+".join(t.to.pointer for t in chosen)), ("copies", copies))
                        yield Move(self.name, target.region, params, gain - 0.1 * copies)
                        for blocks in self._blocks(subject, plain) if chosen == found else ():
                            yield Move(self.name, target.region, (*params, ("blocks", blocks)), gain - 0.1 * copies)

    def _blocks(self, subject: Subject, plain: Target) -> list[int]:
        """Numbers of blocks that may do the work of all, each in turns; none where the grid has to stay."""
        found = None if subject.keep_launch else turns(plain)
        return [] if found is None else found.numbers(subject)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with those buffers' atomics gathered a block at a time."""
        plain, found = tables(target_of(subject, move))
        wanted = str(move.param("to")).split("+")
        chosen: list[Table] = [t for t in found if t.to.pointer in wanted]
        given = rooms(plain, chosen, int(move.param("copies")), keep_launch=subject.keep_launch)
        assert given is not None
        blocks = dict(move.params).get("blocks")
        made = _Made(plain, given, None if blocks is None else turns(plain), int(blocks or 0))
        params = (*plain.kernel.params, *made.params)
        kernel = replace(plain.kernel, params=params, body=made.body())
        return rewritten(plain, move, kernel, launch=made.launch)


class _Made:
    """The new kernel's parts. ``params``: what is passed beside what was; ``turns``: blocks of before that ``blocks``
    do one after another; None: as many blocks as before."""

    def __init__(self, target: Target, given: Sequence[Room], turns: Turns | None, blocks: int) -> None:
        self.target, self.given, self.turns, self.blocks = target, given, turns, blocks
        self._taken = set(target.names)
        self.tables: list[_Gathering] = []
        before: _Gathering | None = None
        for room in given:
            called = {k: self._name(f"{room.table.to.pointer}_{k}") for k in ("bins", "own", "held", "k", "total")}
            self.tables.append(_Gathering(target, room, called, before))
            before = self.tables[-1] if room.limit is not None else before
        self.params = [Param("int", t.called["held"]) for t in self.tables if t.room.limit is not None]
        self.whole = self._name(f"blocks_{turns.axis}") if turns is not None else ""
        self.params += turns.params(self.whole) if turns is not None else ()

    def _name(self, wanted: str) -> str:
        name = fresh(wanted, self._taken)
        self._taken.add(name)
        return name

    def launch(self, old: Launch) -> Launch:
        """The launch with memory for the tables of which the sizes say how large they are."""
        sized = [r for r in self.given if r.limit is not None]
        args = tuple(ScalarArgument("int32", r.held) for r in sized)
        new = replace(old, shared_bytes=bytes_of(sized), args=(*old.args, *args)) if sized else old
        return new if self.turns is None else self.turns.launch(new, self.blocks)

    def body(self) -> tuple[Stmt, ...]:
        """Tables that hold nothing, the kernel, and what the tables hold added to memory."""
        by_pointer = {t.room.table.to.pointer: t for t in self.tables}

        def gathered(stmt: Stmt) -> Stmt:
            place = place_of(stmt)
            found = None if place is None else by_pointer.get(place.pointer)
            return stmt if place is None or found is None else found.gathered(stmt, place)

        ahead = [s for t in self.tables for s in t.declared()] + [t.emptied() for t in self.tables]
        added = [t.added() for t in self.tables]
        if self.turns is None:
            done = kept_in(self.target.kernel.body)
        else:
            done = self.turns.looped(self._name(f"block_{self.turns.axis}"), self.whole)
        return (*ahead, BARRIER, *map_stmts(done, gathered), BARRIER, *added)


@dataclass(frozen=True, slots=True)
class _Gathering:
    """One table's statements. ``called``: its names by what they stand for; ``before``: the table that it lies behind
    in dynamic memory."""

    target: Target
    room: Room
    called: dict[str, str]
    before: _Gathering | None

    @property
    def bins(self) -> Name:
        """Its memory, copy by copy."""
        return Name(self.called["bins"])

    @property
    def count(self) -> Expr:
        """Places of one copy."""
        return self.of_copies(1)

    def of_copies(self, copies: int) -> Expr:
        """Places of several copies."""
        held = Name(self.called["held"])
        return number(self.room.table.most * copies) if self.room.limit is None else times(held, number(copies))

    def declared(self) -> Iterator[Stmt]:
        """The memory, and which copy of it is a warp's."""
        to, copies = self.room.table.to, self.room.copies
        if self.room.limit is None:
            extent = number(self.room.table.most * copies)
            yield Declare(to.bin_type, self.bins.text, None, (extent,), ("__shared__",))
        elif self.before is None:
            yield Declare(to.bin_type, self.bins.text, None, (Literal(""),), ("extern", "__shared__"))
        else:
            behind: Expr = plus(self.before.bins, self.before.of_copies(copies))
            if to.bin_type != self.before.room.table.to.bin_type:
                behind = Cast(f"{to.bin_type} *", behind, "reinterpret_cast")
            yield Declare(f"{to.bin_type} *const", self.bins.text, behind)
        if copies > 1:
            warp = Binary("%", Binary("/", _thread(self.target)[0], number(32)), number(copies))
            yield Declare(f"{to.bin_type} *const", self.called["own"], plus(self.bins, times(warp, self.count)))

    def emptied(self) -> Stmt:
        """Every place of every copy with nothing in it."""
        nothing = Literal(self.room.table.to.nothing)
        return self._over(self.of_copies(self.room.copies), Assign(Index(self.bins, self._turn), "=", nothing))

    def gathered(self, stmt: Stmt, place: Place) -> Stmt:
        """An atomic in the block's memory, or where it was at sizes for which there is no room."""
        to = self.room.table.to
        own = Name(self.called["own"]) if self.room.copies > 1 else self.bins
        into = "Add" if place.operation == "Sub" else place.operation  # what is taken away in all is a sum
        near = ExprStmt(Call(Name(f"atomic{into}"), (Unary("&", Index(own, place.index)), to.binned(place.value))))
        return near if self.room.fits else If(Binary("!=", self.count, number(0)), (near,), (stmt,))

    def added(self) -> Stmt:
        """What was gathered, added to memory."""
        to, total = self.room.table.to, Name(self.called["total"])
        sum_: Expr = Index(self.bins, self._turn)
        for copy in range(1, self.room.copies):
            sum_ = to.folded(sum_, Index(self.bins, plus(self._turn, self.of_copies(copy))))
        add = ExprStmt(
            Call(Name(to.gathered), (Unary("&", Index(self.room.table.base, self._turn)), to.ungathered(total)))
        )
        some = If(Binary("!=", total, Literal(to.nothing)), (add,))
        return self._over(self.count, Declare(f"const {to.bin_type}", total.text, sum_), some)

    @property
    def _turn(self) -> Name:
        return Name(self.called["k"])

    def _over(self, count: Expr, *body: Stmt) -> Stmt:
        thread, threads = _thread(self.target)
        return For("int", self._turn.text, thread, "<", count, number(threads), body)


def _thread(target: Target) -> tuple[Expr, int]:
    """A thread's number in its block, and how many there are."""
    assert target.block is not None
    return thread_number(target.block), math.prod(target.block)
