"""A run says in a sentence why it ended as it did."""

from __future__ import annotations

from typing import Any

import pytest

from fsr.records import Outcome, Status
from fsr.runs.state import Ended, RunState
from fsr.runs.why import why
from fsr.search.proposal import Proposal, Trial
from tests.search.scripted import BASELINE, timed

TRIAL = Trial(Proposal(1, BASELINE, "h1", 0, "tile@loop:j[n=8]", "action"), timed(500.0))


def ambiguous() -> Outcome:
    verdict: Any = {"kind": "ambiguous", "speedup": 1.04, "ci95": [0.98, 1.1]}
    return Outcome(Status.CORRECT, "promotion", evidence={"kind": "ambiguous", "verdict": verdict})


def said(ended: Ended | None = Ended.SPACE, *, winner: Trial | None = None, predicted: bool = True, **more: Any) -> str:
    state = RunState("r", "k", 60.0, ended=ended, needed_s=90.0, **more)
    return why(state, winner, actions=34, predicted=predicted)


def test_nothing_applied_says_what_was_looked_for() -> None:
    assert said().startswith("nothing applied: none of the 34 actions found a place")


def test_too_small_a_budget_says_what_is_needed() -> None:
    assert "left no time to try" in said(Ended.TOO_SHORT)
    assert "give about 90 s" in said(Ended.TOO_SHORT)
    assert "its verdict needs more time: give about 90 s in all" in said(Ended.BUDGET, told=9, unjudged=TRIAL)


@pytest.mark.parametrize(("predicted", "settles"), [(True, "timing on the GPU itself"), (False, "a longer budget")])
def test_an_ambiguous_best_says_what_would_settle_it(predicted: bool, settles: str) -> None:
    text = said(told=7, refusals=[(TRIAL, ambiguous())], predicted=predicted)
    assert "of 7 candidates tried the best, tile@loop:j[n=8], is not clearly faster" in text
    assert "1.04x [0.98, 1.1]" in text
    assert f"; {settles}" in text


def test_a_best_that_is_no_faster_needs_no_settling() -> None:
    verdict: dict[str, Any] = {"kind": "ambiguous", "speedup": 1.0, "ci95": [0.667, 1.5]}
    same = Outcome(Status.CORRECT, "promotion", evidence={"kind": "ambiguous", "verdict": verdict})
    text = said(told=1, refusals=[(TRIAL, same)], predicted=True)
    assert text == "the one candidate tried, tile@loop:j[n=8], is no faster: ambiguous, 1x [0.667, 1.5]"


def test_a_best_that_failed_and_one_that_is_slower_elsewhere() -> None:
    wrong = Outcome(Status.WRONG, "promotion", evidence={"kind": "race", "case": "held-out 3"})
    assert said(told=7, refusals=[(TRIAL, wrong)]).endswith("failed its held-out tests: race on held-out 3")
    slower = Outcome(Status.CORRECT, "promotion", evidence={"kind": "slower elsewhere", "detail": "slower at n = 3"})
    assert said(told=7, refusals=[(TRIAL, slower)]).endswith("did not stand: slower at n = 3")


def test_one_that_was_not_faster() -> None:
    state = RunState("r", "k", 60.0, ended=Ended.BUDGET)
    state.count(Outcome(Status.SLOW, "tests"))
    text = why(state, None, actions=34, predicted=False)
    assert text == "the one candidate tried was not faster than the original (1 slow); a longer budget would try more"


def test_none_faster_counts_what_became_of_them() -> None:
    state = RunState("r", "k", 60.0, ended=Ended.BUDGET)
    for status in (Status.SLOW, Status.SLOW, Status.WRONG):
        state.count(Outcome(status, "tests"))
    text = why(state, None, actions=34, predicted=False)
    assert "none of the 3 candidates tried was faster" in text
    assert "2 slow, 1 refused by the tests" in text
    assert "timed sizes only" not in text
    state.count(Outcome(Status.SLOW, "screening", evidence={"kind": "slower elsewhere", "detail": "slower at n=3"}))
    text = why(state, None, actions=34, predicted=False)
    assert (
        "2 slow, 1 slower elsewhere, 1 refused by the tests; those slower elsewhere were faster at the timed sizes only"
        in text
    )
    assert "a longer budget would try more" in text


def test_a_win_says_what_it_passed_and_a_stop_that_nothing_was_tried() -> None:
    assert said(winner=TRIAL, told=9) == "the fastest of 9 candidates that passed every held-out test and the final"
    assert said(Ended.STOPPED) == "stopped before a candidate was tried"


def test_candidates_that_fail_beyond_what_the_contract_says_are_told_of() -> None:
    state = RunState("r", "k", 60.0)
    state.count(Outcome(Status.WRONG, "tests", evidence={"got": "nan"}))
    state.note_unstated()
    assert state.notes == []
    for name in ("x", "w", "x"):
        state.count(Outcome(Status.WRONG, "tests", evidence={"unlimited": name, "remark": f"{name} holds 1e38"}))
    state.note_unstated()
    assert state.notes[0].startswith("3 candidates failed on huge or tiny values of w and x, for which the contract")
