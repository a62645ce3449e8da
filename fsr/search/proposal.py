"""Proposals: a candidate with an id, where it came from, and what was told of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fsr.contract.model import Contract
from fsr.records import Candidate, Outcome, Status
from fsr.search.actions.protocol import Action, Move, Subject
from fsr.source.form import KernelForm
from fsr.source.parse import parse_kernels


@dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate to evaluate. ``id`` counts from 0 (the baseline); ``parent`` is the id it was made from,
    ``move`` the stable name of the last action, and ``origin`` the emitter: baseline, action, retune, given."""

    id: int
    candidate: Candidate
    hash: str
    parent: int | None
    move: str
    origin: str


@dataclass(frozen=True, slots=True)
class Trial:
    """A proposal and what became of it."""

    proposal: Proposal
    outcome: Outcome

    @property
    def time_ns(self) -> float | None:
        """The time of a right candidate; None when it failed or was cut short as clearly slower."""
        usable = self.outcome.status >= Status.CORRECT and self.outcome.timing is not None
        return self.outcome.timing.median_ns if usable and self.outcome.timing else None


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for every proposal of a run."""

    contract: Contract
    keep_launch: bool = False
    target: str = "sm_90"

    def subject(self, candidate: Candidate) -> Subject:
        """The candidate as actions see it."""
        kernels: Mapping[str, KernelForm] = parse_kernels(candidate.source)
        return Subject(candidate, kernels, self.contract, self.keep_launch, self.target)


def moves_of(subject: Subject, actions: tuple[Action, ...]) -> Iterator[tuple[Action, Move]]:
    """Every move that applies, in registry order."""
    for action in actions:
        for move in action.moves(subject):
            yield action, move


def replay(start: Candidate, moves: tuple[str, ...], rules: Rules, actions: tuple[Action, ...]) -> Candidate | None:
    """The candidate that a list of stable move names leads to, or None when one no longer applies."""
    current = start
    for name in moves:
        subject = rules.subject(current)
        wanted = [a for a in actions if name.startswith(a.name + "@")]
        found = next(((a, m) for a, m in moves_of(subject, tuple(wanted)) if m.name == name), None)
        if found is None:
            return None
        current = found[0].apply(subject, found[1])
    return current
