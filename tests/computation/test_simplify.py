"""Branches for a first element that the general branch covers."""

from __future__ import annotations

import operator

import pytest

from fsr.computation.expression import Affine, Case, Const, Expr, Fold, Load, Number, Op
from fsr.computation.simplify import unpeeled
from fsr.computation.types import neutral, type_of


def at(*dims: str) -> tuple[Expr, ...]:
    return tuple(Number(Affine(((d, 1),)), "int64") for d in dims)


def up_to(op: str, body: Expr) -> Fold:
    return Fold(op, (("k0", Affine((("i", 1),), 1)),), body)


FIRST = Load("v", (Number(Affine(), "int64"),), "float32")
X, V = Load("x", at("k0"), "float32"), Load("v", at("k0"), "float32")
POWER = Op("exp", (Op("sum", (X, Op("neg", (up_to("max", X),)))),))
WEIGHTED = up_to("sum", Op("prod", (V, Op("div", (POWER, up_to("sum", POWER))))))
IS_FIRST = Affine((("i", 1),)), Affine()


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool"])
def test_what_changes_nothing_is_of_the_type(dtype: str) -> None:
    value = {"float32": -2.5, "int32": -7, "uint8": 200, "bool": True}[dtype]
    made = {op: neutral(op, dtype) for op in ("sum", "prod", "max", "min")}
    assert {type_of(one) for one in made.values()} == {dtype}
    joined = {"sum": operator.or_ if dtype == "bool" else operator.add, "prod": operator.mul, "max": max, "min": min}
    assert all(joined[op](value, one.value) == value for op, one in made.items())


def test_a_softmax_of_one_element_is_one():
    assert unpeeled(Case(*IS_FIRST, FIRST, WEIGHTED)) == WEIGHTED


def test_a_branch_that_says_something_else_stays():
    other = Case(*IS_FIRST, Op("prod", (FIRST, Const(2.0, "float32"))), WEIGHTED)
    assert unpeeled(other) == other


def test_a_dimension_that_is_at_most_the_first_is_zero_too():
    weight = Op("div", (Op("exp", (Op("sum", (Load("x", at("j"), "float32"), Op("neg", (up_to("max", X),)))),)),
                        up_to("sum", POWER)))  # fmt: skip
    beyond = Affine((("i", 1),)), Affine((("j", 1),), -1)
    peeled = Case(*beyond, Const(0.0, "float32"), Case(*IS_FIRST, Const(1.0, "float32"), weight))
    assert unpeeled(peeled) == Case(*beyond, Const(0.0, "float32"), weight)
    alone = Case(*IS_FIRST, Const(1.0, "float32"), weight)
    assert unpeeled(alone) == alone
