"""Recognising reductions: variables that a loop only folds values into, in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Comment,
    Declare,
    Expr,
    For,
    If,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Stmt,
    Ternary,
)
from fsr.source.walk import Block, blocks_of, names_in, nodes, opaque_names

_CALLS = {
    "fmaxf": "max", "fmax": "max", "max": "max", "fminf": "min", "fmin": "min", "min": "min",
}  # fmt: skip
_FUSED = frozenset(["fmaf", "fma", "__fmaf_rn"])
_INFIX = {"+": "sum", "*": "product", "&": "and", "|": "or", "^": "xor"}
_KEPT = {"greatest": "min", "least": "max"}
_COMPARE = {">": "greatest", ">=": "greatest", "<": "least", "<=": "least"}


@dataclass(frozen=True, slots=True)
class Update:
    """One statement that folds a value into ``name``; ``uses`` counts the mentions of the name in it."""

    name: str
    operator: str
    uses: int


def update_of(stmt: Stmt) -> Update | None:
    """The fold that a statement makes, or None when it is something else."""
    match stmt:
        case Assign(target=Name(text=name), op=op, value=value):
            return _assignment(name, op, value)
        case If(test=test, then=then, orelse=()):
            body = [s for s in then if not isinstance(s, Comment)]
            match body:
                case [Assign(target=Name(text=name), op="=", value=value)]:
                    operator = _comparison(test, name, value)
                    return Update(name, operator, 2) if operator else None
    return None


def _assignment(name: str, op: str, value: Expr) -> Update | None:
    free = name not in names_in(value)
    if op in ("+=", "-=") and free:
        return Update(name, "sum", 1)
    if op in ("*=", "&=", "|=", "^=") and free:
        return Update(name, _INFIX[op[0]], 1)
    if op != "=":
        return None
    match value:
        case Binary(op=infix, left=Name(text=left), right=right) if (
            left == name and name not in names_in(right) and (infix in _INFIX or infix == "-")
        ):
            return Update(name, _INFIX.get(infix, "sum"), 2)
        case Binary(op=infix, left=left, right=Name(text=right)) if (
            right == name and name not in names_in(left) and infix in _INFIX
        ):
            return Update(name, _INFIX[infix], 2)
        case Call(callee=Name(text=callee), args=(a, b)) if callee in _CALLS:
            other = b if a == Name(name) else a if b == Name(name) else None
            if other is not None and name not in names_in(other):
                return Update(name, _CALLS[callee], 2)
        case Call(callee=Name(text=callee), args=(a, b, Name(text=last))) if (
            callee in _FUSED and last == name and name not in names_in(a) | names_in(b)
        ):
            return Update(name, "sum", 2)
        case Ternary(test=test, yes=yes, no=Name(text=kept)) if kept == name:
            operator = _comparison(test, name, yes)
            return Update(name, operator, 3) if operator else None
        case Ternary(test=test, yes=Name(text=kept), no=no) if kept == name:
            operator = _comparison(test, name, no)  # it keeps the name where the test holds: the other extreme
            return Update(name, _KEPT[operator], 3) if operator else None
    return None


def _comparison(test: Expr, name: str, value: Expr) -> str | None:
    """The operator of ``if (value > name) name = value``."""
    if name in names_in(value):
        return None
    match test:
        case Binary(op=op, left=left, right=Name(text=right)) if right == name and left == value:
            return _COMPARE.get(op)
        case Binary(op=op, left=Name(text=left), right=right) if left == name and right == value:
            flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, "")
            return _COMPARE.get(flipped)
    return None


def accumulators(body: Iterable[Stmt]) -> dict[str, str]:
    """Operator by name of the variables from outside that the statements do nothing else with than fold values into,
    all by that operator."""
    body = tuple(body)
    found: dict[str, set[str]] = {}
    uses: Counter[str] = Counter()
    for update in _updates(body):
        found.setdefault(update.name, set()).add(update.operator)
        uses[update.name] += update.uses
    mentioned = mentions(body)
    return {n: operators.pop() for n, operators in found.items() if len(operators) == 1 and mentioned[n] == uses[n]}


def mentions(body: Block) -> Counter[str]:
    """How often statements mention each name, declarations and opaque text included."""
    found: Counter[str] = Counter()
    for node in nodes(body):
        match node:
            case Name(text):
                found[text] += 1
            case OpaqueExpr(text) | OpaqueStmt(text):
                found.update(opaque_names(text))
            case Declare(name=name) | For(var=name):
                found[name] += 1
    return found


def _updates(body: Iterable[Stmt]) -> Iterator[Update]:
    for stmt in body:
        update = update_of(stmt)
        if update is not None:
            yield update
        else:
            for block in blocks_of(stmt):
                yield from _updates(block)
