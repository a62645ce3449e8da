"""What neighbouring points share, in the order of the source."""

from __future__ import annotations

import itertools

import pytest

from fsr.computation.canonical import ordered
from fsr.computation.expression import Const, Load, Op
from fsr.transform.computed.shared_values import SharedValues
from fsr.transform.plain.c_text import Writer

NAMES = {name: name for name in "abc"}
A, B, C = (Load(name, (), "float32") for name in NAMES)
ORDERS = list(itertools.permutations((A, B, C)))


def text(value: Op, before: Op) -> str:
    """The value's text, in a graph that holds another value already, and so numbers its operands as that has them."""
    values = SharedValues({})
    values.add(before, {})
    return values.assigned([("made", values.add(value, {}))], Writer(str, {}, NAMES, str))[-1]


@pytest.mark.parametrize("before", ORDERS)
@pytest.mark.parametrize(
    ("order", "wanted"),
    [((0, (1, 2)), "made = a * (b * c);"), ((2, (0, 1)), "made = c * (a * b);"), ((1, 0, 2), "made = b * a * c;")],
)
def test_factors_are_multiplied_as_the_source_has_them(before, order, wanted):
    value = ordered(Op("prod", (A, B, C), order))
    assert text(value, Op("max", before)) == wanted


@pytest.mark.parametrize("before", ORDERS)
def test_terms_are_added_as_the_source_has_them(before):
    value = ordered(Op("sum", (B, A, C)))
    assert text(value, Op("max", before)) == "made = b + a + c;"


def test_a_part_that_is_there_twice_has_a_place_each():
    twice = Op("prod", (Op("exp", (A,)), B, Op("exp", (A,)), Const(2.0, "float32")), ((0, 2), (1, 3)))
    assert text(twice, Op("max", (B, A))) == "made = ($t1 * $t1) * (b * 2.0f);"
