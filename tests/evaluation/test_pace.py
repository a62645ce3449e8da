"""Which cases are passed over where threads cost time."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from fsr.backends.backend import Limits
from fsr.contract.model import Contract, Size
from fsr.evaluation import pace
from fsr.evaluation.pace import Pace
from fsr.records import Case, CaseKind, Plan

LIMITS = Limits(elements=1 << 14, threads=1 << 18, thread_s=1e-5)


def case(threads: int, kind: CaseKind = CaseKind.SEARCH) -> Case:
    return Case("c", (("n", threads),), "normal", 0, kind=kind)


def paced(original: int = 1, **changed: object) -> Pace:
    known = {"limits": LIMITS, "budget_s": 300.0, "cramped": False} | changed
    return Pace(own=lambda c: c.size_map()["n"], original=lambda _: original, **known)  # type: ignore[arg-type]


def test_many_threads_wait_for_no_case_but_those_that_are_named_or_the_only_ones() -> None:
    many = 1 << 19
    assert paced().crowded(case(many))
    assert not paced().crowded(case(1 << 18))
    assert not paced().crowded(case(many, CaseKind.NAMED))
    assert not paced(cramped=True).crowded(case(many))
    assert not paced(limits=Limits(elements=1)).crowded(case(many))


def test_values_that_only_many_threads_would_meet_come_at_smaller_sizes() -> None:
    contract = Contract("k", (Size("n", 1, 1 << 24, (64,)),), (), Plan(()))
    of, many = paced(), case(1 << 19)
    smaller = of.fitting(many, contract)
    assert smaller is not None
    assert 1 << 16 < smaller.size_map()["n"] <= 1 << 18
    assert replace(smaller, sizes=many.sizes) == many
    of.took(smaller, 0.1)
    assert of.fitting(many, contract) is None
    assert of.fitting(replace(many, family="wide"), contract) is not None
    assert of.fitting(case(8), contract) == case(8)
    least = replace(contract, sizes=(Size("n", 1 << 19, 1 << 24, (1 << 20,)),))
    assert paced().fitting(many, least) is None
    assert paced().fitting(case(1 << 22, CaseKind.LARGE), contract) is None


def test_large_ones_come_where_the_original_or_what_threads_cost_so_far_allows() -> None:
    large = case(1 << 22, CaseKind.LARGE)
    assert paced().crowded(large)
    assert not paced(original=1 << 21).crowded(large)
    quick, slow = paced(), paced()
    quick.took(case(1 << 14), 1e-7 * (1 << 14))
    slow.took(case(1 << 14), 1e-5 * (1 << 14))
    slow.took(case(8), 0.0)  # says nothing
    assert not quick.crowded(large)
    assert slow.crowded(large)


def test_the_time_for_large_ones_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    told, now = paced(budget_s=100.0), [1000.0]
    monkeypatch.setattr(pace.time, "monotonic", lambda: now[0])
    assert not told.over(case(1, CaseKind.LARGE))
    now[0] += 3.5
    assert told.over(case(1, CaseKind.LARGE))
    assert not told.over(case(1))
    assert time.monotonic() == now[0]
