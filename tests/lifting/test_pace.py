"""Runs with other data that cannot all be made in time are told after a few, and others are not stopped."""

from __future__ import annotations

import pytest

from fsr.lifting.pace import Pace
from fsr.lifting.refused import Hopeless


class Clock:
    """An allowance that the test uses up."""

    def __init__(self, left_s: float) -> None:
        self.left_s = left_s


def stopped_at(each_s: float, share: float, least: int = 16, first: int = 1) -> int | None:
    """The run before which it is given up, of runs that take so long each; None where all are made."""
    clock = Clock(10.0)
    pace = Pace(clock, share)
    for run in range(first, least):
        try:
            pace.require(run, least)
        except Hopeless:
            return run
        clock.left_s -= each_s
    return None


@pytest.mark.parametrize(("each_s", "share"), [(2.0, 1.0), (1.2, 1.0), (0.5, 5.0)])
def test_what_cannot_be_in_time_is_told_after_two_runs(each_s, share):
    assert stopped_at(each_s, share) == 3


@pytest.mark.parametrize(("each_s", "share"), [(0.5, 1.0), (0.6, 1.0), (0.05, 20.0), (0.2, 3.0)])
def test_what_is_in_time_or_nearly_is_not_stopped(each_s, share):
    assert stopped_at(each_s, share) is None


def test_runs_that_are_there_already_are_not_counted():
    assert stopped_at(1.5, 1.0, first=9) is None


def test_beyond_the_least_nothing_is_asked():
    clock = Clock(10.0)
    pace = Pace(clock, 9.0)
    for run in range(16, 30):
        pace.require(run, 16)
        clock.left_s -= 3.0
    assert clock.left_s < 0  # long past what is left, and never stopped
