"""What NVML knows of a GPU: clocks, power limit, MIG, driver version. Read only, never set."""

from __future__ import annotations

import contextlib
import importlib
import subprocess
from dataclasses import dataclass
from typing import Any

from fsr.sandbox.environment import run_tool

_FIELDS = "driver_version,power.limit,mig.mode.current,clocks.sm,clocks.max.sm,clocks.max.memory"


@dataclass(frozen=True, slots=True)
class Readings:
    """None: this machine does not tell."""

    driver: str | None = None
    power_limit_w: int | None = None
    mig: str | None = None
    sm_clock_mhz: int | None = None
    max_sm_clock_mhz: int | None = None
    max_memory_clock_mhz: int | None = None


class Clocks:
    """Reads through nvidia-ml-py where it is installed (30 us a reading), else through nvidia-smi once, which
    takes too long (0.1 s) to be asked around samples: the clock is then None."""

    def __init__(self, pci_bus_id: str) -> None:
        self._nvml: Any = None
        self._handle: Any = None
        with contextlib.suppress(Exception):  # no package, no library, no permission: all mean "cannot tell"
            pynvml: Any = importlib.import_module("pynvml")
            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id.encode())
            self._nvml = pynvml
        self.first = self._from_nvml() if self._nvml else _from_smi(pci_bus_id)

    def sm_clock_mhz(self) -> int | None:
        """The SM clock now."""
        return _try(self._nvml.nvmlDeviceGetClockInfo, self._handle, self._nvml.NVML_CLOCK_SM) if self._nvml else None

    def close(self) -> None:
        """Let NVML go."""
        if self._nvml:
            _try(self._nvml.nvmlShutdown)
            self._nvml = None

    def _from_nvml(self) -> Readings:
        nvml, handle = self._nvml, self._handle
        power = _try(nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
        mig = _try(nvml.nvmlDeviceGetMigMode, handle)
        driver = _try(nvml.nvmlSystemGetDriverVersion)
        return Readings(
            driver=driver.decode() if isinstance(driver, bytes) else driver,
            power_limit_w=None if power is None else round(power / 1000),
            mig=None if mig is None else ("enabled" if mig[0] else "disabled"),
            sm_clock_mhz=self.sm_clock_mhz(),
            max_sm_clock_mhz=_try(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM),
            max_memory_clock_mhz=_try(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_MEM),
        )


def _try(function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception:  # NVML's errors; not every GPU answers every question
        return None


def _from_smi(pci_bus_id: str) -> Readings:
    command = ["nvidia-smi", f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits", "-i", pci_bus_id]
    try:
        answer = run_tool(command, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return Readings()
    return parse_smi(answer)


def parse_smi(line: str) -> Readings:
    """One line of nvidia-smi's CSV in the order of the fields asked for; '[N/A]' becomes None."""
    values = [value.strip() for value in line.strip().split(",")]
    if len(values) != len(_FIELDS.split(",")):
        return Readings()
    driver, power, mig, *clocks = values

    def whole(text: str) -> int | None:
        try:
            return round(float(text))
        except ValueError:
            return None

    known_mig = mig.lower() if mig.lower() in ("enabled", "disabled") else None
    return Readings(driver, whole(power), known_mig, *(whole(clock) for clock in clocks))
