"""The parent's side of a child process that serves requests confined: start, ask, notice its death, kill."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from fsr.errors import HarnessError
from fsr.sandbox.channel import receive, send

_START_S = 30.0
_CPUCLOCK_SCHED = 2  # linux/posix-timers.h: the clock of a process's CPU time is named by its id and this
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "LANG", "TMPDIR")


class ChildDied(Exception):  # noqa: N818  # an event, not an error
    """The child ended while it was asked: by a signal (negative code) or with an exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class ChildTimedOut(Exception):  # noqa: N818
    """The child did not answer in time and was killed."""


class Child:
    """One running child. After ChildDied or ChildTimedOut it is of no further use.

    Args:
        command: the program; the number of its end of the connection is added as the last argument.
        who: what messages call it.
        files: further descriptors that it inherits.
        environment: variables beside the few that are passed on; none that could hold a secret are.
    """

    def __init__(
        self, command: Sequence[str], who: str, files: Sequence[int] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        self.who = who
        self._connection, there = socket.socketpair()
        with there:
            self._process = subprocess.Popen(
                [*command, str(there.fileno())], pass_fds=(there.fileno(), *files), stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, start_new_session=True,
                env={key: os.environ[key] for key in _PASSED_ON if key in os.environ} | dict(environment or {}),
            )  # fmt: skip
        try:
            self.greeting = self._answer(_START_S)
        except (ChildDied, ChildTimedOut) as error:
            raise HarnessError(f"{who} did not start ({error!r})") from None

    @property
    def pid(self) -> int:
        """Its process id, which is its process group too."""
        return self._process.pid

    @property
    def cpu_s(self) -> float:
        """The CPU time that it has used; 0 of one that has ended."""
        with suppress(OSError):
            return time.clock_gettime(~self._process.pid << 3 | _CPUCLOCK_SCHED)
        return 0.0

    def ask(self, message: Any, files: Sequence[int] = (), timeout_s: float = 60.0, patience: float = 1.0) -> Any:
        """Send a request and wait for the answer: so many seconds by the clock, and up to ``patience`` times as long
        while it has not had them on a CPU. Raises ChildDied, ChildTimedOut; HarnessError when refused."""
        began, cpu_s = time.monotonic(), self.cpu_s
        try:
            send(self._connection, message, files)
        except OSError:
            raise ChildDied(self._reap()) from None
        if not self._answers(began + timeout_s, cpu_s + timeout_s, began + patience * timeout_s):
            self.kill()
            raise ChildTimedOut
        answer = self._answer(timeout_s)
        if "error" in answer:
            raise HarnessError(f"{self.who} refused {message['op']}: {answer['error']}")
        return answer

    def _answers(self, clock: float, cpu_s: float, last: float) -> bool:
        """Whether there is an answer before it is later than ``last``, or than ``clock`` with ``cpu_s`` used."""
        number = self._connection.fileno()
        if number < 0:  # another thread has ended it since it was asked; whoever reads is told
            return True
        ready = select.poll()
        ready.register(number, select.POLLIN)
        while (left := max(clock - (now := time.monotonic()), min(cpu_s - self.cpu_s, last - now))) > 0:
            if ready.poll(1000 * left + 1):
                return True
        return False

    def _answer(self, timeout_s: float) -> Any:
        try:
            self._connection.settimeout(timeout_s)
            return receive(self._connection)[0]
        except TimeoutError:
            self.kill()
            raise ChildTimedOut from None
        except (EOFError, OSError):
            code = self._reap()
            # Its own timer of CPU time, set for a parent that dies, was quicker than a parent that waits for a core.
            raise (ChildTimedOut if code == -signal.SIGPROF else ChildDied(code)) from None

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
