"""The parent's side of the child process: start, ask, notice its death, kill."""

from __future__ import annotations

import mmap
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fsr.backends.host.abi import FaultRecord
from fsr.backends.host.channel import receive, send
from fsr.errors import HarnessError

_START_S = 30.0
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "LANG", "TMPDIR")


class ChildDied(Exception):  # noqa: N818  # an event, not an error
    """The child ended while it was asked: by a signal (negative code) or with an exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class ChildTimedOut(Exception):  # noqa: N818
    """The child did not answer in time and was killed."""


class Child:
    """One running child. After ChildDied or ChildTimedOut it is of no further use."""

    def __init__(self, contain: str = "") -> None:
        """Start it. ``contain``: 'module:function', called in the child before any candidate is loaded."""
        here, there = socket.socketpair()
        fault_file = os.memfd_create("fsr-fault")
        os.ftruncate(fault_file, mmap.PAGESIZE)
        self._page = mmap.mmap(fault_file, mmap.PAGESIZE)
        self._connection = here
        environment = {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[3]), *filter(None, sys.path)])
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fsr.backends.host.server", str(there.fileno()), str(fault_file), contain],
                pass_fds=(there.fileno(), fault_file), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                env=environment, start_new_session=True,
            )  # fmt: skip
        finally:
            there.close()
            os.close(fault_file)
        try:
            self._answer(_START_S)
        except (ChildDied, ChildTimedOut) as error:
            raise HarnessError(f"the host device's child process did not start ({error!r})") from None

    @property
    def pid(self) -> int:
        """Its process id, which is its process group too."""
        return self._process.pid

    def ask(self, message: Any, files: Sequence[int] = (), timeout_s: float = 60.0) -> Any:
        """Send a request and wait for the answer. Raises ChildDied, ChildTimedOut; HarnessError when refused."""
        try:
            send(self._connection, message, files)
        except OSError:
            raise ChildDied(self._reap()) from None
        answer = self._answer(timeout_s)
        if "error" in answer:
            raise HarnessError(f"the host device's child refused {message['op']}: {answer['error']}")
        return answer

    def fault(self) -> FaultRecord:
        """A copy of what the last launch did wrong."""
        return FaultRecord.from_buffer_copy(self._page)

    def _answer(self, timeout_s: float) -> Any:
        self._connection.settimeout(timeout_s)
        try:
            return receive(self._connection)[0]
        except TimeoutError:
            self.kill()
            raise ChildTimedOut from None
        except (EOFError, OSError):
            raise ChildDied(self._reap()) from None

    def _reap(self) -> int:
        try:
            code = self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            code = 0
        self.kill()
        return code

    def kill(self) -> None:
        """End it and all that it started, at once."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._connection.close()

    def close(self) -> None:
        """Let it end by itself, or end it."""
        self._connection.close()
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self.kill()
