"""Branches that the conditions around them decide."""

from __future__ import annotations

from fsr.computation.expression import Affine, Case, Const, affine
from fsr.computation.implied import without_implied

ONE, TWO, THREE = (Const(float(n), "float32") for n in (1, 2, 3))


def at_most(name: str, limit: int, yes, no) -> Case:
    return Case(affine(name), Affine((), limit), yes, no)


def test_what_holds_already_and_what_cannot_hold_go():
    inner = at_most("i", 0, ONE, TWO)
    assert without_implied(at_most("i", 0, inner, THREE)) == at_most("i", 0, ONE, THREE)
    assert without_implied(at_most("i", 1, THREE, inner)) == at_most("i", 1, THREE, TWO)


def test_what_is_open_stays():
    for limit, other in ((0, 1), (3, 3)):
        e = at_most("i", 1, at_most("i", 0, ONE, TWO), at_most("i", 2, TWO, at_most("j", other, ONE, THREE)))
        assert without_implied(e) == e, limit


def test_two_equal_sides_are_one():
    assert without_implied(at_most("i", 4, at_most("i", 7, ONE, TWO), ONE)) == ONE


def test_a_difference_is_known_whichever_side_its_names_stand():
    inner = Case(Affine((("n", -1),), 0), Affine((("i", -1),), 2), ONE, TWO)  # i <= n + 2
    assert without_implied(Case(affine("i"), affine("n"), inner, THREE)) == Case(affine("i"), affine("n"), ONE, THREE)
