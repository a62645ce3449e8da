"""What models cost in a run, and the caps on it.

The cap on money is checked before every question: what was paid, and the most that open questions may still cost. One
question may always be asked while the cap is not reached, so it is exceeded by one answer at the most.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from fsr.llm.exchange import Answer, ModelFailure, Prompt
from fsr.llm.named import ModelSpec

CHARACTERS_A_TOKEN = 3  # few, so that the estimate is rather too high; only for what no server counted


def estimated_tokens(text: str) -> int:
    """Tokens of a text, rather too many."""
    return len(text.encode()) // CHARACTERS_A_TOKEN + 1


@dataclass(slots=True)
class Bill:
    """Of one model in one run. replayed: answers that were known already, and cost nothing."""

    questions: int = 0
    answers: int = 0
    failures: int = 0
    replayed: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    dollars: float = 0.0
    unpriced: bool = False


@dataclass(slots=True)
class Ledger:
    """All bills of a run, by model. Safe to use from several threads. ``most_dollars``: None for no cap."""

    most_dollars: float | None = None
    bills: dict[str, Bill] = field(default_factory=dict)
    _open: dict[str, float] = field(default_factory=dict)
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def dollars(self) -> float:
        """Paid so far, by all models."""
        return sum(bill.dollars for bill in self.bills.values())

    def bill(self, model: str) -> Bill:
        """The bill of a model, made when it is not there."""
        return self.bills.setdefault(model, Bill())

    def asking(self, spec: ModelSpec, prompt: Prompt) -> str:
        """A question is to be asked; returns what to hand to ``asked``. Raises ModelFailure('cap')."""
        tokens = estimated_tokens(prompt.system + prompt.user)
        most = spec.dollars(tokens, prompt.most_tokens) or 0.0
        with self._lock:
            bill = self.bill(spec.name)
            cap = self.most_dollars
            if cap is not None and most and (self.dollars >= cap or (self._open and self._reserved() + most > cap)):
                spent = self.dollars >= cap
                raise ModelFailure("cap", f"the cap of {cap:g} dollars is reached", final=spent)
            if spec.most_tokens is not None and bill.tokens_in + bill.tokens_out >= spec.most_tokens:
                raise ModelFailure("cap", f"the cap of {spec.most_tokens} tokens is reached", final=True)
            self._count += 1
            ticket = str(self._count)
            self._open[ticket] = most
            bill.questions += 1
        return ticket

    def asked(self, ticket: str, model: str, answer: Answer | None) -> None:
        """How it ended; None for a failure."""
        with self._lock:
            self._open.pop(ticket, None)
            self._add(self.bill(model), answer)

    def replayed(self, model: str) -> None:
        """An answer that was known already was used."""
        with self._lock:
            self.bill(model).replayed += 1

    def restore(self, model: str, answer: Answer | None) -> None:
        """An answer of an earlier life of this run."""
        with self._lock:
            bill = self.bill(model)
            bill.questions += 1
            self._add(bill, answer)

    def _add(self, bill: Bill, answer: Answer | None) -> None:
        if answer is None:
            bill.failures += 1
            return
        bill.answers += 1
        bill.tokens_in += answer.tokens_in
        bill.tokens_out += answer.tokens_out
        bill.seconds += answer.seconds
        bill.dollars += answer.dollars or 0.0
        bill.unpriced |= answer.dollars is None

    def _reserved(self) -> float:
        return self.dollars + sum(self._open.values())
