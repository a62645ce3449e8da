"""Defects are counted by action and kind, for candidates that actions alone made."""

from __future__ import annotations

from fsr.records import Candidate, Outcome, Plan, Status
from fsr.search.defects import defects_of
from fsr.search.proposal import Proposal, Trial


def trial(move: str, status: Status, stage: str = "tests", origin: str = "action") -> Trial:
    proposal = Proposal(1, Candidate("", Plan(())), "", 0, move, origin)
    return Trial(proposal, Outcome(status, stage))


def test_failures_are_counted_by_action_and_kind():
    trials = [
        trial("vectorize@loop:j[width=4]", Status.COMPILE_FAILED, "compile"),
        trial("vectorize@loop:j[width=2]", Status.COMPILE_FAILED, "compile"),
        trial("vectorize@loop:i[width=2]", Status.WRONG),
        trial("unroll@loop:i[factor=2]", Status.CRASHED, origin="retune"),
        trial("unroll@loop:i[factor=4]", Status.TIMED_OUT),
        trial("restrict@kernel", Status.INVALID, "guard"),
    ]
    assert defects_of(trials) == {
        "restrict": {"refused": 1},
        "unroll": {"crashed": 1, "timed out": 1},
        "vectorize": {"not compiled": 2, "wrong": 1},
    }
    assert list(defects_of(trials)) == ["restrict", "unroll", "vectorize"]


def test_what_is_right_or_not_of_an_action_is_no_defect():
    trials = [
        trial("baseline", Status.CORRECT, origin="baseline"),
        trial("unroll@loop:i", Status.SLOW, "screening"),
        trial("unroll@loop:i", Status.CORRECT),
        trial("unroll@loop:i", Status.PROMOTED, "promotion"),
        trial("block-size@launch", Status.INVALID, "screening"),  # more than the device has
        trial("given", Status.WRONG, origin="given"),
        trial("a model's idea", Status.COMPILE_FAILED, "compile", origin="model"),
    ]
    assert defects_of(trials) == {}
