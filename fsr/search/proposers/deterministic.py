"""The proposer that needs no model: the most promising untried move, or an elite's path with one parameter changed.

Its suggestions are a function of the seed and of what it suggested and was told so far, so that equal seeds and
outcomes give equal runs, a run that was restored from its log goes on as it would have, and another proposer beside it
changes nothing but by what it gains.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable

from fsr.identity import to_json
from fsr.records import Candidate, Json
from fsr.search.configurations import gain_where_faster, slower_at_some, speedups, where_faster
from fsr.search.experience import made_by, where
from fsr.search.policy import LARGEST_GUESS, Belief, Policy, best_of, bottlenecks_of
from fsr.search.prior import Prior
from fsr.search.proposal import Space, Trial
from fsr.search.proposers.protocol import Suggestion, View
from fsr.transform.by_size import by_size, is_split
from fsr.transform.protocol import Action, Move

ELITES_CONSIDERED = 8  # parents looked at for each suggestion
HARDLY_SLOWER = 1.1  # times the best time: what else is built on when nothing is left to do on the elites
RETUNED = 3  # of the fastest, whose parameters are changed
RETUNE_SHARE = 0.5  # suggestions that change one parameter on the path of an elite
RETUNE_TRIES = 6
UNKNOWN_AT_ONCE = 2  # moves of one kind that are asked for before one of them is told
PROMISING = 1.5  # the gain that others must be guessed to have
ALIKE = 0.5  # what a move with all parameters of one under way is worth less, in log speed-up: it would tell the same
BY_SIZE = "by-size"  # how one is made that is used at the timed sizes alone
WORTH_SPLITTING = 1.1  # times as fast as all that are right
NOISE = 0.08  # in log speed-up: breaks ties differently for each seed


class Deterministic:
    """Args: seed, of the only random choices made here; given: candidates to try before any other (a cached winner);
    prior: what earlier runs say of moves, None for nothing."""

    name = "deterministic"
    thinking = False

    def __init__(self, seed: int, given: Iterable[Candidate] = (), prior: Prior | None = None) -> None:
        self.policy, self._prior = Policy(), prior
        self._seed, self._given = seed, list(given)
        self._random = random.Random(seed)
        self._space: Space | None = None
        self._untried: dict[int, list[tuple[Action, Move]]] = {}
        self._tried: set[tuple[int | None, str]] = set()  # parent and move
        self._own: dict[int, Move] = {}  # by proposal, until it is told
        self._answered: set[str] = set()  # kinds of moves of which one was told
        self._numbers = {0: 0}  # of the original and of its own proposals, in the order of asking
        self._told = 0  # of them
        self._elsewhere: list[Trial] = []  # faster at timed sizes, slower at others
        self._original: Trial | None = None

    def suggest(self, view: View) -> Suggestion | None:
        """The next suggestion; None while nothing new can be thought of."""
        # Seeded afresh by what is known, so that a call that found nothing (and is not logged) changes nothing.
        self._random = random.Random(f"{self._seed}:{len(self._numbers)}:{self._told}")
        while self._given:
            candidate = self._given.pop(0)
            if not view.known(candidate):
                return Suggestion(candidate, 0, "given", "given")
        while self._elsewhere:
            if (split := self._split(view, self._elsewhere.pop())) is not None:
                return split
        if view.elites and self._random.random() < RETUNE_SHARE:
            found = self._retune(view, self._random.choice(view.elites[:RETUNED]))
            if found is not None:
                return found
        parents = self._parents(view)
        return self._advance(view, parents) or self._advance(view, _runners_up(view, parents))

    def asked(self, proposal: int, suggestion: Suggestion) -> None:
        """Count its move as tried without gain until it is told."""
        self._numbers[proposal] = len(self._numbers)
        if suggestion.kind == "action":
            move = made_by(suggestion.provenance)
            assert move is not None
            self._own[proposal] = move
            self._tried.add((suggestion.parent, move.name))
            self.policy.started(move)

    def told(self, trial: Trial, parent: Trial | None) -> None:
        """Learn what the move gained over its parent."""
        self._told += trial.proposal.id in self._numbers
        if trial.proposal.id == 0:
            self._original = trial
        if trial.outcome.slower_elsewhere or slower_at_some(speedups(self._original, trial)):
            self._elsewhere.append(trial)
        move = self._own.pop(trial.proposal.id, None)
        if move is not None:
            self._answered.add(kind_of(move))
        if move is not None and parent is not None and parent.time_ns is not None:
            self.policy.learn(move, parent.time_ns, trial.outcome)

    def close(self) -> None:
        """Nothing is held."""

    def _split(self, view: View, trial: Trial) -> Suggestion | None:
        """One that is slower at other sizes as it is used at the timed ones alone, if it is clearly faster there; at
        those of the timed ones at which it is faster."""
        rules, own, found = view.space.rules, trial.measured_ns, speedups(self._original, trial)
        start = self._original.measured_ns if self._original is not None else None
        best = next((t.time_ns for t in view.elites if not slower_at_some(speedups(self._original, t))), start)
        if slower_at_some(found) and start is not None:
            own = start / gain_where_faster(found)
        if rules.keep_launch or own is None or best is None or own * WORTH_SPLITTING > best:
            return None
        if is_split(trial.proposal.candidate):
            return None
        where_ = rules.contract.at_sizes(where_faster(rules.contract, found if slower_at_some(found) else []))
        candidate = by_size(trial.proposal.candidate, view.baseline, where_)
        if candidate is None or view.known(candidate):
            return None
        return Suggestion(candidate, trial.proposal.id, candidate.actions[-1], BY_SIZE, worth=-math.log(own))

    def _moves_at(self, view: View, trial: Trial) -> list[tuple[Action, Move]]:
        key = trial.proposal.id
        if view.space is not self._space:  # what applies is not what it was
            self._space = view.space
            self._untried.clear()
        if key not in self._untried:
            found = view.space.moves(trial.proposal.candidate)
            self._untried[key] = [(a, m) for a, m in found if (key, m.name) not in self._tried]
        return self._untried[key]

    def _parents(self, view: View) -> list[Trial]:
        """The fastest elites, and the original: kernels are written anew from it alone, and the first hint or flag that
        gains a little takes its place among the elites."""
        elites = view.elites[:ELITES_CONSIDERED]
        known = {t.proposal.id for t in elites}
        return [*elites, *(t for t in view.trials[:1] if t.time_ns is not None and t.proposal.id not in known)]

    def _advance(self, view: View, parents: Iterable[Trial]) -> Suggestion | None:
        """The most promising untried move on any of the parents."""
        options = [(t, pair) for t in parents for pair in self._moves_at(view, t)]
        options = [(t, (a, m)) for t, (a, m) in options if not self.policy.refused(m.name)]
        options = self._varied(options)
        scores = [self._score(trial, *pair) for trial, pair in options]
        while options:
            chosen = best_of((score, i) for i, score in enumerate(scores))
            assert chosen is not None
            (trial, (action, move)), score = options.pop(chosen), scores.pop(chosen)
            self._untried[trial.proposal.id].remove((action, move))
            candidate = view.space.applied(trial.proposal.candidate, action, move)
            if candidate is not None and not view.known(candidate):
                belief = self._belief(trial, move)
                said = belief.words(move.gain) if belief is not None and belief.kernels else ""
                why: dict[str, Json] = {"experience": said} if said else {}
                told = {**_told(move), **why}
                return Suggestion(candidate, trial.proposal.id, move.name, "action", told, worth=score)
        return None

    def _varied(self, options: list[tuple[Trial, tuple[Action, Move]]]) -> list[tuple[Trial, tuple[Action, Move]]]:
        """Without moves of a kind of which two are under way and nothing is known yet, where there are others that
        promise a gain: a guess that is wrong must not take all that is asked for before the first answer."""
        waiting = Counter(kind_of(move) for move in self._own.values())
        full = {kind for kind, count in waiting.items() if count >= UNKNOWN_AT_ONCE and kind not in self._answered}
        others = [o for o in options if kind_of(o[1][1]) not in full]
        return others if full and any(move.gain >= PROMISING for _, (_, move) in others) else options

    def _score(self, trial: Trial, action: Action, move: Move) -> float:
        belief = self._belief(trial, move)
        estimate = self.policy.estimate(action, move, bottlenecks_of(trial.outcome.features), belief)
        # Its own draw for each move: which others were tried already must not matter, since a log does not say.
        parent = self._numbers.get(trial.proposal.id, trial.proposal.hash)
        drawn = random.Random(f"{self._seed}:{len(self._numbers)}:{self._told}:{parent}:{move.name}")
        worth = estimate + self.policy.bonus(move, belief) - ALIKE * self._alike(move)
        worth -= LARGEST_GUESS if self.policy.dull(move, belief) else 0.0
        return -math.log(trial.time_ns or math.inf) + worth + drawn.gauss(0.0, NOISE)

    def _belief(self, trial: Trial, move: Move) -> Belief | None:
        return None if self._prior is None else self._prior.of(where(move, trial))

    def _alike(self, move: Move) -> float:
        """The share of a move's parameters that one of its kind has which is under way; the largest."""
        waiting = (dict(m.params) for m in self._own.values() if kind_of(m) == kind_of(move))
        count = max(1, len(move.params))
        return max((sum(other.get(k) == v for k, v in move.params) / count for other in waiting), default=0.0)

    def _retune(self, view: View, elite: Trial) -> Suggestion | None:
        """The elite's path with one move's parameters changed and the later moves replayed."""
        path = elite.proposal.candidate.actions
        if not path:
            return None
        index = self._random.randrange(len(path))
        start = view.space.replay(view.baseline, path[:index])
        if start is None:  # a given candidate: its path does not start at this baseline
            return None
        head = path[index].split("[")[0]
        siblings = [(a, m) for a, m in view.space.moves(start, head) if m.name.split("[")[0] == head]
        siblings.sort(key=lambda pair: _distance(pair[1].name, path[index]) + self._random.random())
        for action, move in siblings[:RETUNE_TRIES]:
            first = view.space.applied(start, action, move) if move.name != path[index] else None
            candidate = view.space.replay(first, path[index + 1 :]) if first is not None else None
            if candidate is not None and not view.known(candidate):
                worth = -math.log(elite.time_ns or math.inf)
                return Suggestion(candidate, elite.proposal.id, move.name, "retune", _told(move), worth=worth)
        return None


def _runners_up(view: View, parents: Iterable[Trial]) -> list[Trial]:
    """Others that are hardly slower than the fastest: two moves may gain together what neither does alone (accesses of
    whole records, and several of them under way), and are looked at when nothing else is left."""
    known, best = {t.proposal.id for t in parents}, view.elites[0].time_ns if view.elites else None
    right = ((t.time_ns, t.proposal.id, t) for t in view.trials if t.time_ns is not None and t.proposal.id not in known)
    close = [one for one in right if best is not None and one[0] <= HARDLY_SLOWER * best]
    return [t for _, _, t in sorted(close, key=lambda one: one[:2])[:ELITES_CONSIDERED]]


def kind_of(move: Move) -> str:
    """A move's action; of one that makes another on a form that it wrote, that one's too."""
    inner = next((str(value).split("@")[0] for key, value in move.params if key == "as"), "")
    return f"{move.action} {inner}"


def _told(move: Move) -> dict[str, Json]:
    """A move as a provenance holds it."""
    told = to_json(move)
    assert isinstance(told, dict)
    return told


def _distance(a: str, b: str) -> int:
    """How many parameters differ between two moves of one action and region."""
    first, second = a.rstrip("]").split("[")[-1].split(","), b.rstrip("]").split("[")[-1].split(",")
    return sum(x != y for x, y in zip(first, second, strict=False)) + abs(len(first) - len(second))
