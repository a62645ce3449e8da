"""A refinement as the service sees it: a process that is told words and tells lines."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

CHILD = (sys.executable, "-m", "fsrd.running.child")
LAST_BYTES = 2000
LEAVING_S = 5.0


class RunProcess:
    """One child, started; every method from one thread. ``command``: what to start, a stand-in in tests."""

    def __init__(self, order: Mapping[str, Any], command: Sequence[str] = CHILD) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed by close()
        self._process = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True,
            start_new_session=True,
        )  # fmt: skip
        self._messages: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.say(json.dumps(order))

    def say(self, word: str) -> None:
        """Give it a line; one that has ended hears nothing."""
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):
            self._process.stdin.write(word + "\n")
            self._process.stdin.flush()

    def next(self, timeout_s: float) -> dict[str, Any] | None:
        """The next thing it tells, None when nothing came in time. Raises EOFError when it has ended."""
        try:
            message = self._messages.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if message is None:
            self._messages.put(None)
            raise EOFError
        return message

    def kill(self) -> None:
        """End it now, with all it started: its log is whole at any moment."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> str:
        """See it end, by force if need be; returns how, in words: its last errors, or its exit status. Once it has,
        nothing more happens."""
        if self._errors.closed:
            return ""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(LEAVING_S)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
        self.kill()
        self._reader.join(LEAVING_S)
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - LAST_BYTES))
        last = self._errors.read().decode(errors="replace").strip()
        self._errors.close()
        code = self._process.returncode
        return f"the run's process ended with {code}" + (f": {last.splitlines()[-1]}" if last else "")

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                with suppress(ValueError):
                    self._messages.put(json.loads(line))
        self._messages.put(None)
