"""The torch references of the project's own suite compute what its kernels do: on small cases, torch on the CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.protocol import Device
from fsr.backends.select import open_device, parse_device
from fsr.bench import exchange
from fsr.bench.suite import Workload, load_suite
from fsr.bench.torch_peers import EAGER, LIBRARY, TorchAsked, TorchPeers
from fsr.evaluation.testing import Runnable, run_once
from fsr.records import Image, Role
from fsr.runs.kernel import load_kernel
from fsr.testgen.cases import smoke
from fsr.testgen.values import build

SUITE = load_suite(Path(__file__).parents[2] / "benchmarks" / "suite")
MOST_ELEMENTS = 60_000


@pytest.fixture(scope="module")
def device():
    pytest.importorskip("torch", reason="torch is not installed: pip install 'fsr[torch]'")
    opened = open_device(parse_device("host"))
    yield opened
    opened.close()


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own: sparse tensors are in beta
@pytest.mark.parametrize("workload", SUITE.workloads, ids=lambda w: w.name)
def test_the_reference_computes_what_the_kernel_does(workload: Workload, device: Device, tmp_path: Path):
    assert workload.references is not None
    kernel = load_kernel(workload.kernel)
    contract = kernel.contract
    image = HostToolchain().compile(kernel.baseline)
    assert isinstance(image, Image), image
    case = smoke(contract, 0, MOST_ELEMENTS)
    data = build(contract, case)
    answer = run_once(Runnable(device, image, kernel.baseline.plan, contract), case, data)
    dtypes = {a.name: a.dtype for a in contract.buffers()}
    out = [a.name for a in contract.buffers() if a.role is not Role.IN]
    exchange.put(
        tmp_path / "given", {a.name: data.arrays[a.name] for a in contract.buffers() if a.role is not Role.OUT}, dtypes
    )
    exchange.put(tmp_path / "answered", {name: answer[name] for name in out}, dtypes)
    asked = TorchAsked(
        workload.references, workload.name, tmp_path, "cpu", out,
        [a.name for a in contract.buffers() if a.role is Role.INOUT],
        {name: value.value for name, value in data.scalars.items()}, case.size_map(),
    )  # fmt: skip
    peers = TorchPeers(asked)
    for peer in (EAGER, LIBRARY) if workload.library else (EAGER,):
        told = peers.prepare(peer)
        assert told["agrees"], told
        assert np.isfinite(peers.sample(0)[peer])
