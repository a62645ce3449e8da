"""Tests that need an NVIDIA GPU: without one they are skipped, and the end of the run says that none ran and why."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fsr.errors import MissingToolError

HERE = Path(__file__).parent
CONFORMANCE = HERE.parent / "conformance"
for folder in (CONFORMANCE, HERE):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
pytest.register_assert_rewrite("device_conformance")

_state = {"collected": 0, "ran": 0, "reason": ""}


def missing() -> str:
    """Why the tests here cannot run; empty when they can."""
    from fsr.backends.cuda.compiler import cuda_toolchain
    from fsr.backends.cuda.pycuda_driver import load_pycuda

    try:
        if not load_pycuda().Device.count():
            return "no NVIDIA GPU is visible"
        cuda_toolchain()
    except MissingToolError as error:
        return error.what
    return ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mine = [item for item in items if HERE in item.path.parents]
    if not mine:
        return
    _state["collected"], _state["reason"] = len(mine), missing()
    for item in mine:
        item.add_marker(pytest.mark.gpu)
        if _state["reason"]:
            item.add_marker(pytest.mark.skip(reason=f"needs a GPU: {_state['reason']}"))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and "tests/gpu/" in report.nodeid and not report.skipped:
        _state["ran"] += 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _state["collected"] and not _state["ran"]:
        reason = _state["reason"] or "none was selected"
        terminalreporter.write_line(f"tests/gpu: nothing ran ({_state['collected']} tests): {reason}")


@pytest.fixture(scope="session")
def cuda() -> Iterator[object]:
    """The first GPU, for all tests of the session: those that lose a device open theirs in a child process."""
    from fsr.backends.cuda.device import CudaDevice

    device = CudaDevice(0)
    yield device
    device.close()
