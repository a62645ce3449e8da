"""Numbers across lanes: what is known of them, and what all lanes of a warp share."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.analysis.lane_values import Lanes, Value, collide, combined, joined, number, unknown

THREADS = 64
T = Lanes(np.arange(THREADS, dtype=np.int64))


def of(value: int) -> Lanes:
    return number(value, THREADS)


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "<", "==", ">="])
def test_known_numbers_are_computed(op: str) -> None:
    found = combined(op, T, of(3))
    expected = [eval(f"int({t} {'//' if op == '/' else op} 3)") for t in range(THREADS)]
    assert found is not None
    assert found.known
    assert found.values.tolist() == expected


def test_what_a_warp_shares() -> None:
    half = combined("<", T, of(32))
    assert half is not None
    assert half.shared()
    less = combined("<", T, of(16))
    assert less is not None
    assert not less.shared()
    some = combined("<", of(7), unknown(THREADS))
    assert some is not None
    assert some.shared()
    assert not some.known
    assert combined("<", T, unknown(THREADS)) is None


def test_a_block_s_first_thread_is_a_multiple() -> None:
    first = combined("*", unknown(THREADS, natural=True), of(THREADS))
    thread = combined("+", first, T)
    for op, by in (("/", 32), (">>", 5)):
        warp = combined(op, thread, of(by))
        assert warp is not None
        assert warp.shared()
        assert not warp.known
    for op, by in (("%", 32), ("&", 31)):
        lane = combined(op, thread, of(by))
        assert lane is not None
        assert lane.known
        assert lane.values.tolist() == [t % 32 for t in range(THREADS)]
    assert combined("%", combined("+", unknown(THREADS), T), of(32)) is None


def test_numbers_that_would_wrap_around_are_not_known() -> None:
    assert combined("*", T, of(1 << 30)) is None
    assert combined("<", combined("-", T, of(1)), of(32)) is None  # unsigned, the first is large


def test_either_of_two() -> None:
    both = joined(T, combined("+", T, of(32)))
    assert both is not None
    assert not both.known
    assert joined(T, combined("*", T, of(2))) is None


@pytest.mark.parametrize(
    ("a", "b", "meet"),
    [
        (T, combined("+", T, of(1)), True),
        (T, combined("+", T, of(32)), False),
        (T, T, False),
        (of(3), of(3), True),
        (T, None, None),
        (T, combined("+", T, unknown(THREADS)), None),
    ],
)
def test_lanes_meet(a: Value, b: Value, meet: bool | None) -> None:
    everywhere = np.ones(THREADS, bool)
    assert collide(a, b, everywhere, everywhere) is meet


def test_one_lane_alone_meets_nobody() -> None:
    first = np.arange(THREADS) == 0
    assert collide(of(0), of(0), first, first) is False
