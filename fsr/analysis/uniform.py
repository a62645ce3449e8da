"""Which names hold the same value in every thread of a block."""

from __future__ import annotations

from fsr.analysis.accesses import accesses
from fsr.analysis.calls import is_load
from fsr.analysis.definitions import stored
from fsr.analysis.functions import NO_FUNCTIONS, Functions
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
    Member,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Return,
    Stmt,
    Unary,
    While,
)  # fmt: skip
from fsr.source.walk import base_name, exprs_of, names_in, opaque_names, walk_expr, walk_stmts, written_by


class Uniformity:
    """Uniform expressions of one kernel. ``divergent``: names that may differ between threads of a block.
    ``agreed``: functions that give every thread of a block the same result, whatever they are called with;
    ``functions``: what the file defines; ``shared``: shared memory of which is asked only where all threads of a block
    read it together, so that no one can write it meanwhile."""

    def __init__(
        self,
        kernel: KernelForm,
        agreed: frozenset[str] = frozenset(),
        functions: Functions = NO_FUNCTIONS,
        shared: frozenset[str] = frozenset(),
        ids: frozenset[str] = frozenset(["threadIdx"]),
    ) -> None:
        self._agreed, self._functions = agreed, functions
        self._written = frozenset(a.array for a in accesses(kernel) if a.writes)
        local = (s for s in walk_stmts(kernel.body) if isinstance(s, Declare) and s.type.endswith("*") and not s.dims)
        self._pointers = frozenset([*(p.name for p in kernel.params if p.is_pointer), *(s.name for s in local)])
        self._shared = shared
        self.divergent = ids
        while True:
            found = set(self.divergent)
            self._sweep(kernel.body, False, found)
            if found == self.divergent:
                return
            self.divergent = frozenset(found)

    def __call__(self, e: Expr) -> bool:
        """Whether all threads of a block that evaluate the expression together get the same value."""
        match e:
            case Call(Name(text)) if text in self._agreed:
                return True
        if names_in(e) & self.divergent:
            return False
        for x in walk_expr(e):
            match x:
                case OpaqueExpr(text) if text:
                    return False
                case Call() if not (is_load(x) or self._functions.calls_builtins(Call(x.callee, ()))):
                    return False
                case Index(base) | Unary("*", base) if base_name(base) is None or (
                    base_name(base) in self._written - self._shared
                ):
                    return False
                case Member(_, _, True):
                    return False
        return True

    def _sweep(self, stmts: tuple[Stmt, ...], split: bool, found: set[str]) -> None:
        for s in stmts:
            for e in exprs_of(s):
                found |= written_by(e) - self._pointers
            match s:
                case Assign(target, _, value):
                    if split or not self(value) or not self(target):
                        found |= stored(target, self._pointers) - self._shared
                case Declare(name=name, init=init):
                    if name not in self._shared and (split or (init is not None and not self(init)) or s.dims):
                        found.add(name)
                case For(var=var):
                    inner = split or not (self(s.start) and self(s.bound) and self(s.step)) or self._leaves(s.body)
                    if inner:
                        found.add(var)
                    self._sweep(s.body, inner, found)
                case While(test, body):
                    self._sweep(body, split or not self(test) or self._leaves(body), found)
                case If(test, then, orelse):
                    inner = split or not self(test)
                    self._sweep(then, inner, found)
                    self._sweep(orelse, inner, found)
                case OpaqueStmt(text):
                    found |= opaque_names(text)
                case _ if hasattr(s, "body"):
                    self._sweep(s.body, split, found)

    def _leaves(self, body: tuple[Stmt, ...]) -> bool:
        """Whether some threads may leave an iteration of a loop earlier than others."""
        jumps = any(isinstance(s, Jump | Return) for s in walk_stmts(body))
        return jumps and not all(self(s.test) for s in walk_stmts(body) if isinstance(s, If | While))
