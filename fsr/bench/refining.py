"""One refinement of a benchmark: ``fsr refine`` in a process of its own, held to its budget."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsr.sandbox.parent import dying

GRACE_S = 240.0  # beside the budget: qualifying the original, the last promotion, starting and ending
_QUOTED = 600


@dataclass(frozen=True, slots=True)
class Refining:
    """What to refine with. home: where runs and caches of the benchmark lie; the user's own are not looked at.
    winners: a folder for the outputs."""

    device: str
    target: str
    budget_s: float
    seed: int
    home: Path
    winners: Path

    def command(self, kernel: Path) -> list[str]:
        """The command line. It starts from no cache: the budget is all that a workload gets."""
        options = {
            "--device": self.device, "--target": self.target, "--budget": f"{self.budget_s:g}s", "--seed": self.seed,
            "--llm": "none", "-o": self.output(kernel),
        }  # fmt: skip
        told = [str(word) for pair in options.items() for word in pair]
        return [sys.executable, "-m", "fsr", "refine", str(kernel), *told, "--no-cache", "--json"]

    def output(self, kernel: Path) -> Path:
        """Where the winner goes."""
        return self.winners / f"{kernel.stem}.fsr.cu"


Refine = Callable[[Refining, Path, Path], Mapping[str, Any]]


def refine(asked: Refining, kernel: Path, log: Path) -> dict[str, Any]:
    """What ``fsr refine --json`` told, or {"status": "failed", "detail": why}. What it printed else is in ``log``."""
    asked.output(kernel).unlink(missing_ok=True)
    environment = {**os.environ, "FSR_HOME": str(asked.home)}
    command = dying(asked.command(kernel))
    with (
        log.open("ab") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, env=environment, start_new_session=True
        ) as process,
    ):
        try:
            output, _ = process.communicate(timeout=asked.budget_s + GRACE_S)
        except subprocess.TimeoutExpired:
            return {"status": "failed", "detail": f"not finished {GRACE_S:g} s after its budget"}
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    try:
        told: dict[str, Any] = json.loads(output)
    except ValueError:
        said = log.read_text(errors="replace").strip()[-_QUOTED:]
        return {"status": "failed", "detail": f"exit code {process.returncode}: {said}"}
    return told
