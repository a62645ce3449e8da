"""Numbers of threads in a kernel's text: the global one along x, and loops that go on by as many as the grid has."""

from __future__ import annotations

from collections.abc import Iterable

from fsr.analysis.parallel import terms
from fsr.analysis.types import is_integer
from fsr.source.counting import counted
from fsr.source.form import Binary, Cast, Comment, Declare, Expr, For, KernelForm, Member, Name, Stmt
from fsr.source.mapping import substitute
from fsr.source.walk import (
    BUILTINS,
    exprs_of,
    integer,
    names_in,
    walk_expr,
    walk_exprs,
    walk_stmts,
    without_casts,
)

# Statements before, a variable, its type, its bound, and what is done for each of its values below that.
Split = tuple[tuple[Stmt, ...], str, str, Expr, tuple[Stmt, ...]]


def is_row(stmt: Declare, threads: int | None) -> bool:
    """Whether a declaration gives the global thread number along x."""
    return (
        stmt.init is not None
        and is_integer(stmt.type)
        and not stmt.dims
        and not stmt.qualifiers
        and is_global_id(stmt.init, threads)
    )


def is_global_id(expr: Expr, threads: int | None) -> bool:
    """Whether an expression is ``blockIdx.x * blockDim.x + threadIdx.x`` in any order, casts left aside."""
    match expr:
        case Cast(operand=inner):
            return is_global_id(inner, threads)
        case Binary(op="+"):
            parts = [without_casts(t) for t, _ in terms(expr)]
            if len(parts) != 2 or any(sign < 0 for _, sign in terms(expr)):
                return False
            products = [p for p in parts if isinstance(p, Binary) and p.op == "*"]
            if _builtin("threadIdx") not in parts or len(products) != 1:
                return False
            factors = [without_casts(products[0].left), without_casts(products[0].right)]
            if _builtin("blockIdx") not in factors:
                return False
            factors.remove(_builtin("blockIdx"))
            return factors[0] == _builtin("blockDim") or (threads is not None and integer(factors[0]) == threads)
    return False


def _builtin(name: str, axis: str = "x") -> Member:
    return Member(Name(name), axis)


def uses_threads(body: Iterable[Stmt]) -> bool:
    """Whether statements depend on the thread or on the launch, other than through blockIdx.y and blockIdx.z."""
    allowed = {_builtin("blockIdx", "y"), _builtin("blockIdx", "z")}
    return any(_mentions_builtin(e, allowed) for s in walk_stmts(body) for e in exprs_of(s))


def _mentions_builtin(expr: Expr, allowed: set[Member]) -> bool:
    inside = list(walk_expr(expr))
    mentioned = sum(isinstance(e, Name) and e.text in BUILTINS for e in inside)
    return mentioned > sum(isinstance(e, Member) and e in allowed for e in inside)


def grid_stride(kernel: KernelForm, threads: int) -> Split | None:
    """``for (int i = <global id>; i < n; i += blockDim.x * gridDim.x) body`` and nothing after it."""
    values: dict[str, Expr] = {}
    before: list[Stmt] = []
    rest = [s for s in counted(kernel.body) if not isinstance(s, Comment)]
    if not rest or not isinstance(rest[-1], For):
        return None
    for stmt in rest[:-1]:
        if not isinstance(stmt, Declare) or stmt.init is None or stmt.dims:
            return None
        if uses_threads([stmt]):
            if not is_integer(stmt.type):
                return None
            values[stmt.name] = substitute(stmt.init, values)
        else:
            before.append(stmt)
    loop = rest[-1]
    if loop.type is None or loop.relation != "<":
        return None
    start, step = substitute(loop.start, values), substitute(loop.step, values)
    if not is_global_id(start, threads) or not _is_grid(step, threads):
        return None
    if any(names_in(e) & set(values) for s in (*before, *loop.body) for e in walk_exprs([s])):
        return None
    return tuple(before), loop.var, loop.type.removeprefix("const "), loop.bound, loop.body


def _is_grid(expr: Expr, threads: int) -> bool:
    """Whether an expression is ``gridDim.x * blockDim.x``, casts left aside."""
    match expr:
        case Cast(operand=inner):
            return _is_grid(inner, threads)
        case Binary(op="*", left=left, right=right):
            return {_axis(left, threads), _axis(right, threads)} == {"gridDim", "blockDim"}
    return False


def _axis(expr: Expr, threads: int) -> str:
    while isinstance(expr, Cast):
        expr = expr.operand
    match expr:
        case Member(base=Name(text=text), name="x"):
            return text
    return "blockDim" if integer(expr) == threads else ""
