"""What of a candidate was written, and the moves made on it again."""

from __future__ import annotations

from dataclasses import replace

from fsr.identity import candidate_hash, to_json
from fsr.records import Candidate
from fsr.search.lineage import WRITTEN, Written, remade, written
from fsr.search.proposal import Proposal, Rules, Space, Trial
from tests.search.scripted import BASELINE, CONTRACT, Knob, timed

SPACE = Space(Rules(CONTRACT), (Knob("tile", (4, 8)), Knob("unroll", (2, 4))))
TILE, UNROLL = "tile@kernel[v=8]", "unroll@kernel[v=2]"


def trial(number: int, candidate: Candidate, parent: int | None, origin: str, **told: object) -> Trial:
    return Trial(
        Proposal(number, candidate, candidate_hash(candidate), parent, "", origin, provenance=told), timed(9.0)
    )


def test_moves_lead_back_to_what_was_written_and_are_made_again_on_a_change_of_it() -> None:
    tiled = remade(BASELINE, (TILE, UNROLL), SPACE)
    assert tiled.actions == (TILE, UNROLL)
    first, last = trial(0, BASELINE, None, "baseline"), trial(2, tiled, 1, "retune")
    middle = trial(1, remade(BASELINE, (TILE,), SPACE), 0, "action")
    assert written(last, [first, middle, last]) == Written(BASELINE, (TILE, UNROLL))
    edited = replace(BASELINE, source=BASELINE.source.replace("1.0f", "2.0f"), actions=("coder@m[1]",))
    again = remade(edited, ("gone@kernel", TILE), SPACE)
    assert again.actions == ("coder@m[1]", TILE)
    assert "2.0f" in again.source
    merged = trial(3, again, 2, "coder", **{WRITTEN: to_json(edited)})
    moved = trial(4, remade(again, (UNROLL,), SPACE), 3, "action")
    assert written(moved, [first, merged, moved]) == Written(edited, (TILE, UNROLL))


def test_a_trial_whose_way_is_not_known_is_written_as_a_whole() -> None:
    given = replace(BASELINE, actions=("elsewhere@kernel",))
    assert written(trial(5, given, 3, "action"), []) == Written(given, ())
    odd = trial(6, BASELINE, 5, "action")
    assert written(odd, [trial(5, given, 0, "given"), odd]) == Written(BASELINE, ())
