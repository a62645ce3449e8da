"""The GPUs of this process, from a driver library that answers, refuses, or is not there."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from fsr.backends import seats
from fsr.backends.backend import Gpu
from fsr.backends.cuda.backend import BACKEND
from fsr.backends.cuda.gpus import driver_gpus
from fsr.backends.lock import DeviceLock
from fsr.backends.seats import Seat, seat_task
from fsr.errors import MissingToolError
from tests.nvidia import FakeDriver, use_driver, uuid


def test_every_gpu_has_its_uuid_name_and_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    use_driver(monkeypatch, FakeDriver("NVIDIA H200", "NVIDIA L4"))
    assert driver_gpus() == (Gpu(uuid(0), "NVIDIA H200", "sm_90"), Gpu(uuid(1), "NVIDIA L4", "sm_90"))
    assert uuid(0) == "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0"


def test_a_gpu_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    use_driver(monkeypatch, FakeDriver("NVIDIA H200"))
    with pytest.raises(MissingToolError, match="no device cuda:1"):
        BACKEND.require(1)


@pytest.mark.parametrize("driver", [None, FakeDriver("NVIDIA H200", init=100)])
def test_without_a_working_driver_the_doctor_is_named(
    monkeypatch: pytest.MonkeyPatch, driver: FakeDriver | None
) -> None:
    use_driver(monkeypatch, driver)
    assert driver_gpus() == ()
    with pytest.raises(MissingToolError) as caught:
        BACKEND.require(0)
    assert "--device host" in (caught.value.fix or "")
    assert seat_task(None) == Seat(None, node=os.uname().nodename)


def test_a_seat_says_who_is_timing_on_its_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_driver(monkeypatch, FakeDriver("NVIDIA H200"))
    monkeypatch.setattr(seats, "DeviceLock", lambda name: DeviceLock(name, tmp_path))
    assert seat_task(None) == Seat(Gpu(uuid(0), "NVIDIA H200", "sm_90"), node=os.uname().nodename)
    with DeviceLock(uuid(0), tmp_path):
        assert seat_task(None).holder == f"process {os.getpid()}"
    with (tmp_path / f"{uuid(0)}.lock").open() as file:  # asking has not kept it
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
