"""Which corner cases a contract has: few, and none where it has nothing of the kind."""

from __future__ import annotations

from fsr.contract.model import Argument, Constraints, Contract, Size
from fsr.records import CaseKind, Launch, Plan, Role
from fsr.testgen import corners
from fsr.testgen.cases import elements
from fsr.testgen.corner_cases import STRUCTURED_ELEMENTS, corner_cases

PLAN = Plan((Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", ("x", "y", "n")),))


def contract(*args: Argument) -> Contract:
    sizes = (Size("rows", 1, 16, (16,)), Size("n", 1, 200_000, (1000,)))
    return Contract("k", sizes, (*args, Argument("y", "float32", Role.OUT, ("n",))), PLAN)


def families_of(*args: Argument) -> list[str]:
    return [case.family for case in corner_cases(contract(*args), 3, 1 << 14)]


def test_floats_alone_are_met_at_related_sizes_only() -> None:
    assert families_of(Argument("x", "float32", Role.IN, ("rows", "n"))) == ["normal"]


def test_nan_where_callers_pass_it() -> None:
    told = Argument("x", "float32", Role.IN, ("rows", "n"), constraints=Constraints(finite=False))
    assert families_of(told).count(corners.CROWD) == 2


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
