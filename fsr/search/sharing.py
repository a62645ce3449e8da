"""Who is evaluated next, when several proposers have suggestions: each by what it has earned for what it cost.

A proposer earns the log of every improvement of the best beyond what may be noise, and pays for its evaluations by the
stage that they came to. Its share follows the square of earned over paid, both fading, above a floor that lets nobody
starve; one that is little known is taken for as good as all of them together. Shares are given as credit (deficit round
robin, Shreedhar and Varghese 1995): one that is slow keeps a little credit and is served as soon as it has something;
one that is quick and useless is left with the floor; who gains owes nothing any more. Prices are set by status and not
by the clock, so that deterministic proposers share in the same way in every run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fsr.records import Status
from fsr.search.tally import Tally

FLOOR = 0.04  # of the evaluations, for each proposer
FADING = 0.985  # of what was earned and paid, an evaluation
GUESS_EARNED, GUESS_PAID = 0.03, 1.5  # what all together are credited with before anything was seen
SURE = 0.02  # log speed-up: so much of a gain says nothing of what is still to come from the same proposer
MOST_CREDIT = 1.5  # evaluations that a proposer can save up, or be behind with
PRICES: Mapping[Status, float] = {
    Status.INVALID: 0.1, Status.COMPILE_FAILED: 0.3, Status.CRASHED: 1.5, Status.TIMED_OUT: 4.0, Status.SLOW: 0.6,
}  # fmt: skip  # in full evaluations


@dataclass(slots=True)
class Account(Tally):
    """What is known of one proposer. ``earned`` and ``paid`` fade; ``cost`` is all that was paid, in evaluations."""

    paid: float = 0.0
    credit: float = 0.0

    def worth(self, guess: float) -> float:
        """Log speed-up an evaluation; ``guess``: what is thought of it while it is little known."""
        return (GUESS_PAID * guess + self.earned) / (GUESS_PAID + self.paid)


@dataclass(slots=True)
class Sharing:
    """The accounts of the proposers of one run, by name."""

    accounts: dict[str, Account] = field(default_factory=dict)

    def order(self, names: Iterable[str]) -> list[str]:
        """Those named, whoever is to be served first in front; equals in the order given."""
        return sorted(names, key=lambda name: -self._account(name).credit)

    def shares(self) -> dict[str, float]:
        """Name to the share of the evaluations that it is due."""
        guess = self._guess()
        squares = {name: account.worth(guess) ** 2 for name, account in self.accounts.items()}
        free = max(0.0, 1.0 - FLOOR * len(squares))
        return {name: FLOOR + free * square / sum(squares.values()) for name, square in squares.items()}

    def _guess(self) -> float:
        """What a proposer is thought to earn an evaluation before it was seen: as much as all of them together did."""
        earned, paid = (sum(getattr(a, name) for a in self.accounts.values()) for name in ("earned", "paid"))
        return float((GUESS_EARNED + earned) / (GUESS_PAID + paid))

    def asked(self, name: str) -> None:
        """A suggestion of the proposer goes to evaluation."""
        self._account(name).proposed += 1
        self._pay(name, 1.0)
        for other, share in self.shares().items():
            account = self.accounts[other]
            account.credit = min(MOST_CREDIT, account.credit + share)

    def told(self, name: str, status: Status, gain: float, cost: float) -> None:
        """How it ended. ``gain``: log improvement of the best, 0 for none; ``cost``: of making it, in evaluations."""
        account = self._account(name)
        price = PRICES.get(status, 1.0) + cost
        self._pay(name, price - 1.0)
        for each in self.accounts.values():
            each.earned *= FADING
            each.paid *= FADING
        account.ended(gain, right=status >= Status.SLOW)
        account.earned -= min(gain, SURE)
        account.paid += price
        account.cost += price
        if gain > SURE:  # what it owed was owed under a share that it does not have any more
            account.credit = max(account.credit, self.shares()[name])

    def _pay(self, name: str, price: float) -> None:
        account = self._account(name)
        account.credit = max(-MOST_CREDIT, account.credit - price)

    def _account(self, name: str) -> Account:
        return self.accounts.setdefault(name, Account())
