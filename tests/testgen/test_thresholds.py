"""Cases at the floating numbers that an original names."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.contract.model import Argument, Constraints, Contract, Size
from fsr.records import Candidate, Case, Plan, Role
from fsr.testgen.aimed import length_cases, threshold_cases
from fsr.testgen.families import near
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


def test_so_they_do_at_what_scalars_always_are() -> None:
    """``low <= x && x <= high`` and ``fabs(x - middle) <= half`` differ at most there."""
    ends = [Argument(name, "float32", Role.SCALAR, value=v) for name, v in (("low", "-3.1"), ("high", "5"), ("n", "n"))]
    x = Argument("x", "float32", Role.IN, ("n",), constraints=Constraints(low="-9", high="9"))
    box = Contract("k", CONTRACT.sizes, (x, *ends), Plan(()))
    plain = Candidate("__global__ void k(float *x, float low, float high) { x[0] = low <= x[0]; }", Plan(()))
    found = [build(box, c).arrays["x"] for c in threshold_cases(box, plain, 1)]
    for number in np.float32([-3.1, 5.0]):
        ends_ = [np.nextafter(number, np.float32(end)) for end in (-9, 9)]
        assert any(np.isin([number, *ends_], a).all() for a in found)


def test_values_stand_at_the_levels_of_a_scale_and_between_them() -> None:
    """``round`` and ``rint`` of 255 times a value differ in the middle between two levels alone."""
    source = "__global__ void k(float *x, int n) { x[0] = (int)(x[0] * 255 + 0.5f) >> 16; }"
    cases = [c for c in threshold_cases(CONTRACT, Candidate(source, Plan(())), 1) if c.family == "levels:255"]
    values = np.concatenate([build(CONTRACT, c).arrays["x"].astype(float) for c in cases]) * 510
    assert len(cases) > 1
    np.testing.assert_allclose(values, np.round(values), atol=1e-3)
    assert (np.round(values) % 2 == 1).any()
    assert (np.round(values) % 2 == 0).any()


@pytest.mark.parametrize("number", [3.0, 4.0, -0.3, 76.8, 1e-3, 1.75])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_very_next_numbers_are_among_those_near_one(number: float, dtype: str) -> None:
    x = Argument("x", dtype, Role.IN, ("n",), constraints=Constraints(low="-100", high="100"))
    the = Contract("k", (Size("n", 256, 4096, (4096,)),), (x,), Plan(()))
    found = build(the, Case("a", (("n", 512),), near(number), 3)).arrays["x"]
    at = np.dtype(dtype).type(number)
    assert np.isin([at, np.nextafter(at, at.dtype.type(-200)), np.nextafter(at, at.dtype.type(200))], found).all()


def test_lengths_are_those_of_constants_of_the_file_and_beside_them() -> None:
    the = Contract("k", (Size("n", 1, 200, (64,)), Size("m", 1, 20, (8,))), (X,), Plan(()))
    source = "#define RATE 136\nconstexpr int ROUNDS = 24;\n__global__ void k(float *x, int n) { x[0] = 77; }"
    sizes = [c.size_map() for c in length_cases(the, Candidate(source, Plan(())), 1)]
    assert {s["n"] for s in sizes} == {135, 136, 137, 23, 24, 25}
    assert all(1 <= s["m"] <= 20 for s in sizes)


def test_there_are_none_without_floating_arrays_or_numbers() -> None:
    whole = Contract("k", CONTRACT.sizes, (Argument("x", "int32", Role.IN, ("n",)),), Plan(()))
    assert not threshold_cases(whole, Candidate(SOURCE, Plan(())), 1)
    assert not threshold_cases(CONTRACT, Candidate("__global__ void k(float *x) { x[0] += 0.5f; }", Plan(())), 1)
