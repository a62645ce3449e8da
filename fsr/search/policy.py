"""What to try next: which elite, and which move on it, learned from what earlier moves gained.

Every move has an estimated log speed-up: its action's prior guess, shifted by what earlier runs say of it, and pulled
towards what the action, and each of its parameter values, were seen to gain in this run (a Bayesian mean under a normal
prior). A move on elite e is worth log(speed of e) + estimate + an exploration bonus that shrinks as the action is tried
(UCB1, Auer et al. 2002). Bottlenecks found in the elite's features raise the moves aimed at them. An action that has
left a predicted time as it was, to the bit, is one that predictions do not show (a hint to a cache, a flag): nothing
more is expected.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fsr.features.schema import Features
from fsr.prediction.measured import judged
from fsr.records import Basis, Outcome, Status
from fsr.transform.protocol import Action, Move

PRIOR_WEIGHT = 1.5  # an action's guess counts as this many observations
FAILURE = math.log(0.5)  # what a failed or cut-short candidate counts as
BONUS = 0.30  # exploration weight, in log speed-up
REFUSED_OFTEN = 3  # parents on which a move gave a candidate that was not right, and never a right one
AIMED = math.log(1.5)  # prior lift of a move aimed at the main bottleneck
WORTH_AIMING = math.log(1.25)  # a move that is thought to gain less relieves no main bottleneck, and is lifted by less
LARGEST_GUESS = math.log(64.0)
SURE, NOTHING = 0.5, math.log(1.03)  # guesses that earlier runs must count as to rule a move out; what is no gain
MOST_BELIEVED = 3.0  # guesses that earlier runs count as at the most: this run's own outcomes have the last word


@dataclass(frozen=True, slots=True)
class Belief:
    """What earlier runs say of a move. shift: of its guess, in log speed-up, so far as they are to be trusted; weight:
    how much they count, 1 being as much as the guess itself; of how many kernels, how many of them measured."""

    shift: float
    weight: float
    kernels: int
    measured: int

    def words(self, gain: float) -> str:
        """Why the move is thought to gain otherwise than its action guessed."""
        basis = "all predicted" if not self.measured else f"{self.measured} measured"
        thought = gain * math.exp(self.shift)
        kernels = f"{self.kernels} earlier run" + ("s" if self.kernels != 1 else "")
        return f"thought to gain {thought:.3g}x, not {gain:.3g}x: {kernels} of kernels alike ({basis})"


@dataclass(slots=True)
class _Seen:
    count: float = 0.0
    total: float = 0.0


@dataclass(slots=True)
class Policy:
    """Statistics of moves tried so far; deterministic in the order of calls. ``aimed``: what a move that is aimed at
    all of the time's cause is worth, in log speed-up; 0 lets no feature guide."""

    aimed: float = AIMED
    _by_action: dict[str, _Seen] = field(default_factory=lambda: defaultdict(_Seen))
    _by_value: dict[tuple[str, str, str], _Seen] = field(default_factory=lambda: defaultdict(_Seen))
    _pending: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _by_name: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    _shown: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    _tried: int = 0

    def started(self, move: Move) -> None:
        """A proposal with this move was handed out; until told, it counts as tried without gain."""
        self._pending[_counted_as(move)] += 1
        self._tried += 1

    def learn(self, move: Move, parent_ns: float, outcome: Outcome) -> None:
        """What the move gained over its parent."""
        kind = _counted_as(move)
        self._pending[kind] = max(0, self._pending[kind] - 1)
        gained = FAILURE
        if outcome.status >= Status.SCREENED and outcome.timing is not None:
            gained = max(math.log(parent_ns / outcome.timing.median_ns), 2 * FAILURE)
            same = outcome.timing.basis is Basis.PREDICTED and outcome.timing.median_ns == parent_ns
            self._shown[kind].append(not same)
        self._by_name[move.name][outcome.status >= Status.SLOW] += 1
        action = self._by_action[kind]
        action.count += 1
        action.total += gained
        mean = action.total / action.count
        for key, value in move.params:
            seen = self._by_value[kind, key, str(value)]
            seen.count += 1
            seen.total += gained - mean

    def estimate(
        self, action: Action, move: Move, bottlenecks: Mapping[str, float], belief: Belief | None = None
    ) -> float:
        """Expected log speed-up of a move. ``bottlenecks``: name to share of the time, 0 to 1."""
        guess = min(math.log(max(move.gain, 1e-3)), LARGEST_GUESS)
        believed = min(belief.weight, MOST_BELIEVED) if belief is not None else 0.0
        if bottlenecks and guess > 0:
            share = max((bottlenecks.get(b, 0.0) for b in action.aims_at), default=0.0)
            guess += self.aimed * share * min(guess / WORTH_AIMING, 1.0) / (1.0 + believed)
        guess += belief.shift if belief is not None else 0.0
        kind = _counted_as(move)
        seen, weight = self._by_action[kind], PRIOR_WEIGHT * (1.0 + believed)
        waiting = self._pending[kind]
        mean = (weight * guess + seen.total) / (weight + seen.count + 0.5 * waiting)
        for key, value in move.params:
            effect = self._by_value.get((kind, key, str(value)))
            if effect is not None:
                mean += effect.total / (effect.count + 1.0)
        return min(mean, 0.0) if self._unseen(kind) else mean

    def dull(self, move: Move, belief: Belief | None) -> bool:
        """Whether earlier runs are sure that a move gains next to nothing, and this one has not seen otherwise. It
        would be tried on every new best before anything else is, since that best is fast."""
        if belief is None or belief.weight < SURE or math.log(max(move.gain, 1e-3)) + belief.shift > NOTHING:
            return False
        seen = self._by_action[_counted_as(move)]
        return seen.total <= NOTHING * seen.count

    def refused(self, name: str) -> bool:
        """Whether a move was tried on several parents and never gave a candidate that was right: it is not proposed
        again (flags that lose denormals, say, on a kernel whose tests look at them)."""
        failed, right = self._by_name.get(name, (0, 0))
        return failed >= REFUSED_OFTEN and not right

    def _unseen(self, kind: str) -> bool:
        """Whether an action changed no prediction so far, wherever it was tried."""
        return kind in self._shown and not any(self._shown[kind])

    def bonus(self, move: Move, belief: Belief | None = None) -> float:
        """The exploration bonus of a move's action: less of one that earlier runs know."""
        kind = _counted_as(move)
        if self._unseen(kind):
            return 0.0
        count = self._by_action[kind].count + self._pending[kind]
        count += min(belief.weight, MOST_BELIEVED) if belief is not None else 0.0
        return BONUS * math.sqrt(math.log(self._tried + 2.0) / (count + 1.0))


def _counted_as(move: Move) -> str:
    """The action that a move counts as: one that rounds otherwise than the source does (``single``) is another, since
    what tests refuse of it says nothing of its likes that keep their types."""
    return f"{move.action} in single" if ("single", 1) in move.params else move.action


def bottlenecks_of(features: Features) -> dict[str, float]:
    """What holds a candidate back: share of its time by name, largest first; empty when nobody looked yet."""
    return {cause.name: cause.share for cause in judged(features)}


def best_of(scores: Iterable[tuple[float, int]]) -> int | None:
    """The index with the highest score; the first among equals; None when there is none."""
    best: tuple[float, int] | None = None
    for score, index in scores:
        if best is None or score > best[0]:
            best = (score, index)
    return best[1] if best else None
