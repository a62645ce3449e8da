"""What of a candidate was written by somebody, and which moves were made on it since.

A text is changed best where it is short: before moves unrolled, vectorised or tiled it. The change is made there, and
then the same moves again, which is what separating an algorithm from its schedule comes to (Ragan-Kelley et al. 2013).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fsr.identity import candidate_from_json
from fsr.records import Candidate
from fsr.search.proposal import Space, Trial

MOVED = frozenset({"action", "retune", "chooser"})  # origins of what moves made; everything else was written
WRITTEN = "written"  # in a provenance: what was written, where the candidate is that with moves made on it


@dataclass(frozen=True, slots=True)
class Written:
    """A candidate as it was written, and the stable names of the moves that lead from there, oldest first."""

    candidate: Candidate
    moves: tuple[str, ...]


def written(trial: Trial, trials: Iterable[Trial]) -> Written:
    """What is written in a trial; the whole of it where that is not known."""
    known = {t.proposal.id: t for t in trials}
    at: Trial | None = trial
    while at is not None and at.proposal.origin in MOVED and at.proposal.parent is not None:
        at = known.get(at.proposal.parent)
    whole = trial.proposal.candidate
    if at is None:
        return Written(whole, ())
    own = at.proposal.provenance.get(WRITTEN)
    start = at.proposal.candidate if own is None else candidate_from_json(own)
    if whole.actions[: len(start.actions)] != start.actions:
        return Written(whole, ())
    return Written(start, whole.actions[len(start.actions) :])


def remade(start: Candidate, moves: Iterable[str], space: Space) -> Candidate:
    """A candidate with the moves made on it, in order, that it still allows."""
    for name in moves:
        found = next(((a, m) for a, m in space.moves(start, name) if m.name == name), None)
        start = (space.applied(start, *found) if found is not None else None) or start
    return start
