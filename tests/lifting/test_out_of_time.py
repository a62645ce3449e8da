"""A run that gets what is left of all the time, and does not end in that, says nothing of the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.backends.host.device import HostDevice, open_host_device
from fsr.backends.host.traced import TracedImage, TracingToolchain
from fsr.backends.protocol import DeviceFault
from fsr.lifting.allowance import Allowance
from fsr.lifting.refused import Refused, TooMuch
from fsr.lifting.watching import Watcher
from fsr.records import Fault, FaultKind
from fsr.runs.kernel import load_kernel

TEXT = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 64, timed = 64}
// [args]
// x = {role = "inout", shape = ["n"]}
// [launch]
// grid = 1
// block = 64
// ///
__global__ void k(float *x) { x[threadIdx.x] += 1.0f; }
"""


@pytest.mark.parametrize(
    ("seconds", "kind", "words"),
    [(0.5, Refused, "watching took too long"), (60.0, TooMuch, "the watched run failed: k did not end within 2 s")],
)
def test_what_is_left_of_the_time_is_no_fault_of_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, kind: type[Refused], words: str
) -> None:
    (tmp_path / "k.cu").write_text(TEXT)
    kernel = load_kernel(tmp_path / "k.cu")
    image = TracingToolchain().compile(kernel.baseline, 30.0)
    assert isinstance(image, TracedImage)

    def hangs(*_: object, **__: object) -> None:
        raise DeviceFault(Fault(FaultKind.HANG, "k did not end within 2 s"))

    monkeypatch.setattr(HostDevice, "trace", hangs)
    device = open_host_device()
    try:
        watcher = Watcher(kernel.contract, kernel.baseline, image, device, Allowance(seconds))
        with pytest.raises(Refused) as told:
            watcher.run({"n": 4}, 1)
    finally:
        device.close()
    assert type(told.value) is kind
    assert str(told.value) == words
