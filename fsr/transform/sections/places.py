"""Places that all threads of a block come to together, and what is done before and after them between two barriers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from fsr.analysis.calls import is_load
from fsr.analysis.uniform import Uniformity
from fsr.source.form import (
    Declare,
    Expr,
    For,
    If,
    Index,
    Jump,
    KernelForm,
    OpaqueStmt,
    Param,
    Return,
    Scope,
    Stmt,
    Unary,
    While,
)
from fsr.source.mapping import map_stmts
from fsr.source.walk import BARRIER, Block, blocks_of, exprs_of, walk_expr, walk_stmts
from fsr.transform.sections.alone import Alone
from fsr.transform.target import Target


@dataclass(frozen=True)
class Around:
    """Statements before or after a section, up to the next barrier. ``again``: in another turn of a loop around it."""

    stmts: Block
    again: bool = False


@dataclass(frozen=True)
class Section:
    """``stmt``: what lets one thread in, or the loop that all go through in strides; ``alone``: which they are;
    ``body``: what each does."""

    stmt: If | For
    alone: Alone
    body: Block
    before: tuple[Around, ...]
    after: tuple[Around, ...]


class Together:
    """What the threads of a block have in common. ``varying``: names that may hold something else in each."""

    def __init__(self, target: Target, kernel: KernelForm) -> None:
        self._target = target
        memory = [s for s in walk_stmts(kernel.body) if isinstance(s, Declare) and (_is_shared(s) or "*" in s.type)]
        # What is written through a pointer is not the pointer's value, and all threads have a shared array's address.
        pointers = tuple(Param(f"{s.type} *", s.name) for s in memory if s.dims or not _is_shared(s))
        told = replace(kernel, params=(*kernel.params, *pointers), body=map_stmts(kernel.body, _without_shared))
        self._uniform = Uniformity(told, functions=target.functions)
        self.varying = self._uniform.divergent - {s.name for s in memory if s.dims and _is_shared(s)}

    def __call__(self, e: Expr) -> bool:
        """Whether all threads that evaluate the expression together get the same."""
        reads = any(isinstance(x, Index) or is_load(x) or (isinstance(x, Unary) and x.op == "*") for x in walk_expr(e))
        return self._uniform(e) and not (reads and self._target.aliasing)

    def part(self, stmts: Block, *, split: bool = False, inside: bool = False) -> bool:
        """Whether single threads may leave the kernel, or the loop around the statements, before others. ``split``:
        they were apart before; ``inside``: a loop of the statements' own is around them."""
        return any(self._parts(s, split, inside) for s in stmts)

    def _parts(self, s: Stmt, split: bool, inside: bool) -> bool:
        match s:
            case Return():
                return split
            case Jump():
                return split and not inside
            case For() | While():
                apart = split or not all(map(self, exprs_of(s))) or self.part(s.body)
                return self.part(s.body, split=apart, inside=True)
            case If(test):
                split = split or not self(test)
        return any(self.part(block, split=split, inside=inside) for block in blocks_of(s))


def _is_shared(s: Stmt) -> bool:
    return isinstance(s, Declare) and "__shared__" in s.qualifiers


def _without_shared(s: Stmt) -> Stmt | Block:
    return () if _is_shared(s) else s


Told = Callable[[Target, Stmt], tuple[Alone, Block] | None]
"""Which threads do a statement, each by itself, and what that is; None where it is no section."""


def sections(target: Target, told: Told) -> Iterator[Section]:
    """What single threads do where all threads of the block come by."""
    if any(isinstance(s, OpaqueStmt) for s in walk_stmts(target.kernel.body)):
        return  # they may jump
    yield from _Found(target, Together(target, target.kernel), told).inside(target.kernel.body, ((), ()))


Sides = tuple[tuple[Around, ...], tuple[Around, ...]]


@dataclass(frozen=True)
class _Found:
    target: Target
    together: Together
    told: Told

    def inside(self, block: Block, sides: Sides) -> Iterator[Section]:
        """Those of a block's statements, with what stands around these."""
        together = self.together
        for at, s in enumerate(block):
            if together.part((s,)):
                return
            before, met = _nearest(block[:at][::-1])
            after, meet = _nearest(block[at + 1 :])
            around = (Around(before[::-1]), *(() if met else sides[0])), (Around(after), *(() if meet else sides[1]))
            found = self.told(self.target, s)
            if isinstance(s, If | For) and found is not None:
                yield Section(s, *found, *around)
            elif isinstance(s, For | While) and all(map(together, exprs_of(s))) and not together.part(s.body):
                first, last = _nearest(s.body)[0], _nearest(s.body[::-1])[0][::-1]
                turn = (Around(last, again=True), *around[0]), (Around(first, again=True), *around[1])
                yield from self.inside(s.body, turn)
            elif isinstance(s, Scope) or (isinstance(s, If) and together(s.test)):
                for inner in blocks_of(s):
                    yield from self.inside(inner, around)


def _nearest(stmts: Block) -> tuple[Block, bool]:
    """The statements up to the first barrier, and whether there is one."""
    for at, s in enumerate(stmts):
        if s == BARRIER:
            return stmts[:at], True
    return stmts, False
