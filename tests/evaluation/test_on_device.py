"""Which large sizes are tried where a GPU judges by itself."""

from __future__ import annotations

import time

import pytest

from fsr.evaluation.on_device import _Pace


def paced(taken: dict[int, float], left_s: float) -> _Pace:
    pace = _Pace(time.monotonic() + left_s)
    pace._taken.update(taken)
    return pace


@pytest.mark.parametrize(
    ("taken", "size", "left_s", "allowed"),
    [
        ({}, 1 << 30, 1.0, True),  # nothing is known yet
        ({1 << 22: 1.0}, 1 << 25, 50.0, False),  # of one alone the worst is thought: the square
        ({1 << 22: 1.0, 1 << 25: 1.1}, 1 << 28, 20.0, True),  # what hardly grew grows in proportion at most
        ({1 << 22: 1.0, 1 << 25: 64.0}, 1 << 28, 3000.0, False),  # what grew by the square goes on
    ],
)
def test_a_larger_case_is_tried_when_it_will_end_in_time(
    taken: dict[int, float], size: int, left_s: float, allowed: bool
) -> None:
    assert paced(taken, left_s).allows(size) is allowed


def test_what_a_case_took_is_noted() -> None:
    pace = paced({}, 1000.0)
    with pace.noting(1 << 22):
        time.sleep(0.01)
    assert not pace.allows(1 << 40)
