"""The NVIDIA GPUs of this process, asked from the driver library without making a context."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

from fsr.backends.backend import Gpu

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
_NAME_BYTES = 256


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
