"""What the machine says of its other users: of the GPU through NVML, of the power supply, of the clock."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from datetime import datetime
from time import monotonic
from typing import Any, Protocol

import psutil

from fsrd.politeness.numbering import Numbering


class Sensors(Protocol):
    """The boundary to the machine; tests have one of their own (tests/daemon/politeness)."""

    def gpu_users(self, gpu: int, own: Collection[int]) -> str:
        """Who else uses a GPU, in words; '' when nobody does. ``own``: processes that do not count."""
        ...

    def on_battery(self) -> bool: ...
    def own_processes(self) -> set[int]: ...
    def now(self) -> datetime: ...


BUSY_S = 1.0  # how long a sample counts
BUSY_PERCENT = 5  # of its multiprocessors: a context that somebody left open keeps nobody away


class MachineSensors:
    """Those of this machine. NVML is opened on first use, and left out where there is none."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._missing = False
        self._seen: dict[int, int] = {}
        self._at: dict[tuple[int, int], float] = {}  # when a process was last seen busy, by GPU and process
        self._numbering = Numbering()

    def gpu_users(self, gpu: int, own: Collection[int]) -> str:
        """Compute processes of others that use the GPU now (NVML, nvmlDeviceGetComputeRunningProcesses and
        nvmlDeviceGetProcessUtilization; where the latter is not supported, those that have it open)."""
        nvml = self._opened()
        if nvml is None:
            return ""
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(gpu)
            listed = {p.pid for p in nvml.nvmlDeviceGetComputeRunningProcesses(handle)}
        except nvml.NVMLError as fault:
            return f"NVML says: {fault}"
        others = self._numbering.others(gpu, listed, own)
        if not others:
            return ""
        busy = self._busy(nvml, handle, gpu)
        using = others if busy is None else others & busy
        return ", ".join(_named(pid) for pid in sorted(using))

    def _busy(self, nvml: Any, handle: Any, gpu: int) -> set[int] | None:
        """The processes that kept multiprocessors busy a moment ago; None where that is not known. NVML gives a sample
        once and takes one about every second: who asks twice in a row is to hear the same."""
        samples, now = [], monotonic()
        try:
            samples = nvml.nvmlDeviceGetProcessUtilization(handle, self._seen.get(gpu, 0))
        except nvml.NVMLError as fault:
            if fault.value != nvml.NVML_ERROR_NOT_FOUND:  # else: no sample since
                return None
        self._seen[gpu] = max((sample.timeStamp for sample in samples), default=self._seen.get(gpu, 0))
        self._at |= {(gpu, sample.pid): now for sample in samples if sample.smUtil >= BUSY_PERCENT}
        self._at = {of: at for of, at in self._at.items() if now - at < BUSY_S}
        return {pid for where, pid in self._at if where == gpu}

    def _opened(self) -> Any:
        if self._nvml is None and not self._missing:
            try:
                import pynvml

                pynvml.nvmlInit()
                self._nvml = pynvml
            except Exception:  # no driver, or one that is not loaded: every way in which NVML is not there
                self._missing = True
        return self._nvml

    def on_battery(self) -> bool:
        """Whether the machine has a battery and runs on it."""
        battery = psutil.sensors_battery()
        return battery is not None and battery.power_plugged is False

    def own_processes(self) -> set[int]:
        """This process and all that descend from it."""
        me = psutil.Process()
        return {me.pid, *(child.pid for child in me.children(recursive=True))}

    def now(self) -> datetime:
        """Local time."""
        return datetime.now()


def _named(pid: int) -> str:
    with suppress(psutil.Error):
        return f"{psutil.Process(pid).name()} ({pid})"
    return f"process {pid}"
