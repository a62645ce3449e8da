"""Ctrl-C that is not lost: Python prints and forgets an interrupt that is raised where it cannot pass one on (in a
finalizer, a weak reference's callback, a hook of the garbage collector)."""

from __future__ import annotations

import signal
import threading
from types import FrameType

_seen = 0


def count_interrupts() -> None:
    """Count each Ctrl-C from now on before it is raised as KeyboardInterrupt. For a program's main thread: elsewhere,
    and where Ctrl-C is somebody else's, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)


def interrupts() -> int:
    """How many there were."""
    return _seen


def _interrupted(number: int, frame: FrameType | None) -> None:
    global _seen
    _seen += 1
    raise KeyboardInterrupt
