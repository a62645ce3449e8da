"""Which corner cases a contract has: few, and none where it has nothing of the kind."""

from __future__ import annotations

import numpy as np

from fsr.contract.model import Argument, Constraints, Contract, Size
from fsr.records import CaseKind, Launch, Plan, Role
from fsr.testgen import corners, families
from fsr.testgen.corner_cases import STRUCTURED_ELEMENTS, corner_cases
from fsr.testgen.fitting import elements
from fsr.testgen.values import build

PLAN = Plan((Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", ("x", "y", "n")),))


def contract(*args: Argument) -> Contract:
    sizes = (Size("rows", 1, 16, (16,)), Size("n", 1, 200_000, (1000,)))
    return Contract("k", sizes, (*args, Argument("y", "float32", Role.OUT, ("n",))), PLAN)


def families_of(*args: Argument) -> list[str]:
    return [case.family for case in corner_cases(contract(*args), 3, 1 << 14)]


def test_floats_alone_have_no_edges_and_no_structures() -> None:
    x = Argument("x", "float32", Role.IN, ("rows", "n"))
    cases = corner_cases(contract(x), 3, 1 << 14)
    ordinary = [c.family for c in cases if c.kind is not CaseKind.LARGE]
    known = ["normal", corners.HALVES, corners.HALVES, families.CLOSE, families.MOTLEY, families.MOTLEY]
    assert ordinary == [*known, corners.TWINS, corners.TWINS, *corners.LEVELS, *corners.LEVELS]
    large = {c.name.split()[0] for c in cases if c.kind is CaseKind.LARGE}
    assert large == {"brim", "uniform", "constant", corners.TWINS, corners.CLIFF}
    assert max(c.size_map()["n"] for c in cases if c.family == "uniform rows") > 1000


def test_sizes_that_no_element_depends_on_are_large_where_sums_lose_what_tells_them_apart() -> None:
    x = Argument("x", "float32", Role.IN, ("640", "480"))
    window = Contract("k", (Size("half", 1, 8, (5,)),), (x, Argument("y", "float32", Role.OUT, ("640", "480"))), PLAN)
    found = [c.size_map()["half"] for c in corner_cases(window, 3, 1 << 14) if c.family in corners.LEVELS]
    assert len(found) >= 8
    assert min(found) >= 4


def test_sizes_stand_at_their_most_where_all_elements_are_alike_and_where_none_are() -> None:
    told = (Argument("x", "int32", Role.IN, ("n",)), Argument("s", "int32", Role.SCALAR, ()))
    cases = [c for c in corner_cases(contract(*told), 3, 1 << 14) if c.name.startswith("brim")]
    assert all(c.size_map()["n"] == 200_000 for c in cases)
    assert {"alternating", families.ends([]), corners.ZERO} <= {c.family for c in cases}
    assert {c.size_map()["rows"] for c in cases} == {16}


def test_nan_where_callers_pass_it() -> None:
    told = Argument("x", "float32", Role.IN, ("rows", "n"), constraints=Constraints(finite=False))
    assert {corners.CROWD, corners.CROWD_ZERO} <= set(families_of(told))


def test_integers_have_edges_and_long_lines_of_a_structure() -> None:
    text = Argument("text", "uint8", Role.IN, ("rows", "n"))
    cases = corner_cases(contract(text, Argument("lens", "int32", Role.IN, ("rows",))), 3, 1 << 14)
    assert {corners.ZERO, corners.MINUS, *corners.STRUCTURES} <= {case.family for case in cases}
    long = [case for case in cases if case.family in corners.STRUCTURES]
    assert all(case.kind is CaseKind.LARGE and case.size_map()["n"] > 20_000 for case in long)
    assert all(elements(contract(text), case.size_map()) <= STRUCTURED_ELEMENTS for case in long)


def test_wide_scalars_have_cases_of_their_own() -> None:
    wide = Argument("s", "uint64", Role.SCALAR, (), constraints=Constraints("0", "2 ** 63 - 1"))
    narrow = Argument("s", "int32", Role.SCALAR, (), constraints=Constraints("0", "100"))
    assert set(families_of(wide)) >= set(corners.WIDE)
    assert not set(families_of(narrow)) & set(corners.WIDE)
    assert corners.ZERO in families_of(narrow)


def test_arguments_with_limits_stand_at_their_ends_together_and_each_alone() -> None:
    limits = Constraints("-2", "2")
    told = [Argument(name, "float32", Role.IN, ("rows", "n"), constraints=limits) for name in ("p", "q")]
    told.append(Argument("i", "int32", Role.IN, ("rows",), constraints=Constraints("0", "n - 1")))
    the = contract(*told, Argument("free", "float32", Role.IN, ("n",)))
    cases = [c for c in corner_cases(the, 3, 1 << 14) if c.family.startswith(families.ENDS)]
    seen = set()
    for one in cases:
        arrays = build(the, one).arrays
        last = one.size_map()["n"] - 1
        assert all(np.unique(arrays[name]).size == 1 for name in ("p", "q", "i", "free"))
        seen.add((float(arrays["p"].flat[0]), float(arrays["q"].flat[0]), int(arrays["i"].flat[0]) == last))
    assert {(2.0, -2.0, True), (-2.0, 2.0, True), (2.0, 2.0, False), (-2.0, -2.0, False), (2.0, 2.0, True)} <= seen


def test_arrays_of_a_whole_type_stand_at_its_ends_against_each_other() -> None:
    told = [Argument(name, "uint64", Role.IN, ("rows", "n")) for name in ("p", "q")]
    free = Argument("free", "int32", Role.IN, ("n",))
    cases = [c for c in corner_cases(contract(*told, free), 3, 1 << 14) if c.name.startswith("ends")]
    seen = [build(contract(*told, free), one).arrays for one in cases]
    assert {(int(a["p"].flat[0]), int(a["q"].flat[0])) for a in seen} >= {(0, 2**64 - 1), (2**64 - 1, 0)}
    assert all(abs(int(a["free"].flat[0])) <= 4096 for a in seen)


def test_each_size_is_nought_where_the_others_are_not() -> None:
    sizes = (Size("rows", 0, 100, (8,)), Size("cols", 0, 100, (8,)), Size("k", 1, 100, (8,)))
    args = (Argument("x", "float32", Role.IN, ("rows", "k")), Argument("y", "float32", Role.INOUT, ("cols",)))
    made = [c.size_map() for c in corner_cases(Contract("k", sizes, args, PLAN), 1, 1 << 14) if "empty" in c.name]
    assert [sorted(name for name, value in one.items() if value == 0) for one in made] == [["rows"], ["cols"]]
    assert all(min(v for v in one.values() if v) > 3 for one in made)
    alone = Contract("k", sizes[:1], (Argument("x", "float32", Role.IN, ("rows",)),), PLAN)
    assert not [c for c in corner_cases(alone, 1, 1 << 14) if "empty" in c.name]
