"""The kernel whose threads do several threads' work each, from tiles that the block loads together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from fsr.analysis.effects import Unclear, element_type
from fsr.analysis.local_arrays import in_local_memory
from fsr.analysis.polynomial import Poly, constant, symbol
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
    OpaqueExpr,
    Return,
    Stmt,
    Unary,
    conjunction,
    conjuncts,
    number,
)  # fmt: skip
from fsr.source.mapping import map_exprs, rewrite
from fsr.source.walk import BARRIER, Block, fresh, identifiers, integer, is_zero, names_mentioned
from fsr.transform.jam.extents import words_of
from fsr.transform.jam.statements import UNROLL, ZEROS, assignable, placed
from fsr.transform.launch.told_ids import with_ids
from fsr.transform.poly_expressions import WIDE, expression_of
from fsr.transform.rows.share import plus, times
from fsr.transform.sizes import INT_LIMIT, largest, largest_timed
from fsr.transform.thread_number import thread_number
from fsr.transform.tiles.form import Tiled
from fsr.transform.tiles.reads import Tile

_PAD = 16  # bytes between the steps of a tile: neighbours in a column are at other banks, and lines stay aligned
_SECTOR = 32  # bytes of memory that are fetched at once
_ZERO = OpaqueExpr("{}")
_THERE, _LINE = Literal("{there}"), Literal("{line}")  # an element's place, and a line's number, until they are told


@dataclass(frozen=True)
class Shape:
    """``factors``: how many threads along an axis are one; ``turns`` of the loop that a tile holds; ``unroll``: turns
    that the compiler writes out."""

    factors: Mapping[str, int]
    turns: int
    unroll: int = 1


def lines(block: tuple[int, int, int], tile: Tile, shape: Shape) -> int:
    """How many lines of memory a tile holds parts of."""
    return block["xy".index(tile.axis)] * shape.factors[tile.axis]


def shared_bytes(block: tuple[int, int, int], tile: Tile, shape: Shape) -> int:
    """Of a tile."""
    return shape.turns * tile.width * (lines(block, tile, shape) * tile.bytes + max(_PAD, tile.bytes))


@dataclass(frozen=True)
class _Line:
    """A line of a tile: its ``number`` in the block, whose ``thread`` it is, and of which ``part`` of that."""

    number: Expr
    thread: Expr
    part: Expr


class TiledText:
    """Makes the new body. ``words``: registers of what a thread hands on, for all of its parts."""

    def __init__(self, found: Tiled, shape: Shape) -> None:
        self.found, self.target, self.shape = found, found.target, shape
        self.block = found.target.block or (1, 1, 1)
        self._names = set(found.target.names) | set(found.counts.values())
        self.parts = [(a, self.name(n)) for a, n in (("y", "u"), ("x", "v")) if shape.factors[a] > 1]
        self.some, self.thread, self.turns, self.step = map(self.name, ("some", "thread", "turns", "step"))
        self.first = self.name(f"{found.loop.var}_first")
        self.tiles = {id(t): self.name(f"{t.name}_tile") for t in found.reads.tiles}
        self.each = found.target.poly(found.loop.step).value or 1
        self.words = 0
        self.places: dict[str, Expr] = {}
        self.indexed = {s.name for s in in_local_memory(found.target.kernel)}
        self.arrays = [self._array(s) for s in found.state]
        self.steady = {e: self._steady(e) for e in found.steady}
        self.common = {e: self.name(f"{b.param.name}_value") for e, b in found.common.items()}
        used = found.needed(names_mentioned((replace(found.loop, body=()), *map(ExprStmt, self.common))))
        self.heads = tuple(s for s in found.uniform.values() if s.name in used)
        self.pure = found.pure.keys() - {s.name for s in self.heads}

    def name(self, wanted: str) -> str:
        """A name that nothing else has."""
        name = fresh(wanted, self._names)
        self._names.add(name)
        return name

    def body(self) -> Block:
        """The kernel's body."""
        found = self.found
        parts = " x ".join(str(self.shape.factors[a]) for a, _ in self.parts)
        return (
            Comment(
                f"// each thread is {parts} of before; what {self.shape.turns} turns read, their block loads together"
            ),
            *(self._memory(t) for t in found.reads.tiles),
            *self.heads,
            *self.arrays,
            *self._prologue(),
            Declare("const int", self.thread, Cast("int", thread_number(self.block))),
            self._loop(),
            *self._each(self._guarded(placed(found.after, dict(self.places)), lambda _: True)),
        )

    # ------------------------------------------------------------ variables

    def _array(self, s: Declare) -> Declare:
        """The array in a variable's place. Raises Unclear where it may not be one."""
        if {"volatile", "static"} & {*s.qualifiers, *s.type.split()} or "&" in s.type or "auto" in s.type.split():
            raise Unclear
        if s.name in self.indexed:
            raise Unclear  # by data: in local memory already, which several would be too many for
        own = self.found.of_one_axis(s)
        parts = [(a, n) for a, n in self.parts if a in own]
        extents = [number(self.shape.factors[a]) for a, _ in parts]
        many = reduce(lambda some, a: some * self.shape.factors[a[0]], parts, 1)
        self.words += words_of(self.target, s) * many
        place: Expr = Name(s.name)
        for _, n in parts:
            place = Index(place, Name(n))
        self.places[s.name] = place
        return Declare(assignable(s.type), s.name, _ZERO, (*extents, *s.dims))

    def _steady(self, e: Expr) -> str:
        """A variable for what a thread reads before the loop in place of in it."""
        buffer = self.found.steady[e]
        wanted = Declare(element_type(buffer.param.type), self.name(f"{buffer.param.name}_value"), e)
        self.arrays.append(self._array(wanted))
        return wanted.name

    # ------------------------------------------------------------ parts

    def _each(self, body: Block) -> Block:
        """Statements for each of the threads that one does."""
        told = {("blockIdx", a): plus(times(Member(Name("blockIdx"), a), number(self.shape.factors[a])), Name(n))
                for a, n in self.parts}  # fmt: skip
        body = with_ids(body, told)
        for axis, n in reversed(self.parts):
            body = (For("int", n, number(0), "<", number(self.shape.factors[axis]), number(1), body, UNROLL),)
        return body

    def _guarded(self, inner: Block, kept: Callable[[Expr], bool]) -> Block:
        """Statements with the variables that they need, under the tests that are ``kept``."""
        pure, needed = self.pure, self.found.needed
        chain = [(lead, conjunction(t for t in conjuncts(test) if kept(t))) for lead, test in self.found.chain]
        tests = tuple(ExprStmt(test) for _, test in chain if test is not None)
        names = needed(names_mentioned((*inner, *tests)))
        inner = (*(s for s in self.found.before if isinstance(s, Declare) and s.name in names & pure), *inner)
        for lead, test in reversed(chain):
            inner = inner if test is None else (If(test, inner),)
            inner = (*(s for s in lead if isinstance(s, Declare) and s.name in names & pure), *inner)
        return inner

    def _prologue(self) -> Iterator[Stmt]:
        """What threads do before the loop; the block is done where none of them goes there."""
        found, guarded = self.found, bool(self.found.chain)
        come: Block = (Assign(Name(self.some), "=", Literal("true")),) if guarded else ()
        reads = tuple(Assign(self.places[name], "=", e) for e, name in self.steady.items())
        core = (*self._before(found.before), *reads, *come)
        leads = [self._before(lead) for lead, _ in found.chain]
        tests = tuple(ExprStmt(test) for _, test in found.chain)
        names = found.needed(names_mentioned((*core, *(s for lead in leads for s in lead), *tests)))

        def used(stmts: Block, own: Block) -> Block:
            """The statements in order, of the variables those that are needed."""
            kept = [s for s in own if isinstance(s, Declare) and s.name in names & self.pure]
            return (*kept, *stmts)

        body = used(core, found.before)
        for (lead, test), own in reversed(list(zip(found.chain, leads, strict=True))):
            body = (*used(own, lead), If(test, body))
        if guarded:
            yield Declare("bool", self.some, Literal("false"))
        if core or any(leads):
            yield from self._each(body)
        if guarded:
            yield If(Unary("!", Call(Name("__syncthreads_or"), (Name(self.some),))), (Return(),))

    def _before(self, stmts: Block) -> Block:
        """Statements that set the variables of a part."""
        left: list[Stmt] = []
        for s in stmts:
            if isinstance(s, Comment) or (isinstance(s, Declare) and s.name in self.found.pure):
                continue
            if not isinstance(s, Declare) or s.name not in self.places:
                left += placed((s,), dict(self.places))
            elif isinstance(s.init, OpaqueExpr) or (s.dims and s.init is not None):
                if not isinstance(s.init, OpaqueExpr) or not ZEROS.fullmatch(s.init.text):
                    raise Unclear
            elif s.init is not None and not (is_zero(s.init) and "-" not in str(s.init)):
                (value,) = placed((ExprStmt(s.init),), dict(self.places))
                assert isinstance(value, ExprStmt)
                left.append(Assign(self.places[s.name], "=", value.expr))
        return tuple(left)

    # ------------------------------------------------------------ the loop

    def _loop(self) -> For:
        found, loop, turns = self.found, self.found.loop, number(self.shape.turns * self.each)
        left: Expr = Binary("-", Cast(WIDE, loop.bound), Name(self.first))
        left = plus(left, number(self.each - 1 + (loop.relation == "<=")))
        left = left if self.each == 1 else Binary("/", left, number(self.each))
        count = Cast("int", Call(Name("min"), (Literal(f"{self.shape.turns}LL"), left)))
        body = self._turn()
        now = Declare(f"const {loop.type}", loop.var, plus(Name(self.first), _times(Name(self.step), self.each)))
        common = tuple(
            Declare(f"const {element_type(b.param.type)}", self.common[e], e) for e, b in found.common.items()
        )
        index = (now, *common) if loop.var in names_mentioned((*body, *common)) else common
        unroll = (f"#pragma unroll {self.shape.unroll}",)
        inside = For("int", self.step, number(0), "<", Name(self.turns), number(1), (*index, *self._each(body)), unroll)
        return replace(loop, var=self.first, step=turns, pragmas=(), body=(
            Declare("const int", self.turns, count),
            *(s for tile in found.reads.tiles for s in self._load(tile)),
            BARRIER,
            inside,
            BARRIER,
        ))  # fmt: skip

    def _turn(self) -> Block:
        """A turn of the loop for one part."""
        found = self.found

        def change(e: Expr) -> Expr | None:
            if e in self.steady or e in self.common:
                return Name(self.steady.get(e) or self.common[e])
            for tile in found.reads.tiles:
                at = tile.of.place(e)
                column = None if at is None else tile.column(at)
                if column is not None:
                    return self._element(tile, Name(self.step), expression_of(column), self._slot(tile))
            return None

        body = placed(rewrite(found.loop.body, change), dict(self.places))
        body = _without_unused(body, frozenset().union(*(t.of.pointers for t in found.reads.tiles)))
        return self._guarded(body, lambda _: found.wary)

    def _slot(self, tile: Tile) -> Expr:
        """Where a part's line is in a tile."""
        thread: Expr = Member(Name("threadIdx"), tile.axis)
        thread = thread if self.block["xy".index(tile.axis)] > 1 else number(0)
        own = [Name(n) for a, n in self.parts if a == tile.axis]
        return plus(_times(thread, self.shape.factors[tile.axis]), own[0] if own else number(0))

    # ------------------------------------------------------------ tiles

    def _memory(self, tile: Tile) -> Declare:
        pad = max(_PAD // tile.bytes, 1)
        width = plus(number(lines(self.block, tile, self.shape)), number(pad))
        columns = (number(tile.width),) if tile.width > 1 else ()
        extents = (number(self.shape.turns), *columns, width)
        return Declare(tile.type, self.tiles[id(tile)], None, extents, ("__shared__", "__align__(16)"))

    def _element(self, tile: Tile, step: Expr, column: Expr, slot: Expr) -> Expr:
        row = Index(Name(self.tiles[id(tile)]), step)
        return Index(Index(row, column) if tile.width > 1 else row, slot)

    def _load(self, tile: Tile) -> Iterator[Stmt]:
        """All threads of the block load a tile: neighbours are within a sector of memory, and at different banks."""
        total = lines(self.block, tile, self.shape) * self.shape.turns * tile.width
        threads, at = self.block[0] * self.block[1], self._local("at")
        declared, line, slot = self._dealt(tile, Name(at))
        step, column = (Name(n) if n in {s.name for s in declared} else number(0) for n in self._step_column())
        element = self._local("element")
        inner: Block = (If(Binary("<", step, Name(self.turns)), (Assign(Name(element), "=", _THERE),)),)
        inner = self._guarded(inner, lambda t: self.found.axes_of(t) <= {tile.axis})
        inner = _merged(self._of_line(inner, tile.axis, line))
        place = Index(Name(tile.name), self._place(tile, line, step, column))
        inner = rewrite(inner, lambda e: place if e == _THERE else None)
        store = Assign(self._element(tile, step, column, slot), "=", Name(element))
        body = (*declared, Declare(tile.type, element, _ZERO), *inner, store)
        if total % threads:
            yield For("int", at, Name(self.thread), "<", number(total), number(threads), body, ("#pragma unroll 4",))
            return
        turn = self._local("turn")
        first = Declare("const int", at, plus(_times(Name(turn), threads), Name(self.thread)))
        unroll = UNROLL if total // threads <= 8 else ("#pragma unroll 4",)
        yield For("int", turn, number(0), "<", number(total // threads), number(1), (first, *body), unroll)

    def _step_column(self) -> tuple[str, str]:
        return self._local("step"), self._local("column")

    def _dealt(self, tile: Tile, at: Expr) -> tuple[list[Declare], _Line, Expr]:
        """Which element has a number: declarations of its turn, which of the turn's it is, and its line; the line, and
        its place in the tile. Those of a sector of memory come first, then lines that are neighbours in the tile."""
        extent, factor = self.block["xy".index(tile.axis)], self.shape.factors[tile.axis]
        turns, run = self.shape.turns, max(_SECTOR // (tile.bytes * tile.width), 1)
        step, column = self._step_column()
        slot, line, thread = map(self._local, ("slot", "line", "lane"))
        if self._along_line(tile):
            near = min(run, turns)
            of_column, low, of_slot, high = _digits(at, (tile.width, near, extent * factor, turns // near))
            found = [(column, of_column), (step, plus(_times(high, near), low)), (slot, of_slot)]
            part, own = _remainder(Name(slot), factor), _quotient(Name(slot), factor)
            place: Expr = Name(slot)
        else:
            near = run if extent % run == 0 else extent
            of_column, low, part, high, of_step = _digits(at, (tile.width, near, factor, extent // near, turns))
            found = [(column, of_column), (step, of_step), (thread, plus(_times(high, near), low))]
            own = Name(thread) if extent > 1 else number(0)
            place = plus(_times(own, factor), part)
        found.append((line, plus(_times(part, extent), own)))
        declared = [Declare("const int", n, e) for n, e in found if integer(e) != 0]
        return declared, _Line(Name(line), own, part), place

    def _local(self, wanted: str) -> str:
        """A name in the loads, where there is none but those of the kernel."""
        return fresh(wanted, self._names - {self.step} if wanted == "step" else self._names)

    def _along_line(self, tile: Tile) -> bool:
        """Whether what is next in memory belongs to the next turn, not to the next line."""
        apart = self._timed(tile.apart)
        return not apart or abs(self._timed(tile.step) or 1) < abs(apart)

    def _timed(self, value: Poly) -> int | None:
        text = self.target.poly_text(value)
        return value.value if text is None else largest_timed(self.target.contract, text)

    def _place(self, tile: Tile, line: _Line, step: Expr, column: Expr) -> Expr:
        """The place of an element in the buffer."""
        axis = tile.axis
        extent, factor = self.block["xy".index(axis)], self.shape.factors[axis]
        ids = [f"threadIdx.{axis}", f"blockIdx.{axis}"]
        thread, block = (tile.first.coefficient(name) for name in ids)
        first = tile.first
        wide = not self._is_narrow(tile)
        if block is not None and thread is not None and (extent == 1 or thread * constant(extent) == block):
            each = block if extent == 1 else thread
            first = first.without(ids[0]).without(ids[1]) + each * symbol("{line}")
        e = expression_of(first + tile.step * symbol("{turn}"), wide)
        number_of_line = plus(_times(Member(Name("blockIdx"), axis), extent * factor), line.number)
        turn = plus(Name(self.first), _times(step, self.each))
        told = {"(line)": number_of_line, "(turn)": turn}
        (kept,) = self._of_line((ExprStmt(plus(e, column)),), axis, line)
        assert isinstance(kept, ExprStmt)
        return rewrite(kept.expr, lambda x: told.get(x.text) if isinstance(x, OpaqueExpr) else None)

    def _is_narrow(self, tile: Tile) -> bool:
        """Whether all sums and products of a place are those of whole numbers of 32 bits: none is taken away."""
        most = largest(self.target.contract, self.target.elements(tile.name) or "")
        terms = (*tile.first.terms, *tile.step.terms)
        names = {n for symbols, _ in terms for n in symbols if n.isidentifier()}
        few = most is not None and most <= INT_LIMIT - (1 << 24) and all(count > 0 for _, count in terms)
        return few and all(n.isidentifier() or "Idx." in n for symbols, _ in terms for n in symbols) and all(
            self.target.at_least(Name(n), 0) for n in names)  # fmt: skip

    def _of_line(self, stmts: Block, axis: str, line: _Line) -> Block:
        """Statements of the thread of a line."""
        extent, factor = self.block["xy".index(axis)], self.shape.factors[axis]
        block, thread = Member(Name("blockIdx"), axis), Member(Name("threadIdx"), axis)
        whole = plus(_times(block, extent * factor), line.number)
        widths = {Member(Name("blockDim"), axis), number(extent)}

        def change(e: Expr) -> Expr:
            match e:
                case Binary("+", Binary("*", a, b), other) | Binary("+", other, Binary("*", a, b)):
                    if other == thread and ((a == block and b in widths) or (b == block and a in widths)):
                        return _LINE
            return e

        marked = map_exprs(stmts, change)
        told = {("threadIdx", axis): line.thread, ("blockIdx", axis): plus(_times(block, factor), line.part)}
        marked = with_ids(marked, told)
        return rewrite(marked, lambda e: whole if e == _LINE else None)


def _times(e: Expr, factor: int) -> Expr:
    return number(0) if integer(e) == 0 else times(e, number(factor))


def _digits(value: Expr, extents: Sequence[int]) -> Iterator[Expr]:
    """A number in digits that go up to these extents, the first one counting by one."""
    below = 1
    for n, extent in enumerate(extents):
        left = _quotient(value, below)
        last = all(e == 1 for e in extents[n + 1 :])
        yield number(0) if extent == 1 else left if last else _remainder(left, extent)
        below *= extent


def _remainder(e: Expr, extent: int) -> Expr:
    return number(0) if extent == 1 else Binary("%", e, number(extent))


def _quotient(e: Expr, extent: int) -> Expr:
    return e if extent == 1 else Binary("/", e, number(extent))


def _merged(stmts: Block) -> Block:
    """Conditions within conditions as one."""
    match stmts[-1:]:
        case (If(test, (If(inner, body),)),):
            return (*stmts[:-1], *_merged((If(Binary("&&", test, inner), body),)))
    return stmts


def _without_unused(body: Block, pointers: frozenset[str]) -> Block:
    """Statements without pointers that nothing reads through any more."""
    while True:
        used = frozenset().union(*(names_mentioned((s,)) for s in body if not isinstance(s, Declare)))
        used |= {n for s in body if isinstance(s, Declare) and s.init is not None for n in identifiers(s.init)}
        left = tuple(s for s in body if not (isinstance(s, Declare) and s.name in pointers - used))
        if len(left) == len(body):
            return body
        body = left
