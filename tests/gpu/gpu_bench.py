"""Compiling and launching in the tests on a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from typing import Any

from device_conformance import ENTRIES, SOURCE

from fsr.backends.cuda.compiler import cuda_toolchain
from fsr.backends.cuda.device import CudaDevice
from fsr.records import Candidate, Image, Launch, Plan

LOST = """
import json, os, sys
import numpy as np
from device_conformance import given, launch
from gpu_bench import image_of
from device_conformance import ENTRIES, SOURCE
from fsr.backends.cuda.device import CudaDevice
from fsr.backends.protocol import DeviceFault
from fsr.records import Role, ScalarValue
entry, timeout_s = sys.argv[1], float(sys.argv[2])
args = ("y",) if entry == "spin" else ("y", ScalarValue("float32", 1.0), ScalarValue("int64", 1 << 44))
device = CudaDevice(0)
buffer = given("y", np.zeros(4, np.float32), Role.OUT)
answer = None
with device.prepare(image_of(device, SOURCE, *ENTRIES), [launch(entry, *args)], [buffer]) as prepared:
    try:
        prepared.run(timeout_s)
    except DeviceFault as fault:
        answer = [fault.fault.kind, fault.fatal, fault.fault.detail]
print(json.dumps(answer), flush=True)
if sys.argv[3] == "linger":
    import time
    time.sleep(60)
os._exit(0)
"""


@cache
def compiled(arch: str, source: str, entries: tuple[str, ...], lines: bool = False) -> Image:
    """The source compiled; entries are name expressions."""
    launches = tuple(Launch(entry, ("1",) * 3, ("1",) * 3, "0", ()) for entry in entries)  # type: ignore[arg-type]
    image = cuda_toolchain(arch).compile(Candidate(source, Plan(launches)), instrumented=lines)
    assert isinstance(image, Image), image.log
    return image


def image_of(device: CudaDevice, source: str, *entries: str, lines: bool = False) -> Image:
    """The source compiled for this device."""
    return compiled(device.info.arch, source, entries, lines)


def start_lost(entry: str, timeout_s: float, end: str = "exit") -> subprocess.Popen[str]:
    """A process of its own in which the device is lost; its first line of output is [kind, fatal, detail]."""
    path = json.dumps(sys.path)
    script = f"import sys; sys.path[:0] = {path}\n{LOST}"
    command = [sys.executable, "-c", script, entry, str(timeout_s), end]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


class GpuBench:
    """See device_conformance.Bench."""

    exact_limits = True

    def __init__(self, device: CudaDevice) -> None:
        self.device = device

    def image(self) -> Image:
        return image_of(self.device, SOURCE, *ENTRIES)

    def lost(self, entry: str, timeout_s: float) -> tuple[str, bool]:
        process = start_lost(entry, timeout_s)
        output, _ = process.communicate(timeout=60)
        answer: Any = json.loads(output.splitlines()[-1])
        return answer[0], answer[1]
