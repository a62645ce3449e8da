"""A candidate that was faster at the timed sizes only comes back as one that is used there alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.records import SLOWER_ELSEWHERE, Status
from fsr.search.refinement import Refinement
from tests.search.scripted import Knob, deterministic, timed


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
