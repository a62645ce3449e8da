"""When the machine is left alone: other users of the GPU, quiet hours, the day's budget, battery."""

from __future__ import annotations

import ctypes
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest

from fsr.errors import UsageError
from fsrd.politeness.hours import Hours
from fsrd.politeness.policy import Politeness
from fsrd.politeness.rules import PoliteTable
from fsrd.politeness.sensors import MachineSensors
from tests.daemon.stand_in import FakeSensors


class Time:
    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


def test_a_gpu_is_free_again_a_while_after_its_last_user() -> None:
    sensors, clock = FakeSensors({1: "python (7)"}), Time()
    polite = Politeness(PoliteTable(idle_s=10), sensors, lambda day: 0.0, clock)
    assert polite.against("cuda:0") == ""
    assert polite.against("host") == ""
    assert polite.against("cuda:1") == "GPU 1 is used by python (7)"
    sensors.users = {}
    clock.s = 9
    assert polite.against("cuda:1") == "GPU 1 was used a moment ago"
    clock.s = 11
    assert polite.against("cuda:1") == ""
    sensors.users = {1: "python (7)"}
    assert Politeness(PoliteTable(gpu_idle=False), sensors, lambda day: 0.0).against("cuda:1") == ""


def test_hours_budget_and_battery_hold_for_every_device() -> None:
    sensors = FakeSensors(battery=True)
    rules = PoliteTable(quiet_hours=("22:00-07:30",), daily_budget="1h")
    spent = {"2026-01-31": 3601.0}
    polite = Politeness(rules, sensors, lambda day: spent.get(day, 0.0))
    assert "daily budget of 1h" in polite.against("host")
    sensors.at = datetime(2026, 2, 1, 7, 29)
    assert polite.against("cuda:0") == "quiet hours 22:00-07:30"
    sensors.at = datetime(2026, 2, 1, 7, 30)
    assert polite.against("host") == "on battery"
    sensors.battery = False
    assert polite.against("host") == ""


def test_hours_over_midnight_and_wrong_ones() -> None:
    night = Hours.parse(" 22:00 - 6:00")
    assert [datetime(2026, 1, 1, hour).time() in night for hour in (21, 22, 23, 0, 5, 6)] == [
        False, True, True, True, True, False,
    ]  # fmt: skip
    for wrong in ("", "9-17", "25:00-26:00", "09:00-17:60", "٠٩:00-17:00"):
        with pytest.raises(UsageError, match="quiet hours"):
            Hours.parse(wrong)


class FakeNvml:
    """NVML as far as it is used: what it says of processes, and what it says when it does not know."""

    NVML_ERROR_NOT_FOUND, NVML_ERROR_NOT_SUPPORTED = 6, 3

    class NVMLError(Exception):
        def __init__(self, value: int) -> None:
            super().__init__(f"error {value}")
            self.value = value

    def __init__(self) -> None:
        self.pids: list[int] = []
        self.busy: dict[int, int] | int = {}
        self.since: list[int] = []
        self.taken = 77  # when the samples of ``busy`` were taken

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(pid=pid) for pid in self.pids]

    def nvmlDeviceGetProcessUtilization(self, handle: int, since: int) -> list[Any]:  # noqa: N802
        self.since.append(since)
        if isinstance(self.busy, int):
            raise self.NVMLError(self.busy)
        if since >= self.taken:
            raise self.NVMLError(self.NVML_ERROR_NOT_FOUND)
        return [SimpleNamespace(pid=pid, smUtil=sm, timeStamp=self.taken) for pid, sm in self.busy.items()]


def test_a_user_is_seen_at_the_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Own processes are looked for once more before somebody is told to use a GPU; NVML gives each sample once."""
    nvml, sensors = FakeNvml(), MachineSensors()
    monkeypatch.setattr(sensors, "_nvml", nvml)
    nvml.pids, nvml.busy = [4194305], {4194305: 40}
    politeness = Politeness(PoliteTable(battery=True), sensors, lambda day: 0.0)
    assert politeness.against("cuda:0") == "GPU 0 is used by process 4194305"


def test_what_nvml_says_becomes_who_uses_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml, sensors, now = FakeNvml(), MachineSensors(), [5.0]
    monkeypatch.setattr("fsrd.politeness.sensors.monotonic", lambda: now[0])
    monkeypatch.setattr(sensors, "_nvml", nvml)
    assert sensors.gpu_users(0, {1}) == ""
    nvml.pids = [1, 4194305]  # one of ours, and one that no process table holds
    nvml.busy = {1: 99, 4194305: 1}
    assert sensors.gpu_users(0, {1}) == ""  # it has a context open and does nothing
    nvml.busy, nvml.taken = {1: 99, 4194305: 40}, 78
    assert sensors.gpu_users(0, {1}) == "process 4194305"
    assert nvml.since == [0, 77]
    assert sensors.gpu_users(0, {1}) == "process 4194305"  # no new sample yet
    now[0] += 1.5
    assert sensors.gpu_users(0, {1}) == ""
    nvml.busy = nvml.NVML_ERROR_NOT_SUPPORTED
    assert sensors.gpu_users(0, {1}) == "process 4194305"


def test_a_machine_without_nvml_has_no_users() -> None:
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        assert MachineSensors().gpu_users(0, set()) == ""
    assert isinstance(MachineSensors().on_battery(), bool)
    assert MachineSensors().own_processes()
