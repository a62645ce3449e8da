"""Inputs that repeat one another, with little changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fsr.contract.model import Argument, Constraints, Contract, Size
from fsr.records import Case, Launch, Plan, Role
from fsr.testgen.corner_cases import corner_cases
from fsr.testgen.echoes import ECHO, KNOWN, echoed, sources
from fsr.testgen.values import build

PLAN = Plan((Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", ("text", "word", "y", "n")),))


def contract(**limits: str) -> Contract:
    sizes = (Size("m", 1, 60, (8,)), Size("n", 1, 1 << 20, (4096,)))
    return Contract("k", sizes, (
        Argument("text", "uint8", Role.IN, ("n",), constraints=Constraints(**limits)),
        Argument("word", "uint8", Role.IN, ("m",), constraints=Constraints(**limits)),
        Argument("y", "uint8", Role.OUT, ("n",)),
    ), PLAN)  # fmt: skip


def test_the_larger_repeats_the_smaller_with_bits_flipped() -> None:
    cases = [case for case in corner_cases(contract(), 4, 1 << 14) if "echoes" in case.name]
    assert [case.family for case in cases] == [ECHO, KNOWN]
    for case in cases:
        arrays = build(contract(), case).arrays
        text, word = arrays["text"], arrays["word"]
        assert len(text) > 100 * len(word)
        turned = [np.roll(np.resize(word, len(text)), by) for by in range(len(text))]
        differing = min((text ^ other for other in turned), key=np.count_nonzero)
        share = np.count_nonzero(differing) / (len(text) / len(word))
        assert 0.3 < share < 0.7  # of the repetitions
        assert set(differing) <= {0, *(1 << bit for bit in range(8))}


def test_known_numbers_stand_at_the_end_and_elsewhere() -> None:
    numbers = (Argument("any", "int32", Role.SCALAR, value="63"), Argument("n", "int32", Role.SCALAR, value="n"))
    called = replace(contract(), args=(*contract().args, *numbers))
    families = {case.family: build(called, case).arrays["word"] for case in corner_cases(called, 4, 1 << 14)}
    assert families[KNOWN][-1] == 63
    assert np.count_nonzero(families[KNOWN] == 63) > np.count_nonzero(families[ECHO] == 63)
    limited = replace(called, args=tuple(replace(a, constraints=Constraints(high="60")) for a in called.args))
    for case in corner_cases(limited, 4, 1 << 14):
        assert build(limited, case).arrays["word"].max() <= 60


def test_one_that_is_shorter_is_the_beginning_of_the_other() -> None:
    (case,) = (case for case in corner_cases(contract(), 4, 1 << 14) if case.name.startswith("beginnings"))
    arrays = build(contract(), case).arrays
    text, word = arrays["text"], arrays["word"]
    assert 0 < len(text) < len(word)
    assert (text == word[: len(text)]).all()


def test_limits_hold_and_types_are_not_mixed() -> None:
    limited = contract(low="10", high="13")
    for case in corner_cases(limited, 4, 1 << 14):
        text = build(limited, case).arrays["text"]
        assert case.family != ECHO or (text.min() >= 10 and text.max() <= 13)
    mixed = Contract("k", limited.sizes, (*limited.args[:1], Argument("word", "int32", Role.IN, ("m",))), PLAN)
    assert sources(mixed) == {}


def test_rows_of_the_same_length_stand_still_or_are_turned() -> None:
    source = np.arange(40, dtype=np.int32).reshape(4, 10) * 8
    made = echoed(source, (4, 10), (-(1 << 31), (1 << 31) - 1), np.random.default_rng(1))
    assert made is not None
    assert (made[[0, 2]] == source[[0, 2]]).sum() >= 18
    assert (made[1] == source[1, ::-1]).sum() >= 9
    assert (made[3] == source[3]).sum() <= 2
    sorted_ = contract()
    keyed = Argument("text", "uint8", Role.IN, ("n",), constraints=Constraints(sorted=True))
    in_order = Contract("k", sorted_.sizes, (keyed, *sorted_.args[1:]), PLAN)
    values = build(in_order, Case("c", (("m", 40), ("n", 900)), ECHO, 3)).arrays["text"]
    assert (np.diff(values.astype(int)) >= 0).all()


def test_what_may_not_be_passed_is_not_repeated() -> None:
    sizes = (Size("m", 1, 8, (8,)), Size("n", 1, 1000, (100,)))
    places = Argument("text", "int32", Role.IN, ("n",), constraints=Constraints("0", "m - 1"))
    any_ = Argument("word", "int32", Role.IN, ("m",))
    told = Contract("k", sizes, (places, any_, Argument("y", "int32", Role.OUT, ("n",))), PLAN)
    text = build(told, Case("c", (("m", 8), ("n", 100)), ECHO, 3)).arrays["text"]
    assert 0 <= text.min() <= text.max() < 8
