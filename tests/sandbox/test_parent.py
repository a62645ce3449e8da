"""What a process started ends with it, also what is in the middle of something and has a group of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fsr.sandbox.parent import dying

ROOT = Path(__file__).parents[2]

# Starts a sleep of an hour in a session of its own, tells its number, and waits.
STARTS_A_COMMAND = """
import subprocess, sys, time
from fsr.sandbox.parent import dying
print(subprocess.Popen(dying(["/bin/sleep", "3600"]), start_new_session=True).pid, flush=True)
time.sleep(3600)
"""
# Runs a kernel that never ends on a host device, from a second thread; tells the number of the device's process.
RUNS_A_KERNEL = """
import threading, time
import numpy as np
from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import open_host_device
from fsr.backends.protocol import Buffer
from fsr.records import Candidate, ConcreteLaunch, Launch, Plan, Role
one = ("1", "1", "1")
source = "__global__ void k(volatile int* x) { while (x[0] == 0) {} }"
image = HostToolchain().compile(Candidate(source, Plan((Launch("k", one, one, "0", ()),))))
device = open_host_device()
launch = ConcreteLaunch("k", (1, 1, 1), (1, 1, 1), 0, ("x",))
prepared = device.prepare(image, [launch], [Buffer("x", np.zeros(1, "i4"), Role.IN)]).__enter__()
threading.Thread(target=lambda: prepared.run(3600.0), daemon=True).start()
time.sleep(0.5)
print(device._child.pid, flush=True)
time.sleep(3600)
"""


@pytest.mark.parametrize("script", [STARTS_A_COMMAND, RUNS_A_KERNEL], ids=["a command", "a kernel"])
def test_what_a_killed_process_started_ends_with_it(script: str) -> None:
    owner = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert owner.stdout is not None
    started = int(owner.stdout.readline())
    assert alive(started)
    owner.kill()
    owner.communicate()
    while alive(started):  # the test's own limit ends it where it never does
        time.sleep(0.05)


def test_the_command_is_the_one_that_was_asked_for() -> None:
    done = subprocess.run(dying(["/bin/echo", "a b", "c"]), capture_output=True, text=True, check=True)
    assert done.stdout == "a b c\n"


def test_workers_serve_an_owner_that_is_the_first_process_of_its_container() -> None:
    """As in a container, whose entry point is fsr itself."""
    script = (
        "import os; from fsr.workers.local import local_workers; from fsr.workers.protocol import Task\n"
        "from tests.conformance.workers import TASKS, one\n"
        "with local_workers(1, 0) as workers: print(os.getpid(), one(workers, 'compile', 'double', 21))\n"
    )
    alone = ["unshare", "--user", "--map-root-user", "--pid", "--fork"]
    try:
        subprocess.run([*alone, "/bin/true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this system gives no process numbers of their own")
    done = subprocess.run([*alone, sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.split() == ["1", "42"], done.stderr


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
