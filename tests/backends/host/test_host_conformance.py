"""The host device held to what every device must do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from device_conformance import ENTRIES, SOURCE, DeviceConformance, given, launch

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import HostDevice, open_host_device
from fsr.backends.protocol import DeviceFault
from fsr.errors import MissingToolError
from fsr.records import Candidate, Image, Launch, Plan, Role, ScalarValue


class HostBench:
    exact_limits = True

    def __init__(self, device: HostDevice, image: Image) -> None:
        self.device, self._image = device, image

    def image(self) -> Image:
        return self._image

    def lost(self, entry: str, timeout_s: float) -> tuple[str, bool]:
        args = ("y",) if entry == "spin" else ("y", ScalarValue("float32", 1.0), ScalarValue("int64", 1 << 44))
        buffer = given("y", np.zeros(4, np.float32), Role.OUT)
        with self.device.prepare(self._image, [launch(entry, *args)], [buffer]) as prepared:
            with pytest.raises(DeviceFault) as caught:
                prepared.run(timeout_s)
            return caught.value.fault.kind, caught.value.fatal


@pytest.fixture(scope="module")
def host_bench() -> Iterator[HostBench]:
    one = ("1", "1", "1")
    plan = Plan(tuple(Launch(entry, one, one, "0", ()) for entry in ENTRIES))
    try:
        image = HostToolchain().compile(Candidate(SOURCE, plan))
    except MissingToolError as missing:
        pytest.skip(str(missing))
    assert isinstance(image, Image), image.log
    device = open_host_device()
    yield HostBench(device, image)
    device.close()


class TestHostConformance(DeviceConformance):
    @pytest.fixture
    def bench(self, host_bench: HostBench) -> HostBench:
        return host_bench
