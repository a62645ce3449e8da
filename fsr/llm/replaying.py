"""A run again without its models: their recorded answers are read anew, each where it was suggested then.

With one compile worker and one device a run is a function of its seed and of what was suggested when, so that the same
answers in the same places give the same run, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fsr.errors import HarnessError
from fsr.llm.book import prompt_from_json, read_book
from fsr.llm.exchange import Prompt
from fsr.llm.rebasing import Edit
from fsr.llm.roles import coder
from fsr.llm.scene import Scene
from fsr.llm.shown import shown_then
from fsr.records import Candidate
from fsr.search.lineage import WRITTEN
from fsr.search.proposal import Trial
from fsr.search.proposers.protocol import Suggestion, View

STUCK = 600  # calls in which nothing moved: the run has become another one


@dataclass(frozen=True, slots=True)
class Line:
    """One suggestion of the earlier run: when (its id, and how many outcomes had been told), and from which answer."""

    id: int
    told: int
    parent: int
    move: str
    kind: str
    cost: float
    provenance: Mapping[str, Any]
    prompt: Prompt | None
    answer: str


def script_of(events: Iterable[Mapping[str, Any]], answers: Path) -> dict[str, list[Line]]:
    """The suggestions of each model of a run, from its log and its book. Raises HarnessError for an incomplete book."""
    entries = [e for e in read_book(answers) if e.get("kind") == "answer"]
    book = {e["hash"]: (prompt_from_json(e["prompt"]), e["answer"]["text"]) for e in entries}
    found: dict[str, list[Line]] = {}
    told = 0
    for event in events:
        told += event["kind"] == "tell"
        if event["kind"] != "ask" or "arm" not in event["provenance"]:
            continue
        name = event["provenance"]["answers"][-1]
        if name not in book:
            raise HarnessError(f"the answer {name} is not in the book", where=str(answers))
        line = Line(
            event["id"], told, event["parent"], event["move"], event["origin"], event["cost"], event["provenance"],
            *book[name],
        )  # fmt: skip
        found.setdefault(event["proposer"], []).append(line)
    return found


class Replayed:
    """The suggestions of one model, from a script. Says nothing of its own."""

    def __init__(self, name: str, script: Iterable[Line]) -> None:
        self.name = name
        self._script = list(script)
        self._still, self._at = 0, (-1, -1)

    @property
    def thinking(self) -> bool:
        """Whether something is still to come, and the run is still the same."""
        return bool(self._script) and self._still < STUCK

    def waits(self, view: View) -> bool:
        """Whether the next suggestion is due and an outcome is missing that was told before it then. What is under way
        will be told; where nothing is, the run has become another one."""
        if not self._script or view.asked < self._script[0].id:
            return False
        missing = len(view.trials) < min(self._script[0].told, view.asked)
        return missing or (self._parent(view) is None and self._script[0].parent < view.asked)

    def suggest(self, view: View) -> Suggestion | None:
        """What was suggested at this point."""
        now = view.asked, len(view.trials)
        self._still = self._still + 1 if now == self._at else 0
        self._at = now
        if not self._script or now < (self._script[0].id, self._script[0].told) or now[1] < self._script[0].told:
            return None
        trial = self._parent(view)
        if trial is None:
            return None
        line = self._script.pop(0)
        if line.kind == "chooser":
            return self._moved(view, trial, line)
        assert line.prompt is not None
        text = shown_then(line.provenance, line.parent, view)
        candidate = coder.read(line.answer, line.prompt, Scene(text.as_trial, view, 1))
        told = {name: value for name, value in line.provenance.items() if name != WRITTEN}
        made = Edit(text.base, candidate, line.kind, self.name).suggested(trial, view, told)
        return None if made is None else replace(made, cost=line.cost)

    def _parent(self, view: View) -> Trial | None:
        """What the next suggestion was made from; None while it is not told."""
        return next((t for t in view.trials if t.proposal.id == self._script[0].parent), None)

    def _moved(self, view: View, trial: Trial, line: Line) -> Suggestion | None:
        start: Candidate = trial.proposal.candidate
        pair = next(((a, m) for a, m in view.space.moves(start, line.move) if m.name == line.move), None)
        candidate = view.space.applied(start, *pair) if pair is not None else None
        if candidate is None:
            return None
        return Suggestion(candidate, line.parent, line.move, line.kind, line.provenance, cost=line.cost)

    def asked(self, proposal: int, suggestion: Suggestion) -> None:
        """Nothing to learn."""

    def told(self, trial: Trial, parent: Trial | None) -> None:
        """Nothing to learn."""

    def close(self) -> None:
        """Nothing is held."""
