"""Which condition on the sizes times speak for, and at which sizes it is tried."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from fsr.contract.model import Contract, Size
from fsr.evaluation import elsewhere, where
from fsr.evaluation.spec import WhereRequest
from fsr.evaluation.where import Condition, Times, conditions, probes, where_task
from fsr.records import Case, Json, Plan, Status

TIMED = {"n": 4096, "w": 512, "c": 3}
CONTRACT = Contract("k", (Size("n", 1, 8192, (4096,)), Size("w", 1, 1024, (512,)), Size("c", 3, 3, (3,))), (), Plan(()))


def times(good: list[tuple[int, int]], slower: list[tuple[int, int]]) -> Times:
    found = Times([TIMED])
    for many, speedup in ((good, 1.2), (slower, 0.7)):
        for n, w in many:
            found.note({"sizes": {"n": n, "w": w, "c": 3}, "speedup": speedup, "low": speedup, "high": speedup})
    return found


@pytest.mark.parametrize(("good", "slower", "text"), [
    ([], [(4095, 511), (4097, 513)], "n % 32 == 0"),
    ([(2459, 308)], [(3277, 411), (4095, 511)], "w % 2 == 0"),
    ([(4098, 512)], [(4095, 512), (4097, 512), (4094, 510)], "(n % 2 == 0) * (n >= 4096)"),
    ([(4095, 512), (4097, 512)], [(2458, 306), (3276, 410)], "w % 32 == 0"),
    ([(3277, 512), (4095, 512)], [(2048, 512)], "n >= 3277"),
    ([(3277, 512), (2048, 512)], [(8192, 512)], "n <= 4096"),
    ([(4097, 510)], [(2048, 510), (4097, 408)], "n * w >= 2089470"),
    ([(4095, 512)], [(2048, 512), (4095, 516)], "(w % 32 == 0) * (n >= 4095)"),
], ids=str)  # fmt: skip
def test_the_simplest_condition_that_tells(good: Any, slower: Any, text: str) -> None:
    found = next(conditions(CONTRACT, times(good, slower)))
    assert found.text == text


def test_only_the_timed_sizes_are_left_where_nothing_else_tells() -> None:
    around = [(n, w) for n in (4096, 4064, 4128, 8192, 64) for w in (512, 480, 544, 1024, 32) if (n, w) != (4096, 512)]
    assert [c.text for c in conditions(CONTRACT, times([], around))][-1] == "(n == 4096)*(w == 512)"


TWICE = Contract("k", (Size("n", 1, 8192, (4096, 8192)), Size("w", 1, 1024, (512, 6))), (), Plan(()))


def at(n: int, w: int, speedup: float) -> dict[str, Json]:
    return {"sizes": {"n": n, "w": w}, "speedup": speedup, "low": speedup, "high": speedup}


@pytest.mark.parametrize(("found", "text"), [
    ([at(4096, 512, 1.5), at(8192, 6, 0.99)], "w % 32 == 0"),  # less than at others, but a final has many pairs
    ([at(4096, 512, 1.5), at(8192, 6, 1.0)], "n % 32 == 0"),
    ([at(4096, 512, 0.9), at(8192, 6, 1.2)], "n >= 8192"),
    ([at(4096, 512, 0.9), at(8192, 6, 0.9)], None),
])  # fmt: skip
def test_a_timed_size_at_which_it_is_slower(found: list[dict[str, Json]], text: str | None) -> None:
    told = where.timed(TWICE, found)
    assert next((c.text for c in conditions(TWICE, told)), None) == text


def test_where_it_is_as_fast_it_need_not_hold() -> None:
    told = where.timed(TWICE, [at(4096, 512, 1.5), at(8192, 6, 0.9)])
    for n, w in itertools.product((1, 31, 4097, 8191), (1, 5, 7, 31, 511, 513, 1024)):
        told.note(at(n, w, 1.0 if w % 2 else 0.7))
    assert [c.text for c in conditions(TWICE, told)][-1] == "(n == 4096)*(w == 512)"
    assert next(conditions(TWICE, told)).text == "(n % 32 == 0) * (n <= 4096)"  # nought of what is as fast


def test_what_the_timed_sizes_belie_is_none() -> None:
    assert not list(conditions(CONTRACT, times([], [(4096, 512)])))


def test_multiples_are_tried_at_odd_ones() -> None:
    found = [case.size_map() for case in probes(CONTRACT, 1, Condition("w % 4 == 0", (("w", 4),)))]
    assert len(found) == 4
    assert all(sizes["w"] % 8 == 4 for sizes in found)
    assert not probes(CONTRACT, 1, Condition("n >= 8"))


SESSION = SimpleNamespace(contract=CONTRACT, spec=SimpleNamespace(seed=1))


def told(
    monkeypatch: pytest.MonkeyPatch, faster: Callable[[Mapping[str, int]], bool]
) -> tuple[Any, list[dict[str, int]]]:
    """The outcome for a candidate that is faster there, and where it was timed."""
    looked = list[dict[str, int]]()

    def speedup_at(session: Any, candidate: Any, binaries: Any, case: Case) -> dict[str, Json]:
        looked.append(case.size_map())
        ratio = 1.3 if faster(case.size_map()) else 0.6
        return {"sizes": dict(case.sizes), "speedup": ratio, "low": ratio, "high": ratio}

    monkeypatch.setattr(where, "session_of", lambda spec: SESSION)
    for module in (where, elsewhere):  # what it asks itself, and what it has asked beside the timed sizes
        monkeypatch.setattr(module, "speedup_at", speedup_at)
    return where_task(WhereRequest(None, None, None)), looked  # type: ignore[arg-type]


def test_multiples_of_a_number_that_is_too_small_do_not_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, looked = told(monkeypatch, lambda sizes: sizes["w"] % 8 == 0)
    assert outcome.status is Status.CORRECT
    assert outcome.evidence["where"] == "w % 8 == 0"
    assert any(sizes["w"] % 8 == 4 for sizes in looked), "multiples of 4 were not tried"
    assert len(outcome.evidence["at"]) == len(looked)


def test_none_that_the_times_bear_out(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, _ = told(monkeypatch, lambda sizes: False)
    assert outcome.status is Status.CORRECT
    assert outcome.evidence["where"] == "(n == 4096)*(w == 512)"
