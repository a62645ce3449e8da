"""`__constant__` variables on a GPU: found in a real cubin, filled before every run, also for the sanitizer's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_driver import FakeDriver, fake_image

from fsr.backends.cuda.device import CudaDevice
from fsr.backends.cuda.nvrtc import NvrtcToolchain
from fsr.backends.cuda.replay import replay, write_replay
from fsr.backends.protocol import Buffer, DeviceFault
from fsr.emulator.elf import find_variable
from fsr.errors import MissingToolError
from fsr.records import Candidate, ConcreteLaunch, Image, Launch, Plan, Role

SOURCE = """
static __constant__ float gain[4];
namespace ns { __constant__ int table[5]; static __constant__ int own[6]; }
extern "C" __global__ void read_gain(float *y) { y[0] = gain[threadIdx.x] + ns::table[threadIdx.x] + ns::own[1]; }
"""
ONE = ("1", "1", "1")
LAUNCH = ConcreteLaunch("read_gain", (1, 1, 1), (1, 1, 1), 0, ("y",))


@pytest.fixture(scope="module")
def cubin() -> bytes:
    try:
        toolchain = NvrtcToolchain("sm_90")
    except MissingToolError as missing:
        pytest.skip(str(missing))
    image = toolchain.compile(Candidate(SOURCE, Plan((Launch("read_gain", ONE, ONE, "0", ("y",)),))))
    assert isinstance(image, Image), image
    return image.data


def buffers(gain: list[float]) -> tuple[Buffer, Buffer]:
    given = Buffer("g", np.asarray(gain, np.float32), Role.IN, symbol="gain")
    return Buffer("y", np.zeros(4, np.float32), Role.OUT), given


def test_variables_are_found_in_a_cubin_whatever_their_linkage_and_namespace(cubin: bytes) -> None:
    found = {name: find_variable(cubin, name) for name in ("gain", "ns::table", "ns::own", "table", "none")}
    assert {name: v and v[2] for name, v in found.items()} == {
        "gain": 16, "ns::table": 20, "ns::own": 24, "table": None, "none": None,
    }  # fmt: skip


def test_each_run_finds_its_own_values_and_timing_too(cubin: bytes) -> None:
    device, image = CudaDevice(driver=FakeDriver()), fake_image(data=cubin)
    with device.prepare(image, [LAUNCH], buffers([1, 2, 3, 4])) as first:
        with device.prepare(image, [LAUNCH], buffers([5, 6, 7, 8])) as second:
            for _ in range(2):
                first.run()
                second.run()
                assert first.read()["y"].tolist() == [1, 2, 3, 4]
                assert second.read()["y"].tolist() == [5, 6, 7, 8]
        second_run = first.time_ns(), first.time_batch_ns(3)
        assert min(second_run) > 0
        assert first.read()["y"].tolist() == [1, 2, 3, 4], "the other plan's values were replaced"
        assert not first.violations()
    device.close()


def test_a_cubin_without_the_variable_is_a_launch_fault(cubin: bytes) -> None:
    device = CudaDevice(driver=FakeDriver())
    lacking = [replace(b, symbol="gone") if b.symbol else b for b in buffers([1, 2, 3, 4])]
    with pytest.raises(DeviceFault, match=r"variable 'gone'.*has none: keep its name"):
        device.prepare(fake_image(data=cubin), [LAUNCH], lacking)
    device.close()


def test_the_sanitizers_run_has_them(cubin: bytes, tmp_path: Path) -> None:
    write_replay(tmp_path, fake_image("read_gain", data=cubin), [LAUNCH], buffers([1, 2, 3, 4]))
    driver = FakeDriver()
    replay(tmp_path, driver)
    assert driver.variables["gain"].view(np.float32)[:4].tolist() == [1, 2, 3, 4]
