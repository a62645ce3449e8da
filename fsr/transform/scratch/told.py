"""What the tests around an expression tell of a loop's variable where it is evaluated: not the first one in the branch
for all columns but the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from fsr.analysis.conditions import MIRRORED, negation
from fsr.analysis.polynomial import Poly, constant
from fsr.source.form import Binary, Expr, If, Name, Stmt, Ternary, conjuncts
from fsr.source.walk import Block, blocks_of, exprs_of, subexprs

Tests = tuple[Expr, ...]


def tests_around(body: Block) -> Mapping[int, Tests]:
    """By the identity of each expression in statements, comparisons that hold where it is evaluated."""
    found: dict[int, Tests] = {}
    _block(body, (), found)
    return found


def narrowed_ends(
    var: str, ends: tuple[Poly, Poly], tests: Iterable[Expr], poly: Callable[[Expr], Poly]
) -> tuple[Poly, Poly]:
    """The first and the last value of a variable, where tests hold."""
    first, last = ends
    for test in tests:
        match test:
            case Binary(op, Name(text), other) if text == var and op in MIRRORED:
                first, last = _cut(op, poly(other), first, last)
            case Binary(op, other, Name(text)) if text == var and op in MIRRORED:
                first, last = _cut(MIRRORED[op], poly(other), first, last)
    return first, last


def _cut(op: str, value: Poly, first: Poly, last: Poly) -> tuple[Poly, Poly]:
    low, high = (value - first).value, (last - value).value
    if op == "!=":
        return first + constant(low == 0), last - constant(high == 0)
    if op in (">", ">=", "==") and low is not None:
        first = first + constant(max(low + (op == ">"), 0))
    if op in ("<", "<=", "==") and high is not None:
        last = last - constant(max(high + (op == "<"), 0))
    return first, last


def _block(body: Block, known: Tests, found: dict[int, Tests]) -> None:
    for s in body:
        for e in exprs_of(s):
            _expr(e, known, found)
        if isinstance(s, If):
            _block(s.then, (*known, *_true(s.test)), found)
            _block(s.orelse, (*known, *_false(s.test)), found)
        else:
            _others(s, known, found)


def _others(s: Stmt, known: Tests, found: dict[int, Tests]) -> None:
    for block in blocks_of(s):
        _block(block, known, found)


def _expr(e: Expr, known: Tests, found: dict[int, Tests]) -> None:
    # One object that stands at several places keeps what holds at all of them.
    found[id(e)] = tuple(t for t in found[id(e)] if t in known) if id(e) in found else known
    match e:
        case Ternary(test, yes, no):
            parts = [(test, known), (yes, (*known, *_true(test))), (no, (*known, *_false(test)))]
        case Binary("&&", left, right):
            parts = [(left, known), (right, (*known, *_true(left)))]
        case Binary("||", left, right):
            parts = [(left, known), (right, (*known, *_false(left)))]
        case _:
            parts = [(part, known) for part in subexprs(e)]
    for part, tests in parts:
        _expr(part, tests, found)


def _true(test: Expr) -> Tests:
    return conjuncts(negation(negation(test)))  # pushed inwards


def _false(test: Expr) -> Tests:
    return conjuncts(negation(test))
