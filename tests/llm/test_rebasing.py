"""Edits made on another candidate than they were made for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.llm.rebasing import Edit, rebased
from fsr.records import Candidate
from fsr.search.proposal import Trial
from tests.llm.kernels import search, timed, trial
from tests.search.scripted import BASELINE

TEXT = "".join(f"line {n}\n" for n in range(1, 9))


def candidate(*changes: tuple[str, str]) -> Candidate:
    source = TEXT
    for old, new in changes:
        source = source.replace(old, new)
    return Candidate(source, BASELINE.plan)


@pytest.mark.parametrize(
    "mine",
    [("line 2\n", "other"), ("line 2\n", ""), ("line 2\n", "line 2\nmore\nmore\n"), ("line 1\n", "first\nline 1\n")],
)  # fmt: skip
@pytest.mark.parametrize("theirs", [("line 6\n", "better 6\n"), ("line 6\n", ""), ("line 8\n", "line 8\nlast\n")])
def test_changes_at_different_places_are_joined(mine: tuple[str, str], theirs: tuple[str, str]) -> None:
    onto = replace(candidate(theirs), actions=("a move",))
    assert rebased(candidate(mine), candidate(), onto) == replace(candidate(mine, theirs), actions=("a move",))


@pytest.mark.parametrize("theirs", ["line 4\n", "line 5\n", "line 3\n"])
def test_changes_of_the_same_lines_or_their_neighbours_are_not(theirs: str) -> None:
    assert rebased(candidate(("line 4\n", "mine\n")), candidate(), candidate((theirs, "theirs\n"))) is None


def test_a_plan_is_taken_from_whoever_changed_it_and_two_changes_of_it_are_not_joined() -> None:
    first, second = (replace(BASELINE.plan, flags=(flag,)) for flag in ("-a", "-b"))
    mine, theirs = candidate(("line 2", "mine 2")), candidate(("line 6", "theirs 6"))
    for changed, onto in ((first, BASELINE.plan), (BASELINE.plan, first)):
        joined = rebased(replace(mine, plan=changed), candidate(), replace(theirs, plan=onto))
        assert joined is not None
        assert joined.plan == first
    assert rebased(replace(mine, plan=first), candidate(), replace(theirs, plan=second)) is None


def test_an_edit_of_what_is_written_gets_the_moves_of_the_best_again() -> None:
    refinement = search()
    view = refinement.view()
    action, move = next((a, m) for a, m in view.space.moves(view.baseline) if a.name == "unroll")
    best = trial(1, view.space.applied(view.baseline, action, move) or view.baseline, timed(5_000.0))
    best = Trial(replace(best.proposal, parent=0, origin="action"), best.outcome)
    view = replace(view, trials=(*view.trials, best), elites=(best, *view.elites))
    changed = replace(view.baseline, source=view.baseline.source.replace("float sum = 0.0f", "float sum = -0.0f"))
    text, made = Edit(view.baseline, changed, "coder", "m").on(best, view) or (view.baseline, view.baseline)
    assert text.source == changed.source
    assert made.actions[1:] == (move.name,)
    assert made.source.replace("-0.0f", "0.0f") == best.proposal.candidate.source
