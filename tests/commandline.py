"""Runs `fsr` as a user does, in a home folder of its own, on kernels small enough for a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

ROW_SUM = """// /// fsr
// entry = "row_sum"
//
// [sizes]
// rows = {min = 0, max = 256, timed = 128}
// cols = {min = 1, max = 128, timed = 64}
//
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["rows"]}
// rows = {value = "rows"}
// cols = {value = "cols"}
//
// [launch]
// grid = "ceil_div(rows, 64)"
// block = 64
//
// [tolerance]
// sum_length = "cols"
// ///
__global__ void row_sum(const float *x, float *y, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int j = 0; j < cols; j++) sum += x[row * cols + j];
    y[row] = sum;
}
"""
# large enough that what is gained lies outside of a prediction's error, after few candidates
LARGE_ROW_SUM = ROW_SUM.replace("max = 256, timed = 128", "max = 2048, timed = 2048").replace("= 64}", "= 128}")


@dataclass
class Fsr:
    """The command line in a home of its own."""

    home: Path
    env: dict[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        return {**os.environ, "FSR_HOME": str(self.home), "COLUMNS": "100", **self.env}

    def command(self, *arguments: object) -> list[str]:
        return [sys.executable, "-m", "fsr", *map(str, arguments)]

    def run(self, *arguments: object, timeout_s: float = 280) -> subprocess.CompletedProcess[str]:
        """Run it to its end; a traceback on either output fails the test."""
        done = subprocess.run(
            self.command(*arguments), capture_output=True, text=True, env=self.environment(), timeout=timeout_s,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert "Traceback" not in done.stderr + done.stdout, done.stderr
        return done

    def json(self, *arguments: object) -> Any:
        """Run it with --json: standard output must be exactly one JSON object."""
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == 1
        return json.loads(done.stdout)

    def refine(self, kernel: Path, *arguments: object) -> Any:
        return self.json("refine", kernel, "--device", "host", "--budget", "5m", *arguments)

    def events(self, run: str) -> list[dict[str, Any]]:
        """The log of a run."""
        text = (self.home / "runs" / run / "events.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]  # not half a line


class Told(NamedTuple):
    """How a command ended that ran in this process."""

    code: int
    out: str
    err: str


Command = Callable[..., Told]
