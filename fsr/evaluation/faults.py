"""From what happened to a worker to what is told of the candidate."""

from __future__ import annotations

from fsr.backends.protocol import DeviceFault
from fsr.errors import FsrError, HarnessError, of_the_machine
from fsr.records import FaultKind, Outcome, Status


class OriginalFails(Exception):  # noqa: N818
    """The original itself fails on a case of the largest sizes that its contract allows: it says nothing of any
    candidate there. ``elements``: of all buffers; ``where``: the sizes; ``detail``: how it failed."""

    fatal = True  # the process has lost its device with it

    def __init__(self, elements: int, where: str, detail: str) -> None:
        super().__init__(elements, where, detail)
        self.elements, self.where, self.detail = elements, where, detail

    def __str__(self) -> str:
        return (
            f"the original itself fails at {self.where}: {self.detail}; sizes as large are not tested: "
            "the contract should not allow them"
        )


def outcome_of_fault(kind: str, detail: str, error: BaseException | None, stage: str, seconds: float) -> Outcome:
    """The outcome of a task whose worker crashed, ran out of time or let an exception escape.

    ``kind``: 'crashed', 'timed_out' or 'raised'. Raises the error itself when it is fsr's own or the user's (FsrError),
    what the machine refused as that, and HarnessError for any other exception: only candidates may fail quietly.
    OriginalFails passes too."""
    if isinstance(error, OriginalFails):
        raise error
    if kind == "raised":
        if isinstance(error, DeviceFault):
            status = Status.TIMED_OUT if error.fault.kind == FaultKind.HANG else Status.CRASHED
            evidence = {"kind": error.fault.kind, "detail": error.fault.detail, "line": error.fault.line}
            return Outcome(status, stage, evidence=evidence, seconds=seconds)
        if isinstance(error, FsrError):
            raise error
        if isinstance(error, OSError | MemoryError):  # a full disk, a limit: nobody's fault here
            raise of_the_machine(error)
        raise HarnessError(f"a worker raised:\n{detail}", fix="run again with --debug and report it")
    status = Status.TIMED_OUT if kind == "timed_out" else Status.CRASHED
    return Outcome(status, stage, evidence={"kind": kind, "detail": detail}, seconds=seconds)
