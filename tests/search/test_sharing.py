"""Evaluations are shared out by what each proposer has earned: useless, slow, strong and raising ones side by side."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterator

from fsr.records import Outcome, Status
from fsr.search.proposal import Rules, Space
from fsr.search.proposers.deterministic import Deterministic
from fsr.search.proposers.protocol import Proposer, Suggestion
from fsr.search.refinement import Refinement
from fsr.search.sharing import FLOOR, Sharing
from tests.conformance.proposers import Scripted, cost, noted, search
from tests.search.scripted import BASELINE, CONTRACT, Knob, failed, settings, timed

KNOBS = tuple(Knob(f"k{i}", (1, 2, 3, 4), 1.2) for i in range(6))


def landscape(candidate: object) -> Outcome:
    """Six knobs of four values, a best one each: 2.5x in all."""
    knobs = settings(candidate)  # type: ignore[arg-type]
    if knobs.pop("note", None) is not None and not knobs:
        return failed()
    return timed(1000.0 / math.prod(1 + 0.06 * value for value in knobs.values()), threads_per_block=len(knobs) * 32)


def useless(script: Iterator[int] | None = None) -> Iterator[Suggestion]:
    for number in itertools.count(1):
        yield Suggestion(noted(number), 0, f"useless {number}", "model")


def strong() -> Iterator[Suggestion]:
    """Finds what the knobs come to by two steps at once, one suggestion in three."""
    for number in itertools.count(1):
        depth = min(3 + number // 3, 6)
        good = {f"k{i}": 4 for i in range(depth)} if number % 3 == 0 else {}
        yield Suggestion(noted(number, **good), 0, f"strong {number}", "model")


def driven(seed: int, *more: Proposer, steps: int = 90) -> tuple[list[float], Counter[str], Refinement]:
    """The best after each evaluation, and how many evaluations each proposer had."""
    refinement = Refinement(BASELINE, Space(Rules(CONTRACT), KNOBS), [Deterministic(seed), *more])
    best, had = [], Counter[str]()
    for _ in range(steps + 1):
        proposal = refinement.ask()
        if proposal is None:
            break
        refinement.tell(proposal.id, landscape(proposal.candidate))
        had[proposal.proposer] += 1
        assert refinement.archive.best is not None
        best.append(1000.0 / (refinement.archive.best.time_ns or 1.0))
    return best, had, refinement


def until(best: list[float], wanted: float) -> int:
    return next((i for i, found in enumerate(best) if found >= wanted), len(best))


def test_a_useless_proposer_is_left_with_the_floor_and_delays_the_others_little() -> None:
    ratios = []
    for seed in range(12):
        alone, _, _ = driven(seed)
        beside, had, _ = driven(seed, Scripted("useless", useless()))
        wanted = 1 + 0.9 * (alone[-1] - 1)
        ratios.append(until(beside, wanted) / until(alone, wanted))
        assert had["useless"] <= 0.12 * sum(had.values())
        assert had["useless"] >= 0.5 * FLOOR * sum(had.values())
    # Its candidates are right, and cost as much as others: twice what a model's wrong ones do. Its first chance is five
    # evaluations of fifty; nothing else may be lost, so that no seed is much worse than another.
    assert statistics.median(ratios) <= 1.15, ratios
    assert max(ratios) <= 1.25, ratios


def test_a_strong_proposer_is_soon_given_more_and_the_search_gets_there_sooner() -> None:
    ratios = []
    for seed in range(12):
        alone, _, _ = driven(seed)
        beside, had, _ = driven(seed, Scripted("strong", strong()))
        wanted = 1 + 0.9 * (alone[-1] - 1)
        ratios.append(until(beside, wanted) / until(alone, wanted))
        assert had["deterministic"] >= FLOOR * sum(had.values())
    assert statistics.median(ratios) < 0.8, ratios


def test_a_slow_proposer_is_served_whenever_it_has_something_and_is_not_starved() -> None:
    slow = Scripted("slow", useless(), every=12)
    _, had, _ = driven(0, slow)
    assert had["slow"] >= 3
    first = slow.ids[0]
    assert first <= 14  # with the first suggestion that it had


def test_credit_of_one_that_was_silent_for_long_is_bounded() -> None:
    late = Scripted("late", itertools.chain([], useless()), every=1)
    late.calls = -100  # negative calls never fall on its turn
    late.every = 10**9
    _, _, refinement = driven(1, late, steps=60)
    late.every = 1
    names = []
    for _ in range(20):
        proposal = refinement.ask()
        assert proposal is not None
        refinement.tell(proposal.id, landscape(proposal.candidate))
        names.append(proposal.proposer)
    assert names[0] == "late"
    assert names.count("late") <= 6  # 1 or 2 at once, then its floor and what it may yet be worth


def test_one_that_raises_is_left_out_and_told_of() -> None:
    told: list[tuple[str, str]] = []
    raising = Scripted("raising", useless(), fails_after=2)
    refinement = Refinement(
        BASELINE, Space(Rules(CONTRACT), KNOBS), [raising, Deterministic(0)],
        on_fault=lambda name, fault: told.append((name, str(fault))),
    )  # fmt: skip
    for _ in range(30):
        proposal = refinement.ask()
        assert proposal is not None
        refinement.tell(proposal.id, landscape(proposal.candidate))
    assert told == [("raising", "out of order")]
    assert raising.calls == 3


def test_suggestions_of_what_is_known_do_not_hold_up_the_others() -> None:
    same = Suggestion(noted(1), 0, "again", "model")
    refinement = search(Scripted("parrot", itertools.repeat(same)), Deterministic(0))
    hashes = []
    for _ in range(10):
        proposal = refinement.ask()
        assert proposal is not None
        refinement.tell(proposal.id, cost(proposal.candidate))
        hashes.append(proposal.hash)
    assert len(set(hashes)) == 10


def test_failures_are_cheap_and_time_outs_dear() -> None:
    sharing = Sharing()
    for name, status in (("refused", Status.INVALID), ("hanging", Status.TIMED_OUT)):
        for _ in range(5):
            sharing.asked(name)
            sharing.told(name, status, 0.0, 0.0)
    shares = sharing.shares()
    assert shares["refused"] > 2 * shares["hanging"]
    assert sum(shares.values()) == 1.0
    assert sharing.accounts["hanging"].cost == 20.0


def test_what_a_model_costs_counts() -> None:
    sharing = Sharing()
    for name, making in (("cheap", 0.0), ("dear", 3.0)):
        sharing.asked(name)
        sharing.told(name, Status.CORRECT, 0.5, making)
    shares = sharing.shares()
    assert shares["cheap"] > 1.3 * shares["dear"]


def test_a_gain_that_may_be_noise_gives_nobody_more() -> None:
    sharing = Sharing()
    for name, gain in (("lucky", 0.015), ("idle", 0.0)):
        sharing.asked(name)
        sharing.told(name, Status.CORRECT, gain, 0.0)
    assert abs(sharing.shares()["lucky"] - sharing.shares()["idle"]) < 0.01
    assert sharing.accounts["lucky"].gains == 1


def test_one_that_was_in_debt_and_gains_much_comes_next() -> None:
    sharing = Sharing()
    for gain in (0.0, 0.0, 0.4):
        sharing.asked("other")
        sharing.told("other", Status.CORRECT, 0.0, 0.0)
        sharing.asked("model")
        sharing.told("model", Status.CORRECT, gain, 1.0)
    assert sharing.order(["other", "model"]) == ["model", "other"]
    assert sharing.accounts["model"].credit > 0.0


def test_closing_a_search_closes_its_proposers() -> None:
    proposer = Scripted("one", useless())
    refinement = search(proposer)
    refinement.close()
    assert proposer.closed
    assert refinement.ask() is None
