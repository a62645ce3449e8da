"""Turns on a GPU: exclusive, in order, given back; other processes kept away by a lock."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest

from fsr.backends.lock import DeviceLock
from fsr.runs import lease
from fsr.runs.lease import Leases


class FakeLock:
    """A lock of a device that somebody else may hold."""

    held: set[str] = set()  # noqa: RUF012  # of the test's whole process, as a lock file is
    elsewhere: set[str] = set()  # noqa: RUF012

    def __init__(self, name: str) -> None:
        self.name = name

    def acquire(self) -> bool:
        if self.name in self.elsewhere:
            return False
        assert self.name not in self.held, "a device was given to two"
        self.held.add(self.name)
        return True

    def release(self) -> None:
        self.held.discard(self.name)

    def holder(self) -> str:
        return "process 7"


def test_one_at_a_time_in_the_order_of_asking() -> None:
    leases = Leases(FakeLock)
    first, second, third = (leases.lease(["gpu0"]) for _ in range(3))
    assert first.take()
    assert first.take()
    assert not second.take()
    assert not third.take()
    first.give_back()
    assert not third.take()  # the second asked before
    assert second.take()
    second.give_back()
    assert third.take()
    third.give_back()
    assert FakeLock.held == set()


def test_one_that_wants_several_is_not_passed_over_for_good() -> None:
    leases = Leases(FakeLock)
    one, both, late = leases.lease(["gpu0"]), leases.lease(["gpu0", "gpu1"]), leases.lease(["gpu1"])
    assert one.take()
    assert not both.take()
    assert not late.take()  # gpu1 is free, but promised
    one.give_back()
    assert both.take()
    both.give_back()
    assert late.take()
    late.give_back()


def test_a_turn_is_over_when_others_wait_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    leases = Leases(FakeLock)
    holder, other = leases.lease(["gpu0"]), leases.lease(["gpu0"])
    monkeypatch.setattr(lease, "TURN_S", 0.0)
    assert holder.take()
    assert not holder.due()
    other.take()
    assert holder.due()
    monkeypatch.setattr(lease, "TURN_S", 60.0)
    assert not holder.due()
    other.give_back()  # left the line
    monkeypatch.setattr(lease, "TURN_S", 0.0)
    assert not holder.due()
    holder.give_back()


def test_another_process_is_waited_for_and_named() -> None:
    leases = Leases(FakeLock)
    FakeLock.elsewhere = {"gpu1"}
    wanted = leases.lease(["gpu0", "gpu1"])
    assert not wanted.take()
    assert wanted.blocked_by == "process 7"
    assert FakeLock.held == set()  # nothing is kept while the rest is missing
    FakeLock.elsewhere = set()
    assert wanted.take()
    assert wanted.blocked_by == ""
    wanted.give_back()


def test_no_devices_need_no_turn() -> None:
    leases = Leases(FakeLock)
    first, second = leases.lease([]), leases.lease([])
    assert first.take()
    assert second.take()


def test_threads_never_overlap_and_all_get_their_turns() -> None:
    leases, chance = Leases(FakeLock), random.Random(3)
    inside, turns = [0], dict.fromkeys(range(4), 0)

    def work(number: int) -> None:
        with leases.lease(["gpu0"]) as mine:
            for _ in range(20):
                while not mine.take():
                    mine.wait()
                inside[0] += 1
                assert inside[0] == 1
                time.sleep(chance.uniform(0, 0.002))
                inside[0] -= 1
                turns[number] += 1
                mine.give_back()

    threads = [threading.Thread(target=work, args=(number,)) for number in turns]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(200)
    assert set(turns.values()) == {20}


def test_the_real_lock_keeps_two_processes_apart(tmp_path: Path) -> None:
    ours, theirs = (Leases(lambda name: DeviceLock(name, tmp_path)) for _ in range(2))
    mine, other = ours.lease(["GPU-1"]), theirs.lease(["GPU-1"])
    assert mine.take()
    assert not other.take()
    assert other.blocked_by.startswith("process ")
    mine.give_back()
    assert other.take()
    other.give_back()
