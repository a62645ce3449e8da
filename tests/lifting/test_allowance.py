"""What counts against a lifting's time."""

from __future__ import annotations

import math
import threading

from fsr.lifting.allowance import Allowance, unlimited


def test_waiting_counts_and_other_threads_work_does_not():
    allowance = Allowance(50.0)
    busy = threading.Thread(target=lambda: sum(range(2_000_000)))
    before = allowance.left_s
    busy.start()
    busy.join()
    assert before - allowance.left_s < 0.02
    held = threading.Event()
    with allowance.waiting():
        held.wait(0.05)
    assert before - allowance.left_s >= 0.05


def test_of_a_watched_run_only_what_it_had_of_a_cpu_counts():
    allowance, held = Allowance(50.0), threading.Event()
    before, told = allowance.left_s, iter((1.0, 1.01, 7.0, 0.5))
    with allowance.waiting(lambda: next(told)):
        held.wait(0.2)
    assert 0.005 < before - allowance.left_s < 0.1
    with allowance.waiting(lambda: next(told)):  # another process by then: less than the first had used
        held.wait(0.2)
    assert before - allowance.left_s >= 0.2


def test_it_ends_by_the_clock_too():
    assert Allowance(5.0, most=0.0).left_s <= 0
    assert unlimited().left_s == math.inf


def test_one_that_is_stopped_is_used_up():
    asked = threading.Event()
    for seconds in (50.0, math.inf):
        allowance = Allowance(seconds, stopped=asked.is_set)
        assert allowance.left_s > 0
        asked.set()
        assert allowance.left_s == 0.0
        asked.clear()
