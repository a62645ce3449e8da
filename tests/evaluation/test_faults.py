"""What escaped a worker: whose fault it was."""

from __future__ import annotations

import errno

import pytest

from fsr.backends.protocol import DeviceFault
from fsr.errors import HarnessError, StorageError, UsageError
from fsr.evaluation.faults import outcome_of_fault
from fsr.records import Fault, FaultKind, Status

DETAIL = 'Traceback (most recent call last):\n  File "x.py", line 1'


def test_a_fault_of_the_device_is_the_candidates() -> None:
    told = outcome_of_fault("raised", DETAIL, DeviceFault(Fault(FaultKind.HANG, "late")), "tests", 1.0)
    assert (told.status, told.evidence["kind"]) == (Status.TIMED_OUT, FaultKind.HANG)


def test_what_the_machine_refused_is_told_without_a_traceback() -> None:
    with pytest.raises(StorageError, match="the machine refused: File too large") as told:
        outcome_of_fault("raised", DETAIL, OSError(errno.EFBIG, "File too large"), "tests", 1.0)
    assert "Traceback" not in str(told.value)
    with pytest.raises(StorageError, match="not enough memory"):
        outcome_of_fault("raised", DETAIL, MemoryError(), "tests", 1.0)


def test_the_users_error_passes_and_any_other_is_a_fault_of_fsr() -> None:
    with pytest.raises(UsageError, match="no kernel"):
        outcome_of_fault("raised", DETAIL, UsageError("no kernel"), "tests", 1.0)
    with pytest.raises(HarnessError, match="a worker raised"):
        outcome_of_fault("raised", DETAIL, KeyError("x"), "tests", 1.0)
