"""compute-sanitizer's report as faults, and the replay it watches, without a GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fsr.backends.cuda import sanitizer
from fsr.backends.protocol import Buffer
from fsr.errors import HarnessError
from fsr.records import ConcreteLaunch, Image, Resources, Role, ScalarValue

HEAD = "========= COMPUTE-SANITIZER\n"
MEMCHECK = HEAD + "".join(
    f"""========= Invalid __global__ write of size 4 bytes
=========     at shift(float *, int)+0xa0 in candidate.cu:3
=========     by thread ({thread},0,0) in block (1,0,0)
=========     Access at 0x7f3c2a000{thread}00 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f3c2a000000 of size 256 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: [0x2f8d0f] in libcuda.so.1
=========
"""
    for thread in range(3)
) + (
    '========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch failure" on CUDA API call '
    "to cuCtxSynchronize.\n========= ERROR SUMMARY: 4 errors\n"
)  # fmt: skip
RACECHECK = (
    HEAD
    + """========= Error: Race reported between Write access at reverse(float *)+0xc0 in candidate.cu:4
=========     and Read access at reverse(float *)+0xf0 in candidate.cu:5 [1984 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
)
INITCHECK = (
    HEAD
    + """========= Uninitialized __global__ memory read of size 4 bytes
=========     at k(float *)+0x40 in /tmp/x/candidate.cu:9
=========     by thread (0,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 1 error
"""
)
SYNCCHECK = (
    HEAD
    + """========= Barrier error detected. Divergent thread(s) in block.
=========     at k(float *)+0x90 in candidate.cu:7
=========     by thread (0,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 32 errors
"""
)
CLEAN = HEAD + "========= ERROR SUMMARY: 0 errors\n"


@pytest.mark.parametrize(
    ("tool", "text", "found"),
    [
        ("memcheck", MEMCHECK, [("out-of-bounds", 3), ("crash", None)]),
        ("racecheck", RACECHECK, [("race", 4)]),
        ("initcheck", INITCHECK, [("uninitialised", 9)]),
        ("synccheck", SYNCCHECK, [("divergent-barrier", 7)]),
    ],
)
def test_each_tools_report_gives_faults_with_their_lines(tool: str, text: str, found: list) -> None:
    report = sanitizer.read_report(tool, text, 77)
    assert [(fault.kind, fault.line) for fault in report.faults] == found
    assert report.available
    assert not report.silent


def test_a_fault_says_where_and_which_thread() -> None:
    fault = sanitizer.parse_faults(MEMCHECK)[0]
    assert "thread (0,0,0) in block (1,0,0)" in fault.detail
    assert "out of bounds" in fault.detail


def test_a_clean_report_is_silent() -> None:
    assert sanitizer.read_report("memcheck", CLEAN, 0).silent


def test_a_device_the_tool_does_not_support_is_neither_clean_nor_guilty() -> None:
    report = sanitizer.read_report("memcheck", "========= Error: Device not supported\n", 1)
    assert not report.available
    assert not report.silent
    assert "Device not supported" in report.note


def test_errors_it_cannot_read_are_still_faults_and_a_failed_replay_is_not_the_candidates() -> None:
    assert sanitizer.read_report("memcheck", HEAD + "========= Something new\n", 77).faults[0].kind == "sanitizer"
    with pytest.raises(HarnessError, match="ended with 1"):
        sanitizer.read_report("memcheck", "ModuleNotFoundError: no module\n", 1)


IMAGE = Image("cubin", "sm_90", b"fake", {"copy": "copy", "scale": "scale"}, {"copy": Resources()})
LAUNCHES = [
    ConcreteLaunch("copy", (1, 1, 1), (32, 1, 1), 0, ("x", "file", ScalarValue("int32", 8))),
    ConcreteLaunch("scale", (1, 1, 1), (32, 1, 1), 0, ("file", ScalarValue("float32", 2.5), ScalarValue("int32", 8))),
]
BUFFERS = [
    Buffer("x", np.arange(8, dtype=np.float32), Role.IN),
    Buffer("file", np.full(8, np.nan, np.float32), Role.OUT),
    Buffer("s", np.ones(4), None, zeroed=True),
]


def test_without_the_program_every_tool_is_told_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitizer, "find_sanitizer", lambda: None)
    reports = sanitizer.sanitize(IMAGE, LAUNCHES, BUFFERS)
    assert [(report.tool, report.available) for report in reports] == [(tool, False) for tool in sanitizer.TOOLS]
    assert "not installed" in reports[0].note


@pytest.mark.parametrize(
    ("script", "check"),
    [
        ("cat > /dev/null; echo '========= ERROR SUMMARY: 0 errors'", lambda report: report.silent),
        ("sleep 60", lambda report: [fault.kind for fault in report.faults] == ["hang"]),
    ],
)
def test_the_program_is_run_for_each_tool_and_stopped_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, check: object
) -> None:
    program = tmp_path / "compute-sanitizer"
    program.write_text(f"#!/bin/sh\n{script} < /dev/null\n")
    program.chmod(0o755)
    monkeypatch.setattr(sanitizer, "find_sanitizer", lambda: str(program))
    reports = sanitizer.sanitize(
        IMAGE, LAUNCHES, BUFFERS, tools=("memcheck", "racecheck"), timeout_s=1.0 if "sleep" in script else 120.0
    )
    assert [report.tool for report in reports] == ["memcheck", "racecheck"]
    assert all(check(report) for report in reports)  # type: ignore[operator]
