"""Where a winner goes, and who is told of it."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fsr.runs.options import default_output
from fsrd.config import Config, WinTable
from fsrd.jobs.job import Job

LOG = logging.getLogger(__name__)


def output_of(config: Config, kernel: Path, variant: str = "") -> Path:
    """Where the winner of a kernel is written: in the folder of results of the watched folder that holds it, beside the
    kernel or, where that is absolute, under its path from there. ``variant``: the hardware, where there are several."""
    watched = config.holding(str(kernel))
    results = Path(watched.results).expanduser() if watched is not None else Path(".fsr")
    folder = kernel.parent / results
    if results.is_absolute() and watched is not None:
        folder = results / kernel.parent.relative_to(watched.folder().root)
    slug = "".join(c if c.isalnum() else "-" for c in variant.lower())
    return folder / slug / default_output(kernel).name


def drop(old: Job) -> bool:
    """Remove what an earlier job of a kernel wrote, when that lies there still; whether it did. Raises OSError."""
    result = old.result or {}
    if not result.get("output"):
        return False
    output = Path(str(result["output"]))
    evidence = output.with_suffix(".json")
    try:
        run = json.loads(evidence.read_text(encoding="utf-8")).get("run")
    except (OSError, ValueError, AttributeError):
        return False
    if run != result["run"]:  # of somebody else, or newer
        return False
    for path in (output, output.with_suffix(".cuh"), evidence):
        path.unlink(missing_ok=True)
    return True


def won(table: WinTable, job: Job, result: Mapping[str, Any]) -> threading.Thread | None:
    """Run the owner's command for a win, in a thread of its own; what it does wrong is logged, and costs no run."""
    if not table.command or not result["best"]:
        return None
    told = {
        "FSR_KERNEL": job.kernel, "FSR_OUTPUT": str(result["output"]), "FSR_RUN": str(result["run"]),
        "FSR_SPEEDUP": f"{result['best']['speedup']:.4g}", "FSR_BASIS": str(result["basis"]),
    }  # fmt: skip

    def run() -> None:
        try:
            done = subprocess.run(
                list(table.command), env={**os.environ, **told}, stdin=subprocess.DEVNULL, capture_output=True,
                text=True, errors="replace", timeout=table.timeout_s, check=False,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as fault:
            LOG.warning("the command for wins failed on %s: %s", job.kernel, fault)
            return
        if done.returncode:
            LOG.warning("the command for wins ended with %d on %s: %s", done.returncode, job.kernel, done.stderr[-300:])

    thread = threading.Thread(target=run, name="win", daemon=True)
    thread.start()
    return thread
