"""The GPUs of this process, from a driver library that answers, refuses, or is not there."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from fsr.backends.cuda import gpus
from fsr.backends.cuda.gpus import Gpu, Seat, driver_gpu, driver_gpus, seat_task
from fsr.backends.lock import DeviceLock
from fsr.errors import MissingToolError
from tests.nvidia import FakeDriver, use_driver, uuid


def test_every_gpu_has_its_uuid_name_and_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    use_driver(monkeypatch, FakeDriver("NVIDIA H200", "NVIDIA L4"))
    assert driver_gpus() == (Gpu(uuid(0), "NVIDIA H200", "sm_90"), Gpu(uuid(1), "NVIDIA L4", "sm_90"))
    assert uuid(0) == "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0"
    assert driver_gpu(1).arch == "sm_90"


def test_a_gpu_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    use_driver(monkeypatch, FakeDriver("NVIDIA H200"))
    with pytest.raises(MissingToolError, match="what cuda:1 is"):
        driver_gpu(1)


@pytest.mark.parametrize("driver", [None, FakeDriver("NVIDIA H200", init=100)])
def test_without_a_working_driver_the_doctor_is_named(
    monkeypatch: pytest.MonkeyPatch, driver: FakeDriver | None
) -> None:
    use_driver(monkeypatch, driver)
    assert driver_gpus() == ()
    with pytest.raises(MissingToolError) as caught:
        driver_gpu(0)
    assert "fsr doctor" in (caught.value.fix or "")
    assert seat_task(None) == Seat(None, node=os.uname().nodename)


def test_a_seat_says_who_is_timing_on_its_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_driver(monkeypatch, FakeDriver("NVIDIA H200"))
    monkeypatch.setattr(gpus, "DeviceLock", lambda name: DeviceLock(name, tmp_path))
    assert seat_task(None) == Seat(Gpu(uuid(0), "NVIDIA H200", "sm_90"), node=os.uname().nodename)
    with DeviceLock(uuid(0), tmp_path):
        assert seat_task(None).holder == f"process {os.getpid()}"
    with (tmp_path / f"{uuid(0)}.lock").open() as file:  # asking has not kept it
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
