"""The original in float64 is asked again for less, where one answer took too long."""

from __future__ import annotations

import pytest

from fsr.backends.protocol import DeviceFault
from fsr.contract.model import Argument, Contract, Size
from fsr.evaluation import widened
from fsr.evaluation.spec import SessionSpec
from fsr.evaluation.testing import Runnable
from fsr.evaluation.widened import LESS, SOON_S, Widened
from fsr.records import Candidate, Case, Fault, FaultKind, Launch, Plan, Role
from fsr.testgen.values import CaseData

PLAN = Plan((Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", ("x",)),))
CONTRACT = Contract("k", (Size("n", 1, 1 << 20, (1 << 20,)),), (Argument("x", "float32", Role.INOUT, ("n",)),), PLAN)


class Host:
    """No GPU: it has no judge."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes that the host device ran; beyond 1000 elements it does not end."""
    found: list[int] = []

    def run_once(_what: object, case: Case, *_: object) -> dict[str, object]:
        found.append(case.size_map()["n"])
        if found[-1] > 1000:
            raise DeviceFault(Fault(FaultKind.HANG, "late"))
        return {"x": found[-1]}

    monkeypatch.setattr(widened, "run_once", run_once)
    monkeypatch.setattr(widened, "can_judge", lambda _: False)
    monkeypatch.setattr(Widened, "on_host", lambda self, *, noisy: (self.spec.baseline, b""))
    return found


def test_less_is_asked_for_after_an_answer_that_took_too_long(asked: list[int]) -> None:
    spec = SessionSpec(CONTRACT, Candidate("", PLAN), "host", "sm_90", 1, "")
    form = Widened(spec, Host(), Host, lambda: Case("smoke", (("n", 1),), "normal", 0))  # type: ignore[arg-type]

    def answer(n: int) -> object:
        return form.answer(Case("c", (("n", n),), "normal", 0), CaseData({}, {}), noisy=False)

    assert answer(900) is not None
    assert answer(4000) is None
    assert answer(4000 // LESS) is not None  # as much as is worth a try
    assert answer(4000 // LESS + 1) is None
    assert asked == [900, 4000, 4000 // LESS]


class Gpu(Host):
    """It has a judge."""


@pytest.mark.parametrize(("took_s", "second"), [(SOON_S / 2, Host), (SOON_S * 2, Gpu)])
def test_what_takes_the_host_device_long_is_a_gpus(
    monkeypatch: pytest.MonkeyPatch, took_s: float, second: type
) -> None:
    ran: list[type] = []
    clock = [0.0]

    def run_once(what: Runnable, *_: object) -> dict[str, object]:
        ran.append(type(what.device))
        clock[0] += took_s
        return {}

    monkeypatch.setattr(widened, "run_once", run_once)
    monkeypatch.setattr(widened.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(widened, "can_judge", lambda device: isinstance(device, Gpu))
    for form in ("on_host", "on_device"):
        monkeypatch.setattr(Widened, form, lambda self, *, noisy=False: (self.spec.baseline, b""))
    monkeypatch.setattr(Widened, "_stands", lambda self, noisy: True)
    spec = SessionSpec(CONTRACT, Candidate("", PLAN), "cuda:0", "sm_90", 1, "")
    form = Widened(spec, Gpu(), Host, lambda: Case("smoke", (("n", 1),), "normal", 0))  # type: ignore[arg-type]
    for n in (900, 900, 1):
        form.answer(Case("c", (("n", n),), "normal", 0), CaseData({}, {}), noisy=False)
    assert ran == [Host, second, Host]
