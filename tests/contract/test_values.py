"""Integers that are each one of a list of values: letters, flags, spins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsr.app.checking import judge_own
from fsr.contract.flags import flags_of
from fsr.contract.load import load_contract
from fsr.contract.model import Argument, Constraints, Contract, Size
from fsr.contract.show import with_block
from fsr.errors import ContractError
from fsr.evaluation.watching import LAST_HIGH
from fsr.hardware.dtypes import numpy_dtype
from fsr.records import Candidate, Case, CaseKind, Launch, Plan, Role
from fsr.runs.kernel import load_kernel
from fsr.runs.options import RefineOptions
from fsr.source.launcher import launcher_header
from fsr.source.promises import conditions
from fsr.testgen import corners, echoes, families
from fsr.testgen.aimed import aimed_cases, scalar_cases, spelled_cases, value_cases, valued_anew
from fsr.testgen.bounds import integer_bounds
from fsr.testgen.cases import held_out_cases, held_out_timed_cases, search_cases, timed_cases
from fsr.testgen.corner_cases import corner_cases
from fsr.testgen.coverage import wide_draws
from fsr.testgen.draws import BLOCK
from fsr.testgen.large import brim_cases, far_cases, filled_cases, large_cases
from fsr.testgen.values import build, repoisoned

TEXT = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 0, max = 100000000, timed = 40000}
// [args]
// flags = {shape = ["n"], values = [82, 65, 78]}
// spins = {role = "inout", shape = ["n"], values = [-1, 1]}
// cells = {shape = ["n"], values = [0, 1, 9], shares = [0.9, 0.0625, 0.0375]}
// group = {shape = ["n"], values = [7, -5, 1000], sorted = true}
// on = {shape = ["n"], values = [true]}
// text = {shape = ["n"]}
// key = {shape = [3], values = [65, 78, 82]}
// mode = {values = [5, 0, 2]}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
__global__ void k(const unsigned char *flags, signed char *spins, const int *cells, const long long *group,
                  const bool *on, const unsigned char *text, const unsigned char *key, unsigned mode, int *y, int n)
{
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n) return;
    int found = (flags[i] == 'R') + 2 * (flags[i] == key[1]) + 4 * (cells[i] == 9) + 8 * (group[i] == 1000) + text[i];
    y[i] = mode == 5 ? found : mode == 2 ? found * spins[i] : on[i] ? -found : 0;
    spins[i] = -spins[i];
}
"""
SETS = {"flags": {65, 78, 82}, "spins": {-1, 1}, "cells": {0, 1, 9}, "group": {-5, 7, 1000}, "on": {1},
        "mode": {0, 2, 5}, "key": {65, 78, 82}}  # fmt: skip
FAMILIES = sorted(
    {*families.FLOAT, *families.EXTREME, *families.NON_FINITE, *families.APART, *families.INTEGER, *families.FREE,
     *corners.FAMILIES, *echoes.FAMILIES, families.ends([]), families.ends(["flags"]), families.ends(["x"]),
     families.near(3), families.near(78), families.near(0.5), families.near(-1e30), families.mostly(2.5),
     families.mostly(1), *families.among([78, 5, 2.5, -1]), *families.among([6]), families.spelled([65, 7])}
)  # fmt: skip


def contract_of(folder: Path, text: str = TEXT) -> Contract:
    (folder / "kernel.cu").write_text(text)
    return load_kernel(folder / "kernel.cu").contract


def held(contract: Contract, case: Case, *, drawn: bool = False) -> dict[str, set[int]]:
    """What arguments with a list hold in a case, formulas as a device draws them."""
    data = build(contract, case, drawn=drawn)
    arrays = {n: data.draws[n].values(a.dtype) if n in data.draws else a for n, a in data.arrays.items()}
    found = {a.name: set(np.unique(arrays[a.name]).tolist()) for a in contract.buffers() if a.constraints.values}
    return found | {n: {int(s.value)} for n, s in data.scalars.items() if contract.argument(n).constraints.values}


def within(contract: Contract, case: Case, *, drawn: bool = False) -> bool:
    listed = {a.name: set(a.constraints.values) for a in contract.args}
    return all(values <= listed[name] for name, values in held(contract, case, drawn=drawn).items())


def every_case(contract: Contract, source: str) -> list[Case]:
    """Those of every producer of cases."""
    original, other = Candidate(source, contract.plan), Candidate(source + "// 77 3000000000 2.5f", contract.plan)
    small = replace(contract, sizes=tuple(replace(s, maximum=min(s.maximum, 5000)) for s in contract.sizes))
    made = [
        *search_cases(contract, original, 3), *held_out_cases(contract, 3), *corner_cases(contract, 3, 1 << 14),
        *brim_cases(small, 3, 1 << 16), *large_cases(small, 3, 1 << 16), *filled_cases(small, 3, 1 << 16),
        *value_cases(contract, other, original, 3), *scalar_cases(contract, original, 3),
        *spelled_cases(contract, original, 3), *aimed_cases(contract, "if (n == 78 && x > 65)", 3),
        *list(wide_draws(contract, 3, source))[:40], *timed_cases(contract, 3), *held_out_timed_cases(contract, 3),
    ]  # fmt: skip
    return [*made, *valued_anew(made[:8]), *(replace(c, family=LAST_HIGH) for c in made[:3])]


def test_every_case_keeps_to_the_values_and_all_of_them_come(tmp_path: Path) -> None:
    contract, seen = contract_of(tmp_path), dict[str, set[int]]()
    cases = [c for c in every_case(contract, TEXT) if c.size_map()["n"] < 1 << 16]
    assert len({case.family for case in cases}) > 30
    for case in cases:
        found = held(contract, case)
        seen = {name: seen.get(name, set()) | values for name, values in found.items()}
        assert all(values <= SETS[name] for name, values in found.items()), case
        data, again = build(contract, case), build(contract, case)
        assert all((data.arrays[name] == again.arrays[name]).all() for name in SETS if name in data.arrays)
        assert (np.diff(data.arrays["group"]) >= 0).all()
    assert seen == SETS
    assert {next(iter(held(contract, c)["mode"])) for c in held_out_cases(contract, 3)} == SETS["mode"]


RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1),
          "uint32": (0, 2**32 - 1),
          "int64": (-(2**63), 2**63 - 1), "uint64": (0, 2**64 - 1), "bool": (0, 1)}  # fmt: skip


@st.composite
def listed(draw: st.DrawFn, dtype: str = "") -> tuple[str, tuple[int, ...]]:
    dtype = dtype or draw(st.sampled_from(sorted(RANGES)))
    low, high = RANGES[dtype]
    numbers = st.one_of(st.integers(low, high), st.integers(max(low, -4), min(high, 200)), st.sampled_from([low, high]))
    most = draw(st.sampled_from([1, 2, 3, 8, 9, 40, 200]))
    return dtype, tuple(sorted(draw(st.sets(numbers, min_size=1, max_size=most))))


def rules_of(values: tuple[int, ...], **more: object) -> Constraints:
    return Constraints(str(values[0]), str(values[-1]), values=values, **more)  # type: ignore[arg-type]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_nothing_is_ever_outside(data: st.DataObject) -> None:
    dtype, values = data.draw(listed())
    other = data.draw(st.one_of(st.just((dtype, values)), listed(dtype)))[1]
    scalar, single = data.draw(listed())
    limits = tuple(map(str, RANGES[dtype]))
    shares = tuple(float(n % 3 + 1) for n in range(len(values))) if data.draw(st.booleans()) else ()
    args = (
        Argument("s", scalar, Role.SCALAR, constraints=rules_of(single)),
        Argument("x", dtype, Role.IN, ("n",), constraints=rules_of(values, shares=shares)),
        Argument("z", dtype, Role.IN, ("n", "m"), constraints=rules_of(other, sorted=data.draw(st.booleans()))),
        Argument("plain", dtype, Role.IN, ("m", "n"), constraints=Constraints(*limits)),
        Argument("y", dtype, Role.OUT, ("n",)),
    )
    order = data.draw(st.permutations(args))
    plan = Plan((Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", tuple(a.name for a in order)),))
    size = {name: data.draw(st.sampled_from([0, 1, 2, 3, 33, 70])) for name in ("n", "m")}
    contract = Contract("k", tuple(Size(name, 0, 100, (64,)) for name in size), tuple(order), plan)
    case = Case("c", tuple(size.items()), data.draw(st.sampled_from(FAMILIES)), data.draw(st.integers(0, 2**60)),
                kind=data.draw(st.sampled_from(CaseKind)))  # fmt: skip
    together = tuple(a.name for a in order if a.name in ("x", "y"))
    for one in (case, replace(case, aliased=together), replace(case, alignment_bytes=4, apart=("x",))):
        alone = replace(contract, aliasing=(together,)) if one.aliased else contract
        found = build(alone, one)
        for name, array in found.arrays.items():
            rules = alone.argument("x" if one.aliased and name in one.aliased else name).constraints
            if rules.values:
                assert set(np.unique(array).tolist()) <= set(map(int, rules.values)), one
                assert array.dtype == numpy_dtype(alone.argument(name).dtype)
                assert array.flags.c_contiguous
            assert not rules.sorted or (np.sort(array, axis=-1) == array).all()
        assert int(found.scalars["s"].value) in single
        assert found.scalars["s"].dtype == scalar
        formulas = build(alone, one, drawn=True)
        for name, draw in formulas.draws.items():
            assert (draw.values(numpy_dtype(alone.argument(name).dtype)) == found.arrays[name].reshape(-1)).all()
    assert set(repoisoned(contract, case, build(contract, case), 2).arrays["x"].tolist()) <= set(values)


@pytest.mark.parametrize("count", [2, 8, 9, 200])
def test_long_arrays_are_formulas_of_which_any_part_can_be_drawn(count: int) -> None:
    values = tuple(range(-60, -60 + 3 * count, 3))
    x = Argument("x", "int16", Role.IN, ("n",), constraints=rules_of(values, shares=tuple(range(1, count + 1))))
    contract = Contract("k", (Size("n", 1, 1 << 33, (64,)),), (x,), Plan(()))
    far = far_cases(contract, 0)
    assert {case.family for case in far} == {"limits", "normal"}
    for case in far:
        (draw,) = build(contract, case, drawn=True).draws.values()
        found = draw.at(np.linspace(0, case.size_map()["n"] - 1, 9999).astype(np.uint64), np.dtype(np.int16))
        assert set(found.tolist()) <= set(values)
        assert len(set(found.tolist())) == min(count, 2 if case.family == "limits" else 8)
    timed = replace(far[1], sizes=(("n", BLOCK + 5000),), kind=CaseKind.TIMED)
    assert len(np.unique(build(contract, timed).arrays["x"])) == count


def test_a_few_values_at_equal_chance_are_what_limits_would_draw() -> None:
    whole = Argument("x", "int32", Role.IN, ("n",), constraints=Constraints("0", "4"))
    few = replace(whole, constraints=rules_of((-7, 0, 3, 10, 99)))
    table = np.array(few.constraints.values)
    for family in FAMILIES:
        if ":" in family or family in corners.FAMILIES:
            continue  # which go by numbers
        case = Case("c", (("n", 5000),), family, 11)
        plain, listed_ = (
            build(Contract("k", (Size("n", 1, 9000, (64,)),), (a,), Plan(())), case).arrays["x"] for a in (whole, few)
        )
        assert (table[plain] == listed_).all(), family


def test_timed_data_has_each_as_often_as_it_is_said(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    for case in timed_cases(contract, 0):
        arrays = build(contract, case).arrays
        assert np.bincount(arrays["cells"])[[0, 1, 9]] / 40000 == pytest.approx([0.9, 0.0625, 0.0375], abs=0.006)
        assert np.unique(arrays["flags"], return_counts=True)[1] / 40000 == pytest.approx([1 / 3] * 3, abs=0.015)
    drawn = [build(contract, Case("c", (("n", 40000),), "uniform", s)).arrays["cells"] for s in range(9)]
    assert {bool((one == 0).mean() > 0.5) for one in drawn} == {False, True}  # those that follow, and others


def test_equal_lists_echo_one_another_and_others_what_is_in_them(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    assert {n: a.name for n, a in echoes.sources(contract).items()} == {"flags": "key", "text": "key"}
    case = Case("c", (("n", 300),), echoes.ECHO, 5)
    arrays = build(contract, case).arrays
    turned = [np.roll(np.resize(arrays["key"], 300), by) for by in range(3)]
    assert set(arrays["key"].tolist()) <= SETS["flags"]
    for name in ("flags", "text"):
        assert 0.5 < max((arrays[name] == one).mean() for one in turned) < 1, name
    assert set(arrays["flags"].tolist()) <= SETS["flags"]


def test_what_reasons_by_limits_sees_the_ends(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    assert [contract.argument(n).constraints.low for n in ("flags", "spins", "mode")] == ["65", "-1", "0"]
    assert [contract.argument(n).constraints.high for n in ("flags", "spins", "mode")] == ["82", "1", "5"]
    assert flags_of(contract) == {"mode": (0, 2, 5)}
    far = Argument("x", "int32", Role.IN, ("n",), constraints=rules_of((-1000, 0, 1)))
    assert integer_bounds(far, {}) == (-1000, 1)


def test_a_launcher_asks_for_each(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    asked = "(mode == (unsigned int)0LL || mode == (unsigned int)2LL || mode == (unsigned int)5LL)"
    assert asked in conditions(contract, {"n": "n"})
    assert asked in launcher_header("k", contract, contract.plan)
    least = replace(contract.argument("mode"), dtype="int64", constraints=rules_of((-(2**63), 2**63 - 1)))
    args = tuple(least if a.name == "mode" else a for a in contract.args)
    asked = "(mode == (long long)(-9223372036854775807LL - 1) || mode == (long long)9223372036854775807LL)"
    assert asked in conditions(replace(contract, args=args), {"n": "n"})


def test_they_are_shown_as_they_were_stated(tmp_path: Path) -> None:
    before = contract_of(tmp_path)
    text = with_block(TEXT, before)
    assert 'shape = ["n"], values = [65, 78, 82]}' in text
    assert "values = [0, 1, 9], shares = [0.9, 0.0625, 0.0375]}" in text
    assert "values = [-5, 7, 1000], sorted = true}" in text
    assert replace(contract_of(tmp_path, text), origin=before.origin) == before
    assert with_block(text, before) == text


def test_shares_stay_with_their_values(tmp_path: Path) -> None:
    turned = TEXT.replace("[0, 1, 9], shares = [0.9, 0.0625, 0.0375]", "[9, 0, 1], shares = [0.0375, 0.9, 0.0625]")
    assert contract_of(tmp_path, turned).args == contract_of(tmp_path).args


def test_caches_know_them_apart(tmp_path: Path) -> None:
    texts = [
        TEXT,
        TEXT.replace("[82, 65, 78]", "[82, 65, 79]"),
        TEXT.replace("values = [82, 65, 78]", "low = 65, high = 82"),
        TEXT.replace("shares = [0.9,", "shares = [0.8,"),
        TEXT.replace("[5, 0, 2]", "[5, 0, 3]"),
    ]
    digests = set()
    for text in texts:
        (tmp_path / "kernel.cu").write_text(text)
        digests.add(load_kernel(tmp_path / "kernel.cu").contract_digest())
    assert len(digests) == len(texts)


def test_members_of_structures_and_constant_variables_have_them(tmp_path: Path) -> None:
    text = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 4096, timed = 4096}
// [args]
// p.mode = {values = [1, 4]}
// p.values = {shape = ["n"], values = [3, 5]}
// table = {values = [2, 6, 7]}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
struct P { int mode; const int *values; };
__constant__ int table[5];
__global__ void k(P p, int *y, int n)
{
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) y[i] = p.mode * p.values[i] + table[i % 5];
}
"""
    contract = contract_of(tmp_path, text)
    assert {a.name: a.constraints.values for a in contract.args if a.constraints.values} == {
        "p_mode": (1, 4), "p_values": (3, 5), "table": (2, 6, 7),
    }  # fmt: skip
    assert all(within(contract, case) for case in search_cases(contract, contract.plan, 1))
    again = with_block(text, contract)
    assert replace(contract_of(tmp_path, again), origin=contract.origin).args == contract.args


@pytest.mark.parametrize(
    ("old", "new", "says", "line"),
    [
        ("values = [82, 65, 78]", "values = [82, 65], low = 0", "args.flags has values, and low beside them", 6),
        ("values = [82, 65, 78]", "values = [82], value = 82", "args.flags has values, and value beside them", 6),
        ("values = [82, 65, 78]", "values = [82], unique = true", "args.flags has values, and unique beside them", 6),
        ("values = [82, 65, 78]", "values = [82], offsets = 3", "args.flags has offsets, and values beside them", 6),
        ("values = [82, 65, 78]", "values = []", "args.flags: values is []", 6),
        ("values = [82, 65, 78]", "values = 82", "args.flags: values is 82", 6),
        ("values = [82, 65, 78]", "values = [82, 0.5]", "args.flags: values is [82, 0.5]", 6),
        ("values = [82, 65, 78]", 'values = [82, "n"]', "args.flags: values is [82, 'n']", 6),
        ("values = [82, 65, 78]", "values = [82, 65, 82]", "args.flags: values has 82 twice", 6),
        ("values = [82, 65, 78]", "values = [82, 256]", "the values of flags have 256", 6),
        ("values = [-1, 1]", "values = [-129, 1]", "the values of spins have -129", 7),
        ("values = [true]", "values = [0, 2]", "the values of on have 2", 10),
        ("values = [82, 65, 78]", f"values = {list(range(1025))}", "args.flags has 1025 values", 6),
        ("shares = [0.9, 0.0625, 0.0375]", "shares = [0.9, 0.1]", "args.cells: shares is [0.9, 0.1]", 8),
        ("shares = [0.9, 0.0625, 0.0375]", "shares = [1, 1, 0]", "args.cells: shares is [1, 1, 0]", 8),
        ("shares = [0.9, 0.0625, 0.0375]", "shares = [1, 1, inf]", "args.cells: shares is [1, 1, inf]", 8),
        ("shares = [0.9, 0.0625, 0.0375]", "shares = 0.5", "args.cells: shares is 0.5", 8),
        ("values = [0, 1, 9], shares", "shares", "args.cells has shares and no values", 8),
        ("values = [5, 0, 2]", "values = [5, 0], shares = [1, 2]", "the scalar mode has shares", 13),
        ("// y = ", "// n = {values = [1, 2]}\n// y = ", "n is a size, and has values", 14),
        ('{role = "out", shape', '{role = "out", values = [1], shape', "the argument y is out, and says what", 14),
        ("values = [0, 1, 9], shares", 'values = ["0", 1], shares', "args.cells: values is ['0', 1]", 8),
        ("// [sizes]", '// aliasing = [["flags", "text", "key"]]\n// [sizes]', "", 0),
        ("// [sizes]", '// aliasing = [["spins", "on"]]\n// [sizes]',
         "spins and on may overlap, and have different values", 11),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told(tmp_path: Path, old: str, new: str, says: str, line: int) -> None:
    assert old in TEXT
    if not says:
        contract_of(tmp_path, TEXT.replace(old, new))
        return
    with pytest.raises(ContractError) as refused:
        contract_of(tmp_path, TEXT.replace(old, new))
    assert says in refused.value.what
    assert refused.value.where.endswith(f"kernel.cu:{line}")


def test_a_kernel_that_needs_them_passes(tmp_path: Path) -> None:
    contract_of(tmp_path, TEXT.replace("max = 100000000", "max = 100000"))
    assert judge_own(RefineOptions(tmp_path / "kernel.cu", "host")).status == "passed"


def test_a_sidecar_has_them_too(tmp_path: Path) -> None:
    head, _, code = TEXT.partition("// ///\n__global__")
    (tmp_path / "kernel.cu").write_text("__global__" + code)
    toml = "\n".join(line.removeprefix("// ") for line in head.splitlines()[1:])
    (tmp_path / "kernel.fsr.toml").write_text(toml)
    assert load_contract(tmp_path / "kernel.cu").argument("flags").constraints.values == (65, 78, 82)
