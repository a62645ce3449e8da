"""NVIDIA's driver library as a test wants it: GPUs with names, or one that refuses."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from fsr.backends.cuda import gpus, probe


class FakeDriver:
    """libcuda.so.1 with GPUs of these names, each of compute capability 9.0; ``init``: what cuInit answers."""

    def __init__(self, *names: str, init: int = 0) -> None:
        self.names, self.init = names, init

    def cuInit(self, _flags: int) -> int:  # noqa: N802  # the driver's names
        return self.init

    def cuDeviceGetCount(self, count: Any) -> int:  # noqa: N802
        count._obj.value = len(self.names)
        return 0

    def cuDeviceGet(self, device: Any, index: int) -> int:  # noqa: N802
        device._obj.value = index
        return 0 if index < len(self.names) else 101

    def cuDeviceGetName(self, text: ctypes.Array[ctypes.c_char], _size: int, device: Any) -> int:  # noqa: N802
        text.value = self.names[device.value].encode()
        return 0

    def cuDeviceGetUuid(self, text: ctypes.Array[ctypes.c_char], device: Any) -> int:  # noqa: N802
        text.raw = bytes([0xA0 + device.value]) * 16
        return 0

    def cuDeviceGetAttribute(self, answer: Any, attribute: int, _device: Any) -> int:  # noqa: N802
        answer._obj.value = {75: 9, 76: 0}[attribute]
        return 0

    def cuDriverGetVersion(self, version: Any) -> int:  # noqa: N802
        version._obj.value = 13010
        return 0


def use_driver(monkeypatch: pytest.MonkeyPatch, driver: FakeDriver | None) -> None:
    """Let fsr find this driver library; None: find none."""
    for module in (gpus, probe):
        monkeypatch.setattr(module, "driver_library", lambda: driver)


def uuid(index: int) -> str:
    """The UUID of the fake GPU ``index``."""
    pair = f"{0xA0 + index:02x}"
    return f"GPU-{pair * 4}-{pair * 2}-{pair * 2}-{pair * 2}-{pair * 6}"
