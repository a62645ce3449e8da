"""Proposals: a candidate with an id, where it came from, and what was told of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeVar

from fsr.computation.computation import Computation
from fsr.contract.model import Contract
from fsr.records import Candidate, Json, Outcome, Status
from fsr.transform.by_size import idle_kernels
from fsr.transform.instantiated import instantiated, kernels_of
from fsr.transform.launch_alone import Alone
from fsr.transform.own_copies import own_copies
from fsr.transform.protocol import Action, Move, Subject

_ANSWERS = 4096  # that are kept: of some hundred candidates, each asked for the moves of some dozen actions
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate to evaluate. ``id`` counts from 0 (the baseline); ``parent`` is the id it was made from,
    ``move`` the stable name of the last action, and ``origin`` how it was made: baseline, given, action, retune, or
    what else a proposer calls it. ``proposer``, ``provenance``, ``untrusted``, ``cost``, ``worth``: as suggested."""

    id: int
    candidate: Candidate
    hash: str
    parent: int | None
    move: str
    origin: str
    proposer: str = ""
    provenance: Mapping[str, Json] = field(default_factory=dict)
    untrusted: bool = False
    cost: float = 0.0
    worth: float | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """A proposal and what became of it."""

    proposal: Proposal
    outcome: Outcome

    @property
    def time_ns(self) -> float | None:
        """The time of a candidate that is right so far as it was tested; None when it failed or was cut short as
        clearly slower."""
        return self.measured_ns if self.outcome.status >= Status.SCREENED else None

    @property
    def measured_ns(self) -> float | None:
        """The time of any that was timed, whatever became of it."""
        return None if self.outcome.timing is None else self.outcome.timing.median_ns


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for every proposal of a run."""

    contract: Contract
    keep_launch: bool = False
    target: str = "sm_90"
    computation: Computation | None = None
    alone: tuple[Alone, ...] = ()

    def subject(self, candidate: Candidate) -> Subject:
        """The candidate as actions see it: a kernel for each kind of its launches, templates of types are the one
        instance that its plan launches, and kernels that no timed size launches are not there."""
        candidate = instantiated(own_copies(candidate, self.contract))
        idle = idle_kernels(candidate.plan, self.contract)
        kernels = {name: form for name, form in kernels_of(candidate.source).items() if name not in idle}
        return Subject(candidate, kernels, self.contract, self.keep_launch, self.target, self.computation, self.alone)


ActionFault = Callable[[str, Exception], None]
"""Told the name of an action that raised on somebody's kernel, and what it raised."""


def strict(action: str, fault: Exception) -> None:
    """Let the fault of an action stop the search; what tests use."""
    raise fault


def moves_of(
    subject: Subject, actions: tuple[Action, ...], on_fault: ActionFault = strict
) -> list[tuple[Action, Move]]:
    """Every move that applies, in registry order; an action that raises is told to ``on_fault`` and left out."""
    found = []
    for action in actions:
        try:
            found += [(action, move) for move in action.moves(subject)]
        except Exception as fault:
            on_fault(action.name, fault)
    return found


def applied(action: Action, subject: Subject, move: Move, on_fault: ActionFault = strict) -> Candidate | None:
    """The candidate that a move gives; None, and ``on_fault`` is told, when the action raises."""
    try:
        return action.apply(subject, move)
    except Exception as fault:
        on_fault(action.name, fault)
        return None


class _Answers:
    """The last answers to questions about candidates: paths of a search share most of their steps. Thread-safe; a
    question that two threads ask at once is answered twice."""

    def __init__(self) -> None:
        self._answers: OrderedDict[tuple[Candidate, str], Any] = OrderedDict()
        self._lock = Lock()

    def to(self, candidate: Candidate, question: str, answer: Callable[[], _T]) -> _T:
        key = candidate, question
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]  # type: ignore[no-any-return]
        found = answer()
        with self._lock:
            self._answers[key] = found
            if len(self._answers) > _ANSWERS:
                self._answers.popitem(last=False)
        return found


@dataclass(frozen=True, slots=True)
class Space:
    """The space of moves: what the actions can do to a candidate under the rules. Safe to use from any thread."""

    rules: Rules
    actions: tuple[Action, ...]
    on_fault: ActionFault = strict
    _answers: _Answers = field(default_factory=_Answers, repr=False, compare=False)

    def under(self, rules: Rules) -> Space:
        """The space under other rules, to which the answers under these do not hold."""
        return Space(rules, self.actions, self.on_fault)

    def moves(self, candidate: Candidate, starting: str = "") -> list[tuple[Action, Move]]:
        """Every move that applies, in registry order; ``starting``: only of the action whose moves begin like that."""
        wanted = (a for a in self.actions if not starting or starting.startswith(a.name + "@"))
        return [pair for action in wanted for pair in self._moves_by(action, candidate)]

    def applied(self, candidate: Candidate, action: Action, move: Move) -> Candidate | None:
        """The candidate that a move gives; None when its action raises."""

        def make() -> Candidate | None:
            return applied(action, self._subject(candidate), move, self.on_fault)

        return self._answers.to(candidate, f"after {move.name}", make)

    def replay(self, start: Candidate, moves: tuple[str, ...]) -> Candidate | None:
        """The candidate that a list of stable move names leads to, or None when one no longer applies."""
        current: Candidate | None = start
        for name in moves:
            if current is None:
                return None
            found = next(((a, m) for a, m in self.moves(current, name) if m.name == name), None)
            current = None if found is None else self.applied(current, *found)
        return current

    def _moves_by(self, action: Action, candidate: Candidate) -> list[tuple[Action, Move]]:
        def find() -> list[tuple[Action, Move]]:
            return moves_of(self._subject(candidate), (action,), self.on_fault)

        return self._answers.to(candidate, f"moves by {action.name}", find)

    def _subject(self, candidate: Candidate) -> Subject:
        return self._answers.to(candidate, "subject", lambda: self.rules.subject(candidate))
