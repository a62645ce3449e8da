"""How many cases a kernel of fixed, large sizes is tested on, and which."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fsr.contract.model import Size
from fsr.evaluation.session import CASES_LEAST, Session
from fsr.records import Case

FAMILIES = ["normal", "cancelling", "normal", "denormals", "uniform", "normal", "far rows", "ones", "normal", "wide"]
CASES = [Case(f"c{i}", (("n", 512),), family, i) for i, family in enumerate(FAMILIES * 3)]


def kept(smoke_s: float, *sizes: Size) -> tuple[list[Case], list[str]]:
    """``smoke_s``: what the original's first answer, of two runs, took."""
    contract = SimpleNamespace(sizes=sizes)
    session: Any = SimpleNamespace(
        contract=contract, spec=SimpleNamespace(budget_s=60.0), notes=[], _smoke_s=smoke_s,
        expected=lambda case: None, smoke_case=lambda: CASES[0],
    )  # fmt: skip
    return Session.affordable(session, CASES), session.notes


@pytest.mark.parametrize("sizes", [(), (Size("n", 512, 512, (512,)),)])
def test_dear_cases_of_fixed_sizes_are_fewer_and_keep_every_family_they_can(sizes: tuple[Size, ...]) -> None:
    found, notes = kept(4.0, *sizes)
    assert len(found) == CASES_LEAST == len({case.family for case in found})
    assert {"normal", "uniform", "wide"} <= {case.family for case in found}
    assert f"{CASES_LEAST} of 30 test cases" in notes[0]


def test_cheap_ones_all_stay() -> None:
    assert kept(0.4) == (CASES, [])


def test_no_load_of_the_machine_takes_cases_from_a_kernel_that_has_small_sizes() -> None:
    assert kept(60.0, Size("n", 0, 512, (512,))) == (CASES, [])
