"""Elements of which the original's own rounding decides whether there is an answer: roots of residues."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

from fsr.contract.model import Argument, Contract, Size, Tolerance
from fsr.records import Case, Launch, Plan, Role
from fsr.testgen.compare import compare
from fsr.testgen.oracle import MORE_NOISY, NOISY_RUNS, Expected, Once, expect
from fsr.testgen.values import Array, CaseData

N = 40
ROOT = 1e-3  # of a residue
PLAN = Plan((Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", ("x", "y")),))


def contract() -> Contract:
    args = (Argument("x", "float32", Role.IN, ("n", "m")), Argument("y", "float32", Role.OUT, ("n",)))
    return Contract("k", (Size("n", 0, 99, (5,)), Size("m", 1, 999, (5,))), args, PLAN, Tolerance(sum_length="m"))


CASE = Case("c", (("n", N), ("m", 300)), "zeros", 3)


def expected(samples: list[Array], truth: Array, answer: Array | None = None) -> tuple[Expected, list[int]]:
    """What is known where noisy runs give ``samples``, one after the other, and how many of these were asked for."""
    asked = list[int]()
    own = np.full(N, ROOT, np.float32) if answer is None else answer

    def noisy(_: Case, data: CaseData) -> Mapping[str, Array]:
        asked.append(len(asked))
        return {"y": samples[asked[-1] % len(samples)]}

    run = Once(lambda _, data: {"y": own.copy()})
    return expect(contract(), CASE, run, precise=lambda c, d: {"y": truth}, noisy=noisy), asked


def sampled(finite: float = ROOT) -> list[Array]:
    """Samples that are no number or ``finite`` by chance, but finite in the first run of samples at element 7."""
    draw = np.random.default_rng(1)
    found = [np.where(draw.random(N) < 0.5, np.nan, finite) for _ in range(NOISY_RUNS + MORE_NOISY)]
    for sample in found[:NOISY_RUNS]:
        sample[7] = finite
    return found * 2


def right(what: Expected, got: Array) -> bool:
    return compare(contract(), CASE, {"y": got.astype(np.float32)}, what) == []


@pytest.mark.parametrize("truth", [0.0, math.nan], ids=["of 0", "none in float64"])
@pytest.mark.parametrize("got", [math.nan, 0.0, 3 * ROOT])
def test_few_samples_that_are_alike_by_chance_decide_nothing(truth: float, got: float) -> None:
    what, _ = expected(sampled(), np.full(N, truth))
    assert right(what, np.full(N, got))


def test_no_more_samples_are_drawn_than_decide() -> None:
    what, asked = expected(sampled(), np.zeros(N))
    assert right(what, np.full(N, np.nan))
    assert NOISY_RUNS < len(asked) < NOISY_RUNS + MORE_NOISY
    before = len(asked)
    assert right(what, np.full(N, np.nan))
    assert len(asked) == before


def test_an_answer_far_above_what_rounding_leaves_is_wrong_all_the_same() -> None:
    what, _ = expected(sampled(), np.zeros(N))
    assert not right(what, np.full(N, 100 * ROOT))


def test_sums_of_terms_that_are_alike_leave_more_than_errors_at_random() -> None:
    what, _ = expected(sampled(), np.full(N, np.nan))
    assert right(what, np.full(N, 6 * ROOT))


def test_no_number_is_wrong_where_no_sample_has_none() -> None:
    always = sampled()
    for sample in always:
        sample[9] = ROOT
    what, asked = expected(always, np.zeros(N))
    assert not right(what, np.full(N, np.nan))
    assert len(asked) == NOISY_RUNS + MORE_NOISY


def test_more_samples_are_only_asked_for_where_rounding_decides_of_some_element() -> None:
    what, asked = expected([np.full(N, ROOT)], np.zeros(N))
    assert not right(what, np.full(N, np.nan))
    assert len(asked) == NOISY_RUNS


def test_an_answer_of_the_original_that_float64_has_none_of_is_no_truth() -> None:
    what, _ = expected([np.full(N, ROOT)], np.full(N, np.nan))
    assert right(what, np.full(N, 2 * ROOT))
    assert not right(what, np.full(N, 1000 * ROOT))


def test_no_number_in_float64_and_in_all_samples_is_what_the_original_has_alone() -> None:
    what, _ = expected([np.full(N, np.nan)], np.full(N, np.nan))
    assert not right(what, np.full(N, 2 * ROOT))


def test_what_overflowed_is_no_residue() -> None:
    infinite = np.full(N, np.inf, np.float32)
    what, _ = expected([np.full(N, 1e39)], np.full(N, 1e39), infinite)
    assert not right(what, np.full(N, 5.0))
