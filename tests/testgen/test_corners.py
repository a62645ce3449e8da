"""Corner values: edges beside ordinary values, NaN of every kind close together, integers of a structure."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fsr.contract.model import Argument, Constraints, Contract, Size
from fsr.hardware.dtypes import bits_of, numpy_dtype
from fsr.records import Case, Launch, Plan, Role
from fsr.testgen import corners
from fsr.testgen.values import CaseData, build

PLAN = Plan((Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", ("x", "s", "y", "n")),))
SIZES = {"n": 97, "rows": 60}


def built(x: Argument, family: str, s: Argument | None = None, seed: int = 1) -> CaseData:
    scalar = s or Argument("s", "float32", Role.SCALAR, (), constraints=Constraints("-2", "2"))
    args = (x, scalar, Argument("y", "float32", Role.OUT, ("n",)), Argument("n", "int32", Role.SCALAR, (), "n"))
    contract = Contract("k", tuple(Size(n, 0, 10**6, (v,)) for n, v in SIZES.items()), args, PLAN)
    return build(contract, Case("c", tuple(SIZES.items()), family, seed))


def wide(values: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return values.astype(np.float64)


def x(dtype: str, shape: tuple[str, ...] = ("n",), **constraints: object) -> Argument:
    return Argument("x", dtype, Role.IN, shape, constraints=Constraints(**constraints))  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32", "int16"])
def test_each_size_its_neighbours_and_its_negative_stand_among_ordinary_values(dtype: str) -> None:
    values = set(built(x(dtype), corners.ZERO).arrays["x"].tolist())
    wanted = {96, 97, 98, 59, 60, 61, 0, 1} | (set() if dtype[0] == "u" else {-97, -60, -1})
    assert wanted <= values
    assert len(values) > len(wanted) + 20


def test_values_that_are_small_ones_again_once_they_are_cut() -> None:
    values = built(x("int64"), corners.MINUS).arrays["x"]
    for bits in corners.CUTS:
        cut = values & ((1 << bits) - 1)
        assert ((values >= 1 << bits) & (cut < max(SIZES.values()))).any()
    assert (built(x("int64"), corners.ZERO).arrays["x"] < 1 << 31).all()  # apart from what may overflow


@pytest.mark.parametrize("family", [*corners.EDGES, *corners.STRUCTURES])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "uint64"])
def test_limits_hold(family: str, dtype: str) -> None:
    values = built(x(dtype, low="3", high="rows - 1"), family).arrays["x"]
    assert values.min() >= 3
    assert values.max() <= 59
    assert {3, 59} <= set(values.tolist()) or family in (corners.CONSTANT, corners.RUNS, corners.LOWEST)


def test_scalars_at_both_zeros_and_arrays_that_meet_them() -> None:
    plus, minus = (built(x("float32"), family) for family in (corners.ZERO, corners.MINUS))
    assert (plus.scalars["s"].value, math.copysign(1, plus.scalars["s"].value)) == (0, 1)
    assert (minus.scalars["s"].value, math.copysign(1, minus.scalars["s"].value)) == (0, -1)
    assert {0.0, -0.0} <= set(minus.arrays["x"].tolist())
    assert len({math.copysign(1, v) for v in minus.arrays["x"] if v == 0}) == 2
    narrow = Argument("s", "float32", Role.SCALAR, (), constraints=Constraints("0", "2"))
    assert math.copysign(1, built(x("float32"), corners.MINUS, narrow).scalars["s"].value) == 1
    other = Argument("s", "int32", Role.SCALAR, (), constraints=Constraints("-1", "rows - 1"))
    assert built(x("int32"), corners.ZERO, other).scalars["s"].value == 0


def test_an_array_holds_its_scalar() -> None:
    data = built(x("float32"), corners.WIDE[0])
    assert np.float32(data.scalars["s"].value) in data.arrays["x"]


def test_wide_scalars_stand_where_indices_pass_a_power_of_two() -> None:
    wide = Argument("s", "uint64", Role.SCALAR, (), constraints=Constraints("0", "2 ** 63 - 1"))
    met = {built(x("float32"), family, wide).scalars["s"].value for family in corners.WIDE}
    assert {2**31 - 48, 2**31, 2**32 - 48, 2**53 - 48} <= met
    assert corners.wide_numbers(0, 1000, 97) == []
    assert all(n < 2**31 for n in corners.wide_numbers(-(2**31), 2**31 - 1, 97))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_nans_of_both_signs_and_every_payload_close_together(dtype: str) -> None:
    values = built(x(dtype, ("rows", "n"), finite=False), corners.CROWD).arrays["x"]
    none = np.isnan(wide(values))
    assert set(corners.nan_patterns(numpy_dtype(dtype)).tolist()) == set(bits_of(values)[none].tolist())
    assert (none[:, 1:] & none[:, :-1]).any()
    assert (none[:, 2:] & ~none[:, 1:-1] & none[:, :-2]).any()
    assert np.isinf(wide(values)).any()
    assert 0.1 < none.mean() < 0.6
    assert np.isfinite(built(x(dtype), corners.CROWD).arrays["x"].astype(np.float64)).all()  # callers pass none


def test_nans_as_they_are_spelled_in_bits() -> None:
    patterns = set(corners.nan_patterns(np.dtype("float32")).tolist())
    assert patterns == {0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF}


def test_structures_are_what_their_names_say() -> None:
    text = x("uint8", ("rows", "n"))
    period = built(text, corners.PERIOD).arrays["x"]
    assert {0, 255} == set(period.reshape(-1).tolist())
    assert (period[:, 1:] != period[:, :-1]).all()
    constant = built(text, corners.CONSTANT).arrays["x"]
    assert (constant == constant[:, :1]).all()
    assert (constant[0] == 255).all()
    runs = built(text, corners.RUNS).arrays["x"].reshape(-1)
    lengths = np.diff(np.flatnonzero(np.diff(runs.astype(int))))
    assert lengths.min() >= corners.RUN[0]
    with_it = Argument("s", "int32", Role.IN, ("rows",), constraints=Constraints("0", "n"))
    lens = built(text, corners.PERIOD, with_it).arrays["s"]
    assert lens[0] == 97
    assert (lens == 97).mean() > 0.3


def test_sorted_arrays_stay_so() -> None:
    values = built(x("int32", sorted=True), corners.ZERO).arrays["x"]
    assert (np.diff(values) >= 0).all()


def test_a_small_scalar_its_parts_and_the_beginnings_between_two() -> None:
    high = Argument("s", "float32", Role.SCALAR, (), constraints=Constraints("3", "40"))
    told = built(x("float64", low="-50", high="50"), corners.MINUS, high)
    s = told.scalars["s"].value
    multiples = {s * k / 2 for k in range(-8, 9)}
    assert len(multiples & set(told.arrays["x"].tolist())) > 3
    between = corners._beginnings([float(s), -1.0], [60], np.random.default_rng(0))
    parts = [(v + 1) * 60 / (s + 1) for v in between if -1.0 < v < s]
    assert sum(abs(p - round(p)) < 1e-9 for p in parts) >= corners.PARTS - 2


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_what_is_rounded_stands_at_the_middle_and_next_to_it(dtype: str) -> None:
    values = built(x(dtype), corners.HALVES, seed=3).arrays["x"]
    kind = numpy_dtype(dtype).type
    beside = np.nextafter(kind(0.5), kind(0)), kind(0.5), np.nextafter(kind(1.5), kind(2))
    found = set(np.concatenate([built(x(dtype), corners.HALVES, seed=n).arrays["x"] for n in range(20)]).tolist())
    assert {float(v) for v in beside} <= found
    assert (values == 1).sum() > 10


def test_tiny_scalars_are_normal_numbers_and_crowds_stand_beside_zero() -> None:
    tiny = built(x("float32"), corners.TINY).scalars["s"].value
    assert 0 < abs(tiny) < 1e-35
    assert np.float32(tiny) >= np.finfo(np.float32).tiny or np.float32(-tiny) >= np.finfo(np.float32).tiny
    away = Argument("s", "float32", Role.SCALAR, (), constraints=Constraints("1", "2"))
    assert 1 <= built(x("float32"), corners.TINY, away).scalars["s"].value <= 2
    crowd = built(x("float32", finite=False), corners.CROWD_ZERO)
    assert crowd.scalars["s"].value == 0
    assert np.isnan(crowd.arrays["x"]).any()
    assert np.isnan(built(x("float32", finite=False), corners.ALL_NAN).arrays["x"]).all()


def test_long_lines_of_the_lowest_number_of_a_type() -> None:
    lines = built(x("int32", ("rows", "n")), corners.LOWEST).arrays["x"]
    assert (lines == np.iinfo(np.int32).min).all(axis=1).sum() > 30
    assert built(x("int32", ("rows", "n"), low="2", high="9"), corners.LOWEST).arrays["x"].min() == 2


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "float16"])
def test_of_twins_equals_stand_a_power_of_two_apart_and_nowhere_else(dtype: str) -> None:
    rng = np.random.default_rng(4)
    values = rng.integers(0, 200, (12, 5000)).astype(dtype)
    made = corners.twins(values, rng)
    ends, kinds = set(), set()
    for line, before in zip(made, values, strict=True):
        at = min((np.flatnonzero(line == end) for end in (line.max(), line.min())), key=len)
        apart = at - at[0], at[-1] - at
        powers = {0, *(1 << np.arange(13))}
        assert len(at) > 1
        assert any(set(gaps.tolist()) <= powers for gaps in apart)
        ends.add(set(apart[0].tolist()) <= powers)
        kinds.add(bool(line[at[0]] == before.max()))
    assert ends == {True, False}  # the first of equals, and the last
    assert kinds == {True, False}  # the largest, and the least
    assert corners.twins(values[:0], rng).shape == (0, 5000)
    assert corners.twins(values[:, :1], rng).shape == (12, 1)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_levels_stand_at_an_end_or_on_both_sides_of_a_cliff(dtype: str) -> None:
    rng = np.random.default_rng(5)
    values = np.zeros((40, 100), dtype)
    upper = corners.level(values, corners.BRINK, (-50, 1000), rng, upper=True, share=0.5)
    lower = corners.level(values, corners.BRINK_APART, (-50, 1000), rng, upper=False, share=0.5)
    assert len(np.unique(upper)) == len(np.unique(lower)) == 2
    assert upper.max() == 1000
    assert upper.min() >= 998
    assert lower.min() == -50
    assert lower.max() <= -48
    cliff = corners.level(values, corners.CLIFF, (-50, 1000), rng, upper=True, share=0.3)
    assert cliff[:, :30].min() > 900
    assert 0 <= cliff[:, 30:].min() <= cliff[:, 30:].max() <= 4
    other = corners.level(values, corners.CLIFF, (-50, 1000), rng, upper=False, share=0.3)
    assert other[:, :30].max() <= 4
    assert other[:, 30:].min() > 900


@pytest.mark.parametrize("family", [corners.TWINS, *corners.LEVELS])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "uint64", "float32", "float16"])
def test_limits_hold_for_twins_and_levels(family: str, dtype: str) -> None:
    for seed in range(4):
        values = built(x(dtype, low="3", high="rows - 1"), family, seed=seed).arrays["x"]
        assert values.dtype == numpy_dtype(dtype)
        assert values.min() >= 3
        assert values.max() <= 59
        assert len(np.unique(values)) > 1
