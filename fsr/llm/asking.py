"""Asking one model: samples, retries of what could not be read, costs; every answer by the book."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from fsr.llm.arms import answer_cost
from fsr.llm.book import Book
from fsr.llm.exchange import Answer, Prompt, Provider
from fsr.llm.named import ModelSpec
from fsr.llm.unusable import Unusable

T = TypeVar("T")
READ_AGAIN = ("unparsable", "does not apply", "truncated", "bad plan", "illegal choice", "no CUDA", "guard")
MOST_SAMPLES = 8  # equal questions in a run: what that many answers did not bring, another will not


@dataclass(slots=True)
class Asking:
    """One model of one run. ``provider``: None to answer from the book alone. ``unpaid``: cost since it was last taken;
    ``refused``: answers that were no proposal, by kind."""

    spec: ModelSpec
    provider: Provider | None
    book: Book
    cancelled: threading.Event = field(default_factory=threading.Event)
    refused: Counter[str] = field(default_factory=Counter)
    unpaid: float = 0.0
    _samples: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, make: Callable[[int], Prompt], read: Callable[[str, Prompt], T], parent: str) -> tuple[T, str, float]:
        """What an answer says, the hash of its question, and what it cost.

        ``make``: the prompt with a sample's number. ``parent``: the hash of the candidate that it is about. An answer
        that cannot be read is asked for once more, told what was wrong. Raises Unusable and ModelFailure."""
        prompt = self._sampled(make)
        answer, name, cost = self._once(prompt, parent)
        try:
            return self._read(answer, prompt, name, read), name, cost
        except Unusable as fault:
            if fault.kind not in READ_AGAIN:
                raise
            told = (
                f"{prompt.user}\n\nYour last answer could not be used: {fault.detail}. Answer again, exactly as asked."
            )
            prompt = replace(prompt, user=told)
        answer, name, more = self._once(prompt, parent)
        return self._read(answer, prompt, name, read), name, cost + more

    def take_unpaid(self) -> float:
        """The cost since this was last called."""
        with self._lock:
            cost, self.unpaid = self.unpaid, 0.0
        return cost

    def refuse(self, name: str, fault: Unusable) -> None:
        """Count an answer that is no proposal."""
        with self._lock:
            self.refused[fault.kind] += 1
        self.book.refused(name, fault.kind, fault.detail)

    def _sampled(self, make: Callable[[int], Prompt]) -> Prompt:
        first = make(0).hash(self.spec.name)
        with self._lock:
            sample = self._samples[first]
            self._samples[first] += 1
        if sample >= MOST_SAMPLES:
            raise Unusable("duplicate", "this was asked often enough")
        return make(sample)

    def _once(self, prompt: Prompt, parent: str) -> tuple[Answer, str, float]:
        answer = self.book.ask(self.provider, self.spec, prompt, self.cancelled)
        name, cost = prompt.hash(self.spec.name), answer_cost(answer.tokens_in, answer.tokens_out)
        self.book.made_from(name, parent)
        with self._lock:
            self.unpaid += cost
        return answer, name, cost

    def _read(self, answer: Answer, prompt: Prompt, name: str, read: Callable[[str, Prompt], T]) -> T:
        try:
            if not answer.text.strip():
                raise Unusable("truncated" if answer.stop != "stop" else "prose", "an empty answer")
            try:
                return read(answer.text, prompt)
            except Unusable as fault:
                if answer.stop != "stop" and fault.kind in ("unparsable", "prose", "wrong entry", "does not apply"):
                    raise Unusable("truncated", f"cut after {answer.tokens_out} tokens") from None
                raise
        except Unusable as fault:
            self.refuse(name, fault)
            raise
