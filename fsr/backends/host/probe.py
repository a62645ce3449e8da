"""What the host device's part of ``fsr doctor`` tries."""

from __future__ import annotations

import numpy as np

from fsr.backends.backend import BROKEN, MISSING, OK, Finding
from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import open_host_device
from fsr.backends.protocol import Buffer
from fsr.errors import FsrError, MissingToolError
from fsr.records import Candidate, CompileFailure, ConcreteLaunch, Launch, Plan, Role


def host_device() -> Finding:
    """The host device, by compiling and running one kernel on it."""
    fix = "install a C++ compiler: apt-get install clang-22 (or clang, or g++)"
    source, one = "__global__ void k(float* x) { x[threadIdx.x] = threadIdx.x * 2.0f; }", ("1", "1", "1")
    candidate = Candidate(source, Plan((Launch("k", one, one, "0", ()),)))
    try:
        toolchain = HostToolchain()
        image = toolchain.compile(candidate)
        if isinstance(image, CompileFailure):
            return Finding("host device", BROKEN, f"{toolchain.version}: {image.log[:200]}", fix)
        device = open_host_device()
        try:
            launch = ConcreteLaunch("k", (1, 1, 1), (32, 1, 1), 0, ("x",))
            with device.prepare(image, [launch], [Buffer("x", np.zeros(32, np.float32), Role.OUT)]) as prepared:
                prepared.run()
                right = bool(prepared.read()["x"][31] == 62.0)
        finally:
            device.close()
    except MissingToolError as error:
        return Finding("host device", MISSING, error.what, error.fix or fix)
    except (FsrError, OSError) as error:
        return Finding("host device", BROKEN, str(error).splitlines()[0], fix)
    return Finding(
        "host device",
        OK if right else BROKEN,
        f"{toolchain.version}, a kernel ran",
        "" if right else fix,
        "host device",
    )
