"""The architecture of a GPU, from a driver library that answers, refuses, or is not there."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from fsr.devices.arch import cuda_arch
from fsr.errors import MissingToolError

ATTRIBUTES = {75: 9, 76: 0}


class Driver:
    """One GPU of compute capability 9.0."""

    def __init__(self, name: str) -> None:
        assert name == "libcuda.so.1"

    def cuInit(self, flags: int) -> int:  # noqa: N802  # the driver's names
        return 0

    def cuDeviceGet(self, device: Any, index: int) -> int:  # noqa: N802
        return 0 if index == 0 else 101

    def cuDeviceGetAttribute(self, answer: Any, attribute: int, device: Any) -> int:  # noqa: N802
        answer._obj.value = ATTRIBUTES[attribute]
        return 0


def test_compute_capability_becomes_the_compilers_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", Driver)
    assert cuda_arch(0) == "sm_90"


def test_a_gpu_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", Driver)
    with pytest.raises(MissingToolError, match="what cuda:1 is"):
        cuda_arch(1)


def test_without_a_driver_the_doctor_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", absent)
    with pytest.raises(MissingToolError) as caught:
        cuda_arch(0)
    assert "fsr doctor" in (caught.value.fix or "")
