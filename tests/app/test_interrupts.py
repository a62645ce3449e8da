"""An interrupt that Python forgets ends a run all the same."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from fsr.app import interrupts
from fsr.app.api import to_its_end
from fsr.runs.run import Stopped


class Finalized:
    """Presses Ctrl-C where nobody can be told."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):  # the handler runs between two of these
            pass


class StubRun:
    """A run that ends when it is stopped."""

    def __init__(self) -> None:
        self.stops: list[str] = []

    def start(self, since_s: float) -> None: ...

    def stop(self, why: str) -> None:
        self.stops.append(why)

    def wait(self, timeout_s: float) -> Any:
        if self.stops:
            raise Stopped("the run was stopped before its original was tested (Ctrl-C)")
        return None


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(interrupts, "_seen", 0)
    monkeypatch.setattr(sys, "unraisablehook", lambda told: None)
    interrupts.count_interrupts()
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("counted")
def test_an_interrupt_in_a_finalizer_stops_the_run() -> None:
    Finalized()
    gc.collect()
    assert interrupts.interrupts() == 1
    run = StubRun()
    with pytest.raises(KeyboardInterrupt):
        to_its_end(run)  # type: ignore[arg-type]
    assert run.stops == ["Ctrl-C"]


@pytest.mark.usefixtures("counted")
def test_somebody_elses_handler_stays() -> None:
    mine = signal.signal(signal.SIGINT, signal.SIG_IGN)
    interrupts.count_interrupts()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    signal.signal(signal.SIGINT, mine)
