"""The side of the kernels on the host device, which is given a clock."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fsr.backends.select import open_device
from fsr.bench import exchange
from fsr.bench.kernels import Kernels, KernelsAsked
from fsr.evaluation import session


@pytest.fixture
def clocked(monkeypatch: pytest.MonkeyPatch):
    """The host device says that it is timed; its plans take 5 ns."""

    def opened(spec):
        device = open_device(spec)
        prepare = device.prepare

        def timed(*arguments):
            prepared = prepare(*arguments)
            prepared.time_ns = lambda: 5.0
            return prepared

        device.prepare, device.timed, device.copy_bandwidth = timed, True, lambda: 1e12
        return device

    monkeypatch.setattr(session, "open_device", opened)


@pytest.mark.usefixtures("clocked")
def test_contenders_are_timed_in_turn_and_their_answers_compared(suite_folder: Path, tmp_path: Path):
    kernel = suite_folder / "maps" / "twice.cu"
    other = tmp_path / "other.cu"
    other.write_text(kernel.read_text().replace("2.0f * x[i]", "x[i] + x[i]"))
    wrong = tmp_path / "wrong.cu"
    wrong.write_text(kernel.read_text().replace("2.0f * x[i]", "3.0f * x[i]"))
    asked = KernelsAsked(kernel, {"winner": other, "wrong": wrong}, "host", folder=tmp_path / "exchange")
    kernels = Kernels(asked)
    try:
        facts = kernels.facts()
        assert kernels.sample(0) == {"naive": 5.0, "winner": 5.0, "wrong": 5.0}
        assert next(iter(kernels.sample(1))) == "winner"
    finally:
        kernels.close()
    assert facts["apart"]["winner"] == {"y": 0.0}
    assert facts["apart"]["wrong"]["y"] == pytest.approx(0.5)
    assert facts["sizes"] == {"n": 2048}
    given, answered = (exchange.take(tmp_path / "exchange" / name) for name in ("given", "answered"))
    assert list(given) == ["x"]
    assert np.array_equal(answered["y"], 2 * given["x"])
