"""A command line in a home of its own, and a kernel small enough for a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.cli.main import run
from tests.commandline import ROW_SUM, Command, Fsr, Told


@pytest.fixture
def fsr(tmp_path: Path) -> Fsr:
    return Fsr(tmp_path / "home")


@pytest.fixture
def row_sum(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.cu"
    path.write_text(ROW_SUM)
    return path


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """The command line in this process, with a home of its own."""
    monkeypatch.setenv("FSR_HOME", str(tmp_path / "home"))

    def call(*arguments: object) -> Told:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            run([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return Told(ended.value.code, out, err)

    return call
