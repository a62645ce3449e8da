"""The daemon yields a real GPU to another process, and goes on afterwards: NVML, the driver and the run are real.

``pytest -s`` shows the seconds from the other's first kernel to the daemon's yielding, of which two are promised.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

for needed in ("msgspec", "pathspec", "psutil", "pynvml"):
    pytest.importorskip(needed, reason=f"the daemon needs {needed}: pip install 'fsr[daemon]'")

from fsr.settings import Settings  # noqa: E402
from fsrd.config import Config, RunTable, WatchedFolder  # noqa: E402
from fsrd.politeness.rules import PoliteTable  # noqa: E402
from fsrd.politeness.sensors import MachineSensors  # noqa: E402
from fsrd.service.devices import slots_of  # noqa: E402
from fsrd.service.service import Service  # noqa: E402
from tests.daemon.stand_in import eventually  # noqa: E402

EXAMPLE = Path(__file__).parents[2] / "examples" / "softmax.cu"
OTHER = """
import os, sys, time
if os.fork(): os._exit(0)  # no process of the daemon's, which here are all that descend from the test
import pycuda.driver as driver
from pycuda.compiler import SourceModule
driver.init()
context = driver.Device(0).make_context()
try:
    code = "__global__ void spin() { long long t = clock64(); while (clock64() - t < 20000000LL); }"
    spin = SourceModule(code).get_function("spin")
    print("ready", os.getpid(), flush=True)
    sys.stdin.readline()
    spin(grid=(1024, 1), block=(256, 1, 1)); print("busy", flush=True)
    ends = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < ends:
        spin(grid=(1024, 1), block=(256, 1, 1)); context.synchronize()
finally:
    context.pop()
"""


class Other:
    """Another program with the GPU open, which keeps it busy for eight seconds once it is told a line."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", OTHER, "8"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.wait(60) == 0
        ready = self._line().split()
        assert ready[:1] == ["ready"], "the other program ended; standard error says why"
        self.pid = int(ready[1])

    def begin(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        assert self._line() == "busy\n"

    def wait(self) -> None:
        """Until it has ended and closed its output."""
        assert self._line() == ""

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@pytest.fixture
def other() -> Iterator[Other]:
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not on the PATH: PyCUDA compiles the other program's kernel with it")
    program = Other()
    yield program
    program.close()


def listed() -> set[int]:
    """The processes that NVML shows on the GPU, by its numbers: in a container not those of here."""
    import pynvml

    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    return {process.pid for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)}


@pytest.mark.timeout(400)
def test_a_run_yields_the_gpu_to_another_process_and_goes_on_afterwards(tmp_path: Path, other: Other) -> None:
    if not listed():
        pytest.skip("NVML lists no process of this container: nobody can be told to use the GPU")
    print(f"NVML lists {sorted(listed())}; the other process is {other.pid} here")
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    shutil.copyfile(EXAMPLE, kernels / EXAMPLE.name)
    config = Config(
        folder=(WatchedFolder(path=str(kernels)),), run=RunTable(budget="120s", evaluations=150, workers=4),
        polite=PoliteTable(idle_s=1.0, battery=True),
    )  # fmt: skip
    settings = Settings(str(tmp_path / "home"), str(tmp_path / "home" / "cache.db"))
    service = Service(settings, config, slots_of("cuda:0", "sm_90"), sensors=MachineSensors())
    worker = service.workers[0]
    service.start()
    try:
        assert eventually(lambda: worker.standing.startswith("refines"))
        assert eventually(lambda: worker.job and (service.store.get(worker.job.id) or worker.job).progress.get("told"))
        assert other.pid not in MachineSensors().own_processes()
        other.begin()
        began = time.monotonic()
        assert eventually(lambda: worker.standing.startswith("paused: GPU 0 is used by"), 30.0)
        print(f"yields {time.monotonic() - began:.2f} s after the other's first kernel: {worker.standing}")
        other.wait()
        assert eventually(lambda: worker.standing.startswith("refines"), 60.0)
        assert eventually(lambda: service.store.counts()["done"] == 1, 250.0)
        job = service.store.jobs()[0]
        assert job.result is not None
        assert job.result["status"] == "improved"
    finally:
        service.close()
