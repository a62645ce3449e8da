"""The decision whether a device may be used now."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

from fsr.runs.options import parse_duration
from fsrd.politeness.hours import Hours
from fsrd.politeness.rules import PoliteTable
from fsrd.politeness.sensors import Sensors

OWN_S = 5.0  # how long the list of own processes is used: it costs a walk through /proc


class Politeness:
    """Says for each device why it is to be left alone, '' when it may be used. Any thread may ask.

    Args: spent_s, what runs have taken on a day ('2026-01-31')."""

    def __init__(
        self, rules: PoliteTable, sensors: Sensors, spent_s: Callable[[str], float],
        clock: Callable[[], float] = monotonic,
    ) -> None:  # fmt: skip
        self.rules, self._sensors, self._spent_s, self._clock = rules, sensors, spent_s, clock
        self._lock = threading.Lock()
        self._used: dict[int, float] = {}
        self._own: tuple[float, set[int]] = (float("-inf"), set())

    def day(self) -> str:
        """Today, as the day's budget is kept."""
        return f"{self._sensors.now():%Y-%m-%d}"

    def against(self, device: str) -> str:
        """Why nothing is to run on a device ('cuda:1', 'host') now, in words; '' when it may."""
        with self._lock:
            return self._of_machine() or self._of_gpu(device)

    def _of_machine(self) -> str:
        rules, now = self.rules, self._sensors.now()
        for text in rules.quiet_hours:
            if now.time() in Hours.parse(text):
                return f"quiet hours {text}"
        if rules.daily_budget is not None and self._spent_s(self.day()) >= parse_duration(rules.daily_budget):
            return f"the daily budget of {rules.daily_budget} is used up"
        if not rules.battery and self._sensors.on_battery():
            return "on battery"
        return ""

    def _of_gpu(self, device: str) -> str:
        kind, _, number = device.partition(":")
        if not self.rules.gpu_idle or kind != "cuda":
            return ""
        gpu, now = int(number or 0), self._clock()
        users = self._sensors.gpu_users(gpu, self._processes(now))
        if users:  # perhaps a child of ours that was just started
            self._own = (float("-inf"), set())
            users = self._sensors.gpu_users(gpu, self._processes(now))
        if users:
            self._used[gpu] = now
            return f"GPU {gpu} is used by {users}"
        if now - self._used.get(gpu, float("-inf")) < self.rules.idle_s:
            return f"GPU {gpu} was used a moment ago"
        return ""

    def _processes(self, now: float) -> set[int]:
        if now - self._own[0] > OWN_S:
            self._own = now, self._sensors.own_processes()
        return self._own[1]
