"""Which role, in which style, is asked next: a bandit that pays for tokens and evaluations and earns log speed-up.

Each arm has a rate, what it earned over what it cost, pulled towards a guess while it is little known, and a bonus that
shrinks as it is tried (UCB1, Auer et al. 2002). The guess is what its kin earned: the arms in which the same role says
what is to be done, in another style. An arm that earns nothing costs little: it is tried ever more rarely.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from fsr.search.tally import Tally

GUESS_EARNED, GUESS_COST = 0.006, 1.0
TOLD = 1.5  # the guess for an arm in which the step to make is said first, times that of one that is asked at large
EXPLORE = 0.7
FADING = 0.9  # of what was earned and paid, an evaluation: what an arm was good for is soon used up
RIGHT, OVER_PARENT = 0.01, 0.1  # what counts beside an improvement of the best: it works, it beats its parent
TOKENS_OUT_A_COST, TOKENS_IN_A_COST = 1000.0, 8000.0
COST_AN_EVALUATION = 8.0  # of answers: so much counts as one evaluation


def answer_cost(tokens_in: int, tokens_out: int) -> float:
    """The cost of an answer: one for a thousand tokens written or eight thousand read, as prices and times go."""
    return tokens_out / TOKENS_OUT_A_COST + tokens_in / TOKENS_IN_A_COST


@dataclass(slots=True)
class Arm(Tally):
    """Statistics of one arm. tried: questions asked; cost: of their answers, see ``answer_cost``. recent, spent: what
    it earned, and paid for answers and evaluations together; both fade."""

    tried: int = 0
    recent: float = 0.0
    spent: float = 0.0

    def rate(self, guess: float) -> float:
        """Log speed-up for a cost of one."""
        return (GUESS_COST * guess + self.recent) / (GUESS_COST + self.spent)


@dataclass(slots=True)
class Arms:
    """The arms of one model by name; deterministic in the order of calls."""

    arms: dict[str, Arm] = field(default_factory=dict)

    def choose(self, names: Iterable[str]) -> str:
        """The most promising of those named; the first among equals."""
        total = sum(arm.tried for arm in self.arms.values())
        return max(names, key=lambda name: self._score(name, total))

    def _score(self, name: str, total: int) -> float:
        arm, kin, who = self.arms.get(name, Arm()), Arm(), name.rpartition(",")[0]
        for other, its in self.arms.items():
            if other != name and other.rpartition(",")[0] == who:
                kin.recent, kin.spent = kin.recent + its.recent, kin.spent + its.spent
        guess = GUESS_EARNED / GUESS_COST * (TOLD if who else 1.0)
        return arm.rate(kin.rate(guess)) * (1.0 + EXPLORE * math.sqrt(math.log(total + 2.0) / (arm.tried + 0.5)))

    def tried(self, name: str) -> None:
        """A question of this arm is asked."""
        self._arm(name).tried += 1

    def paid(self, name: str, cost: float) -> None:
        """An answer came, whatever it is good for."""
        arm = self._arm(name)
        arm.cost, arm.spent = arm.cost + cost, arm.spent + cost

    def proposed(self, name: str) -> None:
        """Its answer is evaluated."""
        self._arm(name).proposed += 1

    def earned(self, name: str, gain: float, over_parent: float, *, right: bool, price: float = 1.0) -> None:
        """What became of it. ``gain``: log improvement of the best; ``over_parent``: of its parent, 0 for none;
        ``price``: of its evaluation, in full ones."""
        arm = self._arm(name)
        for each in self.arms.values():
            each.recent, each.spent = each.recent * FADING, each.spent * FADING
        arm.spent += COST_AN_EVALUATION * price
        arm.ended(gain, right=right)
        more = RIGHT + OVER_PARENT * over_parent if right else 0.0
        arm.earned, arm.recent = arm.earned + more, arm.recent + gain + more

    def _arm(self, name: str) -> Arm:
        return self.arms.setdefault(name, Arm())
