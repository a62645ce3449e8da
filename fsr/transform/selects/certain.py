"""What is evaluated for certain where statements are begun with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from fsr.source.form import (
    Assign,
    Call,
    Comment,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Scope,
)  # fmt: skip
from fsr.source.sequenced import chooses
from fsr.source.walk import Block, contains_return, exprs_of, jumps, subexprs, walk_expr, walk_stmts
from fsr.transform.details.constant_loops import turns_of

_EXIT = re.compile(r"\basm\b|__asm|\bexit\b|__trap")
_NOT_EVALUATED = (Name("sizeof"), Name("alignof"), Name("decltype"))


def certain(body: Block, known: Mapping[str, int]) -> Iterator[tuple[Expr, Mapping[str, int]]]:
    """The expressions that are evaluated whenever the statements are begun with, up to where these may be left, and
    what is known there: within a loop of its first turn."""
    for s in body:
        match s:
            case Declare() | Assign() | ExprStmt():
                for e in exprs_of(s):
                    yield from ((part, known) for part in _evaluated(e))
                    if any(_EXIT.search(x.text) for x in walk_expr(e) if isinstance(x, OpaqueExpr | Name)):
                        return
            case If():
                yield from ((part, known) for part in _evaluated(s.test))
            case For():
                turns = None if s.var in known else turns_of(s, known)
                if turns:
                    yield from certain(s.body, {**known, s.var: turns[0]})
            case Scope():
                yield from certain(s.body, known)
            case Comment():
                pass
            case _:
                return
        if contains_return((s,)) or jumps((s,)) or any(isinstance(x, OpaqueStmt) for x in walk_stmts((s,))):
            return


def _evaluated(e: Expr) -> Iterator[Expr]:
    """An expression and what is evaluated whenever it is."""
    yield e
    if isinstance(e, Call) and e.callee in _NOT_EVALUATED:
        return
    parts = subexprs(e)
    for part in parts[:1] if chooses(e) else parts:
        yield from _evaluated(part)
