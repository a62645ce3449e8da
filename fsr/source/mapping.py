"""Changing the loop-nest form: replace expressions and statements, top-down or bottom-up.

Nodes are rebuilt, spans kept; where nothing changes, the result equals what went in. Opaque nodes are leaves.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, overload

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
    Jump,
    Member,
    Name,
    Return,
    Stmt,
    Ternary,
    Unary,
    While,
)  # fmt: skip
from fsr.source.walk import BLOCKS, Block, subexprs

S = TypeVar("S", bound=Stmt)


def with_parts(e: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with its direct operands changed; the very same one where that changes nothing."""
    parts = subexprs(e)
    new = [change(part) for part in parts]
    return e if all(map(operator.is_, new, parts)) else _with(e, new)


def _with(e: Expr, parts: list[Expr]) -> Expr:
    match e:
        case Unary(op):
            return Unary(op, parts[0])
        case Cast(type_, _, style):
            return Cast(type_, parts[0], style)
        case Member(_, name, arrow):
            return Member(parts[0], name, arrow)
        case Binary(op):
            return Binary(op, parts[0], parts[1])
        case Index():
            return Index(parts[0], parts[1])
        case Ternary():
            return Ternary(parts[0], parts[1], parts[2])
        case Call(_, _, templates):
            return Call(parts[0], tuple(parts[1:]), templates)
    return e


def with_exprs(s: S, change: Callable[[Expr], Expr]) -> S:
    """The statement with the expressions that stand directly in it changed."""
    new: dict[str, Any] = {}
    match s:
        case Declare():
            new = {"init": None if s.init is None else change(s.init), "dims": tuple(map(change, s.dims))}
        case Assign():
            new = {"target": change(s.target), "value": change(s.value)}
        case ExprStmt():
            new = {"expr": change(s.expr)}
        case If() | While():
            new = {"test": change(s.test)}
        case For():
            new = {"start": change(s.start), "bound": change(s.bound), "step": change(s.step)}
        case Return():
            new = {"value": None if s.value is None else change(s.value)}
    return dataclasses.replace(s, **new) if new else s


def with_blocks(s: S, change: Callable[[Block], Block]) -> S:
    """The statement with its nested statement lists changed; the very same one where that changes nothing."""
    names = BLOCKS.get(type(s))
    if names is None:
        return s
    new: dict[str, Any] = {name: change(getattr(s, name)) for name in names}
    return dataclasses.replace(s, **new) if any(v is not getattr(s, k) for k, v in new.items()) else s


# ---------------------------------------------------------------- top-down

Change = Callable[[Expr], Expr | None]


@overload
def rewrite(node: Expr, change: Change) -> Expr: ...
@overload
def rewrite(node: S, change: Change) -> S: ...
@overload
def rewrite(node: Block, change: Change) -> Block: ...
def rewrite(node: Any, change: Change) -> Any:
    """The node (expression, statement or statements) with ``change`` applied top-down: where it gives an expression,
    that stands there and is not looked into again; where it gives None, the parts are visited."""
    if isinstance(node, tuple):
        return tuple(rewrite(s, change) for s in node)
    if isinstance(node, Stmt):
        return with_blocks(with_exprs(node, lambda e: rewrite(e, change)), lambda block: rewrite(block, change))
    new = change(node)
    return new if new is not None else with_parts(node, lambda e: rewrite(e, change))


@overload
def substitute(node: Expr, values: Mapping[str, Expr]) -> Expr: ...
@overload
def substitute(node: S, values: Mapping[str, Expr]) -> S: ...
@overload
def substitute(node: Block, values: Mapping[str, Expr]) -> Block: ...
def substitute(node: Any, values: Mapping[str, Expr]) -> Any:
    """The node with names replaced; names inside opaque text are not. Declared names and loop variables keep their
    spelling, unless they map to a Name (a renaming)."""
    if isinstance(node, Expr):
        return rewrite(node, lambda e: values.get(e.text) if isinstance(e, Name) else None)
    if isinstance(node, tuple):
        return tuple(substitute(s, values) for s in node)
    node = with_exprs(node, lambda e: substitute(e, values))
    match node:
        case Declare(name=old) if isinstance(new := values.get(old), Name):
            node = dataclasses.replace(node, name=new.text)
        case For(var=old) if isinstance(new := values.get(old), Name):
            node = dataclasses.replace(node, var=new.text)
    return with_blocks(node, lambda block: substitute(block, values))


def replace_stmt(stmts: Block, old: Stmt, new: Iterable[Stmt]) -> Block:
    """The statements with the very statement ``old`` (by identity, at any depth) replaced by ``new``."""
    found: list[Stmt] = []
    replacement = tuple(new)
    for s in stmts:
        if s is old:
            found.extend(replacement)
        else:
            found.append(with_blocks(s, lambda block: replace_stmt(block, old, replacement)))
    same = len(found) == len(stmts) and all(a is b for a, b in zip(found, stmts, strict=True))
    return stmts if same else tuple(found)


# ---------------------------------------------------------------- bottom-up


def map_expr(e: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with ``change`` applied to every subexpression, innermost first."""
    return change(with_parts(e, lambda part: map_expr(part, change)))


def map_own_exprs(s: S, change: Callable[[Expr], Expr]) -> S:
    """The statement with :func:`map_expr` applied to the expressions directly in it."""
    return with_exprs(s, lambda e: map_expr(e, change))


def map_stmts(
    stmts: Block, change: Callable[[Stmt], Stmt | Iterable[Stmt]], expr: Callable[[Expr], Expr] | None = None
) -> Block:
    """The statements with ``change`` applied to each, innermost first; it may return several, or none.

    ``expr``, when given, is first applied to every expression by :func:`map_expr`.
    """
    found: list[Stmt] = []
    for s in stmts:
        new = change(with_blocks(s if expr is None else map_own_exprs(s, expr), lambda b: map_stmts(b, change, expr)))
        found.extend([new] if isinstance(new, Stmt) else new)
    return tuple(found)


def map_jumps(stmts: Block, change: Callable[[Jump], Iterable[Stmt]]) -> Block:
    """The statements with ``change`` applied to each ``break`` and ``continue`` that acts on the loop around them."""
    found: list[Stmt] = []
    for s in stmts:
        if isinstance(s, Jump):
            found.extend(change(s))
        else:
            found.append(s if isinstance(s, For | While) else with_blocks(s, lambda b: map_jumps(b, change)))
    return tuple(found)


def map_exprs(stmts: Block, change: Callable[[Expr], Expr]) -> Block:
    """The statements with ``change`` applied to every expression, innermost first."""
    return map_stmts(stmts, lambda s: s, change)
