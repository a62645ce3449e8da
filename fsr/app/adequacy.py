"""``check --adequacy``: how many planted faults the tests of a kernel find."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from fsr.app.checking import load_candidate
from fsr.errors import FsrError
from fsr.evaluation.spec import CompileRequest
from fsr.records import Outcome
from fsr.runs.adequacy import Adequacy
from fsr.runs.awaiting import completed
from fsr.runs.baseline import qualify
from fsr.runs.engine import COMPILE_TIMEOUT_S
from fsr.runs.fleet import open_fleet
from fsr.runs.kernel import kernel_of
from fsr.runs.meant import as_it_stands_or_was_meant
from fsr.runs.options import RefineOptions
from fsr.workers.protocol import Task, Workers

MUTANT_S = 30.0  # for one, at the very most; they end far sooner


def measure(path: Path, options: RefineOptions, count: int) -> dict[str, Any]:
    """Plant up to ``count`` faults in a kernel, or in a candidate for ``options.kernel``, and test each as a candidate.

    Returns what ``fsr check --adequacy --json`` prints. Raises FsrError: the original fails its own tests, or the
    candidate does not compile."""
    started = time.monotonic()
    kernel = kernel_of(options)
    candidate = kernel.baseline if path == options.kernel else load_candidate(path, kernel)
    with open_fleet(options, options.workers, single=True, modules=kernel.modules) as fleet:
        spec, workers = fleet.spec(kernel, options), fleet.workers
        own = candidate == kernel.baseline
        kernel, spec, _ = as_it_stands_or_was_meant(
            kernel, spec, lambda kernel, spec: qualify(workers, spec, kernel, lambda: None)
        )
        candidate = kernel.baseline if own else candidate
        if not own:
            _require_compiled(workers, CompileRequest(spec, candidate), path)
        adequacy = Adequacy(workers, spec, candidate, count, MUTANT_S * count)
        adequacy.begin()
        adequacy.wait(MUTANT_S * count)
    told: dict[str, Any] = adequacy.to_json()
    failure = adequacy.failure
    adequate = not told["survived"] and failure is None and told["killed"]
    return {
        "status": "adequate" if adequate else "wrong" if failure is not None else "inadequate",
        "entry": kernel.contract.entry, "seed": options.seed, **told, "failure": failure,
        "seconds": round(time.monotonic() - started, 2),
    }  # fmt: skip


def _require_compiled(workers: Workers, request: CompileRequest, path: Path) -> None:
    done = completed(workers, "compile", Task("fsr.evaluation.jobs:compile_task", request, COMPILE_TIMEOUT_S))
    if isinstance(done.result, Outcome):
        raise FsrError(
            f"the candidate is refused at the stage {done.result.stage}: {dict(done.result.evidence)}",
            expected="a candidate that passes fsr check", where=str(path), fix="fsr check it first",
        )  # fmt: skip
