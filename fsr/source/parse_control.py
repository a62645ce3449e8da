"""``switch`` and ``do`` of a syntax tree, as branches and loops that the loop-nest form has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fsr.hardware.c_types import BY_SPELLING
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Comment,
    Declare,
    Expr,
    For,
    If,
    Jump,
    Literal,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Return,
    Scope,
    Span,
    Stmt,
    Ternary,
    Unary,
    While,
)  # fmt: skip
from fsr.source.loop_heads import has_continue
from fsr.source.types import plain_type
from fsr.source.walk import breaks, integer, names_assigned, names_in, walk_expr, walk_stmts

if TYPE_CHECKING:
    from tree_sitter import Node

_UP = {"<": ">", "<=": ">="}  # how a bound lies to the start of a loop that runs at all
# What makes a literal convert a bound as the counter does, by the counter's type.
_SUFFIX = {
    spelling: {"int32": "", "int64": "", "uint32": "u"}[type_.dtype]
    for spelling, type_ in BY_SPELLING.items()
    if type_.dtype in ("int32", "int64", "uint32")
}


# ---------------------------------------------------------------- switch


def branches(subject: Expr, cases: Sequence[tuple[Expr | None, tuple[Stmt, ...]]], span: Span) -> If | None:
    """A ``switch`` as branches in turn: each case its value, None of ``default``, and its statements. None where one
    case goes on into the next, or a ``break`` stands elsewhere than at an end."""
    if any(isinstance(e, Call | OpaqueExpr) for e in walk_expr(subject)):
        return None  # asked once
    found, rest = list[tuple[Expr, tuple[Stmt, ...]]](), tuple[Stmt, ...]()
    tests, other = list[Expr](), False  # of the labels before the statements
    for n, (value, body) in enumerate(cases):
        tests += [] if value is None else [Binary("==", subject, value)]
        other |= value is None
        if not [s for s in body if not isinstance(s, Comment)] and n + 1 < len(cases):
            continue
        whole = _without_end(body, last=n + 1 == len(cases))
        if whole is None or breaks(whole) or any(_may_jump(s) for s in walk_stmts(whole)):
            return None
        if other:
            rest = whole
        else:
            found.append((_any(tests), whole))
        tests, other = [], False
    return _chain(found, rest, span)


def _chain(found: Sequence[tuple[Expr, tuple[Stmt, ...]]], rest: tuple[Stmt, ...], span: Span) -> If | None:
    whole = rest
    for test, body in reversed(found):
        whole = (If(test, body, whole, span=span),)
    return whole[0] if found and isinstance(whole[0], If) else None


def _any(tests: Sequence[Expr]) -> Expr:
    whole = tests[0]
    for test in tests[1:]:
        whole = Binary("||", whole, test)
    return whole


def _without_end(body: tuple[Stmt, ...], *, last: bool) -> tuple[Stmt, ...] | None:
    """The statements of a case without the ``break`` that ends it; None where it goes on into the next."""
    said = [s for s in body if not isinstance(s, Comment)]
    match said[-1:]:
        case [Jump("break") as end]:
            return tuple(s for s in body if s is not end)
        case [Scope(inner, span)]:
            within = _without_end(inner, last=last)
            return None if within is None else (*(s for s in body if s is not said[-1]), Scope(within, span))
        case [Return() | Jump("continue")]:
            return body
    return body if last else None


def _may_jump(s: Stmt) -> bool:
    return isinstance(s, OpaqueStmt) and "break" in s.text


# ---------------------------------------------------------------- do


def repeated(body: tuple[Stmt, ...], test: Expr, before: Stmt | None, span: Span) -> list[Stmt] | None:
    """``do … while (test)``: a counted loop that turns at least once where it counts from a number that the statement
    ``before`` sets, or else one that is left at its end; the block alone where it turns once, as the bodies of macros
    do. None where a ``continue`` would miss the test."""
    if has_continue(body):
        return None
    if _is_false(test) and not breaks(body) and not any(_may_jump(s) for s in walk_stmts(body)):
        return [Scope(body, span)]
    counted = _counted(body, test, before, span)
    end = If(_negated(test), (Jump("break"),))
    return [counted or While(Literal("true"), (*body, end), (), span)]


def _is_false(test: Expr) -> bool:
    return integer(test) == 0 or test == Literal("false")


def _negated(test: Expr) -> Expr:
    return test.operand if isinstance(test, Unary) and test.op == "!" else Unary("!", test)


def _counted(body: tuple[Stmt, ...], test: Expr, before: Stmt | None, span: Span) -> For | None:
    match before:
        case Declare(type=type_, name=var, init=Literal() as begin, dims=()):
            start, suffix = integer(begin), _SUFFIX.get(plain_type(type_, {}))
        case _:
            return None
    match test, body[-1:]:
        case Binary(("<" | "<=") as relation, Name(name), bound), [Assign(Name(last), "+=", Literal("1"))]:
            inner, changed = body[:-1], names_assigned(body[:-1])
        case _:
            return None
    if start is None or suffix is None or {name, last} != {var} or names_in(bound) & (changed | {var}):
        return None
    if var in changed or breaks(inner) or any(isinstance(e, Call | OpaqueExpr) for e in walk_expr(bound)):
        return None
    from_, least = (Literal(f"{n}{suffix}") for n in (start, start + (relation == "<")))
    limit = Ternary(Binary(_UP[relation], bound, from_), bound, least)
    return For(None, var, Literal(str(start)), relation, limit, Literal("1"), inner, (), span)


# ---------------------------------------------------------------- reading


def cases_of(
    node: Node, value: Callable[[Node], Expr], block: Callable[[list[Node], int, int], tuple[Stmt, ...]]
) -> list[tuple[Expr | None, tuple[Stmt, ...]]] | None:
    """The cases between the braces of a ``switch``, in order; None where something else stands there."""
    found = list[tuple[Expr | None, tuple[Stmt, ...]]]()
    for child in node.named_children:
        if child.type == "comment":
            continue
        if child.type != "case_statement" or child.has_error:
            return None
        label = child.child_by_field_name("value")
        colon = next((c for c in child.children if c.type == ":"), None)
        if colon is None:
            return None
        rest = [c for c in child.children if c.start_byte >= colon.end_byte]
        found.append((None if label is None else value(label), block(rest, colon.end_byte, child.end_byte)))
    return found
