"""A thread's arrays that the GPU cannot keep in registers: those indexed by what is known only at run time.

Registers have no addresses. An array whose every index is a constant once loops of constant trip counts are unrolled
lives in registers; any other goes to local memory (CUDA C++ Programming Guide, "Local Memory").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fsr.source.form import (
    Assign,
    Call,
    Declare,
    Expr,
    For,
    If,
    Index,
    Jump,
    KernelForm,
    OpaqueExpr,
    OpaqueStmt,
    Stmt,
    Unary,
    While,
)  # fmt: skip
from fsr.source.walk import (
    BUILTINS,
    Block,
    base_name,
    blocks_of,
    exprs_of,
    names_in,
    opaque_names,
    walk_expr,
    walk_exprs,
    walk_stmts,
)  # fmt: skip

_WRITES = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)|<<=|>>=")


def in_local_memory(kernel: KernelForm) -> tuple[Declare, ...]:
    """The arrays that a kernel declares for each thread, and indexes by what no compiler knows."""
    arrays = [s for s in walk_stmts(kernel.body) if isinstance(s, Declare) and s.dims and not s.qualifiers]
    if not arrays:
        return ()
    known_late = _RunTime(kernel).names
    indexed = {base_name(e) for e in walk_exprs(kernel.body) if isinstance(e, Index) and names_in(e.index) & known_late}
    return tuple(a for a in arrays if a.name in indexed)


class _RunTime:
    """``names``: the variables of a kernel whose values are known at run time only, however loops are unrolled: of
    parameters, ids, memory, and what is assigned where a test of such values lets some threads come, or some turns."""

    def __init__(self, kernel: KernelForm) -> None:
        self.names = {*BUILTINS, *(p.name for p in kernel.params)}
        known = -1
        while known != len(self.names):
            known = len(self.names)
            self._depths: dict[str, int] = {}  # tests on run-time values around a variable's declaration
            self._walk(kernel.body, 0)

    def _walk(self, body: Block, depth: int) -> None:
        for s in body:
            for name, values in _assigned(s):
                if depth > self._depths.get(name, 0) or self._reads(values):
                    self.names.add(name)
            self._enter(s, depth)
            inside = depth + (self._reads(_decides(s)) or (isinstance(s, For | While) and self._leaves(s.body)))
            for block in blocks_of(s):
                self._walk(block, inside)

    def _enter(self, s: Stmt, depth: int) -> None:
        match s:
            case Declare(name=name):
                self._depths[name] = depth
                if "__shared__" in s.qualifiers or (s.init is not None and self._reads([s.init])):
                    self.names.add(name)
            case For(type=type_, var=name):
                if type_ is not None:
                    self._depths[name] = depth + 1
                if self._reads(exprs_of(s)) or (type_ is None and self._leaves(s.body)):
                    self.names.add(name)
            case OpaqueStmt(text):
                self.names |= opaque_names(text)

    def _reads(self, expressions: Iterable[Expr]) -> bool:
        return any(names_in(e) & self.names for e in expressions)

    def _leaves(self, body: Block) -> bool:
        """Whether some turn may end early, or be the last, by what is known at run time."""
        for s in body:
            if isinstance(s, If):
                jumps = any(isinstance(x, Jump) for x in walk_stmts((s,)))
                if (jumps and self._reads([s.test])) or self._leaves(s.then) or self._leaves(s.orelse):
                    return True
            elif not isinstance(s, For | While) and any(map(self._leaves, blocks_of(s))):
                return True
        return False


def _decides(s: Stmt) -> tuple[Expr, ...]:
    """What decides whether, or how often, the statements within are executed."""
    return exprs_of(s) if isinstance(s, If | While | For) else ()


def _assigned(s: Stmt) -> Iterator[tuple[str, tuple[Expr, ...]]]:
    """The variables that a statement gives another value than they were declared with, and what that is made of."""
    if isinstance(s, Assign):
        yield base_name(s.target) or "", exprs_of(s)
    for e in exprs_of(s):
        for x in walk_expr(e):
            match x:
                case OpaqueExpr(text) if _WRITES.search(text):
                    yield from ((name, (x,)) for name in opaque_names(text))
                case Call(args=args):
                    pointers = [a for a in args if isinstance(a, Unary) and a.op == "&"]
                    yield from ((base_name(a) or "", args) for a in pointers)
