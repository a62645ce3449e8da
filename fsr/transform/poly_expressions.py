"""Polynomials as expressions of a kernel."""

from __future__ import annotations

from functools import reduce

from fsr.analysis.polynomial import Poly
from fsr.source.form import Binary, Cast, Expr, Member, Name, OpaqueExpr, Unary, number

WIDE = "long long"


def _symbol(name: str) -> Expr:
    if name.startswith("{"):
        return OpaqueExpr(f"({name[1:-1]})")
    base, _, member = name.partition(".")
    return Member(Name(base), member) if member else Name(base)


def expression_of(value: Poly, wide: bool = False) -> Expr:
    """A polynomial as an expression, what is taken away last; ``wide``: products in 64 bits."""
    found: Expr | None = None
    for names, count in sorted(value.terms, key=lambda t: (t[1] < 0, -len(t[0]), t[0])):
        factors: list[Expr] = [_symbol(n) for n in names]
        if wide and factors:
            factors[0] = Cast(WIDE, factors[0])
        factors += [number(abs(count))] if abs(count) != 1 or not factors else []
        term = reduce(lambda some, factor: Binary("*", some, factor), factors)
        if found is None:
            found = Unary("-", term) if count < 0 else term
        else:
            found = Binary("-" if count < 0 else "+", found, term)
    return number(0) if found is None else found
