"""A machine without room for a test's buffers is told as that, and not as a fault of fsr or of the kernel."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fsr.backends.protocol import DeviceFault
from fsr.errors import BaselineError
from fsr.evaluation.jobs import _untimed
from fsr.evaluation.qualify import _answered
from fsr.records import Case, Fault, FaultKind

CASE = Case("n=5 normal", (("n", 5),), "normal", 1)


class Full:
    """A session whose device answers with a fault."""

    def __init__(self, kind: FaultKind) -> None:
        self._kind, self.original = kind, self

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


@pytest.mark.parametrize(
    ("kind", "predicted", "words"),
    [
        (FaultKind.MEMORY, True, ("do not fit this device", "lower the timed sizes")),
        (FaultKind.HANG, True, ("take too long here", "time it on a GPU")),
        (FaultKind.HANG, False, ("take too long here", "lower the timed sizes in the contract")),
    ],
)
def test_sizes_that_cannot_be_timed_are_no_fault_of_the_kernel(
    kind: FaultKind, predicted: bool, words: tuple[str, ...]
) -> None:
    contract = SimpleNamespace(timed_sizes=lambda: [{"n": 4096}])
    session: Any = SimpleNamespace(contract=contract, spec=SimpleNamespace(predicted=predicted))
    told = str(_untimed(session, Fault(kind, "k did not end within 20 s")))
    assert "did not end within 20 s" in told
    assert "{'n': 4096}" in told
    assert "fails its own tests" not in told
    assert all(word in told for word in words)
