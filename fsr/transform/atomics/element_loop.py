"""Emitting work on single elements as a loop over packs: wide loads, several of them under way at once, a tail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fsr.analysis.elements import WIDEST_BYTES, always, element
from fsr.analysis.parallel import VAR, stride
from fsr.hardware.c_types import BY_SPELLING, element_bytes
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    For,
    If,
    Index,
    Literal,
    Member,
    Name,
    Stmt,
    Unary,
    conjunction,
    number,
)  # fmt: skip
from fsr.source.mapping import rewrite, substitute
from fsr.source.walk import integer, names_mentioned, walk_stmts
from fsr.transform.atomics.element_kernel import ElementKernel
from fsr.transform.rows.row_kernel import fresh
from fsr.transform.rows.share import plus, times

Body = Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]


@dataclass(frozen=True, slots=True)
class Load:
    """A buffer read at consecutive elements by consecutive iterations: ``pointer[index]``, index naming VAR."""

    pointer: str
    index: Expr
    type: str


def wide_loads(kernel: ElementKernel, width: int) -> tuple[Load, ...]:
    """What every element reads first of all from buffers that nothing writes, in steps of one element."""
    written = {a.root for a in kernel.accesses if a.kind != "read"}
    found: dict[str, Load] = {}
    for kind, (pointer, index) in always(kernel.body):
        if kind != "read" or pointer not in kernel.scene.pointers.roots:
            continue
        root, type_ = kernel.scene.pointers.roots[pointer], kernel.scene.pointers.elements[pointer]
        general = substitute(index, {kernel.var: VAR})
        if root in written or (element_bytes(type_) or WIDEST_BYTES + 1) * width > WIDEST_BYTES:
            continue
        if stride(general, VAR.text, kernel.scene.changing) != Literal("1") or pointer in kernel.scene.moving:
            continue
        if "*" in _local_pointer(kernel, pointer):
            continue
        places = {substitute(a.offset, {kernel.var: VAR}) for a in kernel.accesses if a.root == root}
        if len(places) == 1:
            found[pointer] = Load(pointer, general, type_)
    return tuple(found.values())


def _local_pointer(kernel: ElementKernel, pointer: str) -> str:
    """The type of a pointer that is declared inside the element's work (its address then differs an element)."""

    return next((s.type for s in walk_stmts(kernel.body) if isinstance(s, Declare) and s.name == pointer), "")


@dataclass(frozen=True, slots=True)
class ElementLoop:
    """How a grid goes through the elements: ``threads`` a block, ``width`` elements a load, ``batch`` loads under
    way a thread."""

    kernel: ElementKernel
    threads: int
    width: int
    batch: int
    loads: tuple[Load, ...]

    @property
    def helpers(self) -> frozenset[str]:
        """The device functions it uses."""
        return frozenset(["fsr_pack", "fsr_aligned"]) if self.wide else frozenset()

    @property
    def wide(self) -> bool:
        """Whether elements are read in packs."""
        return self.width > 1 and bool(self.loads)

    def statements(self, body: Body) -> tuple[Stmt, ...]:
        """The whole loop; ``body`` gives what runs for one element from its statements."""
        kernel, form = self.kernel, self.kernel.target.kernel
        first, total, done = (fresh(n, form) for n in ("first", "total_threads", "done"))
        block, thread, grid = (Member(Name(n), "x") for n in ("blockIdx", "threadIdx", "gridDim"))
        type_ = kernel.type
        found: list[Stmt] = [
            Declare(f"const {type_}", first, plus(times(_wide(block, type_), number(self.threads)), thread)),
            Declare(f"const {type_}", total, times(_wide(grid, type_), number(self.threads))),
        ]
        start: Expr = Name(first)
        if self.wide or self.batch > 1:
            found.append(Declare(type_, done, number(0)))
            found += self._packs(Name(first), Name(total), Name(done), body)
            start = plus(Name(done), Name(first))
        tail = For(type_, kernel.var, start, "<", kernel.bound, Name(total), body(kernel.body))
        return (*found, tail)

    def _packs(self, first: Name, total: Name, done: Name, body: Body) -> list[Stmt]:
        kernel, form = self.kernel, self.kernel.target.kernel
        packs, base, step, pack = (fresh(n, form) for n in ("packs", "base", "step", "pack"))
        width = self.width if self.wide else 1
        whole = kernel.bound if width == 1 else Binary("/", kernel.bound, number(width))
        at = Declare(f"const {kernel.type}", pack, plus(Name(base), times(Name(step), total)))
        inside = Binary("<", Name(pack), Name(packs))
        names = {load.pointer: fresh(f"{load.pointer}_pack", form) for load in self.loads}
        fetch = [Assign(Index(Name(names[x.pointer]), Name(step)), "=", self._memory(x, pack)) for x in self.loads]
        work = self._elements(pack, step, names, body)
        unroll = ("#pragma unroll",)
        ahead: list[Stmt] = [Declare(self._type(x), names[x.pointer], None, (number(self.batch),)) for x in self.loads]
        if fetch:
            fetching = (at, If(inside, tuple(fetch)))
            ahead.append(For("int", step, number(0), "<", number(self.batch), number(1), fetching, unroll))
        using = For("int", step, number(0), "<", number(self.batch), number(1), (at, If(inside, work)), unroll)
        loop = For(kernel.type, base, first, "<", Name(packs), times(total, number(self.batch)), (*ahead, using))
        covered = Name(packs) if width == 1 else Binary("*", Name(packs), number(width))
        body_ = (Declare(f"const {kernel.type}", packs, whole), loop, Assign(done, "=", covered))
        test = self._aligned()
        return list(body_) if test is None else [If(test, body_)]

    def _aligned(self) -> Expr | None:
        if not self.wide:
            return None
        tests = list[Expr]()
        for load in self.loads:
            index = substitute(load.index, {VAR.text: Literal("0")})
            address = Unary("&", Index(Name(load.pointer), _simplified(index)))
            tests.append(Call(Name("fsr_aligned"), (address,), (str(BY_SPELLING[load.type].bytes * self.width),)))
        return conjunction(tests)

    def _type(self, load: Load) -> str:
        return f"fsr_pack<{load.type}, {self.width}>" if self.wide else load.type

    def _memory(self, load: Load, pack: str) -> Expr:
        position = times(Name(pack), number(self.width if self.wide else 1))
        there = Index(Name(load.pointer), substitute(load.index, {VAR.text: position}))
        if not self.wide:
            return there
        return Unary("*", Cast(f"const {self._type(load)} *", Unary("&", there), "reinterpret_cast"))

    def _elements(self, pack: str, step: str, names: dict[str, str], body: Body) -> tuple[Stmt, ...]:
        """The work on the elements of one pack."""
        kernel = self.kernel
        u = Name(fresh("u", kernel.target.kernel))

        def value(expr: Expr) -> Expr | None:
            place = element(expr)
            if place is None or place[0] not in names:
                return None
            loaded = Index(Name(names[place[0]]), Name(step))
            return Index(Member(loaded, "v"), u) if self.wide else loaded

        work = body(rewrite(kernel.body, value))
        position = plus(times(Name(pack), number(self.width)), u) if self.wide else Name(pack)
        if kernel.var in names_mentioned(work):
            work = (Declare(f"const {kernel.type}", kernel.var, position), *work)
        if not self.wide:
            return work
        return (For("int", u.text, number(0), "<", number(self.width), number(1), work, ("#pragma unroll",)),)


def _wide(expr: Expr, type_: str) -> Expr:
    """A 32-bit builtin as the index type where that is wider, so that products do not wrap."""
    return expr if type_ in ("int", "unsigned", "unsigned int") else Cast(type_, expr)


def _simplified(expr: Expr) -> Expr:
    match expr:
        case Binary(op="+", left=left, right=right):
            return plus(_simplified(left), _simplified(right))
        case Cast(operand=inner) if integer(inner) == 0:
            return inner
    return expr
