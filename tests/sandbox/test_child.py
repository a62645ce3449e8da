"""How long a child is waited for."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import fsr
from fsr.sandbox.child import Child, ChildDied, ChildTimedOut

SERVER = """
import os, signal, socket, sys, time
from fsr.sandbox.channel import receive, send
connection = socket.socket(fileno=int(sys.argv[-1]))
send(connection, {})
while True:
    seconds, busy = receive(connection)[0]
    if seconds < 0:
        os.kill(os.getpid(), signal.SIGPROF)
    until = time.process_time() + seconds
    while busy and time.process_time() < until:
        pass
    time.sleep(0 if busy else seconds)
    send(connection, {"slept": seconds})
"""


@pytest.fixture
def child() -> Iterator[Child]:
    path = {"PYTHONPATH": str(Path(fsr.__file__).parents[1])}
    found = Child([sys.executable, "-c", SERVER], "the sleeper", (), path)
    yield found
    found.close()


def test_one_that_had_no_time_on_a_cpu_is_waited_for(child):
    assert child.ask([0.3, False], timeout_s=0.1, patience=50.0) == {"slept": 0.3}
    with pytest.raises(ChildTimedOut):
        child.ask([30.0, False], timeout_s=0.1)


def test_one_that_had_its_time_is_not(child):
    before = child.cpu_s
    with pytest.raises(ChildTimedOut):
        child.ask([30.0, True], timeout_s=0.1, patience=200.0)
    assert before > 0
    assert child.cpu_s == 0


def test_one_that_its_own_timer_ended_is_late_too(child):
    with pytest.raises(ChildTimedOut):
        child.ask([-1.0, False], timeout_s=60.0)


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.1])
def test_one_that_another_thread_ends_while_it_is_asked_has_died(child, seconds):
    threading.Timer(seconds, child.kill).start()
    with pytest.raises(ChildDied):
        child.ask([30.0, False])
