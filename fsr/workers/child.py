"""The body of a worker process: receive a task, call its function, answer. Ends when its parent does."""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

from fsr.sandbox.parent import die_with_parent
from fsr.workers.memory import keep_freed_memory
from fsr.workers.protocol import Task, WorkerFault


def call(task: Task) -> tuple[Any, bool]:
    """(result, usable): what the task's function returned, or a WorkerFault for an escaping exception;
    ``usable`` is False when the exception says that it is fatal for this process."""
    module, _, name = task.function.partition(":")
    try:
        return getattr(importlib.import_module(module), name)(task.payload), True
    except Exception as error:
        return WorkerFault("raised", traceback.format_exc(), _picklable(error)), not getattr(error, "fatal", False)


def _picklable(error: Exception) -> Exception | None:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return None
    return error


def serve(connection: Connection) -> None:
    """Answer tasks until the other end closes."""
    while True:
        try:
            task = connection.recv()
        except (EOFError, OSError):
            return
        result, usable = call(task)
        try:
            connection.send((result, usable))
        except (BrokenPipeError, ConnectionResetError):
            return
        except Exception as error:  # the result does not pickle: the task's fault
            fault = WorkerFault("raised", f"the result of {task.function} does not pickle: {error}")
            connection.send((fault, usable))
        if not usable:
            return
        gc.collect(0)


def _silence() -> None:
    """Let nothing that is printed here reach the standard output, which is the result's: what a kernel prints on a GPU
    arrives there, thousands of lines of it."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.close(sink)


def main() -> None:
    """``python -m fsr.workers.child FD``: serve tasks on an inherited socket."""
    die_with_parent()
    _silence()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    keep_freed_memory()
    connection = Connection(int(sys.argv[1]))
    serve(connection)


if __name__ == "__main__":
    main()
