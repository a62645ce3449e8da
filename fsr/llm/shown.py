"""Which text of a trial a model is shown, and what its change of that text belongs on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fsr.records import Candidate, Json
from fsr.search.lineage import written
from fsr.search.proposal import Trial
from fsr.search.proposers.protocol import View


@dataclass(frozen=True, slots=True)
class Shown:
    """A text that a model is asked to change. trial: as the search knows it. whole: with all moves, not as written.
    candidate: the text. moves: what is made on it again afterwards. onto: the right trial that an edit is made on: of
    a failed one what it came from. base: the text of that."""

    trial: Trial
    whole: bool
    candidate: Candidate
    moves: tuple[str, ...]
    onto: Trial
    base: Candidate

    @property
    def as_trial(self) -> Trial:
        """The trial with this text for its candidate: its time and evidence are those of the whole."""
        return replace(self.trial, proposal=replace(self.trial.proposal, candidate=self.candidate))

    def noted(self) -> dict[str, Json]:
        """What a provenance says of it."""
        return {"shown": self.trial.proposal.id, "whole": self.whole}


def shown(trial: Trial, view: View, *, whole: bool) -> Shown:
    """The text of a trial: the whole, or what is written."""
    onto, known = trial, {t.proposal.id: t for t in view.trials}
    while onto.time_ns is None and onto.proposal.parent is not None and onto.proposal.parent in known:
        onto = known[onto.proposal.parent]
    own, right = written(trial, view.trials), written(onto, view.trials)
    if whole or not own.moves:
        return Shown(trial, whole, trial.proposal.candidate, (), onto, onto.proposal.candidate)
    return Shown(trial, whole, own.candidate, own.moves, onto, right.candidate)


def shown_then(provenance: Mapping[str, Any], parent: int, view: View) -> Shown:
    """The same from what :meth:`Shown.noted` told."""
    number = provenance.get("shown", parent)
    trial = next(t for t in view.trials if t.proposal.id == number)
    return shown(trial, view, whole=bool(provenance.get("whole", True)))
