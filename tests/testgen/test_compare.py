"""The verdict an element: what a developer calls wrong is wrong, what a developer calls rounding is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from fsr.contract.model import Argument, Constraints, Contract, Size, Tolerance
from fsr.errors import ContractError
from fsr.records import Candidate, Case, Launch, Plan, Role
from fsr.testgen import families
from fsr.testgen.compare import Mismatch, compare, compare_baseline, flushes, tolerance
from fsr.testgen.oracle import Asking, Expected, Once, expect
from fsr.testgen.reference import reference_outputs
from fsr.testgen.values import Array, CaseData, build

PLAN = Plan((Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", ("x", "y")),))
Formula = Callable[[Array], Array]


def contract(dtype: str = "float32", out: str = "n", **others: object) -> Contract:
    args = (
        Argument("x", dtype, Role.IN, ("n", "m"), constraints=others.pop("constraints", Constraints())),  # type: ignore[arg-type]
        Argument("y", str(others.pop("out_dtype", dtype)), Role.OUT, tuple(out.split())),
    )
    return Contract("k", (Size("n", 0, 9999, (5,)), Size("m", 1, 9999, (5,))), args, PLAN, **others)  # type: ignore[arg-type]


def case(n: int = 40, m: int = 300, family: str = "normal", seed: int = 3) -> Case:
    return Case("c", (("n", n), ("m", m)), family, seed)


def runner(formula: Formula, dtype: str = "float32") -> Callable[[Case, CaseData], Mapping[str, Array]]:
    """A kernel that computes y = formula(x) in the type of its input."""

    def run(_: Case, data: CaseData) -> Mapping[str, Array]:
        y = data.arrays["y"].copy()
        with np.errstate(all="ignore"):
            y[...] = formula(data.arrays["x"])
        return {"y": y}

    return run


def verdict(
    original: Formula, candidate: Formula, the: Contract | None = None, at: Case | None = None, precise: bool = True
) -> list[Mismatch]:
    the, at = the or contract(tolerance=Tolerance(sum_length="m")), at or case()
    wide = runner(original) if precise else None
    expected = expect(the, at, runner(original), precise=wide)
    data = build(the, at, poison_seed=5)
    return compare(the, at, runner(candidate)(at, data), expected, data.arrays)


def row_sum(x: Array) -> Array:
    """A sequential sum, as one thread a row does it."""
    total = np.zeros(x.shape[0], x.dtype)
    for j in range(x.shape[1]):
        total = total + x[:, j]
    return total


def tree_sum(x: Array) -> Array:
    return x.sum(axis=1, dtype=x.dtype)


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("family", families.names(floating=True, finite=True))
@pytest.mark.parametrize("precise", [True, False])
def test_another_order_of_summation_is_no_mistake_in_any_family(family: str, precise: bool) -> None:
    for seed in range(5):
        assert verdict(row_sum, tree_sum, at=case(family=family, seed=seed), precise=precise) == []
        assert verdict(row_sum, lambda x: row_sum(x[:, ::-1]), at=case(1, 999, family, seed), precise=precise) == []
        assert verdict(tree_sum, row_sum, at=case(family=family, seed=seed), precise=precise) == []


@pytest.mark.parametrize("family", families.names(floating=True, finite=True))
def test_a_fast_exponential_is_no_mistake(family: str) -> None:
    def fast(x: Array) -> Array:
        shifted = (x - x.max(axis=1, keepdims=True)) * x.dtype.type(1.4426950408889634)
        e = np.exp2(shifted)  # a rounded argument: the error grows with the exponent, as __expf's does
        return np.asarray(e * (1 / e.sum(axis=1, keepdims=True)))

    assert verdict(softmax, fast, contract(out="n m"), case(family=family)) == []
    assert verdict(softmax, fast, contract(out="n m"), case(family=family), precise=False) == []


def in_half(x: Array) -> Array:
    return row_sum(x.astype(np.float16)).astype(x.dtype)


def in_tf32(x: Array) -> Array:
    cut = (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return row_sum(cut)


@pytest.mark.parametrize(
    "wrong",
    [
        in_half,
        in_tf32,
        lambda x: row_sum(x.astype(ml_dtypes.bfloat16).astype(x.dtype)),
        lambda x: row_sum(x[:, :-1]),
        lambda x: row_sum(x) + np.float32(1e-2),
        lambda x: np.zeros(x.shape[0], x.dtype),
        lambda x: np.roll(row_sum(x), 1),
        lambda x: x[:, 0],
        lambda x: np.where(np.arange(x.shape[0]) == 39, 0, row_sum(x)),  # one of forty
        lambda x: np.where(np.arange(x.shape[0]) == 7, np.nan, row_sum(x)),
        lambda x: np.where(np.arange(x.shape[0]) == 7, np.inf, row_sum(x)),
    ],
)
@pytest.mark.parametrize("precise", [True, False])
def test_lowered_precision_and_lost_work_are_mistakes(wrong: Formula, precise: bool) -> None:
    assert len(verdict(row_sum, wrong, precise=precise)) == 1


@pytest.mark.parametrize("limits", [{}, {"low": "0", "high": "1"}, {"low": "1", "high": "9"}])
def test_what_cancels_at_an_end_of_the_limits_is_made_of_terms_as_large_as_ever(limits: dict[str, str]) -> None:
    """Ones less their mean are nought, by chance of no rounding: a reciprocal in a division's place may leave some."""

    def centred(x: Array) -> Array:
        return np.asarray(x[:, 0] - row_sum(x) / x.dtype.type(x.shape[1]))

    the, at = contract(tolerance=Tolerance(sum_length="m"), constraints=Constraints(**limits)), case(family="ones")
    assert (centred(build(the, at, 1).arrays["x"]) == 0).all()
    assert verdict(centred, lambda x: centred(x) - np.float32(1.8e-7), the, at) == []
    assert verdict(centred, lambda x: centred(x) - np.float32(1e-3), the, at)[0].kind == "value"


def test_last_bits_of_denormal_sums_are_none_where_their_length_is_not_stated() -> None:
    the, at = contract(), case(family="deep denormals")
    assert verdict(row_sum, lambda x: row_sum(x) + np.float32(1.4e-44), the, at) == []  # ten of them
    assert verdict(row_sum, lambda x: row_sum(x) + np.float32(1e-42), the, at)[0].kind == "value"


def test_nan_is_no_wildcard_and_nan_where_the_original_has_it_is_right() -> None:
    the = contract(out="n m", constraints=Constraints(finite=False))
    at = case(family="nan")
    assert verdict(softmax, softmax, the, at) == []
    found = verdict(softmax, lambda x: np.full_like(x, np.nan), the, at)
    assert found[0].kind == "non-finite"
    found = verdict(softmax, lambda x: np.nan_to_num(softmax(x)), the, at)
    assert found[0].kind == "non-finite"
    assert np.isnan(found[0].expected)


def overflowing(x: Array) -> Array:
    """A sum that no float32 holds: infinite there, about 1e41 in float64."""
    return row_sum(np.abs(x) * np.array(1e39).astype(x.dtype))


@pytest.mark.parametrize("other", [np.nan, -np.inf, np.inf])
def test_what_a_declared_sum_overflows_to_depends_on_its_order(other: float) -> None:
    def otherwise(x: Array) -> Array:
        return np.full(x.shape[0], other, x.dtype)

    declared, undeclared = contract(tolerance=Tolerance(sum_length="m")), contract()
    assert verdict(overflowing, otherwise, declared) == []
    if other != np.inf:
        assert verdict(overflowing, otherwise, undeclared)[0].kind == "non-finite"
        assert verdict(overflowing, otherwise, declared, precise=False)[0].kind == "non-finite"
        assert verdict(lambda x: overflowing(x) * np.inf, otherwise, declared)[0].kind == "non-finite"


def test_a_number_is_no_match_for_an_overflow() -> None:
    found = verdict(overflowing, lambda x: np.zeros(x.shape[0], x.dtype))
    assert (found[0].kind, found[0].count) == ("non-finite", 40)


def guarded(x: Array) -> Array:
    """A weighted mean whose weights are nought where its scores overflow to minus infinity, and which then says 0."""
    score = -np.abs(x) * np.abs(x)
    e = np.exp(score - np.maximum(score.max(axis=1, keepdims=True), np.finfo(x.dtype).min))
    total = e.sum(axis=1, keepdims=True)
    return np.asarray((e * x).sum(axis=1) / np.where(total == 0, 1, total)[:, 0])


def unguarded(x: Array) -> Array:
    score = -np.abs(x) * np.abs(x)
    e = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray((e * x).sum(axis=1) / e.sum(axis=1))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_number_is_right_where_overflow_left_the_original_none_that_says_anything() -> None:
    extreme = case(family="near-overflow")
    assert verdict(guarded, unguarded, at=extreme) == []
    assert verdict(guarded, unguarded, at=case()) == []
    assert verdict(guarded, lambda x: np.full(x.shape[0], np.nan, x.dtype), at=case())[0].kind == "non-finite"
    assert verdict(row_sum, lambda x: np.full(x.shape[0], np.nan, x.dtype), at=extreme)[0].kind == "non-finite"


def test_the_worst_element_is_named_with_its_bound() -> None:
    def wrong(x: Array) -> Array:
        y = row_sum(x)
        y[3] += 1
        y[17] += 50
        return y

    (found,) = verdict(row_sum, wrong)
    assert (found.argument, found.kind, found.index, found.count, found.total) == ("y", "value", (17,), 2, 40)
    assert found.error == pytest.approx(50, rel=1e-3)
    assert found.bound < 0.01
    assert "y[17] is" in str(found)
    assert "2 of 40 elements wrong" in str(found)
    evidence = found.evidence(case())
    assert json.loads(json.dumps(evidence, allow_nan=False))["index"] == [17]
    assert evidence["sizes"] == {"n": 40, "m": 300}


def test_unwritten_elements_are_told_from_wrong_ones() -> None:
    the, at = contract(), case()
    expected = expect(the, at, runner(row_sum))
    data = build(the, at, poison_seed=9)
    got = data.arrays["y"].copy()
    got[:-1] = row_sum(data.arrays["x"])[:-1]
    (found,) = compare(the, at, {"y": got}, expected, data.arrays)
    assert (found.kind, found.index, found.count) == ("unwritten", (39,), 1)


def test_what_the_original_leaves_alone_must_be_left_alone() -> None:
    def interior(_: Case, data: CaseData) -> Mapping[str, Array]:
        y = data.arrays["y"].copy()
        y[1:-1] = 2 * data.arrays["x"][1:-1, 0]
        return {"y": y}

    the, at = contract(), case()
    expected = expect(the, at, interior)
    data = build(the, at, poison_seed=4)
    good = dict(interior(at, data))
    assert compare(the, at, good, expected, data.arrays) == []
    good["y"][0] = 0
    (found,) = compare(the, at, good, expected, data.arrays)
    assert (found.kind, found.index) == ("written", (0,))


def test_integers_are_exact() -> None:
    the = contract("int32", out="n m")
    expected = expect(the, case(), runner(lambda x: 3 * x))
    data = build(the, case(), 1)
    got = dict(runner(lambda x: 3 * x)(case(), data))
    assert compare(the, case(), got, expected) == []
    got["y"][2, 5] += 1
    (found,) = compare(the, case(), got, expected)
    assert (found.index, found.error) == ((2, 5), 1)


def test_exact_tolerance_means_bit_for_bit() -> None:
    the = contract(tolerance=Tolerance(exact=True))
    assert verdict(row_sum, row_sum, the) == []
    assert len(verdict(row_sum, lambda x: np.nextafter(row_sum(x), np.float32(9e9)), the)) == 1


def test_a_stated_tolerance_replaces_the_default() -> None:
    wrong: Formula = lambda x: softmax(x) * np.float32(1.0005)  # noqa: E731
    assert len(verdict(softmax, wrong, contract(out="n m"))) == 1
    assert verdict(softmax, wrong, contract(out="n m", tolerance=Tolerance(rtol=1e-3))) == []
    assert tolerance(contract(tolerance=Tolerance(atol=0.5)), case(), np.dtype("float32"))[1] == 0.5


def test_a_stated_tolerance_is_of_the_result_and_not_of_what_it_is_made_of() -> None:
    """A variance of numbers around a thousand: three hundred times its limit, if that were of its terms."""
    spread: Formula = lambda x: x.astype(np.float64).var(axis=1)  # noqa: E731
    wrong: Formula = lambda x: spread(x) * 1.0001  # noqa: E731
    stated = contract("float32", tolerance=Tolerance(rtol=1e-5))
    args = tuple(replace(a, dtype="float64") if a.name == "y" else a for a in stated.args)
    the, thousand = replace(stated, args=args), case(family="raised")
    assert len(verdict(spread, wrong, the, thousand)) == 1
    assert verdict(spread, lambda x: spread(x) * 1.000001, the, thousand) == []


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_outputs_may_differ_by_a_rounding_and_no_more(dtype: str) -> None:
    def accumulated(kind: type) -> Formula:
        return lambda x: (row_sum(x.astype(kind)) if kind is not None else row_sum(x)).astype(x.dtype)

    the, at = contract(dtype, tolerance=Tolerance(sum_length="m")), case(64, 2000, "uniform")
    good, bad = accumulated(np.float32), row_sum
    precise = lambda c, d: {"y": row_sum(d.arrays["x"])}  # noqa: E731
    expected = expect(the, at, runner(good), precise=precise)
    data = build(the, at, 3)
    tree = {"y": data.arrays["x"].astype(np.float32).sum(axis=1).astype(data.arrays["y"].dtype)}
    assert compare(the, at, tree, expected, data.arrays) == []
    assert len(compare(the, at, runner(bad)(at, data), expected, data.arrays)) == 1


def test_a_candidate_may_be_four_times_less_accurate_than_a_bad_original_but_not_forty() -> None:
    rng = np.random.default_rng(0)

    def noisy(size: float) -> Formula:
        return lambda x: (
            row_sum(x) * (1 + size * rng.standard_normal(len(x)).astype(x.dtype))
            if x.dtype == np.float32
            else row_sum(x)
        )

    the = contract()
    fixed = noisy(1e-4)(build(the, case()).arrays["x"])
    run = lambda c, d: {"y": fixed}  # noqa: E731
    expected = expect(the, case(), run, precise=runner(row_sum))
    truth = row_sum(build(the, case()).arrays["x"])
    assert compare(the, case(), {"y": truth * np.float32(1.0001)}, expected) == []
    assert len(compare(the, case(), {"y": truth * np.float32(1.01)}, expected)) == 1


def test_what_the_original_itself_varies_by_is_allowed() -> None:
    turns = iter(range(100))

    def unsteady(_: Case, data: CaseData) -> Mapping[str, Array]:
        return {"y": row_sum(data.arrays["x"]) + np.float32(0.001 * (next(turns) % 2))}

    expected = expect(contract(), case(), unsteady)
    assert float(np.max(expected.spread["y"])) == pytest.approx(0.001, rel=0.05)
    assert not expected.steady
    base = row_sum(build(contract(), case()).arrays["x"])
    assert compare(contract(), case(), {"y": base + np.float32(0.002)}, expected) == []
    assert compare(contract(), case(), {"y": base + np.float32(0.5)}, expected)


def test_an_original_that_repeats_itself_may_be_asked_once() -> None:
    asked = list[CaseData]()

    def steady(_: Case, data: CaseData) -> Mapping[str, Array]:
        asked.append(data)
        return {"y": row_sum(data.arrays["x"])}

    assert expect(contract(), case(), steady).steady
    once = expect(contract(), case(), Once(steady))
    assert len(asked) == 3
    assert compare(contract(), case(), {"y": row_sum(asked[0].arrays["x"])}, once) == []
    assert compare(contract(), case(), {"y": row_sum(asked[0].arrays["x"]) + 1}, once)


def test_another_order_of_a_sum_is_judged_by_fewer_runs_of_the_original() -> None:
    asked = list[CaseData]()

    def counted(_: Case, data: CaseData) -> Mapping[str, Array]:
        asked.append(data)
        return {"y": row_sum(data.arrays["x"])}

    the, x = contract(tolerance=Tolerance(sum_length="m")), build(contract(), case()).arrays["x"]
    expected = expect(the, case(), Once(counted))
    assert compare(the, case(), {"y": row_sum(x[:, ::-1])}, expected) == []
    before = len(asked)
    assert before < 1 + 3
    assert compare(the, case(), {"y": row_sum(x) * np.float32(1.001)}, expected)
    assert len(asked) > before


@pytest.mark.parametrize("family", ["normal", "wide", "uniform", "outliers", "denormals", "near-overflow"])
def test_what_is_surely_right_is_right_by_the_whole_rule(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    the, at = contract(tolerance=Tolerance(sum_length="m")), case(family=family)
    want, wide = runner(row_sum), runner(lambda x: x.astype(np.float64).sum(-1))
    y, draw, short = row_sum(build(the, at).arrays["x"]), np.random.default_rng(1), list[bool]()
    with np.errstate(all="ignore"):
        tried = [y * (1 + 2.0**-p * draw.standard_normal(y.shape)).astype(np.float32) for p in range(12, 24)]
    for whole in (False, True):
        if whole:
            monkeypatch.setattr("fsr.testgen.compare._surely_right", lambda *_: False)
        found = [compare(the, at, {"y": got}, expect(the, at, want, precise=wide)) == [] for got in tried]
        assert not whole or found == short
        short = found


def test_a_wrong_shape_is_reported_not_raised() -> None:
    expected = expect(contract(), case(), runner(row_sum))
    (found,) = compare(contract(), case(), {"y": np.zeros(3, np.float32)}, expected)
    assert found.kind == "shape"


def test_empty_outputs_are_right() -> None:
    assert verdict(row_sum, row_sum, at=case(0, 3)) == []


def test_a_reference_function_gives_the_precise_answer_and_checks_the_original(tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_text("def row_sum(x, n):\n    assert x.dtype == 'float64'\n    return x.sum(axis=1)\n")
    the = contract(reference="ref.py:row_sum")
    expected = expect(the, case(), runner(row_sum), how=Asking(tmp_path))
    assert expected.precise is not None
    assert compare_baseline(the, case(), expected) == []
    broken = expect(the, case(), runner(lambda x: row_sum(x) + 1), how=Asking(tmp_path))
    assert compare_baseline(the, case(), broken)[0].argument == "y"


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [("none.py:f", "cannot be loaded"), ("ref.py:absent", "has no function"), ("ref.py:two", "returned 2 arrays"),
     ("ref.py:other", "returned no 'y'")],
)  # fmt: skip
def test_a_bad_reference_is_a_contract_error(tmp_path: Path, reference: str, complaint: str) -> None:
    (tmp_path / "ref.py").write_text("def two(x): return x, x\ndef other(x): return {'z': x}\n")
    the = contract(reference=reference)
    with pytest.raises(ContractError, match=complaint):
        reference_outputs(the, case(), build(the, case()), tmp_path)


def test_the_last_of_ten_million_elements_is_compared() -> None:
    n = 10_000_000
    rng = np.random.default_rng(0)
    want = rng.standard_normal(n, dtype=np.float32)
    zero = np.zeros((), dtype=np.float64)
    expected = Expected({"y": want}, {"y": zero}, {"y": np.zeros(n, dtype=bool)})
    got = want * np.float32(1 + 1e-7)
    got[-1] += 1
    (found,) = compare(contract(), case(n, 1), {"y": got}, expected)
    assert found.index == (n - 1,)


def test_samples_of_rounding_noise_start_from_inputs_that_differ_in_their_last_bits() -> None:
    seen: list[Array] = []

    def noisy(_: Case, data: CaseData) -> Mapping[str, Array]:
        seen.append(data.arrays["x"].copy())
        return {"y": row_sum(data.arrays["x"])}

    the = contract(tolerance=Tolerance(sum_length="m"))
    assert expect(the, case(), runner(row_sum), precise=runner(row_sum), noisy=noisy).noise is not None
    first, *others = seen
    for other in others:
        assert (other != first).mean() > 0.9
        assert np.allclose(other, first, rtol=1e-11)


def test_ordered_values_may_err_with_the_length_of_the_sum_others_with_its_root() -> None:
    summed = contract(tolerance=Tolerance(sum_length="m"))
    normal, ordered = (tolerance(summed, case(m=4096, family=f), np.dtype("f4"))[0] for f in ("normal", "sorted"))
    assert normal == pytest.approx(32 * 2**-23 * 64 / 8)
    assert ordered == pytest.approx(4 * 32 * 2**-23 * 4096 / 64)


def test_sums_in_no_order_of_their_own_may_err_so_on_ordered_values_though_no_length_is_stated() -> None:
    at = {f: case(m=4096, family=f) for f in ("normal", "sorted")}
    for family, growth in (("normal", 1.0), ("sorted", 4 * 4096 / 64)):
        relative = tolerance(contract(), at[family], np.dtype("f4"), unordered=True)[0]
        assert relative == pytest.approx(32 * 2**-23 * growth)
    assert tolerance(contract(), at["sorted"], np.dtype("f4"))[0] == pytest.approx(4 * 32 * 2**-23)


def variance(x: Array) -> Array:
    return row_sum((x - (row_sum(x) / x.shape[1]).astype(x.dtype)[:, None]) ** 2) / x.dtype.type(x.shape[1])


def running_variance(x: Array) -> Array:
    """Welford's update, in the type of its input."""
    mean, sums = np.zeros(x.shape[0], x.dtype), np.zeros(x.shape[0], x.dtype)
    for j in range(x.shape[1]):
        off = x[:, j] - mean
        mean = mean + off / x.dtype.type(j + 1)
        sums = sums + off * (x[:, j] - mean)
    return np.asarray(sums / x.dtype.type(x.shape[1]))


def variance_of_squares(x: Array) -> Array:
    n = x.dtype.type(x.shape[1])
    return np.asarray(row_sum(x * x) / n - (row_sum(x) / n) ** 2)


@pytest.mark.parametrize("family", ["sorted", "reverse", "normal"])
def test_a_running_mean_is_right_on_narrow_ordered_rows(family: str) -> None:
    """Each row is a narrow part of a ramp: the errors of the mean go one way, and the variance is small beside it."""
    at = case(n=29, m=3199, family=family)
    assert not verdict(variance, running_variance, at=at)


def test_squares_less_the_squared_mean_are_wrong_on_rows_far_from_zero() -> None:
    assert verdict(variance, variance_of_squares, at=case(n=29, m=3199, family="raised"))


def test_a_candidate_whose_flags_flush_may_lose_every_denormal_term_of_a_sum() -> None:
    def flushed(x: Array) -> Array:
        return row_sum(np.where(np.abs(x) < np.finfo(np.float32).tiny, np.float32(0), x))

    the, at = contract(tolerance=Tolerance(sum_length="m")), case(m=256, family="denormals")
    expected = expect(the, at, runner(row_sum), precise=runner(row_sum))
    data = build(the, at, poison_seed=5)
    got = runner(flushed)(at, data)
    assert not compare(the, at, got, expected, data.arrays, flushes=True)
    assert compare(the, at, got, expected, data.arrays)


@pytest.mark.parametrize(
    ("flags", "source", "told"),
    [
        (("--ftz=true",), "y[i] = s;", True),
        (("--use_fast_math",), "y[i] = s;", True),
        ((), "atomicAdd(&y[i], s);", True),
        ((), 'asm volatile("red.global.add.f32 [%0], %1;" :: "l"(y), "f"(s));', True),
        (("-lineinfo",), "y[i] = s; // deatomicAdded", False),
        ((), "y[i] = red.x + add;", False),
    ],
)
def test_what_flushes_are_flags_and_atomic_sums(flags: tuple[str, ...], source: str, told: bool) -> None:
    plain = Candidate("y[i] = s;", Plan(()))
    candidate = Candidate(source, Plan((), flags=flags))
    assert flushes(candidate) is told
    assert flushes(plain, candidate) is flushes(candidate, plain) is told  # what the original loses counts too
