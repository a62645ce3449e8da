"""The kernel whose blocks copy their slices: what is declared, copied and read in the place of global memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations_with_replacement

from fsr.analysis.conditions import negation
from fsr.analysis.guards import structured
from fsr.analysis.polynomial import Poly
from fsr.records import Candidate, Role, ScalarArgument
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
    Unary,
    number,
)
from fsr.source.mapping import map_stmts, rewrite
from fsr.source.walk import Block, fresh, walk_expr
from fsr.transform.collectives import missing_helpers
from fsr.transform.details.slices import Slices
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move
from fsr.transform.rows.share import plus, times
from fsr.transform.sizes import always
from fsr.transform.target import Target

_WORD, _PACK = 4, 16  # bytes
_WIDE = "long long"
_BARRIER = ExprStmt(Call(Name("__syncthreads"), ()))


@dataclass(frozen=True)
class Staged:
    """Slices that go to shared memory. ``end``: the buffer's number of elements in the kernel's own words; None where
    it must be told."""

    slices: Slices
    end: Expr | None

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
    def length(self) -> int:
        """Elements from one slice to the next in global memory."""
        return self.slices.length.value or 0

    @property
    def beyond(self) -> int:
        """Elements that the block's last slice reaches further than its length."""
        return max(0, (self.slices.width or 0) - self.length)

    @property
    def stride(self) -> int:
        """Elements from one slice to the next in shared memory."""
        unit = max(_WORD // self.slices.bytes, 1)
        even = self.length % (2 * unit) == 0
        return self.length + unit if even and not self.beyond else self.length

    @property
    def pack(self) -> int:
        """Elements that are copied at a time."""
        whole = _PACK if self.stride == self.length else _WORD
        return max(whole // self.slices.bytes, 1)

    def elements(self, threads: int) -> int:
        """Of a block's region in global memory."""
        return threads * self.length + self.beyond

    def bytes_of_block(self, threads: int) -> int:
        """Of shared memory."""
        bytes_ = (threads * self.stride + self.beyond) * self.slices.bytes
        return -(-bytes_ // _PACK) * _PACK


def end_of(found: Slices) -> Expr | None:
    """The buffer's number of elements as a product of parameters and numbers; None where it is none."""
    target, elements = found.of.target, found.of.target.elements(found.name) or "0"
    sizes = [(Name(p.name), t) for p in target.kernel.params if (t := target.size_text(Name(p.name))) is not None]

    def is_that(text: str) -> bool:
        return always(target.contract, f"({text}) == ({elements})")

    for name, text in sizes:
        for factor in (1, found.length.value or 1):
            if is_that(f"({text}) * {factor}"):
                wide: Expr = Cast(_WIDE, name)
                return wide if factor == 1 else Binary("*", wide, number(factor))
    for (one, first), (other, second) in combinations_with_replacement(sizes, 2):
        if is_that(f"({first}) * ({second})"):
            return Binary("*", Cast(_WIDE, one), other)
    return None


def staged(target: Target, move: Move, chosen: Sequence[Staged]) -> Candidate:
    """The candidate with these buffers' slices in shared memory."""
    made = _Made(chosen[0].slices.of.target, chosen)
    kernel = replace(target.kernel, body=made.body(), params=(*target.kernel.params, *made.params))
    kernel = replace(kernel, launch_bounds=target.kernel.launch_bounds)
    names = {"fsr_load_slices"} if any(s.loaded for s in chosen) else set()
    names |= {"fsr_store_slices"} if any(s.written for s in chosen) else set()
    helpers = missing_helpers(target.source, names)
    return rewritten(
        target, move, kernel, launch=lambda one: replace(one, args=(*one.args, *made.args)), helpers=helpers
    )


class _Made:
    """The new kernel's parts. ``params``, ``args``: what is passed beside what was."""

    def __init__(self, target: Target, chosen: Sequence[Staged]) -> None:
        self.target, self.chosen = target, chosen
        self.params: list[Param] = []
        self.args: list[ScalarArgument] = []
        self._names = set(target.names)
        self.threads = target.threads or 0
        called = ("slices", "slice", "first", "count")
        self.called = {s.slices.name: {what: self._name(f"{s.slices.name}_{what}") for what in called} for s in chosen}

    def _name(self, wanted: str) -> str:
        name = fresh(wanted, self._names)
        self._names.add(name)
        return name

    def body(self) -> Block:
        """The kernel's body."""
        written = [s for s in self.chosen if s.written]
        loaded = [s for s in self.chosen if s.loaded]
        heads = [d for s in self.chosen for d in self._declared(s)]
        before: list[Stmt] = [self._copied(s, "load") for s in loaded]
        before += [_BARRIER] if loaded else []
        own = [self._own(s) for s in self.chosen]
        work = self.target.kernel.body
        if written:
            work = _without_empty(structured(work) or ())
        after = [_BARRIER, *(self._copied(s, "store") for s in written)] if written else []
        for s in self.chosen:
            work = self._moved(s, work)
        comment = Comment("// the slices of the block's threads, copied together")
        return (comment, *heads, *before, *own, *work, *after)

    def _declared(self, s: Staged) -> Iterable[Stmt]:
        found, called = s.slices, self.called[s.slices.name]
        extent = number(s.bytes_of_block(self.threads) // found.bytes)
        yield Declare(found.type, called["slices"], None, (extent,), ("__shared__", "__align__(16)"))
        begin = _wide(found.start)
        begin = plus(begin, number(found.low)) if found.low else begin
        yield Declare(f"const {_WIDE}", called["first"], begin)
        left = Binary("-", self._end(s), Name(called["first"]))
        least = Call(Name("min"), (left, Literal(f"{s.elements(self.threads)}LL")))
        yield Declare("const int", called["count"], Cast("int", least))

    def _end(self, s: Staged) -> Expr:
        if s.end is not None:
            return s.end
        name = self._name(f"{s.slices.name}_elements")
        self.params.append(Param(_WIDE, name))
        self.args.append(ScalarArgument("int64", self.target.elements(s.slices.name) or "0"))
        return Name(name)

    def _copied(self, s: Staged, way: str) -> Stmt:
        called = self.called[s.slices.name]
        memory, shared = Binary("+", Name(s.slices.name), Name(called["first"])), Name(called["slices"])
        ends = (shared, memory) if way == "load" else (memory, shared)
        sizes = (Name(called["count"]), number(s.length), number(s.stride))
        return ExprStmt(Call(Name(f"fsr_{way}_slices"), (*ends, *sizes), (str(s.pack),)))

    def _own(self, s: Staged) -> Stmt:
        """The thread's slice."""
        (x, y, z), (i, j, k) = self.target.block or (1, 1, 1), (Member(Name("threadIdx"), axis) for axis in "xyz")
        rows = plus(j, times(k, number(y))) if z > 1 else j
        thread = plus(i, times(rows, number(x))) if y > 1 or z > 1 else i
        called = self.called[s.slices.name]
        place = Binary("+", Name(called["slices"]), Binary("*", thread, number(s.stride)))
        return Declare(s.slices.param.type, called["slice"], place)

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
                return Index(slice_, _offset(s, e, place))
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
    return _expr(whole - Poly((((), found.low),)) if found.low else whole)


def _addends(e: Expr) -> list[Expr]:
    if isinstance(e, Binary) and e.op == "+":
        return [*_addends(e.left), *_addends(e.right)]
    return [e]


def _symbol(name: str) -> Expr:
    if name.startswith("{"):
        return OpaqueExpr(f"({name[1:-1]})")
    base, _, member = name.partition(".")
    return Member(Name(base), member) if member else Name(base)


def _expr(value: Poly, wide: bool = False) -> Expr:
    """A polynomial as an expression, what is taken away last."""
    found: Expr | None = None
    for names, count in sorted(value.terms, key=lambda t: (t[1] < 0, -len(t[0]), t[0])):
        factors: list[Expr] = [_symbol(n) for n in names]
        if wide and factors:
            factors[0] = Cast(_WIDE, factors[0])
        factors += [number(abs(count))] if abs(count) != 1 or not factors else []
        term = reduce(lambda some, factor: Binary("*", some, factor), factors)
        if found is None:
            found = Unary("-", term) if count < 0 else term
        else:
            found = Binary("-" if count < 0 else "+", found, term)
    return number(0) if found is None else found


def _wide(value: Poly) -> Expr:
    return _expr(value, wide=True)


def _without_empty(body: Block) -> Block:
    """Statements in which nothing stands behind an else alone."""

    def turned(s: Stmt) -> Stmt:
        if isinstance(s, If) and not s.then and s.orelse:
            return replace(s, test=negation(s.test), then=s.orelse, orelse=())
        return s

    return map_stmts(body, turned)
