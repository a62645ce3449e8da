"""Loops: what head and body must be for one to count, and which are in no other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from fsr.source.form import (
    Assign,
    Binary,
    Comment,
    Declare,
    Expr,
    For,
    If,
    Jump,
    Name,
    OpaqueStmt,
    Scope,
    Stmt,
    Unary,
    While,
)
from fsr.source.walk import blocks_of

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}


def has_continue(body: tuple[Stmt, ...]) -> bool:
    """Whether a ``continue`` in these statements would act on the loop around them (opaque text may hold one)."""
    for statement in body:
        match statement:
            case Jump("continue"):
                return True
            case If(_, then, orelse) if has_continue(then) or has_continue(orelse):
                return True
            case Scope(inner) if has_continue(inner):
                return True
            case OpaqueStmt(text) if re.search(r"\bcontinue\b", text):
                return True
    return False


def without_continue(body: tuple[Stmt, ...]) -> tuple[Stmt, ...] | None:
    """The statements of a turn with what follows a branch that ends the turn in its other branch; None where a
    ``continue`` is anything but the end of a branch, of the last one perhaps."""
    for at, s in enumerate(body):
        if s == Jump("continue"):
            return body[:at]
        if not has_continue((s,)):
            continue
        rest = body[at + 1 :]
        match s:
            case If(_, (*then, Jump("continue")), orelse):
                parts = without_continue(tuple(then)), without_continue((*orelse, *rest))
            case If(_, then, (*orelse, Jump("continue"))):
                parts = without_continue((*then, *rest)), without_continue(tuple(orelse))
            case If(_, then, orelse) if all(isinstance(x, Comment) for x in rest):
                parts = without_continue(then), without_continue(orelse)
            case _:
                return None
        yes, no = parts
        return None if yes is None or no is None else (*body[:at], replace(s, then=yes, orelse=no))
    return body


Counted = tuple[str | None, str, Expr, str, Expr, Expr]


def counted_parts(init: list[Stmt], test: Expr, update: list[Stmt]) -> Counted | None:
    """``(type, var, start, relation, bound, step)`` when the parts make a counted loop."""
    match init:
        case [Declare(type=type_, name=var, init=start, dims=())] if start is not None:
            declared: str | None = type_
        case [Assign(target=Name(var), op="=", value=start)]:
            declared = None
        case _:
            return None
    match test:
        case Binary(op, Name(name), bound) if name == var and op in _FLIPPED:
            relation = op
        case Binary(op, bound, Name(name)) if name == var and op in _FLIPPED:
            relation = _FLIPPED[op]
        case _:
            return None
    step = _step(var, update)
    return None if step is None else (declared, var, start, relation, bound, step)


def _step(var: str, update: list[Stmt]) -> Expr | None:
    match update:
        case [Assign(target=Name(name), op="+=", value=step)] if name == var:
            return step
        case [Assign(target=Name(name), op="-=", value=step)] if name == var:
            return Unary("-", step)
        case [Assign(target=Name(name), op="=", value=Binary("+", Name(left), step))] if name == left == var:
            return step
        case [Assign(target=Name(name), op="=", value=Binary("-", Name(left), step))] if name == left == var:
            return Unary("-", step)
    return None


def outermost_loops(stmts: Iterable[Stmt]) -> Iterator[For | While]:
    """Every loop that is in no other, in order."""
    for s in stmts:
        if isinstance(s, For | While):
            yield s
        else:
            for block in blocks_of(s):
                yield from outermost_loops(block)
