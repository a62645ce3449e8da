"""Worker processes on this machine, each supervised by itself.

Every worker is a process (and process group) of its own with one socket to the parent, so one that is killed,
crashes or hangs costs its own task and nothing else; ``concurrent.futures`` would break the whole pool.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from fsr.sandbox.environment import clean_environment
from fsr.workers.protocol import Pool, Task, WorkerFault
from fsr.workers.supervisor import Supervisor, Worker

LEAVING_S = 2.0  # for a released worker to close its device and end; it is killed afterwards


class LocalWorker:
    """One child process."""

    def __init__(self, pool: Pool, index: int, environment: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fsr.workers.child", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**clean_environment(), **environment, "FSR_WORKER": f"{pool}:{index}"},
                start_new_session=True,
            )
            self.connection = Connection(ours.detach())
            self._released = False

    @property
    def pid(self) -> int:
        """The child's process id, also its process group's."""
        return self.process.pid

    def ready(self, timeout_s: float = 0.0) -> bool:
        """True: this machine has room for all of its processes."""
        return True

    def send(self, task: Task) -> None:
        """Start a task; a child that is already dead is noticed by ``poll``."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(task)

    def receive(self) -> tuple[Any, bool]:
        """The answer that is ready, or the fault of a child that died."""
        try:
            result, usable = self.connection.recv()
        except (EOFError, OSError):
            code = self.process.wait()
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            return WorkerFault("crashed", f"the worker process ended with {how}"), False
        return result, usable

    def release(self) -> None:
        """Close the connection: an idle child sees its end and leaves by itself."""
        self._released = True
        self.connection.close()

    def kill(self) -> None:
        """SIGKILL to the whole process group; a released child may leave by itself first."""
        if self._released:
            self._wait_for_leaving()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.connection.close()

    def _wait_for_leaving(self) -> None:
        # Through a pidfd, which does not reap: the process group is this child's until it is reaped.
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(self.process.pid)
            try:
                select.select([handle], [], [], LEAVING_S)
            finally:
                os.close(handle)


class LocalBackend:
    """Starts local worker processes. ``gpus``: the UUID of the only GPU that each device worker sees; none given
    leaves the devices as they are."""

    def __init__(self, gpus: Sequence[str] = ()) -> None:
        self._gpus = tuple(gpus)

    def start(self, pool: Pool, index: int) -> LocalWorker:
        """A new child process."""
        narrowed = {"CUDA_VISIBLE_DEVICES": self._gpus[index]} if pool == "device" and self._gpus else {}
        return LocalWorker(pool, index, narrowed)

    def poll(self, busy: list[Worker], timeout_s: float) -> list[tuple[Worker, Any, bool]]:
        """Answers and deaths among the busy workers."""
        by_connection = {w.connection: w for w in busy if isinstance(w, LocalWorker)}
        ready = wait(list(by_connection), timeout_s)
        found: list[tuple[Worker, Any, bool]] = []
        for connection in ready:
            worker = by_connection[connection]  # type: ignore[index]  # only Connections were passed
            found.append((worker, *worker.receive()))
        return found

    def close(self) -> None:
        """Nothing is held beyond the workers."""


def local_workers(compile_workers: int, device_workers: int, gpus: Sequence[str] = ()) -> Supervisor:
    """Supervised local processes; enter it as a context manager to start them. ``gpus``: one UUID a device worker."""
    return Supervisor(LocalBackend(gpus), {"compile": compile_workers, "device": device_workers})
