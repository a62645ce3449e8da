"""Conditions on indices that the conditions around them decide."""

from __future__ import annotations

from fsr.computation.expression import Affine, Case, Expr, children, rebuilt

# A difference of indices and sizes without its constant, and between which values it is known to lie.
_Known = dict[tuple[tuple[str, int], ...], tuple[float, float]]


def without_implied(e: Expr, known: _Known | None = None) -> Expr:
    """The expression without branches that no point takes: ``a if i <= 0 else b`` where ``i <= 0`` holds already is a.
    Dimensions bound within are told apart by their names, which no other has."""
    known = known or {}
    if not isinstance(e, Case):
        return rebuilt(e, tuple(without_implied(part, known) for part in children(e)))
    terms, constant = _difference(e.left, e.right)  # holds where terms + constant <= 0
    low, high = known.get(terms, (float("-inf"), float("inf")))
    if high <= -constant:
        return without_implied(e.yes, known)
    if low > -constant:
        return without_implied(e.no, known)
    yes = without_implied(e.yes, {**known, terms: (low, min(high, -constant))})
    no = without_implied(e.no, {**known, terms: (max(low, 1 - constant), high)})
    return yes if yes == no else Case(e.left, e.right, yes, no)


def _difference(left: Affine, right: Affine) -> tuple[tuple[tuple[str, int], ...], int]:
    total = dict(left.terms)
    for name, k in right.terms:
        total[name] = total.get(name, 0) - k
    return tuple(sorted((n, k) for n, k in total.items() if k)), left.constant - right.constant
