"""A sample of benchmarks/concurrent_lookups.py: nothing is torn while a writer publishes, and tearing would be seen."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    return import_module("concurrent_lookups")


def test_processes_that_look_up_read_whole_winners(script: Any, tmp_path: Path) -> None:
    told = script.measured(tmp_path, processes=6, seconds=1.0)
    assert (told["errors"], told["torn"], told["all_looked"]) == (0, 0, True), told
    assert told["publications"] > 1


def test_tearing_would_be_seen(script: Any) -> None:
    one, two = script.numbered(1), script.numbered(2)
    assert script.whole(one.values(), both=True)
    assert not script.whole([one["softmax.fsr.cu"], two["softmax.fsr.cuh"]], both=True)
    torn = one["softmax.fsr.cu"][:2000] + two["softmax.fsr.cu"][2000:]
    assert not script.whole([torn, torn], both=False)
    assert not script.whole([one["softmax.fsr.cu"][:2000]], both=False)
