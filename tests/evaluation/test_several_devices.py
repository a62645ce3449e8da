"""Where several devices judge candidates, the others get ready while one qualifies the original."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from fsr.contract.load import load_contract
from fsr.errors import BaselineError
from fsr.evaluation.jobs import prepare_task
from fsr.evaluation.session import close_sessions, session_of
from fsr.evaluation.spec import SessionSpec
from fsr.records import Candidate, Case
from fsr.runs.baseline import TRIES, qualify
from fsr.runs.kernel import load_kernel
from fsr.testgen.values import CaseData
from fsr.workers.protocol import Completion, Task, WorkerFault

EXAMPLE = Path(__file__).parents[2] / "examples" / "saxpy.cu"


@pytest.fixture
def spec() -> SessionSpec:
    contract = load_contract(EXAMPLE)
    return SessionSpec(contract, Candidate(EXAMPLE.read_text(), contract.plan), "host", "sm_90", 0)


@dataclass
class Fleet:
    """Some devices, on which whatever is begun last ends first, and nothing ends well."""

    devices: int
    given: list[Task] = field(default_factory=list)

    def size(self, pool: str) -> int:
        return self.devices if pool == "device" else 1

    def submit(self, pool: str, task: Task) -> int:
        assert pool == "device"
        self.given.append(task)
        return len(self.given)

    def wait(self, timeout_s: float) -> list[Completion]:
        fault = WorkerFault("crashed", "it does not run")
        return [Completion(ticket, fault, 0, 0.1) for ticket in range(len(self.given), 0, -1)]


@pytest.mark.parametrize(("device", "devices", "others"), [("cuda", 1, 0), ("cuda", 4, 3), ("host", 2, 0)])
def test_each_gpu_is_given_something_to_do(spec: SessionSpec, device: str, devices: int, others: int) -> None:
    fleet = Fleet(devices)
    with pytest.raises(BaselineError, match="it does not run"):
        qualify(fleet, replace(spec, device=device), load_kernel(EXAMPLE), lambda: None)  # type: ignore[arg-type]
    asked = Counter(task.function.split(":")[1] for task in fleet.given)
    assert asked == Counter(baseline_task=TRIES, prepare_task=others)


def test_a_device_that_is_ready_has_the_answers_of_the_original(
    spec: SessionSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        prepare_task(spec)
        session = session_of(spec)

        def run(data: CaseData, *_: object) -> None:
            raise AssertionError("the original was asked again")

        monkeypatch.setattr(session.original, "_run", run)
        cases: list[Case] = [spec.smoke_case(), *session.search_cases()]
        assert all(session.original.expected(case).arrays for case in cases)
    finally:
        close_sessions()
