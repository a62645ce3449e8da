"""What a kernel computes is found out beside the qualification of its original."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from fsr.lifting.lift import Lifting
from fsr.runs import restating
from fsr.runs.budget import Budget
from fsr.runs.kernel import Kernel, load_kernel
from tests.commandline import ROW_SUM


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    (tmp_path / "kernel.cu").write_text(ROW_SUM)
    return load_kernel(tmp_path / "kernel.cu", None)


def test_it_goes_on_beside_the_caller_who_waits_for_it_ticking(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    ticked = threading.Event()

    def slowly(*_: object, **__: object) -> Lifting:
        ticked.wait(60)
        return Lifting(None, "it sorts")

    monkeypatch.setattr(restating, "lift", slowly)
    found = restating.Restating(kernel, Budget(300.0))
    notes: list[str] = []
    assert found.computation(ticked.set, notes) is None
    assert notes == ["what it computes is not known: it sorts"]


def test_one_that_takes_too_long_is_not_waited_for(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, ended = [0.0], threading.Event()
    monkeypatch.setattr(restating, "lift", lambda *_, **__: ended.wait(60))
    found = restating.Restating(kernel, Budget(100.0, clock=lambda: clock[0]))

    def tick() -> None:
        clock[0] += 5.0

    notes: list[str] = []
    assert found.computation(tick, notes) is None
    assert notes == ["what it computes is not known: finding it out took too long"]
    assert clock[0] <= 30.0
    ended.set()


def test_a_run_that_is_too_short_does_without(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restating, "lift", lambda *_, **__: pytest.fail("asked"))
    assert restating.Restating(kernel, Budget(3.0)).computation(lambda: None, []) is None
