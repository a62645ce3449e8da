"""A machine without room for a test's buffers is told as that, and not as a fault of fsr or of the kernel."""

from __future__ import annotations

import pytest

from fsr.backends.protocol import DeviceFault
from fsr.errors import BaselineError
from fsr.evaluation.qualify import _answered
from fsr.records import Case, Fault, FaultKind

CASE = Case("n=5 normal", (("n", 5),), "normal", 1)


class Full:
    """A session whose device answers with a fault."""

    def __init__(self, kind: FaultKind) -> None:
        self._kind = kind

    def expected(self, case: Case) -> None:
        raise DeviceFault(Fault(self._kind, "the buffers do not fit: File too large"))


def test_it_says_which_case_and_what_to_do() -> None:
    with pytest.raises(BaselineError, match=r"does not fit this machine.*File too large") as told:
        _answered(Full(FaultKind.MEMORY), CASE)  # type: ignore[arg-type]
    assert CASE.name in str(told.value)
    assert "ulimit" in str(told.value)


def test_other_faults_are_left_as_they_are() -> None:
    with pytest.raises(DeviceFault):
        _answered(Full(FaultKind.HANG), CASE)  # type: ignore[arg-type]
