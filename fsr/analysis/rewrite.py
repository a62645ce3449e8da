"""Rewriting of loop-nest forms: replace expressions top-down, and ask which names a piece of code touches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Comment,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    Jump,
    Literal,
    Member,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Return,
    Scope,
    Stmt,
    Ternary,
    Unary,
    While,
)  # fmt: skip

EXPRESSIONS = (Name, Literal, Unary, Binary, Ternary, Call, Index, Member, Cast, OpaqueExpr)
STATEMENTS = (Declare, Assign, ExprStmt, If, For, While, Return, Jump, Scope, Comment, OpaqueStmt)
Node = TypeVar("Node")
Change = Callable[[Expr], Expr | None]


def rewrite(node: Node, change: Change) -> Node:
    """The node (expression, statement or tuple of them) with ``change`` applied top-down: where it gives an
    expression, that stands there and is not looked into again; where it gives None, the parts are visited."""
    result: Any = _rewrite(node, change)
    return result  # type: ignore[no-any-return]  # the same type, or an Expr for an Expr


def _rewrite(node: Any, change: Change) -> Any:
    if isinstance(node, EXPRESSIONS):
        changed = change(node)
        if changed is not None:
            return changed
    if isinstance(node, tuple):
        return tuple(_rewrite(part, change) for part in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    new = {f.name: _rewrite(getattr(node, f.name), change) for f in fields(node) if f.name != "span"}
    return replace(node, **{k: v for k, v in new.items() if v is not getattr(node, k)})


def substitute(node: Node, values: Mapping[str, Expr]) -> Node:
    """The node with names replaced by expressions. Names that are declared or assigned inside are the caller's care."""
    return rewrite(node, lambda e: values.get(e.text) if isinstance(e, Name) else None)


def nodes(node: Any) -> Iterator[Any]:
    """Every expression and statement inside (itself too), parents first."""
    if isinstance(node, tuple):
        for part in node:
            yield from nodes(part)
    elif is_dataclass(node) and not isinstance(node, type):
        yield node
        for f in fields(node):
            if f.name != "span":
                yield from nodes(getattr(node, f.name))


BUILT_IN = frozenset(["threadIdx", "blockIdx", "blockDim", "gridDim"])


def names(node: Any) -> frozenset[str]:
    """Every identifier used or declared inside, the words of opaque text too; a member of a built-in is one name
    (``threadIdx.x``), and the built-in's own name is there only where it stands alone."""
    found: set[str] = set()
    alone: dict[str, int] = dict.fromkeys(BUILT_IN, 0)
    for part in nodes(node):
        match part:
            case Name(text=text) if text in BUILT_IN:
                alone[text] += 1
            case Name(text=text) | Declare(name=text) | For(var=text):
                found.add(text)
            case Member(base=Name(text=base), name=name):
                found.add(f"{base}.{name}")
                if base in BUILT_IN:
                    alone[base] -= 1
            case OpaqueExpr(text=text) | OpaqueStmt(text=text):
                found.update(re.findall(r"[A-Za-z_]\w*(?:\.\w+)?", text))
    return frozenset(found | {name for name, count in alone.items() if count > 0})


def assigned(node: Any) -> list[str]:
    """The variables assigned inside (not by their declaration), once for each assignment. Writing through a pointer
    or an array does not count; a taken address and names in opaque text do."""
    found: list[str] = []
    for part in nodes(node):
        match part:
            case Assign(target=Index() | Unary()):
                continue
            case Assign(target=target):
                found.append(root(target) or "")
            case For(var=var, type=None):
                found.append(var)
            case Unary(op="&", operand=Name(text=text) | Member(base=Name(text=text))):
                found.append(text)
            case OpaqueExpr(text=text) | OpaqueStmt(text=text):
                found += re.findall(r"[A-Za-z_]\w*", text)
    return found


def root(expr: Expr) -> str | None:
    """The variable an lvalue belongs to: ``a`` for ``a[i].x``; None when there is no single one."""
    match expr:
        case Name(text=text):
            return text
        case Index(base=base) | Member(base=base):
            return root(base)
        case Unary(op="*", operand=operand):
            return root(operand)
        case Binary(op="+" | "-", left=left):
            return root(left)
        case Cast(operand=operand):
            return root(operand)
    return None


def conjuncts(expr: Expr) -> list[Expr]:
    """The parts of ``a && b && c``."""
    if isinstance(expr, Binary) and expr.op in ("&&", "and"):
        return conjuncts(expr.left) + conjuncts(expr.right)
    return [expr]


NEGATED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def negation(expr: Expr) -> Expr:
    """The logical opposite, pushed inwards. (Comparisons of floating-point values are not inverted: NaN.)"""
    match expr:
        case Unary(op="!" | "not", operand=operand):
            return operand
        case Binary(op="&&" | "and", left=left, right=right):
            return Binary("||", negation(left), negation(right))
        case Binary(op="||" | "or", left=left, right=right):
            return Binary("&&", negation(left), negation(right))
        case Binary(op=op, left=left, right=right) if op in NEGATED and not _may_be_floating(left, right):
            return Binary(NEGATED[op], left, right)
    return Unary("!", expr)


def _may_be_floating(*exprs: Expr) -> bool:
    return any(isinstance(n, Index | Call | Cast | OpaqueExpr) or (isinstance(n, Literal) and "." in n.text)
               for e in exprs for n in nodes(e))  # fmt: skip


def without_comments(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements with comments dropped at this level, and braces that hold no declarations opened."""
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Scope) and not any(isinstance(s, Declare) for s in stmt.body):
            out += without_comments(stmt.body)
        elif not isinstance(stmt, Comment):
            out.append(stmt)
    return tuple(out)
