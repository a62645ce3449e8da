"""A failing case becomes small enough to follow, and still fails."""

from __future__ import annotations

from fsr.contract.model import Argument, Contract, Size
from fsr.records import Case, CaseKind, Launch, Plan, Role
from fsr.testgen.shrink import shrink

PLAN = Plan((Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", ("x",)),))
CONTRACT = Contract(
    "k", (Size("n", 0, 9999, (5,)), Size("m", 4, 9999, (5,))), (Argument("x", "float32", Role.INOUT, ("n", "m")),), PLAN
)
CASE = Case("found", (("n", 777), ("m", 345)), "cancelling", 123456789, 4)


def test_sizes_shrink_to_the_smallest_that_fails() -> None:
    found = shrink(CASE, lambda c: c.size_map()["n"] > 32, 60, CONTRACT)
    assert found.size_map() == {"n": 33, "m": 4}
    assert found.name == "found (shrunk)"


def test_values_memory_and_seed_become_simple_after_the_sizes() -> None:
    found = shrink(CASE, lambda c: c.size_map()["n"] >= 1, 60, CONTRACT)
    assert (found.size_map(), found.family, found.alignment_bytes, found.seed) == ({"n": 1, "m": 4}, "zeros", 256, 0)


def test_what_matters_is_kept() -> None:
    found = shrink(CASE, lambda c: c.family == "cancelling" and c.alignment_bytes == 4, 60, CONTRACT)
    assert (found.size_map(), found.family, found.alignment_bytes) == ({"n": 0, "m": 4}, "cancelling", 4)


def test_the_budget_holds_and_no_case_runs_twice() -> None:
    seen: list[Case] = []

    def fails(case: Case) -> bool:
        seen.append(case)
        return case.size_map()["n"] * case.size_map()["m"] > 1000

    shrink(CASE, fails, 17, CONTRACT)
    assert len(seen) == 17
    assert len(set(seen)) == 17


def test_a_case_that_only_fails_as_it_is_stays() -> None:
    assert shrink(CASE, lambda c: False, 30) == CASE


def test_aliasing_is_dropped_when_it_does_not_matter() -> None:
    case = Case("a", (("n", 1),), "zeros", 0, 256, ("x", "y"))
    assert shrink(case, lambda c: True, 10).aliased == ()


def test_a_case_for_a_size_that_the_candidate_names_is_told_as_it_is() -> None:
    case = Case("any name", (("n", 4096),), "normal", 77, kind=CaseKind.NAMED)
    assert shrink(case, lambda c: True, 10, CONTRACT) == case
