"""Rewriting of the loop-nest form from the outside in, and small questions that the recognisers ask of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

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
    Return,
    Scope,
    Stmt,
    Ternary,
    Unary,
    While,
)  # fmt: skip
from fsr.source.walk import walk_expr, walk_stmts

Rewrite = Callable[[Expr], Expr | None]


def names_of(expr: Expr) -> frozenset[str]:
    """The identifiers that an expression mentions."""
    return frozenset(e.text for e in walk_expr(expr) if isinstance(e, Name))


def rewrite_expr(expr: Expr, rewrite: Rewrite) -> Expr:
    """The expression with every part for which ``rewrite`` returns something replaced; outermost first, and what
    was put in is not looked at again."""
    new = rewrite(expr)
    if new is not None:
        return new

    def again(e: Expr) -> Expr:
        return rewrite_expr(e, rewrite)

    match expr:
        case Unary(operand=inner) | Cast(operand=inner):
            return replace(expr, operand=again(inner))
        case Member(base=base):
            return replace(expr, base=again(base))
        case Binary(left=left, right=right):
            return replace(expr, left=again(left), right=again(right))
        case Ternary(test=test, yes=yes, no=no):
            return Ternary(again(test), again(yes), again(no))
        case Call(callee=callee, args=args):
            return replace(expr, callee=again(callee), args=tuple(again(a) for a in args))
        case Index(base=base, index=index):
            return Index(again(base), again(index))
    return expr


def rewrite_stmt(stmt: Stmt, rewrite: Rewrite) -> Stmt:
    """The statement with its expressions, and those of what it holds, rewritten."""

    def again(e: Expr) -> Expr:
        return rewrite_expr(e, rewrite)

    match stmt:
        case Declare(init=init):
            return replace(stmt, init=None if init is None else again(init), dims=tuple(again(d) for d in stmt.dims))
        case Assign(target=target, value=value):
            return replace(stmt, target=again(target), value=again(value))
        case ExprStmt(expr=expr):
            return replace(stmt, expr=again(expr))
        case If(test=test, then=then, orelse=orelse):
            return replace(
                stmt, test=again(test), then=rewrite_body(then, rewrite), orelse=rewrite_body(orelse, rewrite)
            )
        case For(start=start, bound=bound, step=step, body=body):
            return replace(
                stmt, start=again(start), bound=again(bound), step=again(step), body=rewrite_body(body, rewrite)
            )
        case While(test=test, body=body):
            return replace(stmt, test=again(test), body=rewrite_body(body, rewrite))
        case Scope(body=body):
            return replace(stmt, body=rewrite_body(body, rewrite))
        case Return(value=value) if value is not None:
            return replace(stmt, value=again(value))
    return stmt


def rewrite_body(body: Iterable[Stmt], rewrite: Rewrite) -> tuple[Stmt, ...]:
    """The statements, rewritten one by one."""
    return tuple(rewrite_stmt(s, rewrite) for s in body)


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """The expression with names replaced."""
    return rewrite_expr(expr, lambda e: values.get(e.text) if isinstance(e, Name) else None)


def assigned(body: Iterable[Stmt]) -> frozenset[str]:
    """The names of variables (arrays included) that the statements assign to, loop variables included;
    stores through a pointer count as assignments to the pointer's name."""
    found = set()
    for stmt in walk_stmts(body):
        if isinstance(stmt, Assign):
            root = root_name(stmt.target)
            if root is not None:
                found.add(root)
        elif isinstance(stmt, For):
            found.add(stmt.var)
    return frozenset(found)


def declared(body: Iterable[Stmt]) -> dict[str, Declare]:
    """The variables declared anywhere in the statements (the last declaration of a name wins); loop variables
    of ``for (int j ...)`` are not among them."""
    return {s.name: s for s in walk_stmts(body) if isinstance(s, Declare)}


def without_casts(expr: Expr) -> Expr:
    """The expression without the casts around it."""
    while isinstance(expr, Cast):
        expr = expr.operand
    return expr


def root_name(target: Expr) -> str | None:
    """The variable behind ``v``, ``v[i]``, ``v[i][j]``, ``*v``, ``*(v + i)``, ``v.x``; None when unclear."""
    match target:
        case Name(text=text):
            return text
        case Index(base=base):
            return root_name(base)
        case Member(base=base):
            return root_name(base)
        case Unary(op="*" | "&", operand=inner):
            return root_name(inner)
        case Cast(operand=inner):
            return root_name(inner)
        case Binary(op="+" | "-", left=left):
            return root_name(left)
    return None


def is_zero(expr: Expr) -> bool:
    """Whether the expression is a literal zero of any type (``0``, ``0u``, ``0.0f``)."""
    if not isinstance(expr, Literal):
        return False
    try:
        return float(expr.text.rstrip("fFuUlL")) == 0.0
    except ValueError:
        return False
