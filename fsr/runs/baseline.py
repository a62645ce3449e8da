"""Qualifying the user's own kernel, with faults told in the user's file and lines."""

from __future__ import annotations

import re
from collections.abc import Callable

from fsr.errors import BaselineError, BudgetError
from fsr.evaluation.ahead import MakeRequest, cases_ahead
from fsr.evaluation.faults import outcome_of_fault
from fsr.evaluation.spec import BaselineReport, SessionSpec
from fsr.records import OTHER_AT
from fsr.runs.awaiting import completed
from fsr.runs.budget import rounded_up
from fsr.runs.kernel import Kernel
from fsr.runs.lifting_beside import has_cores_to_spare
from fsr.source.cut import found_with_i
from fsr.workers.protocol import Task, WorkerFault, Workers

TIMEOUT_S = 300.0
TRIES = 2
NEEDED = 4.0  # what a run needs is at least this much of what testing the original took

# How compilers name a line of the unit they were given: NVRTC and nvcc, clang and g++.
_COMPILERS_LINE = re.compile(r"\bcandidate\.cu(?:\((\d+)\)|:(\d+)(?::\d+)?)")
_LINE = re.compile(r"\bline (\d+)\b")
_OTHERS_LINE = re.compile(rf"{OTHER_AT} (\d+)\b")


def qualify(
    workers: Workers, spec: SessionSpec, kernel: Kernel, tick: Callable[[], None], limit_s: float = TIMEOUT_S
) -> BaselineReport:
    """Run the baseline task, while the other devices get ready; ``tick`` is called while it runs. Raises BaselineError
    (in the user's lines), BudgetError when a ``limit_s`` shorter than usual did not suffice, and what else the task
    raises."""
    task = Task("fsr.evaluation.jobs:baseline_task", spec, limit_s)
    # How these end is nobody's business: candidates find out. On a CPU they would take the cores that qualifying needs.
    for _ in range(0 if spec.predicted else workers.size("device") - 1):
        workers.submit("device", Task("fsr.evaluation.jobs:prepare_task", spec, limit_s))
    if not spec.predicted and has_cores_to_spare():
        for case in cases_ahead(spec):
            workers.submit("compile", Task("fsr.evaluation.ahead:make_task", MakeRequest(spec, case), limit_s))
    completion = completed(workers, "device", task, tick, tries=TRIES)
    if getattr(completion.result, "kind", "") == "timed_out" and limit_s < TIMEOUT_S:
        needed = round(rounded_up(max(NEEDED * limit_s, 2 * spec.budget_s)))
        raise BudgetError(
            f"the budget of {spec.budget_s:g} s is too small: "
            f"the original was not tested and timed within {limit_s:.1f} s",
            expected=f"about {needed} s or more on this machine", where=str(kernel.file.path),
            fix=f"--budget {needed}s, or smaller timed sizes in the contract, or a smaller max: tests go as far",
        )  # fmt: skip
    try:
        return _report(completion.result, completion.seconds)
    except BaselineError as error:
        raise in_users_lines(error, kernel) from None


def _report(result: object, seconds: float) -> BaselineReport:
    if isinstance(result, WorkerFault):
        failed = outcome_of_fault(result.kind, result.detail, result.error, "baseline", seconds)
        raise BaselineError(
            f"the kernel itself does not run: {failed.evidence.get('detail')}",
            expected="a kernel that passes its own tests",
            fix="run it on small sizes under compute-sanitizer, or narrow its contract",
        )
    assert isinstance(result, BaselineReport)
    return result


def with_users_place(detail: str, kernel: Kernel) -> str:
    """The detail of a fault with the place of its other access in the user's file."""
    return _OTHERS_LINE.sub(lambda found: f"the other at {kernel.unit.where(int(found[1]))}", detail)


def in_users_lines(error: BaselineError, kernel: Kernel) -> BaselineError:
    """The error with lines of the unit that was compiled replaced by the user's file and line."""
    what = _COMPILERS_LINE.sub(lambda found: kernel.unit.where(int(found[1] or found[2])), error.what)
    what = with_users_place(what, kernel)
    where = _LINE.sub(lambda found: kernel.unit.where(int(found[1])), error.where)
    lacking = found_with_i(kernel.unit, what)
    fix = f"{lacking}; else: {error.fix}" if lacking else error.fix
    return type(error)(what, expected=error.expected, where=where or str(kernel.file.path), fix=fix)
