"""A loop whose turns find their rows in a warp's tiles: what is copied when, and what a turn touches instead."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

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
    Member,
    Name,
    Scope,
    Stmt,
    Ternary,
    While,
    number,
)
from fsr.source.mapping import map_stmts, rewrite
from fsr.source.walk import Block
from fsr.transform.poly_expressions import WIDE, expression_of
from fsr.transform.rows.share import plus, times
from fsr.transform.sizes import INT_LIMIT, largest
from fsr.transform.slices.row_tiles import RowTile
from fsr.transform.target import Target


@dataclass(frozen=True)
class Memory:
    """Names: of the tiles of a block, and of the thread's row in it."""

    tile: str
    row: str


@dataclass(frozen=True)
class RowLoop:
    """A loop that goes through rows. ``even``: whether all threads have the same turns; ``uneven``: the loops around
    it that threads leave at different turns."""

    loop: For
    tiles: Sequence[RowTile]
    even: bool
    uneven: tuple[For, ...]


class StagedLoop:
    """What becomes of a loop. ``turns``: that a tile holds; ``memory``: of tiles, by which they are; ``name``: makes a
    new name."""

    def __init__(
        self, target: Target, of: RowLoop, turns: int, memory: Mapping[int, Memory], name: Callable[[str], str]
    ) -> None:
        self.target, self.turns, self.memory = target, turns, memory
        self.loop, self.tiles, self.even = loop, tiles, even = of.loop, of.tiles, of.even
        self.filled = name("filled")
        self.places = {t.name: name(f"{t.name}_place") for t in tiles}
        self.own = "" if even else name("turns")
        self.first = name(f"first_{loop.var}") if any(t.behind for t in tiles) else ""

    def statements(self, lanes: Expr) -> Iterator[Stmt]:
        """What stands in the loop's place, where the lanes ``lanes`` of a warp are."""
        yield Comment(f"// what threads have for themselves in a row of memory, {self.turns} turns of a warp at a time")
        for t in self.tiles:
            yield Declare(self._place_type(t), self.places[t.name], self._first(t))
        if self.first:
            yield Declare(f"const {self.loop.type or WIDE}", self.first, self.loop.start)
        yield from self._together(lanes) if self.even else self._apart(lanes)

    def _together(self, lanes: Expr) -> Iterator[Stmt]:
        """Where all lanes have the same turns."""
        filled, full = Name(self.filled), number(self.turns)
        yield Declare("int", self.filled, number(0))
        stored = self._copied("store", lanes, full)
        again = If(Binary("==", filled, full), (*stored, *self._next(), Assign(filled, "=", number(0))))
        loads = self._copied("load", lanes, self._left())
        head = (If(Binary("==", filled, number(0)), loads),) if loads else ()
        yield replace(self.loop, body=(*head, *self._body(), Assign(filled, "+=", number(1)), again))
        last = self._copied("store", lanes, filled)
        if last:
            yield If(Binary(">", filled, number(0)), last)

    def _apart(self, lanes: Expr) -> Iterator[Stmt]:
        """Where each lane has turns of its own: a tile at a time, until none has any more."""
        loop, own, full = self.loop, Name(self.own), number(self.turns)
        goes_on = Binary(loop.relation, Name(loop.var), loop.bound)
        turn = (*self._body(), Assign(Name(loop.var), "+=", loop.step))
        goes = If(Binary("==", own, full), tuple(self._next()))
        tile = (
            Declare("const int", self.own, Ternary(goes_on, self._left(), number(0))),
            *self._copied("load", lanes, own),
            For("int", self.filled, number(0), "<", own, number(1), turn),
            *self._copied("store", lanes, own),
            goes,
        )
        start: Stmt = Assign(Name(loop.var), "=", loop.start)
        if loop.type is not None:
            start = Declare(loop.type, loop.var, loop.start)
        yield from _scoped((start, While(Call(Name("__any_sync"), (lanes, goes_on)), tile)), loop.type is not None)

    def _next(self) -> Iterator[Stmt]:
        """On to the next tile: with the last elements of this one before its first."""
        for t in self.tiles:
            row, columns = Name(self.memory[id(t)].row), t.width * self.turns
            for at in range(t.behind):
                yield Assign(Index(row, number(at)), "=", Index(row, number(at + columns)))
            yield Assign(Name(self.places[t.name]), "+=", number(t.way * columns))

    def _body(self) -> Block:
        body = reduce(lambda some, t: self._moved(t, some), self.tiles, self.loop.body)
        return tuple(_scoped(body, any(isinstance(s, Declare) for s in body)))

    # ------------------------------------------------------------ what is copied

    def _place_type(self, tile: RowTile) -> str:
        most, beyond = largest(self.target.contract, self.target.elements(tile.name) or "0"), self.turns * tile.width
        known = self.target.elements(tile.name) is not None and most is not None
        return "int" if known and (most or 0) + beyond <= INT_LIMIT else WIDE

    def _first(self, tile: RowTile) -> Expr:
        """The place of the first turn's first element."""
        turn = tile.of.poly(self.loop.start)
        if all(name[0] != "{" for name in turn.symbols):
            value = expression_of(tile.first, wide=True)
        else:
            factor = number(tile.factor.value or 0)
            value = plus(expression_of(tile.origin, wide=True), times(factor, Cast(WIDE, self.loop.start)))
        kind = self._place_type(tile)
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

    def _copied(self, way: str, lanes: Expr, turns: Expr) -> Block:
        """The rows of a warp copied: after all that its lanes wrote, and before what they do next."""
        tiles = [t for t in self.tiles if (t.written if way == "store" else t.read)]
        wait = ExprStmt(Call(Name("__syncwarp"), (lanes,)))
        return (wait, *(self._call(way, t, lanes, turns) for t in tiles), wait) if tiles else ()

    def _call(self, way: str, tile: RowTile, lanes: Expr, turns: Expr) -> Stmt:
        columns = self.turns * tile.width
        sides = (self._row(tile), Name(tile.name))
        args = (lanes, *sides, Name(self.places[tile.name]), times(turns, number(tile.width)))
        template = (str(columns), str(tile.stride(self.turns)), str(int(tile.way < 0)))
        return ExprStmt(Call(Name(f"fsr_{way}_rows"), args, template))

    def _row(self, tile: RowTile) -> Expr:
        """Where the elements of the tile's first turn begin, behind those of turns before."""
        row = Name(self.memory[id(tile)].row)
        return plus(row, number(tile.behind)) if tile.behind else row

    # ------------------------------------------------------------ what a turn touches

    def _moved(self, tile: RowTile, body: Block) -> Block:
        """Statements that touch the tile."""
        buffer = tile.of

        def change(e: Expr) -> Expr | None:
            at = buffer.place(e)
            if at is None:
                return None
            found = self._element(tile, tile.column(at, self.loop.var), e)
            return Member(found, e.name, False) if isinstance(e, Member) else found

        def kept(s: Stmt) -> Stmt | tuple[Stmt, ...]:
            return () if isinstance(s, Declare) and s.name in buffer.pointers and not self.first else s

        return rewrite(map_stmts(body, kept), change)

    def _element(self, tile: RowTile, column: int, original: Expr) -> Expr:
        """An element of the tile; one of a turn before the first is where it was."""
        row, at = Name(self.memory[id(tile)].row), times(Name(self.filled), number(tile.width))
        found = Index(row, plus(at, number(column + tile.behind)))
        if column >= 0:
            return found
        var, first = Name(self.loop.var), Name(self.first)
        test: Expr = Binary("==", var, first)
        for turn in range(1, math.ceil(-column / tile.width)):
            test = Binary("||", test, Binary("==", var, plus(first, times(number(turn), self.loop.step))))
        return Ternary(test, original, found)


def _scoped(body: Block, needed: bool) -> Iterator[Stmt]:
    """Statements with names of their own, where they declare any."""
    if needed:
        yield Scope(body)
    else:
        yield from body
