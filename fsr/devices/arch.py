"""The architecture of a GPU, asked from the driver library without making a context."""

from __future__ import annotations

import ctypes

from fsr.errors import MissingToolError

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR


def cuda_arch(index: int) -> str:
    """``sm_90`` for a GPU of compute capability 9.0. Raises MissingToolError when the driver does not answer."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        library = None
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    if (
        library is None
        or library.cuInit(0)
        or library.cuDeviceGet(ctypes.byref(device), index)
        or library.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, device)
        or library.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, device)
    ):
        raise MissingToolError(
            f"the driver does not tell what cuda:{index} is", where="--device", fix="fsr doctor says what is missing"
        )
    return f"sm_{major.value}{minor.value}"
