"""What is left of an expression in the middle of its domain, and the tests that say where that is."""

from __future__ import annotations

from fsr.computation.expression import Affine, Case, Const, Expr, Load, Number
from fsr.transform.computed.shifting import Inner

TIMED = {"h": 512, "w": 512}


def affine(constant: int = 0, **terms: int) -> Affine:
    return Affine(tuple(sorted(terms.items())), constant)


def at(row: Affine, column: Affine) -> Expr:
    return Load("x", (Number(row, "int64"), Number(column, "int64")), "float32")


def inner() -> Inner:
    return Inner({"j": 4, "i": 2}, TIMED, {"i": 256, "j": 256})


def holds(found: Inner, **values: int) -> bool:
    """Whether a tile at that place passes the tests."""
    return all(sum(k * values[n] for n, k in terms) + most <= 0 for terms, most in found.below.items())


OWN, LEFT, CORNER = at(affine(i=1), affine(j=1)), at(affine(i=1), affine(-1, j=1)), at(affine(), affine())
NOUGHT = Const(0.0, "float32")


def test_edges_are_decided_and_sizes_too() -> None:
    found = inner()
    edge = Case(affine(j=1), affine(), OWN, Case(affine(w=1), affine(1), CORNER, LEFT))
    assert found.of(edge) == LEFT
    assert holds(found, i=0, j=1, h=9, w=2)
    assert not holds(found, i=0, j=0, h=9, w=2)
    assert not holds(found, i=0, j=1, h=9, w=1)


def test_either_side_of_a_diagonal_is_the_middle() -> None:
    found = inner()
    corner = Case(affine(i=1), affine(), CORNER, NOUGHT)
    above = Case(affine(i=1), affine(-1, j=1), corner, NOUGHT)
    below = Case(affine(j=1), affine(-1, i=1), Case(affine(j=1), affine(), CORNER, NOUGHT), NOUGHT)
    assert found.of(above) == NOUGHT == found.of(below)
    assert holds(found, i=100, j=7, h=512, w=512)
    assert holds(found, i=7, j=100, h=512, w=512)
    apart = Case(affine(i=1), affine(j=1), OWN, LEFT)
    assert found.of(apart) == apart
