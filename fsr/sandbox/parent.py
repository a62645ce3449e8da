"""Processes that end with the one that started them, whatever they are doing then.

A worker is killed where it stands when its time is over. What it had started, and what has a process group of its own
so that it can be killed alone, would go on: executing a candidate, compiling, or using the GPU that is timed next.

``python parent.py PARENT COMMAND ARGUMENTS`` becomes a command that ends like that. Standard library alone, and of that
little: contextlib and signal would take a third of the time that a program which confines itself needs to start.
"""

from __future__ import annotations

import ctypes
import os
import sys

_PR_SET_PDEATHSIG, _SIGKILL = 1, 9


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the thread that started it ends (Linux, prctl(2)); it stays so across
    execve. A parent that ended before is noticed by whoever waits for its word; no process number tells it, since in a
    container the parent may well be the first process."""
    try:  # noqa: SIM105
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    except (OSError, AttributeError):
        pass


def dying(command: list[str]) -> list[str]:
    """The command line that runs ``command`` (a program with its full path first) so that it ends with this process."""
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid()), *command]  # noqa: PTH100


if __name__ == "__main__":
    die_with_parent()
    if os.getppid() == int(sys.argv[1]):  # else it has ended already
        os.execv(sys.argv[2], sys.argv[2:])
