"""The run that compute-sanitizer watches, over the fake driver."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fake_driver import FakeDriver, at

from fsr.backends.cuda.replay import replay, write_replay
from fsr.backends.protocol import Buffer, DeviceFault
from fsr.records import ConcreteLaunch, Image, Resources, Role, ScalarValue

IMAGE = Image("cubin", "sm_90", b"fake", {"copy": "copy", "scale": "scale"}, {"copy": Resources()})
LAUNCHES = [
    ConcreteLaunch("copy", (1, 1, 1), (32, 1, 1), 0, ("x", "file", ScalarValue("int32", 8))),
    ConcreteLaunch("scale", (1, 1, 1), (32, 1, 1), 0, ("file", ScalarValue("float32", 2.5), ScalarValue("int32", 8))),
]
BUFFERS = [
    Buffer("x", np.arange(8, dtype=np.float32), Role.IN),
    Buffer("file", np.full(8, np.nan, np.float32), Role.OUT),
    Buffer("s", np.ones(4), None, zeroed=True),
]


def test_the_replay_does_what_the_plan_says(tmp_path: Path) -> None:
    write_replay(tmp_path, IMAGE, LAUNCHES, BUFFERS)
    driver, seen = FakeDriver(), []
    free = driver.free
    driver.free = lambda address: (seen.append(at(address, 8, np.float32).copy()), free(address))
    replay(tmp_path, driver)
    assert np.array_equal(seen[1], np.arange(8, dtype=np.float32) * 2.5)
    assert not seen[2].any(), "zeroed scratch is cleared"
    assert driver.allocated_bytes == 0


def test_the_replay_refuses_what_cannot_be_launched(tmp_path: Path) -> None:
    write_replay(tmp_path, IMAGE, [ConcreteLaunch("copy", (1, 1, 1), (4096, 1, 1), 0, ("x", "x"))], BUFFERS)
    with pytest.raises(DeviceFault, match="block"):
        replay(tmp_path, FakeDriver())
