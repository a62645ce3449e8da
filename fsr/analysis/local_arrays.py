"""A thread's arrays that the GPU cannot keep in registers: those indexed by what is known only at run time.

Registers have no addresses. An array whose every index is a constant once loops of constant trip counts are unrolled
lives in registers; any other goes to local memory (CUDA C++ Programming Guide, "Local Memory").
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

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
    Scope,
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
    walk_stmts,
)  # fmt: skip

_ASSEMBLY = re.compile(r"\s*(?:__)?asm\b")
_WRITES = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)|<<=|>>=")


def in_local_memory(kernel: KernelForm) -> tuple[Declare, ...]:
    """The arrays that a kernel declares for each thread, and indexes by what no compiler knows. Of a device function
    too, whose arguments may be constants where it is called; what they point to is none."""
    arrays = [s for s in walk_stmts(kernel.body) if isinstance(s, Declare) and s.dims and not s.qualifiers]
    indexed = _RunTime(kernel).indexed if arrays else ()
    return tuple(a for a in arrays if id(a) in indexed)


def indexed_at_run_time(kernel: KernelForm, unrolled: Collection[int]) -> frozenset[int]:
    """The accesses of a kernel whose index is known at run time only, as ``id`` of their nodes (of each dimension one),
    where the loops of those ids are unrolled whole and no other is."""
    return frozenset(_RunTime(kernel, frozenset(unrolled)).accesses)


_Key = str | int  # a variable: by the statement that declares it, since several may have one name, else by its name
_Scope = Mapping[str, _Key]


class _RunTime:
    """``late``: the variables of a kernel whose values are known at run time only, however loops are unrolled: of
    parameters, ids, memory, and what is assigned where a test of such values lets some threads come, or some turns.
    ``indexed``: the arrays with such an index, ``accesses``: the nodes. ``unrolled``: the loops that are, None: all."""

    def __init__(self, kernel: KernelForm, unrolled: frozenset[int] | None = None) -> None:
        self._unrolled = unrolled
        called = any("__device__" in word for word in kernel.prefix)
        given = {p.name for p in kernel.params if p.is_pointer or "&" in p.type or not called}
        self.late: set[_Key] = {*BUILTINS, *given}
        self.indexed = set[_Key]()
        self.accesses = set[int]()
        known = -1
        while known != len(self.late):
            known = len(self.late)
            self._counters = set[_Key]()  # of loops, which set them alone
            self._depths: dict[_Key, int] = {}  # tests on run-time values around a variable's declaration
            self._walk(kernel.body, 0, {})

    def _walk(self, body: Block, depth: int, outer: _Scope) -> None:
        scope = dict(outer)
        for s in body:
            within = self._enter(s, depth, scope)
            for name, values in _assigned(s):
                key = within.get(name, name)
                if depth > self._depths.get(key, 0) or self._reads(values, within):
                    self.late.add(key)
            for e in (part for whole in exprs_of(s) for part in walk_expr(whole)):
                if isinstance(e, Index) and self._reads([e.index], within):
                    self.indexed.add(within.get(base_name(e) or "", ""))
                    self.accesses.add(id(e))
            often = isinstance(s, For | While) and (self._stays(s) or self._leaves(s.body, within))
            for block in blocks_of(s):
                self._walk(block, depth + (often or self._reads(_decides(s), within)), within)

    def _enter(self, s: Stmt, depth: int, scope: dict[str, _Key]) -> _Scope:
        """The names within a statement; ``scope`` gets what it declares for those behind it."""
        match s:
            case Declare(name=name):
                scope[name] = id(s)
                self._depths[id(s)] = depth
                if "__shared__" in s.qualifiers or (s.init is not None and self._reads([s.init], scope)):
                    self.late.add(id(s))
            case For(type=type_, var=name):
                within = scope if type_ is None else {**scope, name: id(s)}
                if type_ is not None:
                    self._depths[id(s)] = depth + 1
                    self._counters.add(id(s))
                leaves = type_ is None and self._leaves(s.body, within)
                if leaves or self._stays(s) or self._reads(exprs_of(s), within):
                    self.late.add(within.get(name, name))
                return within
            case OpaqueStmt(text):
                self.late |= {scope.get(name, name) for name in opaque_names(text)} - self._counters
        return scope

    def _stays(self, s: For | While) -> bool:
        """Whether a loop stays one."""
        return self._unrolled is not None and id(s) not in self._unrolled

    def _reads(self, expressions: Iterable[Expr], scope: _Scope) -> bool:
        return any(scope.get(name, name) in self.late for e in expressions for name in names_in(e))

    def _leaves(self, body: Block, scope: _Scope) -> bool:
        """Whether some turn may end early, or be the last, by what is known at run time."""
        scope = {**scope, **{s.name: id(s) for s in body if isinstance(s, Declare)}}
        for s in body:
            if isinstance(s, If):
                jumps = any(isinstance(x, Jump) for x in walk_stmts((s,)))
                if (jumps and self._reads([s.test], scope)) or any(self._leaves(b, scope) for b in blocks_of(s)):
                    return True
            elif isinstance(s, Scope) and self._leaves(s.body, scope):
                return True
        return False


def _decides(s: Stmt) -> tuple[Expr, ...]:
    """What decides whether, or how often, the statements within are executed."""
    return exprs_of(s) if isinstance(s, If | While | For) else ()


def _set_by(text: str) -> frozenset[str]:
    """The variables that an expression which the form does not model may set: of inline assembly its outputs."""
    if not _ASSEMBLY.match(text):
        return opaque_names(text) if _WRITES.search(text) else frozenset()
    parts = re.sub(r'"(?:\\.|[^"\\])*"|\[[^][]*\]', "", text).split(":")
    return opaque_names(parts[1]) if len(parts) > 1 else frozenset()


def _assigned(s: Stmt) -> Iterator[tuple[str, tuple[Expr, ...]]]:
    """The variables that a statement gives another value than they were declared with, and what that is made of."""
    if isinstance(s, Assign):
        yield base_name(s.target) or "", exprs_of(s)
    for e in exprs_of(s):
        for x in walk_expr(e):
            match x:
                case OpaqueExpr(text):
                    yield from ((name, (x,)) for name in _set_by(text))
                case Call(args=args):
                    pointers = [a for a in args if isinstance(a, Unary) and a.op == "&"]
                    yield from ((base_name(a) or "", args) for a in pointers)
