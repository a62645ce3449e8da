"""The memory that large buffers leave is used again, and nothing of what was in it shows."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.backends.host.arena import GUARD_VALUE, KEPT_LEAST, KEPT_MOST, KEPT_ROOMS, Rooms
from fsr.backends.host.device import open_host_device
from fsr.backends.protocol import DeviceFault
from tests.backends.host.conftest import build_image, launch_of

COUNT = 1 << 20
WRITES = """__global__ void writes(float *out, float *zeros, float *tmp, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = zeros[i] = tmp[i] = 7.0f;
}
__global__ void reads(float *out, float *zeros, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && i % 2) out[i] = zeros[i];
}
__global__ void dies(float *out) { *(volatile int *)8 = 1; }
"""


@pytest.fixture
def device():
    opened = open_host_device()
    yield opened
    opened.close()


def prepared(device, entry, **args):
    launch, buffers = launch_of(entry, COUNT // 256, 256, 0, args)
    return device.prepare(build_image(WRITES, ("writes", "reads", "dies")), [launch], buffers)


def written(device):
    array = np.zeros(COUNT, "f4")
    return prepared(device, "writes", out=array, zeros=array, tmp=array, n=COUNT)


def test_what_another_run_left_does_not_show(device):
    with written(device) as first:
        first.run()
        file = first.arena.file
    with prepared(device, "reads", out=np.full(COUNT, -1, "f4"), zeros=np.zeros(COUNT, "f4"), n=COUNT) as second:
        assert second.arena.file == file
        second.run()
        out = second.read()["out"]
        assert second.violations() == []
    assert (out[1::2] == 0).all()
    assert (out[::2] == -1).all()


def test_two_at_a_time_share_nothing(device):
    with written(device):
        pass
    with written(device) as one, written(device) as other:
        assert one.arena.file != other.arena.file


def test_what_a_child_had_that_died_is_not_used_again(device):
    with prepared(device, "dies", out=np.zeros(COUNT, "f4")) as lost:
        with pytest.raises(DeviceFault):
            lost.run()
        room = lost.arena._room
    assert room not in device._rooms._kept
    with written(device) as again:
        again.run()
        assert (again.read()["out"] == 7).all()


def test_few_rooms_are_kept_and_none_much_too_large():
    rooms = Rooms()
    for size in (KEPT_LEAST // 2, *(KEPT_LEAST * n for n in range(1, KEPT_ROOMS + 3))):
        rooms.keep(rooms.take(size))
    taken = [rooms.take(KEPT_LEAST * n) for n in range(1, KEPT_ROOMS + 3)]
    assert sum(not room.fresh for room in taken) == KEPT_ROOMS
    for room in taken:
        room.map[:1] = bytes([GUARD_VALUE])
        rooms.keep(room)
    assert sum(room.size for room in rooms._kept) <= KEPT_MOST
    assert rooms.take(KEPT_LEAST // 100).fresh
    rooms.clear()
    assert rooms.take(KEPT_LEAST).fresh
