"""Clocks and limits as nvidia-smi tells them, where NVML's package is not installed."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest

from fsr.backends.cuda import clocks
from fsr.backends.cuda.clocks import Clocks, Readings, parse_smi


def test_a_line_of_nvidia_smi() -> None:
    assert parse_smi("580.159.04, 700.00, Disabled, 345, 1980, 3201\n") == Readings(
        "580.159.04", 700, "disabled", 345, 1980, 3201
    )


def test_what_a_gpu_does_not_tell_is_none() -> None:
    assert parse_smi("535.1, [N/A], [N/A], [Not Supported], 1500, [N/A]") == Readings("535.1", None, None, None, 1500)
    assert parse_smi("No devices were found\n") == Readings()


def test_without_package_and_program_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ImportError(name)

    def no_program(*_args: object, **_options: object) -> None:
        raise FileNotFoundError("nvidia-smi")

    monkeypatch.setattr(clocks.importlib, "import_module", absent)
    monkeypatch.setattr(subprocess, "run", no_program)
    unknown = Clocks("0000:00:00.0")
    assert unknown.first == Readings()
    assert unknown.sm_clock_mhz() is None
    unknown.close()


def test_nvml_is_read_where_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_handle: object) -> None:
        raise RuntimeError("NVMLError_NotSupported")

    nvml = SimpleNamespace(
        NVML_CLOCK_SM=1,
        NVML_CLOCK_MEM=2,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetHandleByPciBusId=lambda bus: bus,
        nvmlDeviceGetClockInfo=lambda handle, kind: 1755,
        nvmlDeviceGetMaxClockInfo=lambda handle, kind: {1: 1980, 2: 3201}[kind],
        nvmlDeviceGetEnforcedPowerLimit=lambda handle: 699_600,
        nvmlDeviceGetMigMode=refused,
        nvmlSystemGetDriverVersion=lambda: b"580.159.04",
    )
    monkeypatch.setattr(clocks.importlib, "import_module", lambda name: nvml)
    known = Clocks("0000:19:00.0")
    assert known.first == Readings("580.159.04", 700, None, 1755, 1980, 3201)
    assert known.sm_clock_mhz() == 1755
