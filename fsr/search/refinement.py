"""The refinement loop as ask and tell: steady state, no generations.

``ask`` hands out a proposal with an id, ``tell`` takes its outcome back, in any order. The loop is a
deterministic function of the seed and of the sequence of calls, so a log of both rebuilds it exactly.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import replace

from fsr.errors import HarnessError
from fsr.identity import candidate_hash
from fsr.records import Candidate, Outcome
from fsr.search.archive import Archive
from fsr.search.policy import Policy, best_of, bottlenecks_of
from fsr.search.proposal import ActionFault, Proposal, Rules, Trial, applied, moves_of, replay, strict
from fsr.transform.protocol import Action, Move

ELITES_CONSIDERED = 8  # parents looked at for each proposal
RETUNE_SHARE = 0.5  # proposals that change one parameter on the path of an elite
NOISE = 0.08  # in log speed-up: breaks ties differently for each seed


class Refinement:
    """The search over candidates of one kernel.

    Args:
        baseline: the user's kernel; proposal 0.
        rules: the contract and what a proposal may change.
        actions: where proposals come from.
        seed: of the only random generator used here.
        given: candidates to try before any other (a cached winner, say).
        known: hashes already known to fail; they are never proposed.
        on_fault: told of an action that raised; the search goes on without it. By default it raises.
    """

    def __init__(
        self,
        baseline: Candidate,
        rules: Rules,
        actions: tuple[Action, ...],
        *,
        seed: int,
        given: Iterable[Candidate] = (),
        known: Iterable[str] = (),
        on_fault: ActionFault = strict,
    ) -> None:
        self.rules, self.actions, self.archive, self.policy = rules, actions, Archive(), Policy()
        self._seed, self._random = seed, random.Random(seed)
        self._baseline, self._on_fault = baseline, on_fault
        self._seen: set[str] = set(known)
        self._given = list(given)
        self._open: dict[int, tuple[Proposal, Move | None]] = {}
        self._trials: dict[int, Trial] = {}
        self._moves: dict[int, list[tuple[Action, Move]]] = {}
        self._next_id = 0

    # ------------------------------------------------------------ the two calls

    def ask(self) -> Proposal | None:
        """The next proposal; None while nothing new can be proposed (wait for outcomes, or the space is done).

        The first is always the baseline, and nothing else is handed out until it was told."""
        if self._next_id == 0:
            return self._issue(self._baseline, None, "baseline", "baseline", None)
        if 0 not in self._trials:
            return None
        # Seeded afresh by what is known, so that an ask that found nothing (and is not logged) changes nothing.
        self._random = random.Random(f"{self._seed}:{self._next_id}:{len(self._trials)}")
        while self._given:
            candidate = self._given.pop(0)
            if candidate_hash(candidate) not in self._seen:
                return self._issue(candidate, 0, "given", "given", None)
        elites = self.archive.elites()[:ELITES_CONSIDERED]
        if elites and self._random.random() < RETUNE_SHARE:
            proposal = self._retune(self._random.choice(elites[:3]))
            if proposal is not None:
                return proposal
        return self._advance(elites)

    def tell(self, proposal_id: int, outcome: Outcome) -> Trial:
        """The outcome of a proposal. Raises HarnessError for an unknown id or a second tell."""
        if proposal_id not in self._open:
            told = " (it was told before)" if proposal_id in self._trials else ""
            raise HarnessError(f"tell for proposal {proposal_id}, which is not open{told}")
        proposal, move = self._open.pop(proposal_id)
        trial = self._trials[proposal_id] = Trial(proposal, outcome)
        parent = self._trials.get(proposal.parent) if proposal.parent is not None else None
        if move is not None and parent is not None and parent.time_ns is not None:
            self.policy.learn(move, parent.time_ns, outcome)
        self.archive.add(trial)
        return trial

    # ------------------------------------------------------------ what is known

    @property
    def open(self) -> list[Proposal]:
        """Proposals handed out and not yet told, oldest first."""
        return [p for p, _ in self._open.values()]

    @property
    def trials(self) -> list[Trial]:
        """Everything told, in the order of telling."""
        return list(self._trials.values())

    def ranked(self) -> list[Trial]:
        """All right candidates, fastest first (the baseline among them)."""
        right = [t for t in self._trials.values() if t.time_ns is not None]
        return sorted(right, key=lambda t: (t.time_ns or math.inf, t.proposal.id))

    def demote(self, proposal_id: int, outcome: Outcome) -> None:
        """Replace a trial's outcome by a worse one (it failed promotion) and rebuild the archive."""
        held = self._trials[proposal_id]
        if outcome.status >= held.outcome.status:
            raise HarnessError(f"demote of proposal {proposal_id} from {held.outcome.status} to {outcome.status}")
        self._trials[proposal_id] = Trial(held.proposal, outcome)
        self._rebuild_archive()

    def enrich(self, proposal_id: int, features: Mapping[str, float]) -> None:
        """Add features to what is known of a told proposal, for what is proposed next. Raises KeyError."""
        held = self._trials[proposal_id]
        outcome = replace(held.outcome, features={**held.outcome.features, **features})
        self._trials[proposal_id] = Trial(held.proposal, outcome)
        self._rebuild_archive()

    def _rebuild_archive(self) -> None:
        self.archive = Archive()
        for trial in self._trials.values():
            self.archive.add(trial)

    # ------------------------------------------------------------ emitters

    def _issue(self, candidate: Candidate, parent: int | None, name: str, origin: str, move: Move | None) -> Proposal:
        digest = candidate_hash(candidate)
        self._seen.add(digest)
        proposal = Proposal(self._next_id, candidate, digest, parent, name, origin)
        self._open[self._next_id] = (proposal, move)
        self._next_id += 1
        if move is not None:
            self.policy.started(move)
        return proposal

    def _moves_at(self, trial: Trial) -> list[tuple[Action, Move]]:
        key = trial.proposal.id
        if key not in self._moves:
            subject = self.rules.subject(trial.proposal.candidate)
            self._moves[key] = moves_of(subject, self.actions, self._on_fault)
        return self._moves[key]

    def _advance(self, elites: list[Trial]) -> Proposal | None:
        """The most promising untried move on any of the elites."""
        while True:
            options = [(t, pair) for t in elites for pair in self._moves_at(t) if not self.policy.refused(pair[1].name)]
            chosen = best_of((self._score(t, a, m), i) for i, (t, (a, m)) in enumerate(options))
            if chosen is None:
                return None
            trial, (action, move) = options[chosen]
            self._moves[trial.proposal.id].remove((action, move))
            subject = self.rules.subject(trial.proposal.candidate)
            candidate = applied(action, subject, move, self._on_fault)
            if candidate is not None and candidate_hash(candidate) not in self._seen:
                return self._issue(candidate, trial.proposal.id, move.name, "action", move)

    def _score(self, trial: Trial, action: Action, move: Move) -> float:
        estimate = self.policy.estimate(action, move, bottlenecks_of(trial.outcome.features))
        noise = self._random.gauss(0.0, NOISE)
        return -math.log(trial.time_ns or math.inf) + estimate + self.policy.bonus(action.name) + noise

    def _retune(self, elite: Trial) -> Proposal | None:
        """The elite's path with one move's parameters changed and the later moves replayed."""
        path = elite.proposal.candidate.actions
        if not path:
            return None
        index = self._random.randrange(len(path))
        start = replay(self._baseline, path[:index], self.rules, self.actions, self._on_fault)
        if start is None:  # a given candidate: its path does not start at this baseline
            return None
        subject = self.rules.subject(start)
        head = path[index].split("[")[0]
        wanted = tuple(a for a in self.actions if head.startswith(a.name + "@"))
        siblings = [(a, m) for a, m in moves_of(subject, wanted, self._on_fault) if m.name.split("[")[0] == head]
        siblings.sort(key=lambda pair: _distance(pair[1].name, path[index]) + self._random.random())
        for action, move in siblings[:6]:
            if move.name == path[index]:
                continue
            first = applied(action, subject, move, self._on_fault)
            if first is None:
                continue
            candidate = replay(first, path[index + 1 :], self.rules, self.actions, self._on_fault)
            if candidate is not None and candidate_hash(candidate) not in self._seen:
                return self._issue(candidate, elite.proposal.id, move.name, "retune", None)
        return None


def _distance(a: str, b: str) -> int:
    """How many parameters differ between two moves of one action and region."""
    first, second = a.rstrip("]").split("[")[-1].split(","), b.rstrip("]").split("[")[-1].split(",")
    return sum(x != y for x, y in zip(first, second, strict=False)) + abs(len(first) - len(second))


def rebuild(refinement: Refinement, calls: Iterable[tuple[str, int, Outcome | None]]) -> None:
    """Replay logged calls, ('ask', id, None) and ('tell', id, outcome), into a fresh refinement.

    Raises HarnessError when a replayed ask does not give the logged id (the log is of another run)."""
    for kind, proposal_id, outcome in calls:
        if kind == "ask":
            proposal = refinement.ask()
            if proposal is None or proposal.id != proposal_id:
                raise HarnessError(f"the log asked for proposal {proposal_id}, the replay gave {proposal}")
        elif outcome is not None:
            refinement.tell(proposal_id, outcome)
