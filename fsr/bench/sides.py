"""A side of a comparison: a process of its own that holds contenders on a device and times one run of each on demand.

The kernels and the torch peers cannot share a process safely, since both own a CUDA context. So each side has one, and
only the side that is asked works: samples interleave, and neither sees the other's faults. What a side prints goes to a
log; one that crashes or hangs costs its own times only.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from fsr.errors import FsrError
from fsr.sandbox.parent import die_with_parent

_QUOTED = 600
_END_S = 10.0


class SideFailureError(Exception):
    """A side did not answer: what it said, or how it ended. ``lost``: its process is gone."""

    def __init__(self, what: str, *, lost: bool = True) -> None:
        super().__init__(what)
        self.lost = lost


class Side(Protocol):
    """What the rounds need of a side."""

    def ask(self, method: str, *arguments: Any, limit_s: float) -> Any:
        """Call a method of what the side holds. Raises SideFailureError; FsrError as raised there."""

    def close(self) -> None:
        """End it."""


class ProcessSide:
    """A side in a process of its own. ``opener``: 'module:class', made there with ``payload``; ``log``: a file for all
    that it prints."""

    def __init__(self, opener: str, payload: Any, log: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._log = log
        self._here, there = context.Pipe()
        self._process = context.Process(target=serve, args=(opener, payload, there, str(log)))
        self._process.start()
        there.close()

    def ask(self, method: str, *arguments: Any, limit_s: float) -> Any:
        """See Side."""
        try:
            self._here.send((method, arguments))
            if not self._here.poll(limit_s):
                self.close()
                raise SideFailureError(f"{method} did not answer within {limit_s:g} s")
            kind, answer = self._here.recv()
        except (EOFError, OSError):
            self._process.join(_END_S)
            said = self._log.read_text(errors="replace").strip()[-_QUOTED:] if self._log.exists() else ""
            raise SideFailureError(f"its process ended with {self._process.exitcode}: {said}") from None
        if kind == "answer":
            return answer
        if isinstance(answer, FsrError):
            raise answer
        raise SideFailureError(answer, lost=False)

    def close(self) -> None:
        """See Side. The process leads a group of its own, with which its compilers end."""
        self._here.close()
        self._process.join(_END_S if self._process.exitcode is None else 0)
        if self._process.pid is not None and self._process.exitcode is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:  # it has not come to leading a group
                self._process.kill()
            self._process.join(_END_S)


def serve(opener: str, payload: Any, connection: Connection, log: str) -> None:
    """What runs in the process of a side: opens it at the first question, answers until the connection closes."""
    os.setpgid(0, 0)
    die_with_parent()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(output, stream)
    held: Any = None
    while True:
        try:
            method, arguments = connection.recv()
        except (EOFError, OSError):
            break
        try:
            held = held or opened(opener, payload)
            connection.send(("answer", getattr(held, method)(*arguments)))
        except FsrError as fault:
            connection.send(("fault", fault))
        except Exception as fault:
            traceback.print_exc()
            connection.send(("fault", f"{type(fault).__name__}: {str(fault)[:_QUOTED]}"))
    if held is not None:
        held.close()
    sys.stdout.flush()


def opened(opener: str, payload: Any) -> Any:
    """The object that a side holds."""
    module, _, name = opener.partition(":")
    return getattr(importlib.import_module(module), name)(payload)
