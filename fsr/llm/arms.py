"""Which role, in which style, is asked next: a bandit that pays for answers in tokens and earns log speed-up.

Each arm has a rate, what it earned over what it cost, pulled towards a guess while it is little known, and a bonus that
shrinks as it is tried (UCB1, Auer et al. 2002). The guess is what its kin earned: the arms in which the same role says
what is to be done, in another style. An arm that earns nothing costs little: it is tried ever more rarely.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from fsr.search.tally import Tally

GUESS_EARNED, GUESS_COST = 0.06, 1.0
EXPLORE = 0.7
RIGHT, OVER_PARENT = 0.01, 0.1  # what counts beside an improvement of the best: it works, it beats its parent
TOKENS_OUT_A_COST, TOKENS_IN_A_COST = 1000.0, 8000.0


def answer_cost(tokens_in: int, tokens_out: int) -> float:
    """The cost of an answer: one for a thousand tokens written or eight thousand read, as prices and times go."""
    return tokens_out / TOKENS_OUT_A_COST + tokens_in / TOKENS_IN_A_COST


@dataclass(slots=True)
class Arm(Tally):
    """Statistics of one arm. tried: questions asked; cost: of their answers, see ``answer_cost``."""

    tried: int = 0

    def rate(self, guess: float = GUESS_EARNED / GUESS_COST) -> float:
        """Log speed-up for a cost of one."""
        return (GUESS_COST * guess + self.earned) / (GUESS_COST + self.cost)


@dataclass(slots=True)
class Arms:
    """The arms of one model by name; deterministic in the order of calls."""

    arms: dict[str, Arm] = field(default_factory=dict)

    def choose(self, names: Iterable[str]) -> str:
        """The most promising of those named; the first among equals."""
        total = sum(arm.tried for arm in self.arms.values())
        return max(names, key=lambda name: self._score(name, total))

    def _score(self, name: str, total: int) -> float:
        arm, kin = self.arms.get(name, Arm()), Arm()
        for other, its in self.arms.items():
            if other != name and other.rpartition(",")[0] == name.rpartition(",")[0]:
                kin.earned, kin.cost = kin.earned + its.earned, kin.cost + its.cost
        return arm.rate(kin.rate()) * (1.0 + EXPLORE * math.sqrt(math.log(total + 2.0) / (arm.tried + 0.5)))

    def tried(self, name: str) -> None:
        """A question of this arm is asked."""
        self._arm(name).tried += 1

    def paid(self, name: str, cost: float) -> None:
        """An answer came, whatever it is good for."""
        self._arm(name).cost += cost

    def proposed(self, name: str) -> None:
        """Its answer is evaluated."""
        self._arm(name).proposed += 1

    def earned(self, name: str, gain: float, over_parent: float, *, right: bool) -> None:
        """What became of it. ``gain``: log improvement of the best; ``over_parent``: of its parent, 0 for none."""
        arm = self._arm(name)
        arm.ended(gain, right=right)
        arm.earned += RIGHT + OVER_PARENT * over_parent if right else 0.0

    def _arm(self, name: str) -> Arm:
        return self.arms.setdefault(name, Arm())
