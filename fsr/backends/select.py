"""From ``--device`` text to an open device."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fsr.backends.cuda.gpus import driver_gpus
from fsr.backends.protocol import Device
from fsr.errors import MissingToolError, UsageError

_EXPECTED = "auto, host, cuda:N or hip:N (N counts from 0)"


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """``kind``: 'auto', 'cuda', 'hip' or 'host'; ``index`` is 0 where the kind has no numbers."""

    kind: str
    index: int = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}" if self.kind in ("cuda", "hip") else self.kind


def parse_device(text: str) -> DeviceSpec:
    """A device as typed: ``auto``, ``host``, ``cuda``, ``cuda:1``, ``hip:0``. Raises UsageError."""
    match = re.fullmatch(r"(auto|host)|(cuda|hip)(?::(\d{1,3}))?", text.strip().lower())
    if match is None:
        raise UsageError(f"unknown device {text!r}", expected=_EXPECTED, where="--device", fix="fsr doctor lists them")
    return DeviceSpec(match[1] or match[2], int(match[3] or 0))


def resolve_device(spec: DeviceSpec) -> DeviceSpec:
    """What 'auto' means here: the first NVIDIA GPU, else the host device. Others are answered as they are, after
    a check that they can be there. Raises MissingToolError."""
    if spec.kind == "auto":
        return DeviceSpec("cuda") if driver_gpus() else DeviceSpec("host")
    if spec.kind == "cuda":
        count = len(driver_gpus())
        if spec.index >= count:
            raise MissingToolError(
                f"there is no device {spec}",
                expected=f"one of cuda:0 to cuda:{count - 1}" if count else "an NVIDIA GPU with its driver",
                where="--device",
                fix="choose another" if count else "--device host verifies on the CPU and predicts times",
            )
    if spec.kind == "hip":
        raise MissingToolError(
            f"{spec} cannot be opened: this version launches on NVIDIA GPUs and on the host only",
            expected="auto, host or cuda:N",
            where="--device",
            fix="--device host",
        )
    return spec


def open_device(spec: DeviceSpec) -> Device:
    """Open a device for this process; 'auto' is resolved first. Raises MissingToolError."""
    spec = resolve_device(spec)
    if spec.kind == "host":
        from fsr.backends.host.device import open_host_device

        return open_host_device()
    from fsr.backends.cuda import CudaDevice

    return CudaDevice(spec.index)
