"""An edit that was made on one text, made on another candidate: the moves of that one again, or a merge line by line.

A model is shown what is written, without the moves that were made on it, and it thinks while others are evaluated, so
that its edit belongs on a candidate that it has not seen. Two edits at different places are joined in one evaluation,
and no model has to be asked for it. The rule for lines is that of ``diff3`` (Khanna, Kunal and Pierce 2007): a change
applies where its lines, and their neighbours, are the same in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from fsr.identity import digest, to_json
from fsr.records import Candidate, Json
from fsr.search.lineage import WRITTEN, remade, written
from fsr.search.proposal import Trial
from fsr.search.proposers.protocol import Suggestion, View


@dataclass(frozen=True, slots=True)
class Edit:
    """What an answer makes of a text. base: the text that it changes (of a repair: that of the right candidate which
    the broken line began with). candidate: what came of it. kind: the role. model: whose."""

    base: Candidate
    candidate: Candidate
    kind: str
    model: str

    @property
    def move(self) -> str:
        """Its name on a candidate's way."""
        return f"{self.kind}@{self.model}[{digest(self.candidate.source)[2:8]}]"

    def on(self, trial: Trial, view: View) -> tuple[Candidate, Candidate] | None:
        """(what is written, the candidate) with the edit made on a trial; None where that cannot be."""
        whole, own = trial.proposal.candidate, written(trial, view.trials)
        if alike(self.base, whole):
            made = self._named(self.candidate, whole)
            return made, made
        text = self.candidate if alike(self.base, own.candidate) else rebased(self.candidate, self.base, own.candidate)
        if text is not None:
            made = self._named(text, own.candidate)
            return made, remade(made, own.moves, view.space)
        merged = rebased(self.candidate, self.base, whole)
        if merged is None:
            return None
        made = self._named(merged, whole)
        return made, made

    def suggested(self, trial: Trial, view: View, provenance: dict[str, Json]) -> Suggestion | None:
        """The suggestion of the edit on a trial: untrusted, named by what it is; None where it cannot be made."""
        found = self.on(trial, view)
        if found is None:
            return None
        text, candidate = found
        told = provenance if text is candidate else {**provenance, WRITTEN: to_json(text)}
        return Suggestion(candidate, trial.proposal.id, self.move, self.kind, told, untrusted=True)

    def _named(self, candidate: Candidate, before: Candidate) -> Candidate:
        return replace(candidate, actions=(*before.actions, self.move))


def alike(one: Candidate, other: Candidate) -> bool:
    """Whether two candidates are the same but for how they came about."""
    return (one.source, one.plan) == (other.source, other.plan)


def rebased(changed: Candidate, base: Candidate, onto: Candidate) -> Candidate | None:
    """``onto`` with what ``changed`` changes of ``base``; None where the two touch the same lines, or both the plan."""
    plan = onto.plan if changed.plan == base.plan else changed.plan
    if changed.plan != base.plan != onto.plan:
        return None
    texts = [candidate.source.split("\n") for candidate in (base, changed, onto)]
    lines = _merged(*texts)
    return None if lines is None else Candidate("\n".join(lines), plan, onto.actions, onto.language)


def _merged(base: Sequence[str], changed: Sequence[str], onto: Sequence[str]) -> list[str] | None:
    kept = [block for block in _matcher(base, onto).get_matching_blocks() if block.size]
    merged = list(onto)
    for tag, first, end, start, stop in reversed(_matcher(base, changed).get_opcodes()):
        if tag == "equal":
            continue
        least, most = max(first - 1, 0), min(end + 1, len(base))  # with a neighbour on each side
        same = [block for block in kept if block.a <= least and most <= block.a + block.size]
        if not same:
            return None
        moved = same[0].b - same[0].a
        merged[first + moved : end + moved] = changed[start:stop]
    return merged


def _matcher(one: Sequence[str], other: Sequence[str]) -> SequenceMatcher[str]:
    return SequenceMatcher(None, one, other, autojunk=False)
