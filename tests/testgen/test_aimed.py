"""Cases aimed at one change: its sizes, its values, and others of every family."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from fsr.contract.model import Argument, Constraints, Contract, Size
from fsr.records import Candidate, Case, Launch, Plan, Role
from fsr.testgen.aimed import aimed_cases, counted_cases, scalar_cases, spelled_cases, value_cases, valued_anew
from fsr.testgen.cases import families_of
from fsr.testgen.values import build

PLAN = Plan((Launch("v", ("ceil_div(n, 192)", "1", "1"), ("192", "1", "1"), "0", ("x", "n")),))
CONTRACT = Contract(
    "v",
    (Size("n", 0, 1 << 20, (1 << 16,)),),
    (Argument("x", "float32", Role.INOUT, ("n",)), Argument("n", "int32", Role.SCALAR, (), "n")),
    PLAN,
)


def test_the_first_round_goes_by_the_numbers_of_the_change() -> None:
    found = aimed_cases(CONTRACT, "if (n == 1500 && x[i] > 2.5f)", 1)
    assert {1499, 1500, 1501, 3000, 3001} <= {case.size_map()["n"] for case in found}
    assert "near:2.5" in {case.family for case in found}


def test_each_round_draws_others_of_many_families() -> None:
    first, second = (aimed_cases(CONTRACT, "", 1, turn) for turn in (1, 2))
    assert first == aimed_cases(CONTRACT, "", 1, 1)
    assert not set(first) & set(second)
    assert len({c.family for c in (*first, *second)}) > len(families_of(CONTRACT)) / 2


def test_a_value_that_only_the_candidate_names_is_among_what_it_gets() -> None:
    base = Candidate("__global__ void v(float *x, int n) { x[0] = 0.5f; }", PLAN)
    changed = Candidate("__global__ void v(float *x, int n) { x[0] = x[0] == 3.7f ? 1.0f : 0.5f; }", PLAN)
    held = [build(CONTRACT, case).arrays["x"] for case in value_cases(CONTRACT, changed, base, 1)]
    shares = [np.mean(x == np.float32(3.7)) for x in held if x.size > 100]
    assert min(shares) < 0.25  # most places do not hold it, so that a copy of it shows
    assert max(shares) > 0.4  # nor do few: neighbours hold it too
    assert any(np.float32(-3.7) in x for x in held)
    assert value_cases(CONTRACT, base, base, 1) == []


def test_a_number_beyond_all_integers_is_a_value() -> None:
    base = Candidate("__global__ void v(float *x, int n) { x[0] = x[1]; }", PLAN)
    changed = Candidate("__global__ void v(float *x, int n) { x[0] = fminf(x[1], 3.0e38f); }", PLAN)
    assert "near:3.0000000000000001e+38" in {case.family for case in value_cases(CONTRACT, changed, base, 1)}


def test_a_floating_scalar_takes_values_on_either_side_of_a_number_that_the_candidate_names() -> None:
    """if (fabsf(beta) < 1e-3f) beta = 0: a scalar that is drawn from normal values alone is hardly ever so small."""
    args = (
        Argument("x", "float32", Role.IN, ("n",)), Argument("y", "float32", Role.OUT, ("n",)),
        Argument("beta", "float32", Role.SCALAR, constraints=Constraints(low="-2", high="2")),
    )  # fmt: skip
    launch = Launch("k", ("n", "1", "1"), ("32", "1", "1"), "0", ("x", "y", "beta"))
    contract = Contract("k", (Size("n", 0, 4096, (64,)),), args, Plan((launch,)))
    candidate = Candidate("if (fabsf(beta) < 1e-3f) beta = 0.0f;", contract.plan)
    for seed in range(10):
        found = value_cases(contract, candidate, Candidate("", contract.plan), seed)
        betas = [float(build(contract, case).scalars["beta"].value) for case in found]
        assert any(0.0 < abs(beta) < 1e-3 for beta in betas)
        assert any(abs(beta) > 1e-3 for beta in betas)
        assert all(-2.0 <= beta <= 2.0 for beta in betas)


def test_a_wide_scalar_stands_at_a_threshold_and_just_below() -> None:
    """from < 1 << 31 ? (int)(from + i) : from + i: right at the number itself, wrong where an index passes it."""
    args = (
        Argument("y", "uint64", Role.OUT, ("n",)),
        Argument("from", "uint64", Role.SCALAR, constraints=Constraints(low="0", high="2 ** 64 - 1")),
    )
    launch = Launch("k", ("n", "1", "1"), ("32", "1", "1"), "0", ("y", "from"))
    contract = Contract("k", (Size("n", 0, 4096, (640,)),), args, Plan((launch,)))
    candidate = Candidate("y[i] = from < 0x5000000000ull ? (from + i) & 0x4fffffffffull : from + i;", contract.plan)
    for seed in range(5):
        found = value_cases(contract, candidate, Candidate("", contract.plan), seed)
        met = {int(build(contract, case).scalars["from"].value) for case in found}
        assert met & {0x5000000000, 0x4FFFFFFFFF}
        assert met & {0x5000000000 - 9, 0x4FFFFFFFFF - 9}


def test_what_is_named_comes_with_other_values_of_every_kind() -> None:
    named = [Case(f"named n {n}", (("n", n),), "normal", n) for n in range(4)]
    found = valued_anew(named)
    assert [c.size_map()["n"] for c in found] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert {c.family for c in found[::3]} == {"outliers"}
    assert {"uniform rows", "far rows", "wide", "alternating", "zeros"} <= {c.family for c in found}
    assert len({c.name for c in found}) == 12


def test_scalars_are_numbers_that_the_original_names() -> None:
    limits = Constraints("90", "150")
    args = (Argument("z", "float32", Role.IN, ("n",)), Argument("b", "float32", Role.SCALAR, (), constraints=limits))
    contract = replace(CONTRACT, args=args)
    base = Candidate("float S = 100.0f; float K = 97.5f; int n = 120; float far = 1e30f;", CONTRACT.plan)
    found = [c for seed in range(8) for c in scalar_cases(contract, base, seed)]
    assert {build(contract, case).scalars["b"].value for case in found} == {100.0, 97.5, 120.0}
    assert scalar_cases(CONTRACT, base, 1) == []
    assert scalar_cases(contract, Candidate("x = 1.0f * 0;", CONTRACT.plan), 1) == []


def keys() -> Contract:
    """Whole numbers of all values, beside offsets into them."""
    offsets = Argument("at", "int32", Role.IN, ("n",), constraints=Constraints("0", "n - 1"))
    return replace(CONTRACT, args=(Argument("k", "int32", Role.IN, ("n",)), offsets))


def test_a_row_holds_as_many_different_numbers_as_the_original_names() -> None:
    found = counted_cases(keys(), Candidate("if (++found > 512) return; shared int t[1024];", CONTRACT.plan), 1)
    different = {len(np.unique(build(keys(), case).arrays["k"])) for case in found}
    assert {512, 513, 1024, 1025} <= different
    floats = replace(CONTRACT, args=(Argument("x", "float32", Role.IN, ("n",)),))
    assert counted_cases(floats, Candidate("found > 512", CONTRACT.plan), 1) == []


def test_arrays_without_limits_are_spelled_in_numbers_of_the_original() -> None:
    base = Candidate("if (c == 0xF0) lo = 0x90; else if (c > 1 && c < 0x80) hi = 7;", CONTRACT.plan)
    found = spelled_cases(keys(), base, 3)
    assert found
    for case in found:
        data = build(keys(), case).arrays
        assert len(np.unique(data["k"])) <= 8
        assert len(np.unique(data["at"])) > 100, "indices stay what they are"
    pairs = {pair for case in found for pair in itertools.pairwise(build(keys(), case).arrays["k"].tolist())}
    assert {(a, b) for a in (0xF0, 0x90, 0x80) for b in (0xF0, 0x90, 0x80)} <= pairs
    assert spelled_cases(keys(), Candidate("x = 2;", CONTRACT.plan), 3) == []
