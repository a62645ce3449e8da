"""Lifting as a task for another process: as bytes, since pickling on the way would not go as deep as what is found."""

from __future__ import annotations

import pickle
import sys
import threading
from dataclasses import dataclass

from fsr.contract.model import Contract
from fsr.lifting.found import Lifting
from fsr.lifting.lift import lift
from fsr.records import Candidate

_STACK = 256 << 20  # bytes
_DEEP = 100_000


@dataclass(frozen=True, slots=True)
class LiftRequest:
    """What to lift, and for how long; see :func:`fsr.lifting.lift.lift`."""

    contract: Contract
    candidate: Candidate
    limit_s: float
    compile_s: float


def lift_task(request: LiftRequest) -> bytes:
    """The pickled lifting of a request."""
    found = lift(request.contract, request.candidate, limit_s=request.limit_s, compile_s=request.compile_s)
    answer = [pickle.dumps(Lifting(None, "what was found is nested too deep to be handed over", found.seconds))]

    def write() -> None:
        deep = sys.getrecursionlimit()
        sys.setrecursionlimit(_DEEP)
        try:
            answer.append(pickle.dumps(found))
        except RecursionError:
            pass
        finally:
            sys.setrecursionlimit(deep)

    usual = threading.stack_size(_STACK)
    try:
        writer = threading.Thread(target=write)
        writer.start()
    finally:
        threading.stack_size(usual)
    writer.join()
    return answer[-1]
