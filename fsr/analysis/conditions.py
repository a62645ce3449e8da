"""Conditions: their parts, their opposites, and the bounds that they give."""

from __future__ import annotations

from fsr.analysis.types import is_integer
from fsr.source.form import Binary, Call, Cast, Expr, Index, Literal, Name, OpaqueExpr, Unary
from fsr.source.walk import walk_expr

NEGATED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}


def negation(test: Expr) -> Expr:
    """The logical opposite, pushed inwards. (Comparisons of floating-point values are not inverted: NaN.)"""
    match test:
        case Unary("!" | "not", operand):
            return operand
        case Binary("&&" | "and", left, right):
            return Binary("||", negation(left), negation(right))
        case Binary("||" | "or", left, right):
            return Binary("&&", negation(left), negation(right))
        case Binary(op, left, right) if op in NEGATED and not (_may_be_floating(left) or _may_be_floating(right)):
            return Binary(NEGATED[op], left, right)
    return Unary("!", test)


def _may_be_floating(e: Expr) -> bool:
    """Whether a value may be a float: names are taken for integers, as what is compared with indices is."""
    match e:
        case Cast(kind, _) | Call(Name(kind), (_,)) if is_integer(kind):
            return False
    return any(isinstance(x, Index | Call | Cast | OpaqueExpr) or (isinstance(x, Literal) and "." in x.text)
               for x in walk_expr(e))  # fmt: skip


def upper_bound(test: Expr, name: str) -> Expr | None:
    """The exclusive bound B when the condition says ``name < B`` in one of its spellings; None otherwise."""
    match test:
        case Binary(op, Name(text), bound) if text == name:
            relation = op
        case Binary(op, bound, Name(text)) if text == name and op in MIRRORED:
            relation = MIRRORED[op]
        case _:
            return None
    return exclusive(bound, relation) if relation in ("<", "<=") else None


def exclusive(bound: Expr, relation: str) -> Expr:
    """The bound that something is less than which ``<`` or ``<=`` holds for."""
    return bound if relation == "<" else Binary("+", bound, Literal("1"))
