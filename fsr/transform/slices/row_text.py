"""The kernel whose warps stage rows in tiles: the loop, and the way to it, where it is told which lanes come along."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Comment,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    Literal,
    Name,
    Scope,
    Stmt,
    Unary,
    number,
)
from fsr.source.mapping import map_stmts, rewrite, with_blocks
from fsr.source.walk import Block, fresh, nodes
from fsr.transform.rows.share import plus, times
from fsr.transform.sizes import INT_LIMIT, largest
from fsr.transform.slices.poly_expressions import WIDE, expression_of
from fsr.transform.slices.row_tiles import RowTile
from fsr.transform.slices.text import without_empty
from fsr.transform.target import Target
from fsr.transform.thread_number import thread_number

_ALL_LANES = Literal("0xffffffffu")


class StagedRows:
    """The new body. ``tiles``: of one loop; ``turns``: of that loop, that a tile holds; ``uneven``: the loops around it
    that threads leave at different turns."""

    def __init__(self, target: Target, loop: For, tiles: Sequence[RowTile], turns: int, uneven: Sequence[For]) -> None:
        self.target, self.loop, self.tiles, self.turns, self.uneven = target, loop, tiles, turns, uneven
        self._names = set(target.names)
        self.filled = self._name("filled")
        self.called = {t.name: {w: self._name(f"{t.name}_{w}") for w in ("tile", "row", "place")} for t in tiles}

    def _name(self, wanted: str) -> str:
        name = fresh(wanted, self._names)
        self._names.add(name)
        return name

    def body(self) -> Block:
        """The kernel's body."""
        heads = [s for t in self.tiles for s in self._memory(t)]
        return (*heads, *without_empty(self._opened(self.target.kernel.body, _ALL_LANES)))

    def _memory(self, tile: RowTile) -> Iterator[Stmt]:
        """The tiles of a block's warps, and the thread's row."""
        block = self.target.block or (1, 1, 1)
        thread, called, stride = thread_number(block), self.called[tile.name], tile.stride(self.turns)
        yield Declare(tile.type, called["tile"], None, (number(stride * math.prod(block)),), ("__shared__",))
        yield Declare(f"{tile.type} *", called["row"], plus(Name(called["tile"]), times(thread, number(stride))))

    # ------------------------------------------------------------ the way to the loop

    def _opened(self, body: Block, lanes: Expr) -> Block:
        """Statements that the lanes ``lanes`` of a warp come to together."""
        found = list[Stmt]()
        for s in body:
            found += [s] if not any(n is self.loop for n in nodes(s)) else self._led(s, lanes)
        return tuple(found)

    def _led(self, s: Stmt, lanes: Expr) -> Iterator[Stmt]:
        """The statement that the loop is or is in."""
        match s:
            case For() if s is self.loop:
                yield from self._staged(lanes)
            case If(test, then, orelse):
                there = any(n is self.loop for n in nodes(then))
                come, some = self._name("comes"), self._name("lanes")
                inside, other = (then, orelse) if there else (orelse, then)
                yield Declare("const bool", come, test if there else Unary("!", test))
                yield Declare("const unsigned int", some, _ballot(lanes, Name(come)))
                yield If(Name(come), self._opened(inside, Name(some)), other)
            case For(type=str() as type_) if any(s is one for one in self.uneven):
                some = self._name("lanes")
                first, following = Cast(type_, s.start), Cast(type_, Binary("+", Name(s.var), s.step))
                yield Declare("unsigned int", some, _ballot(lanes, Binary(s.relation, first, s.bound)))
                again = Binary(s.relation, following, s.bound)
                last = Assign(Name(some), "=", _ballot(Name(some), again))
                yield replace(s, body=(*self._opened(s.body, Name(some)), last))
            case _:
                yield with_blocks(s, lambda block: self._opened(block, lanes))

    # ------------------------------------------------------------ the loop

    def _staged(self, lanes: Expr) -> Iterator[Stmt]:
        filled, loop, full = Name(self.filled), self.loop, number(self.turns)
        written, read = [t for t in self.tiles if t.written], [t for t in self.tiles if t.read]
        yield Comment(f"// what threads have for themselves in a row of memory, {self.turns} turns of a warp at a time")
        for t in self.tiles:
            yield Declare(self._place_type(t), self.called[t.name]["place"], self._first(t))
        yield Declare("int", self.filled, number(0))
        body = loop.body
        for t in self.tiles:
            body = self._moved(t, body)
        on = [
            Assign(Name(self.called[t.name]["place"]), "+=", number(t.way * t.width * self.turns)) for t in self.tiles
        ]
        whole = self._copied("store", written, lanes, full)
        again = If(Binary("==", filled, full), (*whole, *on, Assign(filled, "=", number(0))))
        loads = self._copied("load", read, lanes, self._left())
        head = (If(Binary("==", filled, number(0)), loads),) if loads else ()
        inside = (Scope(body),) if any(isinstance(s, Declare) for s in body) else body
        yield replace(loop, body=(*head, *inside, Assign(filled, "+=", number(1)), again))
        if written:
            yield If(Binary(">", filled, number(0)), self._copied("store", written, lanes, filled))

    def _place_type(self, tile: RowTile) -> str:
        most, beyond = largest(self.target.contract, self.target.elements(tile.name) or ""), self.turns * tile.width
        return "int" if most is not None and most + beyond <= INT_LIMIT else WIDE

    def _first(self, tile: RowTile) -> Expr:
        """The place of the first turn's first element."""
        kind, value = self._place_type(tile), expression_of(tile.first, wide=True)
        return value if kind == WIDE else Cast(kind, value)

    def _left(self) -> Expr:
        """How many turns there are still, at most those of a tile."""
        loop, var = self.loop, Name(self.loop.var)
        up = (self.tiles[0].of.poly(loop.step).value or 0) > 0
        left: Expr = Binary("-", loop.bound, var) if up else Binary("-", var, loop.bound)
        most: Expr = Literal(f"{self.turns}LL")
        left = Cast(WIDE, left)
        if "=" in loop.relation and loop.relation != "!=":
            left = Binary("+", left, number(1))
        return Cast("int", Call(Name("min"), (left, most)))

    def _copied(self, way: str, tiles: Sequence[RowTile], lanes: Expr, turns: Expr) -> Block:
        """The rows of a warp copied: after all that its lanes wrote, and before what they do next."""
        wait = ExprStmt(Call(Name("__syncwarp"), (lanes,)))
        return (wait, *(self._call(way, t, lanes, turns) for t in tiles), wait) if tiles else ()

    def _call(self, way: str, tile: RowTile, lanes: Expr, turns: Expr) -> Stmt:
        called, columns = self.called[tile.name], self.turns * tile.width
        sides = (Name(called["row"]), Name(tile.name))
        args = (lanes, *sides, Name(called["place"]), times(turns, number(tile.width)))
        template = (str(columns), str(tile.stride(self.turns)), str(int(tile.way < 0)))
        return ExprStmt(Call(Name(f"fsr_{way}_rows"), args, template))

    def _moved(self, tile: RowTile, body: Block) -> Block:
        """Statements that touch the tile."""
        buffer, row, filled = tile.of, Name(self.called[tile.name]["row"]), Name(self.filled)

        def change(e: Expr) -> Expr | None:
            at = buffer.place(e)
            if at is None:
                return None
            return Index(row, plus(times(filled, number(tile.width)), number(tile.column(at, self.loop.var))))

        def kept(s: Stmt) -> Stmt | tuple[Stmt, ...]:
            return () if isinstance(s, Declare) and s.name in buffer.pointers else s

        return rewrite(map_stmts(body, kept), change)


def _ballot(lanes: Expr, test: Expr) -> Expr:
    return Call(Name("__ballot_sync"), (lanes, test))
