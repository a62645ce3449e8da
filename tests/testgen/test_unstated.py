"""A failing case says when its values are such as the contract alone allows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fsr.contract.model import Argument, Constraints, Contract, Size
from fsr.records import Launch, Plan, Role, ScalarValue
from fsr.testgen.unstated import unstated
from fsr.testgen.values import CaseData

PLAN = Plan((Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", ("x", "a", "y")),))


def told(values: list[float], scalar: float = 1.0, dtype: str = "float32", **limits: str) -> str:
    args = (
        Argument("x", dtype, Role.IN, ("n",), constraints=Constraints(**limits)),
        Argument("a", "float32", Role.SCALAR, ()),
        Argument("y", "float32", Role.OUT, ("n",)),
    )
    y = np.full(2, 1e30, np.float32)
    data = CaseData({"x": np.array(values, dtype), "y": y}, {"a": ScalarValue("float32", scalar)})
    return str(unstated(Contract("k", (Size("n", 1, 9, (9,)),), args, PLAN), data) or "")


@pytest.mark.parametrize("values", [[1.0, -3e30], [2.0, 1e-20], [math.inf, 4e18]])
def test_huge_and_tiny_values_of_an_argument_without_limits(values: list[float]) -> None:
    assert told(values).startswith(f"x holds {values[1]:.3g} here and has no limits in the contract")
    assert told(values, low="-1e31", high="1e31") == ""


def test_scalars_and_integers_too() -> None:
    assert told([1.0], scalar=1e20).startswith("a holds 1e+20")
    assert told([1.0, float(2**60)], dtype="int64").startswith("x holds 1.15e+18")


def test_ordinary_values_zeros_and_outputs_say_nothing() -> None:
    assert told([0.0, 1.0, -100.0, math.inf, math.nan]) == ""
