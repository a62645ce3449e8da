"""The daemon yields a real GPU to another process, and goes on afterwards: NVML, the driver and the run are real.

``pytest -s`` shows the seconds from the other's first kernel to the daemon's yielding, of which two are promised.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
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
import sys, time
import pycuda.driver as driver
from pycuda.compiler import SourceModule
driver.init()
context = driver.Device(0).make_context()
try:
    code = "__global__ void spin() { long long t = clock64(); while (clock64() - t < 20000000LL); }"
    spin = SourceModule(code).get_function("spin")
    print("ready", flush=True)
    sys.stdin.readline()
    spin(grid=(1024, 1), block=(256, 1, 1)); print("busy", flush=True)
    ends = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < ends:
        spin(grid=(1024, 1), block=(256, 1, 1)); context.synchronize()
finally:
    context.pop()
"""


@pytest.fixture
def other() -> Iterator[subprocess.Popen[str]]:
    """Another program with the GPU open, which keeps it busy for eight seconds once it is told a line."""
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not on the PATH: PyCUDA compiles the other program's kernel with it")
    process = subprocess.Popen(
        [sys.executable, "-c", OTHER, "8"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()


def seen(pid: int) -> bool:
    """Whether NVML shows a process of this machine under the number that it has here."""
    import pynvml

    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    return pid in {process.pid for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)}


@pytest.mark.timeout(400)
def test_a_run_yields_the_gpu_to_another_process_and_goes_on_afterwards(
    tmp_path: Path, other: subprocess.Popen[str]
) -> None:
    if not seen(other.pid):
        pytest.skip("NVML shows processes under other numbers than here, as it does in containers")
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
        assert other.stdin is not None and other.stdout is not None  # noqa: PT018
        other.stdin.write("go\n")
        other.stdin.flush()
        assert other.stdout.readline() == "busy\n"
        began = time.monotonic()
        assert eventually(lambda: worker.standing.startswith("paused: GPU 0 is used by"), 30.0)
        print(f"yields {time.monotonic() - began:.2f} s after the other's first kernel: {worker.standing}")
        other.wait(60)
        assert eventually(lambda: worker.standing.startswith("refines"), 60.0)
        assert eventually(lambda: service.store.counts()["done"] == 1, 250.0)
        job = service.store.jobs()[0]
        assert job.result is not None
        assert job.result["status"] == "improved"
    finally:
        service.close()
