"""The kernel whose warps stage rows in tiles: the way to its loops, where it is told which lanes come along."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    For,
    If,
    Literal,
    Name,
    Stmt,
    Unary,
    number,
)
from fsr.source.mapping import with_blocks
from fsr.source.walk import Block, fresh, nodes
from fsr.transform.rows.share import plus, times
from fsr.transform.slices.row_loop import Memory, RowLoop, StagedLoop
from fsr.transform.slices.row_tiles import RowTile
from fsr.transform.slices.text import without_empty
from fsr.transform.target import Target
from fsr.transform.thread_number import thread_number

_ALL_LANES = Literal("0xffffffffu")


def slots(loops: Sequence[RowLoop], turns: int) -> list[list[RowTile]]:
    """Tiles that have one place in shared memory, as no two of them are of one loop."""
    found = list[list[RowTile]]()
    for one in loops:
        free = list(found)
        for tile in one.tiles:
            kind = tile.type, tile.stride(turns)
            alike = [s for s in free if (s[0].type, s[0].stride(turns)) == kind]
            if not alike:
                found.append([tile])
                continue
            slot = next((s for s in alike if s[0].name == tile.name), alike[0])
            free = [s for s in free if s is not slot]
            slot.append(tile)
    return found


class StagedRows:
    """The new body. ``turns``: of a loop, that a tile holds."""

    def __init__(self, target: Target, loops: Sequence[RowLoop], turns: int) -> None:
        self.target, self.loops, self.turns = target, loops, turns
        self.uneven = [around for one in loops for around in one.uneven]
        self._names = set(target.names)

    def _name(self, wanted: str) -> str:
        name = fresh(wanted, self._names)
        self._names.add(name)
        return name

    def body(self) -> Block:
        """The kernel's body."""
        memory, heads = dict[int, Memory](), list[Stmt]()
        for slot in slots(self.loops, self.turns):
            called = slot[0].name if len({tile.name for tile in slot}) == 1 else "shared"
            here = Memory(*(self._name(f"{called}_{what}") for what in ("tile", "row")))
            heads += self._memory(slot[0], here)
            memory |= {id(tile): here for tile in slot}
        self._staged = {
            id(one.loop): StagedLoop(self.target, one, self.turns, memory, self._name) for one in self.loops
        }
        return (*heads, *without_empty(self._opened(self.target.kernel.body, _ALL_LANES)))

    def _memory(self, tile: RowTile, here: Memory) -> Iterator[Stmt]:
        """The tiles of a block's warps, and the thread's row."""
        block = self.target.block or (1, 1, 1)
        thread, stride = thread_number(block), tile.stride(self.turns)
        yield Declare(tile.type, here.tile, None, (number(stride * math.prod(block)),), ("__shared__",))
        yield Declare(f"{tile.type} *", here.row, plus(Name(here.tile), times(thread, number(stride))))

    def _opened(self, body: Block, lanes: Expr) -> Block:
        """Statements that the lanes ``lanes`` of a warp come to together."""
        found = list[Stmt]()
        for s in body:
            found += self._led(s, lanes) if self._leads((s,)) else [s]
        return tuple(found)

    def _leads(self, body: Block) -> bool:
        """Whether one of the loops is in statements."""
        return any(id(n) in self._staged for n in nodes(body))

    def _led(self, s: Stmt, lanes: Expr) -> Iterator[Stmt]:
        """The statement that a loop is or is in."""
        match s:
            case For() if id(s) in self._staged:
                yield from self._staged[id(s)].statements(lanes)
            case If(test, then, orelse):
                there = self._leads(then)
                come, some = self._name("comes"), self._name("lanes")
                inside, other = (then, orelse) if there else (orelse, then)
                yield Declare("const bool", come, test if there else Unary("!", test))
                yield Declare("const unsigned int", some, ballot(lanes, Name(come)))
                if self._leads(other):
                    rest = self._name("lanes")
                    yield Declare("const unsigned int", rest, Binary("&", lanes, Unary("~", Name(some))))
                    other = self._opened(other, Name(rest))
                yield If(Name(come), self._opened(inside, Name(some)), other)
            case For(type=str() as type_) if any(s is one for one in self.uneven):
                some = self._name("lanes")
                first, following = Cast(type_, s.start), Cast(type_, Binary("+", Name(s.var), s.step))
                yield Declare("unsigned int", some, ballot(lanes, Binary(s.relation, first, s.bound)))
                again = Binary(s.relation, following, s.bound)
                last = Assign(Name(some), "=", ballot(Name(some), again))
                yield replace(s, body=(*self._opened(s.body, Name(some)), last))
            case _:
                yield with_blocks(s, lambda block: self._opened(block, lanes))


def ballot(lanes: Expr, test: Expr) -> Expr:
    """Which of the lanes a test holds for."""
    return Call(Name("__ballot_sync"), (lanes, test))
