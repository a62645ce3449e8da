"""Seeded bad numbers and expressions: each refused with one message, at once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fsr.errors import EXIT_USAGE, ContractError, UsageError
from fsr.expressions import evaluate
from fsr.runs.options import parse_duration
from fsr.workers.select import compilers
from tests.commandline import ROW_SUM, Command


def towers(seed: int) -> str:
    """An expression that grows without bound: powers, shifts and products, nested."""
    chance = random.Random(seed)
    text = str(chance.randint(5, 64))
    for _ in range(chance.randint(5, 12)):
        step = chance.choice(
            ("({0})**64", "({0})<<64", "({0})**63*({0})", "max(({0})**9,({0})<<60)", "round_up({0},7)**50")
        )
        text = step.format(text)
        if len(text) > 400:
            break
    return text


@pytest.mark.parametrize("seed", range(100))
def test_a_tower_of_powers_is_refused_at_once(seed: int) -> None:
    with pytest.raises(ContractError):  # a test that hangs is ended by its time limit
        evaluate(towers(seed), {"n": 7})


@pytest.mark.parametrize("text", ["(" * 240 + "1" + ")" * 240, "1" + "**9" * 160, "(" * 400, "n[" * 200])
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(ContractError):
        evaluate(text, {"n": 7})


@pytest.mark.parametrize(
    "text",
    ["99999999999h", "1" * 400, "١٢s", "৫m", "0", "-5s", "1e9", "inf", "nan", "5 minutes", "\n5m", "", "31000000000ms"],
)
def test_an_absurd_budget_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_duration(text)
    assert "--budget" in str(caught.value)


@pytest.mark.parametrize("count", [0, -1, 100_000, 10**30])
def test_an_absurd_number_of_workers_is_refused(count: int) -> None:
    with pytest.raises(UsageError, match="compile workers"):
        compilers(count)


@pytest.mark.parametrize("number", ["nan", "inf", "-1"])
@pytest.mark.parametrize("words", [("cache", "prune", "--older-than"), ("cache", "verify", "--budget")])
def test_a_number_that_nothing_can_be_compared_with_is_refused(
    cli: Command, words: tuple[str, ...], number: str
) -> None:
    told = cli(*words, number)
    assert (told.code, told.out) == (EXIT_USAGE, "")
    assert number in told.err


@pytest.mark.parametrize("name", ["", "  "])
def test_an_empty_name_of_a_kernel_is_refused(cli: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "kernel.cu").write_text(ROW_SUM)
    told = cli("contract", tmp_path / "kernel.cu", "--entry", name)
    assert (told.code, told.out) == (EXIT_USAGE, "")
    assert "an empty name" in told.err


def test_ordinary_ones_pass() -> None:
    assert [parse_duration(t) for t in ("90", "60s", "1.5h", "250ms")] == [90.0, 60.0, 5400.0, 0.25]
    assert evaluate("(n * n * n * n) // (n * n)", {"n": 2**30}) == 2**60
    assert compilers(4) == 4
