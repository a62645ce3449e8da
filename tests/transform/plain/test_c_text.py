"""Expressions as text: the order of what is multiplied and added, and 16 bits."""

from __future__ import annotations

import pytest

from fsr.computation.canonical import ordered
from fsr.computation.computation import Computation, Statement
from fsr.computation.expression import Affine, Case, Const, Expr, Fold, Load, Number, Op, Remainder
from fsr.computation.order import order_shows
from fsr.transform.plain.c_text import NotPlain, Writer


def index(name: str = "", constant: int = 0) -> Number:
    return Number(Affine(((name, 1),) if name else (), constant), "int64")


def affine(value: Affine) -> str:
    return " + ".join([*(name for name, _ in value.terms), *([str(value.constant)] if value.constant else [])]) or "0"


def written(e: Expr) -> str:
    extents = {"d": ("n", "2"), "x": ("n", "2"), "w": ("2",), "s": ("n",), "h": ("n",), "z": ("n",)}
    return Writer(affine, extents, {name: name for name in extents}, str).text(e)


X = Load("x", (index("i"), index("j")), "float32")
W = Load("w", (index("j"),), "float32")
S = Load("s", (index("i"),), "float32")
H = Load("h", (index("i"),), "float16")


def test_an_element_is_scaled_before_it_is_weighted() -> None:
    product = ordered(Op("prod", (W, Op("sqrt", (S,)), X)))
    assert written(product) == "(x[i * 2 + j] * sqrtf(s[i]) * w[j])"


def test_a_square_keeps_both_factors() -> None:
    centred = Op("sum", (X, Op("neg", (S,))))
    for factor, text in ((X, "x[i * 2 + j]"), (centred, "(x[i * 2 + j] - s[i])")):
        assert written(Op("prod", (factor, factor))) == f"({text} * {text})"
        assert written(Op("prod", (factor, S, factor))) == f"({text} * s[i] * {text})"


def test_another_element_comes_after_what_scales_the_centred_one() -> None:
    centred = Op("sum", (X, Op("neg", (S,))))
    product = ordered(Op("prod", (Load("d", X.indices, "float32"), W, centred, Op("sqrt", (S,)))))
    assert written(product) == "((x[i * 2 + j] - s[i]) * sqrtf(s[i]) * w[j] * d[i * 2 + j])"


def test_what_scales_rows_comes_before_what_weights_columns() -> None:
    centred = Op("sum", (X, Op("neg", (S,))))
    product = ordered(Op("prod", (W, Load("z", S.indices, "float32"), centred)))
    assert written(product) == "((x[i * 2 + j] - s[i]) * z[i] * w[j])"


def test_sums_of_products_keep_the_order_of_the_arguments() -> None:
    left, right = (Op("prod", (Load("w", (index("", at),), "float32"), S)) for at in (0, 1))
    assert written(ordered(Op("sum", (Op("neg", (right,)), left)))) == "((s[i] * w[0]) - (s[i] * w[1]))"


def test_terms_of_either_side_of_a_condition_are_two_sums() -> None:
    j, zero = Affine((("j", 1),)), Const(0.0, "float32")
    found = ordered(
        Op("sum", (Case(j, Affine((), 0), X, zero), Case(j, Affine((), 0), S, zero), Case(j, Affine((), 0), zero, W)))
    )
    assert written(found) == "(j <= 0 ? (x[i * 2 + j] + s[i]) : w[j])"


def test_what_is_left_of_a_negative_number_is_not_negative() -> None:
    assert written(Number(Remainder(Affine((("j", 1),), -1), 8), "int64")) == "(((j + -1) % 8 + 8) % 8)"
    assert written(Number(Remainder(Affine((("j", 1),), 1), 8), "int64")) == "((j + 1) % 8)"


def test_a_neighbour_on_a_ring_takes_no_division() -> None:
    """Where the dimension stays below the divisor; a place that is further on, or on another ring, takes one."""
    ring = Writer(affine, {"x": ("2", "8")}, {"x": "x"}, str, domain={"j": "8"})
    left, right, far = (Number(Remainder(Affine((("j", 1),), by), 8), "int64") for by in (-1, 1, 2))
    assert ring.text(Load("x", (index("i"), left), "float32")) == "x[i * 8 + (j + -1 < 0 ? 8 - 1 : j + -1)]"
    assert ring.text(Load("x", (index("i"), right), "float32")) == "x[i * 8 + (j + 1 < 8 ? j + 1 : 0)]"
    assert ring.text(far) == "((j + 2) % 8)"
    assert ring.text(Number(Remainder(Affine((("j", 1),), 1), 7), "int64")) == "((j + 1) % 7)"


def test_halves_are_compared_as_floats() -> None:
    assert written(Op("gt", (H, Const(0.5, "float16")))) == "((float)h[i] > 0.5f)"
    assert written(Const(0.5, "float16")) == "__half(0.5f)"


def test_a_sum_of_rounded_values_has_an_order_that_shows() -> None:
    assert order_shows(computed(Fold("sum", (("k", Affine((("n", 1),))),), X)))
    assert order_shows(computed(Op("sum", (X, W, S))))
    assert order_shows(computed(Op("sum", (Op("prod", (X, W)), Op("prod", (S, W))))))
    assert not order_shows(computed(Op("sum", (Op("prod", (X, W)), S))))
    assert not order_shows(computed(Fold("max", (("k", Affine((("n", 1),))),), X)))
    assert not order_shows(computed(Fold("sum", (("k", Affine((("n", 1),))),), Load("c", (index("k"),), "int32"))))


def computed(e: Expr) -> Computation:
    place = (index("i"), index("j"))
    return Computation(("n",), (), (Statement("map", "y", (("i", "n"), ("j", "2")), e, place),))


def test_factors_are_bracketed_as_in_the_source() -> None:
    factors = tuple(Load("s", (index("i", n),), "float32") for n in range(4))
    assert written(Op("prod", factors, ((3, 0), (1, 2)))) == "((s[i + 3] * s[i]) * (s[i + 1] * s[i + 2]))"
    assert written(Op("prod", factors, (3, (0, (2, 1))))) == "(s[i + 3] * (s[i] * (s[i + 2] * s[i + 1])))"


def test_an_order_of_more_factors_than_are_left_is_none() -> None:
    factors = tuple(Load("s", (index("i", n),), "float32") for n in range(2))
    assert written(Op("prod", factors, (2, (0, 1)))) == written(Op("prod", factors))


def test_an_unsigned_element_is_compared_with_what_has_no_sign() -> None:
    byte = Load("s", (index("i"),), "uint8")
    assert written(Op("eq", (byte, Const(0, "int8")))) == "(s[i] == 0)"
    for name, value in (("eq", -1), ("eq", 200), ("gt", 0)):
        with pytest.raises(NotPlain):
            written(Op(name, (byte, Const(value, "int8"))))


def test_an_index_that_ends_in_a_bracket_is_multiplied_as_a_whole() -> None:
    within, extents = "min(max(j, 0), m - 1)", {"v": ("n", "m", "p")}
    writer = Writer(affine, extents, {"v": "v"}, str, held={index("j"): within})
    element = Load("v", (Number(Affine((("i", 1),), 1), "int64"), index("j"), index("k")), "float32")
    assert writer.text(element) == f"v[((i + 1) * m + {within}) * p + k]"


@pytest.mark.parametrize("least", [Const(-(2**31), "int32"), Number(Affine((), -(2**31)), "int32")])
def test_the_least_int_is_an_int(least: Expr) -> None:
    """Of a number behind a minus the number alone has a type: of 2147483648 it is a wider one."""
    small = index("i")
    assert written(Op("min", (least, Number(small.index, "int32")))).count("(-2147483647 - 1)") == 1
