"""What models cost, and that a cap is kept."""

from __future__ import annotations

import pytest

from fsr.llm.exchange import Answer, ModelFailure, Prompt
from fsr.llm.ledger import Ledger
from fsr.llm.named import ModelSpec

SPEC = ModelSpec("m", url="https://api.example.com/v1", model="m", dollars_in=1000.0, dollars_out=1000.0)
PROMPT = Prompt("coder", "whole", 1, "a" * 30, "b" * 30, most_tokens=50)


def answered(ledger: Ledger, tokens: int = 60, spec: ModelSpec = SPEC) -> None:
    ticket = ledger.asking(spec, PROMPT)
    ledger.asked(ticket, spec.name, Answer("x", tokens // 2, tokens // 2, 1.0, dollars=spec.dollars(tokens, 0)))


def test_sums_are_kept_by_model() -> None:
    ledger = Ledger()
    answered(ledger)
    answered(ledger)
    ledger.asked(ledger.asking(SPEC, PROMPT), "m", None)
    bill = ledger.bill("m")
    assert (bill.questions, bill.answers, bill.failures) == (3, 2, 1)
    assert (bill.tokens_in, bill.tokens_out, bill.dollars) == (60, 60, pytest.approx(0.12))


def test_the_cap_on_money_is_exceeded_by_one_answer_at_the_most() -> None:
    ledger = Ledger(most_dollars=0.1)
    answered(ledger)
    first = ledger.asking(SPEC, PROMPT)  # allowed: nothing else is open, and the cap is not reached
    with pytest.raises(ModelFailure) as open_one:  # with the open one it might be exceeded twice
        ledger.asking(SPEC, PROMPT)
    assert not open_one.value.final
    ledger.asked(first, "m", Answer("x", 30, 30, 1.0, dollars=0.06))
    with pytest.raises(ModelFailure) as reached:
        ledger.asking(SPEC, PROMPT)
    assert (reached.value.kind, reached.value.final) == ("cap", True)
    assert ledger.dollars == pytest.approx(0.12)


def test_a_cap_on_tokens_and_answers_that_were_known() -> None:
    from dataclasses import replace

    spec, ledger = replace(SPEC, most_tokens=100), Ledger()
    answered(ledger, 60, spec)
    answered(ledger, 60, spec)
    ledger.replayed("m")
    with pytest.raises(ModelFailure, match="100 tokens"):
        ledger.asking(spec, PROMPT)
    assert ledger.bill("m").replayed == 1
