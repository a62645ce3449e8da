"""A candidate that was faster at the timed sizes only comes back as one that is used there alone."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from fsr.contract.model import Size
from fsr.identity import outcome_from_json, to_json
from fsr.records import SLOWER_ELSEWHERE, Basis, Outcome, Status, Timing
from fsr.search.configurations import gain_where_faster, slower_at_some, speedups, where_faster
from fsr.search.configurations import told as told_of_each
from fsr.search.proposal import Rules, Space
from fsr.search.proposers.deterministic import Deterministic
from fsr.search.refinement import Refinement
from tests.search.scripted import BASELINE, CONTRACT, Knob, deterministic, timed


def told(time_ns: float) -> Refinement:
    """After one candidate of that time, where the original takes 100."""
    found = deterministic((Knob("tile", (8,)), Knob("unroll", (2,))), seed=3)
    found.tell(found.ask().id, timed(100.0))  # type: ignore[union-attr]
    outcome = replace(timed(time_ns), status=Status.SLOW, evidence={"kind": SLOWER_ELSEWHERE})
    found.tell(found.ask().id, outcome)  # type: ignore[union-attr]
    return found


def test_it_comes_next() -> None:
    found = told(50.0)
    next_ = found.ask()
    assert next_ is not None
    assert (next_.parent, next_.origin, next_.move) == (1, "by-size", "by-size@plan[where=(n==10)]")
    assert next_.candidate.actions[:-1] == found.trial(1).proposal.candidate.actions
    assert [launch.grid[0] for launch in next_.candidate.plan.launches] == [
        "(1) if (n == 10) else 0", "0 if (n == 10) else (1)",
    ]  # fmt: skip
    after = found.ask()
    assert after is not None
    assert after.origin != "by-size", "once is enough"


@pytest.mark.parametrize("time_ns", [95.0, 120.0])
def test_what_is_hardly_faster_is_let_go(time_ns: float) -> None:
    next_ = told(time_ns).ask()
    assert next_ is not None
    assert next_.origin != "by-size"


TWICE = replace(CONTRACT, sizes=(Size("n", 1, 10, (10, 4)),))


def of_each(*each_ns: float) -> Outcome:
    """A right candidate of these times at the two configurations."""
    mean = math.sqrt(each_ns[0] * each_ns[1])
    outcome = timed(mean)
    return replace(outcome, timing=Timing(Basis.MEASURED, mean, (mean,), "", each_ns))


def after(*each_ns: float, original: tuple[float, float] = (100.0, 100.0)) -> Refinement:
    """After one candidate of these times."""
    space = Space(Rules(TWICE), (Knob("tile", (8,)), Knob("unroll", (2,))))
    found = Refinement(BASELINE, space, [Deterministic(3)])
    found.tell(found.ask().id, of_each(*original))  # type: ignore[union-attr]
    found.tell(found.ask().id, of_each(*each_ns))  # type: ignore[union-attr]
    return found


@pytest.mark.parametrize(("each_ns", "where"), [
    ((30.0, 120.0), "(n==10)"),
    ((130.0, 20.0), "(n==4)"),
    ((30.0, 101.0), None),  # by no more than samples vary
    ((30.0, 80.0), None),
    ((120.0, 130.0), None),
    ((95.0, 300.0), None),  # all in all hardly faster, wherever it is used
])  # fmt: skip
def test_what_is_slower_at_one_timed_size_is_used_at_the_other(each_ns: tuple[float, float], where: str | None) -> None:
    refinement = after(*each_ns)
    next_ = refinement.ask()
    assert next_ is not None
    assert (next_.origin == "by-size") == (where is not None)
    if where is None:
        return
    assert next_.move == f"by-size@plan[where={where}]"
    refinement.tell(next_.id, of_each(*(min(ns, 100.0) for ns in each_ns)))
    assert refinement.archive.best is not None
    assert refinement.archive.best.proposal.id == next_.id
    assert all(p is None or p.origin != "by-size" for p in (refinement.ask(), refinement.ask())), "once is enough"


def test_speed_ups_at_each_configuration() -> None:
    refinement = after(50.0, 200.0, original=(100.0, 150.0))
    found = speedups(refinement.trial(0), refinement.trial(1))
    assert found == [2.0, 0.75]
    assert where_faster(TWICE, found) == [{"n": 10}]
    assert gain_where_faster(found) == pytest.approx(math.sqrt(2.0))
    assert where_faster(TWICE, []) == [{"n": 10}, {"n": 4}]
    assert not slower_at_some([])
    low, high = (told_of_each(TWICE, found)[1][end] for end in ("low", "high"))
    assert float(str(low)) < 0.75 < float(str(high)) < 1.0
    assert speedups(None, refinement.trial(1)) == []


def test_times_of_each_outlive_a_log() -> None:
    outcome = of_each(3.0, 12.0)
    again = outcome_from_json(json.loads(json.dumps(to_json(outcome))))
    assert again == outcome
    before = to_json(outcome)
    before["timing"].pop("each_ns")  # type: ignore[index,union-attr,call-arg]
    assert outcome_from_json(before).timing.each_ns == ()  # type: ignore[union-attr]
