"""Every program of the fidelity corpus on a CUDA device against the host device."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance" / "fidelity"))

from fidelity_corpus import difference, load_programs, run_unit, units

from fsr.backends.cuda.gpus import driver_gpus
from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import HostDevice

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not driver_gpus(), reason="no NVIDIA GPU: the fidelity corpus needs one to compare with"),
]
UNITS = list(units(load_programs()))


@pytest.fixture(scope="module")
def devices():
    from fsr.backends.cuda.device import CudaDevice

    host, cuda = HostDevice(), CudaDevice(0)
    yield host, cuda
    host.close()
    cuda.close()


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: f"{unit[0].name}-to-{unit[-1].name}")
def test_host_and_gpu_agree(unit, devices) -> None:
    """Within each program's ulp; every difference is listed."""
    from fsr.backends.cuda.nvrtc import NvrtcToolchain

    host, cuda = devices
    on_host = run_unit(HostToolchain(), host, unit)
    on_gpu = run_unit(NvrtcToolchain(arch=cuda.info.arch), cuda, unit)
    told = [difference(program, on_host[program.name], on_gpu[program.name]) for program in unit]
    assert not any(told), "\n".join(filter(None, told))
