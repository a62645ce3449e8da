"""From what happened to a worker to what is told of the candidate."""

from __future__ import annotations

from fsr.backends.protocol import DeviceFault
from fsr.errors import FsrError, HarnessError
from fsr.records import FaultKind, Outcome, Status


def outcome_of_fault(kind: str, detail: str, error: BaseException | None, stage: str, seconds: float) -> Outcome:
    """The outcome of a task whose worker crashed, ran out of time or let an exception escape.

    ``kind``: 'crashed', 'timed_out' or 'raised'. Raises the error itself when it is fsr's own or the user's
    (FsrError), and HarnessError for any other exception: only candidates may fail quietly."""
    if kind == "raised":
        if isinstance(error, DeviceFault):
            status = Status.TIMED_OUT if error.fault.kind == FaultKind.HANG else Status.CRASHED
            evidence = {"kind": error.fault.kind, "detail": error.fault.detail, "line": error.fault.line}
            return Outcome(status, stage, evidence=evidence, seconds=seconds)
        if isinstance(error, FsrError):
            raise error
        raise HarnessError(f"a worker raised:\n{detail}", fix="run again with --debug and report it")
    status = Status.TIMED_OUT if kind == "timed_out" else Status.CRASHED
    return Outcome(status, stage, evidence={"kind": kind, "detail": detail}, seconds=seconds)
