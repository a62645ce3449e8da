"""A command line in a home of its own, and a kernel small enough for a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commandline import ROW_SUM, Fsr


@pytest.fixture
def fsr(tmp_path: Path) -> Fsr:
    return Fsr(tmp_path / "home")


@pytest.fixture
def row_sum(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.cu"
    path.write_text(ROW_SUM)
    return path
