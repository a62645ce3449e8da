"""What all stages of a run share: workers, log, clock, wishes from outside, the turn on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fsr.errors import FsrError
from fsr.evaluation.spec import PromoteRequest, SessionSpec
from fsr.evaluation.verdict import predicted_verdict
from fsr.prediction.predict import ERROR_FACTOR
from fsr.records import Outcome, Status, Verdict, VerdictKind
from fsr.runs.awaiting import all_completed, completed
from fsr.runs.budget import Budget
from fsr.runs.control import Control
from fsr.runs.lease import Lease
from fsr.runs.log import EventLog
from fsr.runs.state import Progress, RunState
from fsr.search.proposal import Trial
from fsr.workers.protocol import Completion, Pool, Task, Workers

BLOCKED_S = 60.0  # how long another process may keep a device that this one waits for
DIFFERENCE = 1.01  # a gain below this is tried when the search is over, in what time is left


@dataclass(slots=True)
class RunContext:
    """One run's surroundings. ``progress`` is called often, from the run's own thread."""

    spec: SessionSpec
    workers: Workers
    log: EventLog
    state: RunState
    budget: Budget
    control: Control
    lease: Lease
    progress: Progress = lambda state: None

    def tick(self) -> None:
        """Look at what is wished from outside, and show how the run stands. Raises StopNow."""
        self.control.check()
        self.state.elapsed_s = self.budget.elapsed_s
        self.state.device_busy = self.workers.busy_share("device")
        self.progress(self.state)

    def verdict_on(self, trial: Trial) -> Verdict | None:
        """What the final will say of a candidate that the search has timed, where times are predicted, since a
        prediction does not vary; None where they are measured."""
        original = self.state.baseline.outcome.timing if self.state.baseline is not None else None
        if not self.spec.predicted or original is None or trial.time_ns is None:
            return None
        return predicted_verdict(original.median_ns, trial.time_ns, ERROR_FACTOR)

    @property
    def found(self) -> bool:
        """Whether there is something to promote that is worth the time of the search: the best so far is not the
        original, nor known to be ambiguous, nor as fast as makes no difference."""
        best, baseline = self.state.best, self.state.baseline
        if best is None or not self.state.found:
            return False
        verdict = self.verdict_on(best)
        if verdict is not None:
            return verdict.kind is VerdictKind.FASTER
        original = baseline.outcome.timing if baseline is not None else None
        return original is None or best.time_ns is None or best.time_ns * DIFFERENCE < original.median_ns

    def take_device(self) -> None:
        """Wait for the turn on the device. Raises FsrError when another process keeps it, StopNow."""
        began = self.budget.elapsed_s
        while not self.lease.take():
            self.tick()
            self.lease.wait()
            waited = self.budget.elapsed_s - began
            if self.budget.promotion_left_s <= 0 or (self.lease.blocked_by and waited > BLOCKED_S):
                raise FsrError(
                    f"{', '.join(self.lease.devices)} is in use by {self.lease.blocked_by or 'another run'}",
                    expected="a device that nobody is timing on",
                    fix="wait for that process to end, or choose another --device",
                )

    def awaited(
        self, pool: Pool, function: str, payload: Callable[[float], Any], most_s: float
    ) -> tuple[Completion, bool]:
        """The completion of a task of ``fsr.evaluation``, and whether the budget ended under it.

        ``payload``: made from the seconds that the task may take, ``most_s`` or what the budget has left. A worker that
        dies under the task is tried once more."""
        limit_s = max(0.1, min(most_s, self.budget.promotion_left_s))
        task = Task(f"fsr.evaluation.{function}", payload(limit_s), limit_s)
        done = completed(self.workers, pool, task, self.tick, tries=2)
        return done, _cut(done, limit_s < most_s)

    def judged(
        self, payloads: Sequence[Callable[[float], PromoteRequest]], most_s: float
    ) -> tuple[list[Completion], bool]:
        """The completions of the parts of a promotion, side by side and in fresh processes, and whether the budget
        ended under one. The first that does not find the candidate right stands alone."""
        aim_s, limit_s = (max(0.1, min(most_s, s)) for s in (self.budget.promotion_left_s, self.budget.verdict_left_s))
        tasks = [Task("fsr.evaluation.promotion:promote_task", make(aim_s), limit_s, fresh=True) for make in payloads]
        done = all_completed(self.workers, "device", tasks, _right, self.tick, tries=2)
        return done, any(_cut(one, limit_s < most_s) for one in done)


def _cut(done: Completion, short: bool) -> bool:
    return short and getattr(done.result, "kind", "") == "timed_out"


def _right(result: Any) -> bool:
    return isinstance(result, Outcome) and result.status >= Status.CORRECT
