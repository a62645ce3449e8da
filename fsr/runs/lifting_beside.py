"""Lifting in a process beside the run's own: thinking in a thread of it would take turns with the search."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable

from fsr.contract.model import Contract
from fsr.lifting.elsewhere import LiftRequest
from fsr.lifting.found import Lifting
from fsr.records import Candidate
from fsr.workers.local import local_workers
from fsr.workers.protocol import Task, WorkerFault

_TASK = "fsr.lifting.elsewhere:lift_task"
_TICK_S = 0.1
_AT_MOST = 3.0  # times what it may think, by the clock: it has no processor of its own
_STARTS_S = 20.0
_FEWEST_CORES = 4


def has_cores_to_spare() -> bool:
    """Whether this process may use cores enough that one more process slows nobody down."""
    return len(os.sched_getaffinity(0)) >= _FEWEST_CORES


def lift_beside(
    contract: Contract, candidate: Candidate, *, limit_s: float, compile_s: float, stopped: Callable[[], bool]
) -> Lifting:
    """As :func:`fsr.lifting.lift.lift`, in another process of this machine, which ends when it is ``stopped``."""
    request = LiftRequest(contract, candidate, limit_s, compile_s)
    with local_workers(1, 0) as workers:
        workers.submit("compile", Task(_TASK, request, _AT_MOST * limit_s + compile_s + _STARTS_S))
        while not stopped():
            for done in workers.wait(_TICK_S):
                if isinstance(done.result, WorkerFault):
                    raise RuntimeError(done.result.detail.strip().splitlines()[-1])
                found = pickle.loads(done.result)
                assert isinstance(found, Lifting)
                return found
    return Lifting(None, "it was stopped")
