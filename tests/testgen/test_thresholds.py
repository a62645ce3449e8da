"""Cases at the floating numbers that an original names."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.contract.model import Argument, Constraints, Contract, Size
from fsr.records import Candidate, Plan, Role
from fsr.testgen.aimed import threshold_cases
from fsr.testgen.values import build

X = Argument("x", "float32", Role.IN, ("n",), constraints=Constraints(low="0", high="1"))
CONTRACT = Contract("k", (Size("n", 64, 4096, (4096,)),), (X,), Plan(()))
SOURCE = "__global__ void k(float *x, int n) { if (x[0] > 0.3f && n < 4096) x[0] -= 0.03; }"


@pytest.mark.parametrize("number", [0.3, 0.03])
def test_values_stand_at_them_next_to_them_and_come_to_them_by_products(number: float) -> None:
    found = [build(CONTRACT, c).arrays["x"] for c in threshold_cases(CONTRACT, Candidate(SOURCE, Plan(())), 1)]
    at = np.float32(number)
    beside = [a for a in found if (a == at).any() and ((a != at) & np.isclose(a, at, rtol=3e-7, atol=0)).any()]
    assert beside
    assert [a for a in found if {*np.unique(a).tolist()} == {0.0, float(at), 1.0}]


def test_values_stand_at_the_levels_of_a_scale_and_between_them() -> None:
    """``round`` and ``rint`` of 255 times a value differ in the middle between two levels alone."""
    source = "__global__ void k(float *x, int n) { x[0] = (int)(x[0] * 255 + 0.5f) >> 16; }"
    cases = [c for c in threshold_cases(CONTRACT, Candidate(source, Plan(())), 1) if c.family == "levels:255"]
    values = np.concatenate([build(CONTRACT, c).arrays["x"].astype(float) for c in cases]) * 510
    assert len(cases) > 1
    np.testing.assert_allclose(values, np.round(values), atol=1e-3)
    assert (np.round(values) % 2 == 1).any()
    assert (np.round(values) % 2 == 0).any()


def test_there_are_none_without_floating_arrays_or_numbers() -> None:
    whole = Contract("k", CONTRACT.sizes, (Argument("x", "int32", Role.IN, ("n",)),), Plan(()))
    assert not threshold_cases(whole, Candidate(SOURCE, Plan(())), 1)
    assert not threshold_cases(CONTRACT, Candidate("__global__ void k(float *x) { x[0] += 0.5f; }", Plan(())), 1)
