"""The kernel whose blocks copy their slices: what is declared, copied and read in the place of global memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations_with_replacement

from fsr.analysis.conditions import negation
from fsr.analysis.guards import structured
from fsr.analysis.polynomial import Poly, constant
from fsr.records import Candidate, Launch, Role, ScalarArgument
from fsr.source.form import (
    Binary,
    Call,
    Cast,
    Comment,
    Declare,
    Expr,
    ExprStmt,
    If,
    Index,
    Literal,
    Member,
    Name,
    OpaqueExpr,
    Param,
    Stmt,
    Ternary,
    Unary,
    number,
)
from fsr.source.mapping import map_stmts, rewrite
from fsr.source.names import words
from fsr.source.walk import BARRIER, Block, fresh, walk_expr
from fsr.transform.collectives import missing_helpers
from fsr.transform.placement import size_text
from fsr.transform.plan import rewritten
from fsr.transform.poly_expressions import WIDE, expression_of
from fsr.transform.protocol import Move
from fsr.transform.rows.share import plus, times
from fsr.transform.sizes import always, largest, largest_timed
from fsr.transform.slices.grid_turns import all_turns
from fsr.transform.slices.slices import Slices
from fsr.transform.target import Target
from fsr.transform.thread_number import thread_number

_WORD, _PACK = 4, 16  # bytes


@dataclass(frozen=True)
class Staged:
    """Slices that go to shared memory. ``end``: the buffer's number of elements in the kernel's own words; None where
    it must be told; ``of_turn``: those of one turn of a loop over the grid."""

    slices: Slices
    end: Expr | None
    of_turn: bool = False

    @property
    def written(self) -> bool:
        """Whether slices are copied back."""
        return self.slices.written

    @property
    def loaded(self) -> bool:
        """Whether slices are copied before: not those of a result, of which every element is written."""
        argument = self.slices.of.target.argument(self.slices.name)
        return not self.written or argument is None or argument.role is not Role.OUT

    @property
    def length(self) -> int | None:
        """Cells from one slice to the next in global memory; None where that is an argument."""
        value = self.slices.length.value
        return None if value is None else value * self.slices.cells

    @property
    def length_text(self) -> str:
        """The same as a size expression."""
        target = self.slices.of.target
        text = size_text(self.slices.length, target.kernel, target.launch, target.contract)
        return f"({text}) * {self.slices.cells}"

    @property
    def beyond(self) -> int:
        """Cells that the block's last slice reaches further than its length."""
        elements = (self.slices.width or 0) - (self.slices.length.value or self.slices.width or 0)
        return max(0, elements) * self.slices.cells

    @property
    def padded(self) -> int:
        """Cells that slices of an even number of words get more in shared memory; 0 where all stay neighbours."""
        argument = self.slices.of.target.argument(self.slices.name)
        aligned = argument.layout.alignment if argument is not None and argument.layout is not None else _WORD
        unit = max(max(aligned, _WORD) // self.slices.bytes, 1)
        if self.length is None:
            return 1 if self.slices.bytes >= _WORD else 0
        return unit if self.length % (2 * unit) == 0 and not self.beyond else 0

    @property
    def stride_text(self) -> str:
        """Cells from one slice to the next in shared memory, as a size expression."""
        if self.length is not None:
            return str(self.length + self.padded)
        return f"({self.length_text}) // 2 * 2 + 1" if self.padded else self.length_text

    @property
    def pack(self) -> int:
        """Cells that are copied at a time."""
        whole = _WORD if self.padded else _PACK
        return max(whole // self.slices.bytes, 1)

    def bytes_text(self, threads: int) -> str:
        """Bytes of a block's shared memory, as a size expression."""
        return f"round_up(({threads} * ({self.stride_text}) + {self.beyond}) * {self.slices.bytes}, {_PACK})"

    def bytes_of_block(self, threads: int, *, timed: bool = False) -> int | None:
        """The most that these are, of the timed sizes or of all."""
        contract, text = self.slices.of.target.contract, self.bytes_text(threads)
        return largest_timed(contract, text) if timed else largest(contract, text)


def end_of(found: Slices) -> Expr | None:
    """The buffer's number of elements as a product of parameters and numbers; None where it is none."""
    target, elements = found.of.target, found.of.count
    sizes = [(Name(p.name), t) for p in target.kernel.params if (t := target.size_text(Name(p.name))) is not None]

    def is_that(text: str) -> bool:
        return always(target.contract, f"({text}) == ({elements})")

    for name, text in sizes:
        for factor in (1, (found.length.value or 1) * found.cells):
            if is_that(f"({text}) * {factor}"):
                wide: Expr = Cast(WIDE, name)
                return wide if factor == 1 else Binary("*", wide, number(factor))
    for (one, first), (other, second) in combinations_with_replacement(sizes, 2):
        if is_that(f"({first}) * ({second})"):
            return Binary("*", Cast(WIDE, one), other)
    return None


def staged(target: Target, move: Move, chosen: Sequence[Staged], room: int) -> Candidate:
    """The candidate with these buffers' slices in shared memory. ``room``: bytes that a block has for them; slices
    whose length is an argument stay where they are for sizes that do not fit."""
    made = _Made(chosen[0].slices.of.target, chosen, room)
    body = all_turns(target, made.body()) if chosen[0].of_turn else made.body()
    kernel = replace(target.kernel, body=body, params=(*target.kernel.params, *made.params))
    names = {"fsr_load_slices"} if any(s.loaded for s in chosen) else set()
    names |= {"fsr_store_slices"} if any(s.written for s in chosen) else set()
    helpers = missing_helpers(target.source, names)
    return rewritten(target, move, kernel, launch=made.launch, helpers=helpers)


class _Made:
    """The new kernel's parts. ``params``, ``args``: what is passed beside what was; ``limit``: bytes of dynamic shared
    memory from which on slices stay in global memory; None where all sizes fit."""

    def __init__(self, target: Target, chosen: Sequence[Staged], room: int) -> None:
        self.target, self.chosen = target, chosen
        self.params: list[Param] = []
        self.args: list[ScalarArgument] = []
        self._names = set(target.names)
        self.threads = target.threads or 0
        called = ("slices", "slice", "first", "count", "stride")
        self.called = {s.slices.name: {what: self._name(f"{s.slices.name}_{what}") for what in called} for s in chosen}
        self.dynamic = [s for s in chosen if s.length is None]
        self.bytes = " + ".join(s.bytes_text(self.threads) for s in self.dynamic)
        static = sum(s.bytes_of_block(self.threads) or 0 for s in chosen if s.length is not None)
        most = largest(target.contract, self.bytes) if self.dynamic else 0
        self.limit = None if most is not None and most + static <= room else room - static
        self.fits = self._name("slices_fit") if self.limit is not None else ""

    def _name(self, wanted: str) -> str:
        name = fresh(wanted, self._names)
        self._names.add(name)
        return name

    def launch(self, launch: Launch) -> Launch:
        """The launch with what the kernel is passed, and the shared memory that it has not declared."""
        if self.dynamic:
            bytes_ = self.bytes if self.limit is None else f"({self.bytes}) if ({self.bytes}) <= {self.limit} else 0"
            launch = replace(launch, shared_bytes=bytes_)
        return replace(launch, args=(*launch.args, *self.args))

    def body(self) -> Block:
        """The kernel's body."""
        written = [s for s in self.chosen if s.written]
        loaded = [s for s in self.chosen if s.loaded]
        heads = [*self._memory(), *(d for s in self.chosen for d in self._declared(s)), *self._tested()]
        before: list[Stmt] = [c for s in loaded for c in self._copied(s, "load")]
        before += [BARRIER] if loaded else []
        own = [self._own(s) for s in self.chosen]
        work = self.target.kernel.body
        if written:
            work = without_empty(structured(work) or ())
        after = [BARRIER, *(c for s in written for c in self._copied(s, "store"))] if written else []
        for s in self.chosen:
            work = self._moved(s, work)
        comment = Comment("// the slices of the block's threads, copied together")
        return (comment, *heads, *before, *own, *work, *after)

    def _memory(self) -> Iterator[Stmt]:
        """What is declared of dynamic shared memory, cut into a part for each buffer."""
        name = fresh("slices_memory", self._names | words(self.target.source))
        start: Expr = Name(name)
        if self.dynamic:
            qualifiers = ("extern", "__shared__", "__align__(16)")
            yield Declare("unsigned char", name, None, (OpaqueExpr(""),), qualifiers)
        for s in self.dynamic:
            called, type_ = self.called[s.slices.name], s.slices.of.cell[0]
            length = self._length(s)
            stride = Binary("+", Binary("*", Binary("/", length, number(2)), number(2)), number(1))
            yield Declare("const int", called["stride"], stride if s.padded else length)
            yield Declare(f"{type_} *", called["slices"], Cast(f"{type_} *", start, "reinterpret_cast"))
            start = Binary("+", Name(called["slices"]), times(number(self.threads), Name(called["stride"])))

    def _tested(self) -> Iterator[Stmt]:
        """Whether the slices of these sizes fit."""
        if self.limit is not None:
            parts = [
                times(number(self.threads * s.slices.bytes), Name(self.called[s.slices.name]["stride"]))
                for s in self.dynamic
            ]
            yield Declare("const bool", self.fits, Binary("<=", reduce(plus, parts), number(self.limit)))

    def _declared(self, s: Staged) -> Iterator[Stmt]:
        found, called = s.slices, self.called[s.slices.name]
        if s.length is not None:
            extent = number((s.bytes_of_block(self.threads) or 0) // found.bytes)
            yield Declare(found.of.cell[0], called["slices"], None, (extent,), ("__shared__", "__align__(16)"))
        first = found.start + constant(found.low) if found.low else found.start
        yield Declare(f"const {WIDE}", called["first"], expression_of(first * constant(found.cells), wide=True))
        left = Binary("-", self._end(s), Name(called["first"]))
        most: Expr = times(Cast(WIDE, self._length(s)), number(self.threads))
        if s.length is not None:
            most = Literal(f"{self.threads * s.length + s.beyond}LL")
        yield Declare("const int", called["count"], Cast("int", Call(Name("min"), (left, most))))

    def _length(self, s: Staged) -> Expr:
        """Cells from one slice to the next."""
        return (
            number(s.length) if s.length is not None else expression_of(s.slices.length * Poly((((), s.slices.cells),)))
        )

    def _stride(self, s: Staged) -> Expr:
        """The same in shared memory."""
        return number(s.length + s.padded) if s.length is not None else Name(self.called[s.slices.name]["stride"])

    def _end(self, s: Staged) -> Expr:
        if s.end is not None:
            return s.end
        name = self._name(f"{s.slices.name}_elements")
        self.params.append(Param(WIDE, name))
        self.args.append(ScalarArgument("int64", s.slices.of.count))
        return Name(name)

    def _copied(self, s: Staged, way: str) -> Iterator[Stmt]:
        called, found = self.called[s.slices.name], s.slices
        buffer: Expr = Name(found.name)
        if found.cells > 1:
            const = "const " if "const" in found.param.type.split() else ""
            buffer = Cast(f"{const}{found.of.cell[0]} *", buffer, "reinterpret_cast")
        memory, shared = Binary("+", buffer, Name(called["first"])), Name(called["slices"])
        ends = (shared, memory) if way == "load" else (memory, shared)
        sizes = (Name(called["count"]), self._length(s), self._stride(s))
        call = ExprStmt(Call(Name(f"fsr_{way}_slices"), (*ends, *sizes), (str(s.pack),)))
        yield If(Name(self.fits), (call,)) if self.limit is not None and s.length is None else call

    def _own(self, s: Staged) -> Stmt:
        """The thread's slice."""
        thread = thread_number(self.target.block or (1, 1, 1))
        called, found = self.called[s.slices.name], s.slices
        place: Expr = Binary("+", Name(called["slices"]), Binary("*", thread, self._stride(s)))
        if found.cells > 1:
            place = Cast(found.param.type, place, "reinterpret_cast")
        if self.limit is not None and s.length is None:
            there = Binary("+", Name(called["first"]), Binary("*", thread, self._length(s)))
            place = Ternary(Name(self.fits), place, Binary("+", Name(found.name), there))
        return Declare(found.param.type, called["slice"], place)

    # ------------------------------------------------------------ places

    def _moved(self, s: Staged, body: Block) -> Block:
        """Statements that touch the thread's slice in shared memory."""
        found, buffer = s.slices, s.slices.of
        whole = {n for n, at in buffer.pointers.items() if not self._in_slice(s, at)} | {found.name}
        slice_ = Name(self.called[found.name]["slice"])

        def change(e: Expr) -> Expr | None:
            used = [x.text for x in walk_expr(e) if isinstance(x, Name) and x.text in buffer.names]
            if not used:
                return e if isinstance(e, Name) else None
            place, address = buffer.place(e), buffer.address(e)
            if place is not None and used[0] in whole:
                element = Index(slice_, _offset(s, e, place))
                return Member(element, e.name) if isinstance(e, Member) else element
            if address is not None and used[0] in whole:
                at = _offset(s, e, address)
                return slice_ if at == number(0) else Binary("+", slice_, at)
            if place is not None and isinstance(e, Call):  # a load by way of a pointer to the slice
                pointer = e.args[0]
                return pointer.operand if isinstance(pointer, Unary) and pointer.op == "&" else Unary("*", pointer)
            return None

        def kept(one: Stmt) -> Stmt | tuple[Stmt, ...]:
            return () if isinstance(one, Declare) and one.name in whole and "*" in one.type else one

        return rewrite(map_stmts(body, kept), change)

    def _in_slice(self, s: Staged, at: Poly) -> bool:
        """Whether a pointer points into the thread's slice."""
        return not s.slices.offset(at).depends_on(["threadIdx", "blockIdx", "gridDim"])


def _offset(s: Staged, e: Expr, at: Poly) -> Expr:
    """How far behind the slice's beginning a place is: as it is written, where what leads there stands apart."""
    found = s.slices
    whole = found.offset(at)
    match e:
        case Index(Name(found.name), Binary("+") as index) if found.low == 0:
            parts = _addends(index)
            kept = [p for p in parts if not found.of.poly(p).depends_on(["threadIdx", "blockIdx"])]
            told = sum((found.of.poly(p) for p in kept), Poly())
            if 0 < len(kept) < len(parts) and told == whole:
                return reduce(lambda some, part: Binary("+", some, part), kept)
    return expression_of(whole - constant(found.low) if found.low else whole)


def _addends(e: Expr) -> list[Expr]:
    if isinstance(e, Binary) and e.op == "+":
        return [*_addends(e.left), *_addends(e.right)]
    return [e]


def without_empty(body: Block) -> Block:
    """Statements in which nothing stands behind an else alone."""

    def turned(s: Stmt) -> Stmt:
        if isinstance(s, If) and not s.then and s.orelse:
            return replace(s, test=negation(s.test), then=s.orelse, orelse=())
        return s

    return map_stmts(body, turned)
