"""Emitting a kernel that gathers its atomics a block at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fsr.hardware.limits import PARTIAL_SUMS_BYTES, STATIC_SHARED_BYTES
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
    Member,
    Name,
    Param,
    Stmt,
    Unary,
    number,
)  # fmt: skip
from fsr.source.mapping import map_stmts
from fsr.source.walk import BARRIER
from fsr.transform.atomics.element_loop import ElementLoop
from fsr.transform.atomics.global_atomics import Bins, Target, atomic_of, typed
from fsr.transform.rows.row_kernel import fresh
from fsr.transform.rows.share import plus, times

BIN_BYTES = STATIC_SHARED_BYTES - PARTIAL_SUMS_BYTES
_THREAD = Member(Name("threadIdx"), "x")


@dataclass(frozen=True, slots=True)
class Gathering:
    """What becomes of an element kernel: ``fixed`` targets are folded in registers, ``scattered`` in ``copies`` of its
    ``bins`` in shared memory. ``second_pass``: blocks leave their folds in scratch buffers instead of atomics."""

    loop: ElementLoop
    fixed: tuple[Target, ...]
    scattered: Target | None
    bins: Bins | None
    copies: int
    second_pass: bool

    def helpers(self) -> frozenset[str]:
        """The device functions that the kernel calls."""
        return self.loop.helpers | {f"fsr_block_{t.fold}" for t in self.fixed}

    def local(self, target: Target, suffix: str) -> str:
        """A name for something that belongs to a target."""
        return fresh(f"{target.pointer}_{suffix}", self.loop.kernel.target.kernel)

    def named(self, plain: str) -> Name:
        """A variable called so, or nearly: a kernel may have a size of that name."""
        return Name(fresh(plain, self.loop.kernel.target.kernel))

    def params(self) -> tuple[Param, ...]:
        """The kernel's parameters: its own, and a scratch buffer a fixed target for a second pass."""
        own = self.loop.kernel.target.kernel.params
        if not self.second_pass:
            return own
        return (*own, *(Param(f"{t.type} *", self.local(t, "partial")) for t in self.fixed))

    def shared_bytes(self) -> str:
        """Dynamic shared memory, as a size expression."""
        if self.bins is None:
            return "0"
        size, most = self.bins.size, BIN_BYTES // self.bins.bytes
        return f"({size}) * {self.bins.bytes} * max(1, min({self.copies}, {most} // max(1, {size})))"

    def body(self) -> tuple[Stmt, ...]:
        """The kernel's new body."""
        kernel = self.loop.kernel
        ahead: list[Stmt] = [Declare(t.type, self.local(t, "here"), Literal(t.identity)) for t in self.fixed]
        behind: list[Stmt] = []
        if self.scattered is not None and self.bins is not None:
            ahead += self._bins(self.scattered, self.bins)
            behind += self._merge(self.scattered, self.bins)
        for target in self.fixed:
            behind += self._finish(target)
        return (*kernel.before, *ahead, *self.loop.statements(self._gathered), *behind)

    def _gathered(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The work of one element with its atomics gathered instead."""
        fixed = {t.pointer: t for t in self.fixed}

        def change(stmt: Stmt) -> Stmt:
            place = atomic_of(stmt)
            if place is None:
                return stmt
            pointer, index, _, value = place
            if pointer in fixed:
                target = fixed[pointer]
                return self._fold(target, typed(value, target, self.loop.kernel))
            if self.scattered is not None and pointer == self.scattered.pointer:
                there = Unary("&", Index(Name(self.local(self.scattered, "own")), index))
                return ExprStmt(Call(Name(self.scattered.gathered), (there, self.scattered.binned(value))))
            return stmt

        return map_stmts(body, change)

    def _fold(self, target: Target, value: Expr) -> Stmt:
        here = Name(self.local(target, "here"))
        operator = {"sum": "+=", "and": "&=", "or": "|=", "xor": "^="}.get(target.fold)
        if operator is None:
            return Assign(here, "=", target.folded(here, value))
        return Assign(here, operator, value)

    def _finish(self, target: Target) -> list[Stmt]:
        """The block's fold, and what its first thread does with it."""
        here = Name(self.local(target, "here"))
        folded = Call(Name(f"fsr_block_{target.fold}"), (here,), (str(self.loop.threads),))
        if self.second_pass:
            partial = Index(Name(self.local(target, "partial")), Member(Name("blockIdx"), "x"))
            last: Stmt = Assign(partial, "=", here)
        else:
            last = ExprStmt(Call(Name(target.gathered), (Unary("&", Index(Name(target.pointer), target.index)), here)))
        return [Assign(here, "=", folded), If(Binary("==", _THREAD, Literal("0")), (last,))]

    def _bins(self, target: Target, bins: Bins) -> list[Stmt]:
        """The block's own bins, cleared."""
        name, copies, own = (self.local(target, s) for s in ("bins", "copies", "own"))
        count = Cast("int", bins.code) if not isinstance(bins.code, Literal) else bins.code
        most = BIN_BYTES // bins.bytes
        limited = Call(
            Name("max"),
            (number(1), Call(Name("min"), (number(self.copies), Binary("/", number(most), _at_least_one(count))))),
        )
        mine = Binary("*", Binary("%", Binary("/", _THREAD, number(32)), Name(copies)), bins.code)
        clear = Assign(Index(Name(name), self.named("k")), "=", Literal(target.nothing))
        return [
            Declare(target.bin_type, name, None, (Literal(""),), ("extern", "__shared__")),
            Declare("const int", copies, limited if self.copies > 1 else number(1)),
            self._over_bins(times(bins.code, Name(copies)), (clear,)),
            BARRIER,
            Declare(f"{target.bin_type} *", own, plus(Name(name), mine)),
        ]

    def _over_bins(self, count: Expr, body: Iterable[Stmt]) -> Stmt:
        return For("int", self.named("k").text, _THREAD, "<", count, number(self.loop.threads), tuple(body))

    def _merge(self, target: Target, bins: Bins) -> list[Stmt]:
        """The block's bins added to the global ones; bins in which nothing happened are left alone."""
        name, copies = self.local(target, "bins"), self.local(target, "copies")
        total, copy, k = (self.named(plain) for plain in ("total_here", "copy", "k"))
        more = Index(Name(name), plus(times(copy, bins.code), k))
        fold = For(
            "int", copy.text, number(1), "<", Name(copies), number(1), (Assign(total, "=", target.folded(total, more)),)
        )
        there, value = Unary("&", Index(Name(target.pointer), k)), target.ungathered(total)
        add = ExprStmt(Call(Name(target.gathered), (there, value)))
        body: list[Stmt] = [Declare(target.bin_type, total.text, Index(Name(name), k))]
        if self.copies > 1:
            body.append(fold)
        body.append(If(Binary("!=", total, Literal(target.nothing)), (add,)))
        return [BARRIER, self._over_bins(bins.code, body)]


def _at_least_one(count: Expr) -> Expr:
    return count if isinstance(count, Literal) else Call(Name("max"), (number(1), count))
