"""The NVIDIA GPUs of this process, asked from the driver library without making a context."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from dataclasses import dataclass

from fsr.backends.lock import DeviceLock
from fsr.errors import MissingToolError

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
_NAME_BYTES = 256


@dataclass(frozen=True, slots=True)
class Gpu:
    """``uuid`` as nvidia-smi and CUDA_VISIBLE_DEVICES write it ('GPU-…'); ``arch`` for example 'sm_90'."""

    uuid: str
    name: str
    arch: str

    @property
    def model(self) -> tuple[str, str]:
        """What must be equal for times to be compared."""
        return self.name, self.arch


@dataclass(frozen=True, slots=True)
class Seat:
    """What a device worker found: its GPU, and who holds it ('' for nobody). ``gpu`` is None without one."""

    gpu: Gpu | None
    holder: str = ""
    node: str = ""


def driver_library() -> ctypes.CDLL | None:
    """NVIDIA's driver library, or None where it is not installed."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def driver_gpus() -> tuple[Gpu, ...]:
    """The GPUs that the driver lets this process see, in CUDA's order (CUDA_VISIBLE_DEVICES takes part); none
    without a driver."""
    library, count = driver_library(), ctypes.c_int()
    if library is None or library.cuInit(0) or library.cuDeviceGetCount(ctypes.byref(count)):
        return ()
    return tuple(_gpus(library, count.value))


def _gpus(library: ctypes.CDLL, count: int) -> Iterator[Gpu]:
    for index in range(count):
        device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        name, uuid = ctypes.create_string_buffer(_NAME_BYTES), ctypes.create_string_buffer(16)
        if (
            library.cuDeviceGet(ctypes.byref(device), index)
            or library.cuDeviceGetName(name, _NAME_BYTES, device)
            or library.cuDeviceGetUuid(uuid, device)
            or library.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, device)
            or library.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, device)
        ):
            return
        digits = uuid.raw.hex()
        parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
        yield Gpu(f"GPU-{'-'.join(parts)}", name.value.decode(errors="replace"), f"sm_{major.value}{minor.value}")


def driver_gpu(index: int) -> Gpu:
    """GPU ``cuda:index`` of this process. Raises MissingToolError when the driver does not tell what it is."""
    found = driver_gpus()
    if index >= len(found):
        raise MissingToolError(
            f"the driver does not tell what cuda:{index} is", where="--device", fix="fsr doctor says what is missing"
        )
    return found[index]


def seat_task(_: None) -> Seat:
    """Run in a device worker that was given one GPU: which it is, and whether somebody is timing on it."""
    found = driver_gpus()
    if not found:
        return Seat(None, node=os.uname().nodename)
    lock = DeviceLock(found[0].uuid)
    holder = "" if lock.acquire() else lock.holder()
    lock.release()
    return Seat(found[0], holder, os.uname().nodename)
