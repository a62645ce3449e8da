"""Sizes that few draws reach: all of a small range in even steps, and several at their most at once."""

from __future__ import annotations

import numpy as np

from fsr.contract.model import Argument, Contract, Size
from fsr.records import Launch, Plan, Role
from fsr.testgen.cases import held_out_cases, search_cases
from fsr.testgen.fitting import elements, fit, room
from fsr.testgen.spread import SPREAD, sizes_together, spread_sizes

PLAN = Plan((Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", ("x", "n")),))
SIZES = (Size("half", 1, 128, (32,)), Size("taps", 1, 7, (3,)), Size("dil", 1, 64, (2,)), Size("n", 1, 10**6, (1000,)))


def contract(*shape: str, sizes: tuple[Size, ...] = SIZES) -> Contract:
    return Contract("k", sizes, (Argument("x", "float32", Role.INOUT, shape or ("n", "half", "taps", "dil")),), PLAN)


def test_a_small_range_is_gone_through_in_even_steps() -> None:
    told = list(spread_sizes(contract("n", "half"), np.random.default_rng(0), 1 << 13))
    assert len(told) == SPREAD
    halves = sorted({t["half"] for t in told})
    assert len(halves) > SPREAD * 0.9
    assert max(b - a for a, b in zip([0, *halves], [*halves, 129], strict=True)) <= 14


def test_others_keep_some_room_beside_a_fixed_extent() -> None:
    told = list(spread_sizes(contract("4096", "half", sizes=SIZES[:1]), np.random.default_rng(0), 1 << 13))
    assert len({t["half"] for t in told}) > SPREAD * 0.9
    beside = contract("4096 * half + n * half * taps", sizes=SIZES)
    assert max(t["n"] for t in spread_sizes(beside, np.random.default_rng(0), 1 << 13)) > 1


def test_several_sizes_are_at_their_most_together_and_a_long_one_past_tiles() -> None:
    told = list(sizes_together(contract(), np.random.default_rng(0), 1 << 18))
    assert any(t["taps"] == 7 and t["dil"] == 64 and t["n"] > 128 for t in told)
    assert all(elements(contract(), t) <= 1 << 18 for t in told)


def test_one_size_alone_or_large_ones_need_neither() -> None:
    long = contract("n", sizes=SIZES[3:])
    assert list(spread_sizes(long, np.random.default_rng(0), 1 << 13)) == []
    assert list(sizes_together(long, np.random.default_rng(0), 1 << 13)) == []


def test_a_table_of_a_fixed_extent_leaves_sizes_room() -> None:
    table = contract("4096", "half", sizes=SIZES[:1])
    assert fit(table, {"half": 100}, 1 << 14)["half"] > 40
    assert room(contract(), 1 << 14) == room(contract("32 * half", "32 * n"), 1 << 14) == 1 << 14
    for cases in (search_cases(table, PLAN, 0, max_elements=1 << 14), held_out_cases(table, 0, max_elements=1 << 14)):
        assert max(c.size_map()["half"] for c in cases) > 40
