"""Data of a case: reproducible, within constraints, poisoned where nobody may read."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsr.contract.model import Argument, Constraints, Contract, Size
from fsr.errors import ContractError
from fsr.hardware.dtypes import bits_of, float_limits, is_float, numpy_dtype
from fsr.records import Case, Launch, Plan, Role, ScalarValue
from fsr.testgen import families
from fsr.testgen.bounds import integer_bounds
from fsr.testgen.cases import families_of
from fsr.testgen.draws import Draw, Kind
from fsr.testgen.values import build, outputs, poison, same_bits

PLAN = Plan((Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", ("x", "y", "n")),))


def contract(x: Argument, **others: object) -> Contract:
    args = (x, Argument("y", "float32", Role.OUT, ("n",)), Argument("n", "int32", Role.SCALAR, (), "n"))
    return Contract("k", (Size("n", 0, 10**8, (1000,)),), args, PLAN, **others)  # type: ignore[arg-type]


def case(n: int, family: str = "normal", seed: int = 1, **others: object) -> Case:
    return Case("c", (("n", n),), family, seed, **others)  # type: ignore[arg-type]


def x(dtype: str = "float32", **constraints: object) -> Argument:
    return Argument("x", dtype, Role.IN, ("n",), constraints=Constraints(**constraints))  # type: ignore[arg-type]


def drawn(argument: Argument, n: int, family: str = "normal", seed: int = 1) -> np.ndarray:
    return build(contract(argument), case(n, family, seed)).arrays["x"]


@pytest.mark.parametrize("family", [*families.FLOAT, *families.NON_FINITE])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_every_family_is_reproducible_and_finite_unless_it_says_otherwise(family: str, dtype: str) -> None:
    first, again = drawn(x(dtype, finite=False), 257, family), drawn(x(dtype, finite=False), 257, family)
    assert same_bits(first, again).all()
    assert first.dtype == numpy_dtype(dtype)
    assert first.flags.c_contiguous
    assert np.isfinite(first.astype(np.float64)).all() == (family not in families.NON_FINITE)


def test_another_seed_gives_other_values() -> None:
    assert not same_bits(drawn(x(), 100, seed=1), drawn(x(), 100, seed=2)).all()


def test_families_look_like_their_names() -> None:
    assert (drawn(x(), 50, "zeros") == 0).all()
    assert (drawn(x(), 50, "negated") < 0).all()
    assert len(np.unique(drawn(x(), 500, "repeated"))) <= families.FEW
    assert np.count_nonzero(drawn(x(), 500, "one-hot")) <= 2
    assert drawn(x(), 500, "one-hot")[-1] == 1
    rising = drawn(x(), 500, "sorted")
    assert (np.diff(rising) >= 0).all()
    assert (np.diff(drawn(x(), 500, "reverse")) <= 0).all()
    tiny = np.abs(drawn(x(), 500, "denormals"))
    assert tiny.max() <= np.finfo(np.float32).tiny
    assert tiny.max() > 0
    assert abs(drawn(x(), 1000, "cancelling").sum(dtype=np.float64)) < 1e-2
    assert np.isfinite(np.abs(drawn(x(), 1000, "near-overflow").astype(np.float32)).sum())
    assert drawn(x(), 1000, "near-overflow").max() > 1e34
    spiked = np.sort(np.abs(drawn(x(), 1000, "spike")))
    assert spiked[-1] > 3.3e38
    assert spiked[-2] < 10


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_faint_values_are_normal_and_their_squares_or_fourth_powers_are_not(dtype):
    info = np.finfo(dtype)
    values = np.abs(drawn(x(dtype), 2000, "faint").astype(np.float64))
    assert float(info.tiny) <= np.median(values) < 0.2 * float(info.tiny) ** 0.2
    assert np.median(values) ** 4 < 2.0 * float(info.tiny)


def test_whole_numbers_of_halves_have_sums_in_any_order():
    assert np.abs(drawn(x("float16"), 1000, "whole numbers").astype(np.float64)).sum() < 65504.0
    assert np.abs(drawn(x(), 1000, "whole numbers")).max() > 1e6


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_numbers_stand_at_the_ends_of_their_type(dtype: str) -> None:
    limits = np.iinfo(dtype)
    values = {int(v) for v in drawn(x(dtype), 200, "whole ends")}
    assert {int(limits.min), int(limits.max), int(limits.min) + 1, int(limits.max) - 1} <= values
    assert (int(limits.min) + int(limits.max) + 1) // 2 in values
    assert "whole ends" in families_of(contract(x(dtype)))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "float64"])
def test_numbers_stand_next_to_one_another_where_narrower_types_take_them_for_equal(dtype: str) -> None:
    values = drawn(x(dtype), 1000, families.CLOSE)
    narrower = {"float64": np.float32, "int64": np.float64}.get(dtype, np.float32)
    assert len(np.unique(values)) > len(np.unique(values.astype(narrower))) + 2
    if dtype[0] == "i":  # of which two may be added or taken from one another
        assert abs(int(values.max()) - int(values.min())) <= np.iinfo(dtype).max
        assert int(values.max()) * 2 <= np.iinfo(dtype).max
    limited = drawn(x("int32", low="0", high="1000000000"), 1000, families.CLOSE)
    assert {999_999_998, 999_999_999, 10**9, 499_999_999, 500_000_000} <= set(limited.tolist())


def test_what_is_zero_in_one_array_meets_ends_and_far_values_in_another() -> None:
    limited = {"low": "-50", "high": "100"}
    for told, far in ((limited, (-50, 100)), ({}, (-1e4, 1e4))):
        first = drawn(x("float32", **told), 2000, families.MOTLEY, 1)
        second = drawn(x("float32", **told), 2000, families.MOTLEY, 2)
        met = set(zip(first.tolist(), second.tolist(), strict=True))
        assert {(0.0, far[0]), (0.0, far[1]), (far[1], 0.0), (1.0, 0.0), (0.0, 0.0)} <= met
    whole = drawn(x("int32", low="-7", high="90"), 1000, families.MOTLEY)
    assert {-7, 90, 0, 1, -1} <= set(whole.tolist())


def test_an_index_that_may_be_none_mostly_is_one() -> None:
    told = {"low": str(-(2**31)), "high": "99"}
    assert 0.5 < (drawn(x("int32", **told), 1000, "uniform") >= 0).mean() < 0.9
    assert drawn(x("int32", **told), 1000, "limits").min() == -(2**31)
    assert drawn(x("int32", low="-100", high="100"), 1000, "uniform").min() < -90


def test_sorted_bounds_of_lines_are_all_there_is_in_one_line_at_their_ends() -> None:
    told = [drawn(x("int32", low="0", high="700", sorted=True), 100, families.ends([]), seed) for seed in range(9)]
    assert all(set(np.unique(values)) <= {0, 700} and (np.diff(values) >= 0).all() for values in told)
    assert any(0 in values and 700 in values for values in told)


@pytest.mark.parametrize(
    ("low", "high", "told"), [("-4", "3", {-4.0, 3.0}), ("0", "2", {2.0}), ("1e-6", "1", {1.0, 1e-6})]
)
def test_a_scalar_beside_a_spike_makes_its_product_overflow_or_one_in_another_order(low, high, told) -> None:
    plain = contract(x())
    factor = Argument("a", "float64", Role.SCALAR, constraints=Constraints(low=low, high=high))
    scaled = replace(plain, args=(*plain.args, factor))
    found = list[float]()
    for seed in range(20):
        data = build(scaled, case(100, "spike", seed))
        found.append(float(data.scalars["a"].value))
        assert np.abs(data.arrays["x"].astype(np.float64)).max() > np.finfo(np.float32).max / 4
    assert set(found) == told
    assert found.count(max(told, key=abs)) >= 5


@pytest.mark.parametrize("family", families.names(floating=True, finite=True))
def test_bounds_of_integers_hold_and_are_reached(family: str) -> None:
    values = drawn(x("int32", low="0", high="n - 1"), 97, family)
    assert values.min() >= 0
    assert values.max() <= 96
    if family in ("alternating", "near-overflow"):
        assert {0, 96} <= set(values.tolist())


@pytest.mark.parametrize("family", families.names(floating=True, finite=True))
def test_bounds_of_flags_hold(family: str) -> None:
    scalar = Argument("x", "bool", Role.SCALAR, (), constraints=Constraints(low="1", high="1"))
    for seed in range(4):
        assert not drawn(x("bool", high="0"), 97, family, seed).any()
        assert build(contract(scalar), case(5, family, seed)).scalars["x"].value == 1
    assert {False, True} <= set(drawn(x("bool"), 97, "normal").tolist())


@pytest.mark.parametrize("family", families.names(floating=True, finite=True))
def test_bounds_of_floats_hold(family: str) -> None:
    for bounds in ({"low": "-1", "high": "2"}, {"nonnegative": True}, {"positive": True}, {"high": "0"}, {"low": "5"}):
        values = drawn(x(**bounds), 333, family).astype(np.float64)
        assert np.isfinite(values).all()
        assert values.min() >= {"low": -1, "nonnegative": 0, "positive": 1e-4}.get(next(iter(bounds)), -math.inf)
        if "high" in bounds:
            assert values.max() <= float(bounds["high"])
        if bounds == {"low": "5"}:
            assert values.min() >= 5


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_sorted_and_unique_hold(dtype: str) -> None:
    bounds = {"low": "0", "high": "5 * n"} if dtype == "int32" else {}
    values = drawn(x(dtype, sorted=True, unique=True, **bounds), 4000)
    assert (np.diff(values) > 0).all()
    shuffled = drawn(x(dtype, unique=True, **bounds), 4000)
    assert len(np.unique(shuffled)) == 4000
    assert (np.diff(shuffled) < 0).any()


def test_a_large_unique_index_array_is_a_permutation() -> None:
    n = (1 << 20) + 77
    values = drawn(x("int32", unique=True, low="0", high="n - 1"), n)
    assert np.array_equal(np.bincount(values, minlength=n), np.ones(n))
    assert (values[:1000] != np.arange(1000)).any()


@given(st.sampled_from(["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"]),
       st.sampled_from(families.INTEGER), st.integers(0, 300))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_integers_stay_in_their_type(dtype: str, family: str, n: int) -> None:
    argument = x(dtype)
    low, high = integer_bounds(argument, {"n": n})
    values = drawn(argument, n, family)
    assert len(values) == n
    assert all(low <= int(v) <= high for v in values)


@pytest.mark.parametrize(
    "constraints", [{"low": "1", "high": "0"}, {"unique": True, "low": "0", "high": "3"}, {"low": "n", "high": "2"}]
)
def test_constraints_that_nothing_meets_are_a_contract_error(constraints: dict[str, object]) -> None:
    with pytest.raises(ContractError, match="no value fits"):
        drawn(x("int32", **constraints), 50)
    with pytest.raises(ContractError, match="no value fits"):
        drawn(x("float32", low="1", high="0"), 50)


def test_large_arrays_do_not_repeat_exactly() -> None:
    values = drawn(x(), 25_000_000)  # made of a shorter draw, repeated
    blocks = values[: 16 << 20].reshape(16, -1)
    assert not any(np.array_equal(blocks[0], other) for other in blocks[1:])
    assert abs(float(values[: 1 << 20].std()) - 1) < 0.01
    large_sorted = drawn(x(sorted=True), 3_000_000)
    assert (np.diff(large_sorted) >= 0).all()


def test_poison_differs_by_seed_and_is_nan_or_huge_for_floats() -> None:
    for dtype in ("float32", "float16", "bfloat16", "float64"):
        a, b = (poison(np.empty((3, 5), numpy_dtype(dtype)), seed) for seed in (0, 1))
        assert np.isnan(a.astype(np.float64)).all()
        assert (b.astype(np.float64) > 0.5 * float_limits(numpy_dtype(dtype)).largest).all()
        assert not same_bits(a, b).any()
        assert len(np.unique(bits_of(a))) == 1
    for dtype in ("int32", "uint8", "int64", "bool"):
        a, b = (poison(np.empty(7, dtype), seed) for seed in (0, 1))
        assert not same_bits(a, b).any()
    for dtype in ("int8", "int32", "int64"):  # a maximum of whole numbers passes over negative ones
        assert (poison(np.empty(2, dtype), 2) < 0).all()
        assert (poison(np.empty(2, dtype), 3) > 0).all()


def test_the_last_of_a_crowned_array_is_above_all_others() -> None:
    keys = Argument("x", "int64", Role.IN, ("n",))
    for argument in (x(), keys):
        values = drawn(argument, (1 << 20) + 5, "crowned")  # a draw comes again after 2^20
        assert values[-1] > values[:-1].max()
        assert values.min() >= 0 or argument is keys


def test_reciprocals_of_deep_denormal_values_overflow() -> None:
    for dtype in ("float32", "float64", "bfloat16"):
        largest = float(np.abs(drawn(x(dtype), 500, "deep denormals").astype(np.float64)).max())
        assert 0 < largest < 0.9 / float_limits(numpy_dtype(dtype)).largest


def test_a_case_of_named_numbers_holds_those_just_below() -> None:
    keys = Argument("x", "uint32", Role.IN, ("n",))
    assert set(drawn(keys, 500, "among:65793,1009").tolist()) > {65793, 1009, 65792, 1008}


def test_the_ends_of_the_limits_stand_beside_a_named_number() -> None:
    values = drawn(x("int32", low="0", high="1000"), 200, families.among([600])[0])
    assert {0, 599, 600, 1000} <= set(values.tolist())


def test_values_around_the_end_of_the_narrower_of_two_types() -> None:
    family = next(f for f in families_of(contract(x("float16"))) if f.startswith("near:"))  # y is a float32
    assert not any(f.startswith("near:") for f in families_of(contract(x())))
    assert np.abs(drawn(x(), 500, family)).max() > 65504
    assert np.isfinite(drawn(x("float16"), 500, family).astype(np.float32)).all()


def test_outliers_of_values_with_limits_are_the_limits() -> None:
    values = drawn(x(low="-2", high="0.5"), 500, "outliers")
    assert values[-1] == values.max() == 0.5
    assert values.min() == -2
    assert (values == 0.5).sum() <= 2


def test_small_values_of_either_sign_stay_small_within_limits() -> None:
    for low in (0, 1e-38):
        assert drawn(x(low=str(low), high="1"), 500, "denormals").max() < 1e-37


def test_outputs_are_poisoned_and_inputs_are_not() -> None:
    both = contract(x())
    one, other = build(both, case(50), 0), build(both, case(50), 1)
    assert same_bits(one.arrays["x"], other.arrays["x"]).all()
    assert not same_bits(one.arrays["y"], other.arrays["y"]).any()


def test_a_buffer_with_a_fixed_value_arrives_with_it() -> None:
    fixed = Argument("x", "float32", Role.INOUT, ("n",), value="0")
    assert (drawn(fixed, 50) == 0).all()


def test_aliased_buffers_share_one_array_that_is_no_poison() -> None:
    shared = contract(x(), aliasing=(("x", "y"),))
    data = build(shared, case(50, aliased=("x", "y")))
    assert set(data.arrays) == {"x"}
    assert np.isfinite(data.arrays["x"]).all()
    assert outputs(shared, case(50, aliased=("x", "y"))) == ("x",)
    assert outputs(shared, case(50)) == ("y",)


def test_scalars_come_from_the_contract_or_the_constraints() -> None:
    alpha = Argument("alpha", "float32", Role.SCALAR, constraints=Constraints(low="0.5", high="2"))
    count = Argument("count", "int32", Role.SCALAR, constraints=Constraints(low="1", high="n"))
    eps = Argument("eps", "float32", Role.SCALAR, value="0.001")
    base = contract(x())
    many = Contract(base.entry, base.sizes, (*base.args, alpha, count, eps), PLAN)
    for seed in range(20):
        scalars = build(many, case(9, seed=seed)).scalars
        assert scalars["n"] == ScalarValue("int32", 9)
        assert scalars["eps"] == ScalarValue("float32", 0.001)
        assert 0.5 <= scalars["alpha"].value <= 2
        assert 1 <= scalars["count"].value <= 9
    assert build(many, case(9, "limits")).scalars["count"].value == 9


def test_an_unknown_dtype_is_named() -> None:
    with pytest.raises(ContractError, match="'float99' is no element type"):
        numpy_dtype("float99")
    assert is_float(numpy_dtype("bfloat16"))
    assert float_limits(numpy_dtype("bfloat16")).eps == 2.0**-7


def test_rows_of_one_value_and_of_zeros_stand_beside_each_other() -> None:
    """A path for a sum that is exactly zero shows itself only where others are not."""
    matrix = Argument("x", "float32", Role.IN, ("n", "8"))
    for seed in range(4):
        rows = build(contract(matrix), case(60, "uniform rows", seed)).arrays["x"].reshape(60, 8)
        assert (rows == rows[:, :1]).all()
        assert 3 <= sum(not row.any() for row in rows) <= 30
        assert len(set(rows[:, 0].tolist())) == 5


def test_one_value_that_is_always_there_costs_no_more_than_others() -> None:
    """A remainder by next to nothing takes a step for each bit between the exponents: seconds for a buffer."""
    draw = Draw(Kind.NORMAL, 7, 1 << 18, a=1.0, bounds=(-1e6, -1e6))
    began = time.process_time()
    assert (draw.values(np.dtype(np.float32)) == np.float32(-1e6)).all()
    assert time.process_time() - began < 1.0
    bent = Draw(Kind.NORMAL, 7, 4096, a=3.0, bounds=(0.25, 0.5)).values(np.dtype(np.float64))
    assert ((bent >= 0.25) & (bent <= 0.5)).all()
    assert len(np.unique(bent)) > 4000
