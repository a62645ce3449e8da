"""One replay of a plan in a process of its own with a tool of NVIDIA's around it, and how that ended."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fsr.sandbox.environment import clean_environment
from fsr.sandbox.parent import dying


@dataclass(frozen=True, slots=True)
class Watched:
    """What tool and replay printed and the exit status; None: they had not ended in time, and were killed."""

    output: str
    code: int | None


def find_tool(name: str, *folders: str) -> str | None:
    """A program of the CUDA toolkit: on the path, or in one of the ``folders`` under CUDA_HOME, CUDA_PATH or
    /usr/local/cuda. None without."""
    found = shutil.which(name)
    for root in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        for folder in ("bin", *folders):
            found = found or (shutil.which(name, path=str(Path(root) / folder)) if root else None)
    return found


def watch_replay(tool: Sequence[str], folder: Path, index: int, timeout_s: float) -> Watched:
    """Replay the plan in ``folder`` (fsr.backends.cuda.replay) once on GPU ``index`` under a tool's command."""
    command = [*dying([*tool]), sys.executable, "-m", "fsr.backends.cuda.replay", str(folder), str(index)]
    root = str(Path(__file__).parents[3])
    environment = {
        **clean_environment(),
        "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]).rstrip(":"),
    }
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment,
        start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return Watched(process.communicate()[0] or "", None)
    return Watched(output, process.returncode)
