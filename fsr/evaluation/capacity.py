"""Do the timed sizes fit? Asked before anything of that size is made."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fsr.contract.model import Contract
from fsr.errors import BaselineError
from fsr.hardware.dtypes import numpy_dtype
from fsr.hardware.host_memory import host_memory_bytes
from fsr.records import DeviceInfo

HOST_COPIES = 5  # three input sets, the buffers that a kernel works on, and one set in the making
DEVICE_COPIES = 2  # the original's buffers and the candidate's


def require_room(contract: Contract, device: DeviceInfo) -> None:
    """Raises BaselineError naming the sizes when their buffers do not fit this machine's or the device's memory."""
    here = host_memory_bytes()
    for sizes in contract.timed_sizes():
        one = buffer_bytes(contract, sizes)
        needs = [(one * HOST_COPIES, here, "this machine")]
        if device.vendor != "host":
            needs.append((one * DEVICE_COPIES, device.memory_bytes or here, device.name))
        for needed, there, whose in needs:
            if needed > there:
                raise BaselineError(
                    f"the timed sizes do not fit {whose}: they need about {needed / 1e9:.1f} of {there / 1e9:.1f} GB",
                    expected=f"buffers of at most {there / needed * one / 1e9:.1f} GB in all",
                    where="sizes " + ", ".join(f"{name}={value}" for name, value in sizes.items()),
                    fix="lower the timed sizes in the contract",
                )  # fmt: skip


def buffer_bytes(contract: Contract, sizes: Mapping[str, int]) -> int:
    """Bytes of all buffer arguments at these sizes."""
    buffers = contract.buffers()
    return sum(math.prod(contract.shape(a, sizes)) * numpy_dtype(a.dtype).itemsize for a in buffers)
