"""Which large sizes are tried where a GPU judges by itself."""

from __future__ import annotations

import time

import pytest

from fsr.evaluation import judging_pace
from fsr.evaluation.judging_pace import MORE_RUNS, JudgingPace


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(judging_pace, "time", clock)
    return clock


def seen(clock: Clock, pace: JudgingPace, size: int, rest_s: float, runs: list[float]) -> None:
    with pace.noting(size):
        for seconds in runs:
            clock.now += seconds
            pace.ran(seconds)
        clock.now += rest_s


@pytest.mark.parametrize(
    ("before", "size", "left_s", "allowed"),
    [
        ([], 1 << 30, 1.0, True),  # nothing is known yet
        ([(1 << 22, 1.0, [])], 1 << 25, 9.0, True),  # what is beside the runs grows in proportion
        ([(1 << 22, 0.1, [0.1])], 1 << 25, 5.0, False),  # of one run alone the worst is thought: the square
        # Small runs say nothing: attention grew by 64 and by 64 again, the launch's cost hid the first.
        ([(1 << 22, 0.1, [2e-4]), (1 << 25, 0.3, [0.07] * 7)], 1 << 28, 20.0, False),
        ([(1 << 22, 0.1, [0.1]), (1 << 25, 0.3, [0.8])], 1 << 28, 12.0, True),  # in proportion
        ([(1 << 22, 0.1, [0.1]), (1 << 25, 0.3, [6.4])], 1 << 28, 300.0, False),  # by the square
    ],
)
def test_a_larger_case_is_tried_when_it_will_end_in_time(
    clock: Clock, before: list[tuple[int, float, list[float]]], size: int, left_s: float, allowed: bool
) -> None:
    pace = JudgingPace(clock.now + left_s + sum(rest + sum(runs) for _, rest, runs in before))
    for case in before:
        seen(clock, pace, *case)
    assert pace.allows(size) is allowed


@pytest.mark.parametrize(("run_s", "bears"), [(0.1, True), (4.7, False)])
def test_what_differs_is_judged_when_the_original_can_run_as_often(clock: Clock, run_s: float, bears: bool) -> None:
    pace = JudgingPace(clock.now + run_s + 0.1 * (MORE_RUNS + 1))
    with pace.noting(1 << 22):
        clock.now += run_s
        pace.ran(run_s)
        assert pace.bears() is bears


def test_the_clock_is_the_machine_s() -> None:
    pace = JudgingPace(time.monotonic() + 1000.0)
    with pace.noting(1 << 22):
        time.sleep(0.01)
    assert pace.allows(1 << 30)
    assert not pace.allows(1 << 60)
