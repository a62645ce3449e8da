"""Running a compiler that is a program: confined, limited, killed with all that it started when its time is over."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from fsr.sandbox.launch import confined

# Addresses of one compiler process. Largest seen of real kernels: 1.1 GiB (a GEMM on NVIDIA's template library).
MEMORY_BYTES = 4 << 30
_FILE_BYTES = 256 << 20  # the largest file that a compiler may write
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "HOME")
_KILLED = re.compile(r"Killed signal terminated program|unable to execute command: Killed|terminated with signal 9")


def run_compiler(command: Sequence[str], read: Sequence[str], folder: str, timeout_s: float) -> tuple[int | None, str]:
    """Exit status and both outputs as one text; None, and why, where the time is over and the whole group was killed.

    The program may read the system's folders and ``read``, and write beneath ``folder``, where it starts. One that was
    killed from outside (where memory is short) runs once more: its death says nothing of the candidate, and what is
    told as a failure is remembered. Killed again it ends as one whose time is over does."""
    for _ in range(2):
        code, text = _run_once(command, read, folder, timeout_s)
        if not (code == -signal.SIGKILL or (code and _KILLED.search(text))):
            return code, text
    return None, "the compiler was killed from outside, twice: memory may be short"


def _run_once(command: Sequence[str], read: Sequence[str], folder: str, timeout_s: float) -> tuple[int | None, str]:
    limited = confined(
        command, read=read, write=[folder], memory_bytes=MEMORY_BYTES, file_bytes=_FILE_BYTES, cpu_s=timeout_s + 5
    )
    environment = {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
    process = subprocess.Popen(
        limited, cwd=folder, env=environment | {"TMPDIR": folder, "LC_ALL": "C"}, start_new_session=True, text=True,
        errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        log, _ = process.communicate(timeout=max(timeout_s, 0.0))
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, f"the compiler was stopped: its time of {timeout_s:.3g} s was over"
    return process.returncode, log.rstrip()
