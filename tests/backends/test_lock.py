"""The lock that gives one process a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fsr.backends.lock import DeviceLock
from fsr.errors import FsrError

HOLD = """
import sys, time
from pathlib import Path
from fsr.backends.lock import DeviceLock
with DeviceLock("cuda:0", Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_claim_waits_and_then_names_the_holder(tmp_path: Path) -> None:
    with (
        DeviceLock("cuda:0", tmp_path),
        pytest.raises(FsrError, match=f"cuda:0 is in use by process {os.getpid()}"),
        DeviceLock("cuda:0", tmp_path, timeout_s=0.2),
    ):
        pass


def test_devices_are_locked_each_for_itself(tmp_path: Path) -> None:
    with DeviceLock("cuda:0", tmp_path), DeviceLock("cuda:1", tmp_path, timeout_s=0) as other:
        assert other.acquire()


def test_it_is_free_again_after_release(tmp_path: Path) -> None:
    with DeviceLock("cuda:0", tmp_path):
        assert not DeviceLock("cuda:0", tmp_path).acquire()
    with DeviceLock("cuda:0", tmp_path, timeout_s=0):
        assert not DeviceLock("cuda:0", tmp_path).acquire()


def test_a_killed_holder_leaves_the_device_free(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout
    with holder.stdout:
        assert holder.stdout.readline() == "held\n"
        lock = DeviceLock("cuda:0", tmp_path)
        assert not lock.acquire()
        assert lock.holder() == f"process {holder.pid}"
        holder.kill()
        holder.wait()
    assert lock.acquire()
    lock.release()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(FsrError, match="cannot be opened"):
        DeviceLock("cuda:0", blocked).acquire()
