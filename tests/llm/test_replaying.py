"""A run again without its models, where outcomes come in another order: each suggestion keeps its place."""

from __future__ import annotations

from fsr.llm.replaying import Line, Replayed
from fsr.search.proposal import Rules, Space
from fsr.search.proposers.deterministic import Deterministic
from fsr.search.refinement import Refinement
from tests.search.scripted import BASELINE, CONTRACT, Knob, timed

KNOB = Knob("tile", (4, 8, 16, 32, 64, 128))


def replayed(*lines: tuple[int, int, int, str]) -> Refinement:
    """A search with its baseline told, and a script of choices: id, outcomes told then, parent, move."""
    script = [Line(*line, kind="chooser", cost=0.0, provenance={}, prompt=None, answer="") for line in lines]
    space = Space(Rules(CONTRACT), (KNOB,))
    search = Refinement(BASELINE, space, [Deterministic(1)], punctual=[Replayed("m", script)])
    first = search.ask()
    assert first is not None
    search.tell(0, timed(1000.0))
    return search


def asked(search: Refinement) -> list[str]:
    """Who gets the next ids, until nobody is given one."""
    found = []
    while (proposal := search.ask()) is not None and len(found) < 4:
        found.append(proposal.proposer)
    return found


def test_nobody_takes_the_place_of_a_suggestion_whose_outcomes_are_still_to_come() -> None:
    search = replayed((3, 3, 0, "tile@kernel[v=64]"))
    assert asked(search) == ["deterministic"] * 2  # the third waits: two outcomes had been told before it, not one
    search.tell(2, timed(900.0))
    assert asked(search) == []
    search.tell(1, timed(950.0))
    assert asked(search)[0] == "m"


def test_a_suggestion_waits_for_what_it_was_made_from() -> None:
    search = replayed((3, 2, 2, "tile@kernel[v=64]"))
    assert asked(search) == ["deterministic"] * 2
    search.tell(1, timed(950.0))
    assert asked(search) == []  # its parent is the other one


def test_a_run_that_has_become_another_one_goes_on() -> None:
    search = replayed((1, 9, 0, "tile@kernel[v=64]"))
    assert asked(search)[0] == "deterministic"
