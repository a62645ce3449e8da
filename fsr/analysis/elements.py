"""Which accesses of a loop body touch neighbouring elements, and which happen in every iteration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fsr.analysis import accesses
from fsr.analysis.calls import is_load
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
    Return,
    Scope,
    Stmt,
    Ternary,
    Unary,
)
from fsr.source.walk import exprs_of, names_in

WIDEST_BYTES = 16  # of one load or store


def element(expr: Expr) -> tuple[str, Expr] | None:
    """Pointer and index of ``p[i]``, ``*(p + i)``, ``__ldg(&p[i])``, ``__ldg(p + i)``; None for anything else."""
    reached = Unary("*", expr.args[0]) if isinstance(expr, Call) and is_load(expr) and len(expr.args) == 1 else expr
    place = accesses.element(reached, names_in(reached))
    return (place[0], place[1][0]) if place is not None and len(place[1]) == 1 else None


def always(body: Iterable[Stmt]) -> Iterator[tuple[str, tuple[str, Expr]]]:
    """``(kind, (pointer, index))`` of the accesses made whenever the statements run, kind 'read' or 'write', in
    order; those under a condition, in an inner loop or after a ``continue`` are left out."""
    for stmt in body:
        match stmt:
            case Jump() | Return():
                return
            case If(test=test, then=then, orelse=orelse):
                yield from _reads(test)
                if _may_skip((*then, *orelse)):
                    return
            case Scope(body=inner):
                yield from always(inner)
                if _may_skip(inner):
                    return
            case Assign(target=target, op=op, value=value):
                yield from _reads(value)
                place = element(target)
                if place is None:
                    yield from _reads(target)
                    continue
                yield from _reads(place[1])
                if op != "=":
                    yield "read", place
                yield "write", place
            case Declare() | ExprStmt():
                for expr in exprs_of(stmt):
                    yield from _reads(expr)
            case For(start=start):
                yield from _reads(start)


def _may_skip(body: Iterable[Stmt]) -> bool:
    for stmt in body:
        match stmt:
            case Jump() | Return():
                return True
            case If(then=then, orelse=orelse) if _may_skip((*then, *orelse)):
                return True
            case Scope(body=inner) if _may_skip(inner):
                return True
    return False


def _reads(expr: Expr) -> Iterator[tuple[str, tuple[str, Expr]]]:
    place = element(expr)
    if place is not None:
        yield from _reads(place[1])
        yield "read", place
        return
    match expr:
        case Ternary(test=test):
            yield from _reads(test)
        case Binary(op="&&" | "||", left=left):
            yield from _reads(left)
        case Binary(left=left, right=right):
            yield from _reads(left)
            yield from _reads(right)
        case Unary(operand=inner) | Cast(operand=inner):
            yield from _reads(inner)
        case Call(args=args):
            for arg in args:
                yield from _reads(arg)
        case Index(base=base, index=index):
            yield from _reads(base)
            yield from _reads(index)
