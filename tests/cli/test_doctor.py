"""``fsr doctor``: every line says what was tried, what is missing comes with a fix."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys

import pytest

from fsr.cli import main, probe
from fsr.cli.probe import BROKEN, MISSING, NOTE, OK, Finding
from fsr.errors import MissingToolError
from fsr.toolchains import nvcc, nvrtc


def run_doctor(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main.run(["doctor", *options])
    assert isinstance(ended.value.code, int)
    return ended.value.code, capsys.readouterr().out


def test_this_machine_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, output = run_doctor(capsys, "--json")
    report = json.loads(output)
    found = {finding["what"]: finding for finding in report["findings"]}
    assert code == (0 if report["healthy"] else 1)
    assert {"driver", "nvrtc", "nvcc", "pycuda", "compute-sanitizer", "ncu", "host device", "ray"} <= set(found)
    assert all(finding["fix"] for finding in found.values() if finding["state"] in (MISSING, BROKEN))
    if found["host device"]["state"] == OK:
        assert "host device" in report["devices"]


SCRIPTED = [
    Finding("driver", MISSING, "no library", "install the driver"),
    Finding("nvrtc", OK, "nvrtc 13.0"),
    Finding("host device", OK, "clang, a kernel ran", ""),
    Finding("ray", NOTE, "not installed", "pip install ray"),
]


def test_lines_carry_state_and_fix(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(probe, "probe", lambda: iter(SCRIPTED))
    code, output = run_doctor(capsys)
    lines = output.splitlines()
    assert code == 0
    assert lines[0].split() == ["missing", "driver", "no", "library"]
    assert lines[1].strip() == "install the driver"
    assert lines[-1] == "devices: host device"


@pytest.mark.parametrize(
    ("changed", "devices"),
    [
        (Finding("nvrtc", BROKEN, "does not load", "x"), "host device"),
        (Finding("host device", MISSING, "", "x"), "none"),
    ],
)
def test_something_broken_or_no_device_at_all_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], changed: Finding, devices: str
) -> None:
    monkeypatch.setattr(probe, "probe", lambda: iter([*(f for f in SCRIPTED if f.what != changed.what), changed]))
    code, output = run_doctor(capsys)
    assert code == 1
    assert output.splitlines()[-1].startswith(f"devices: {devices}")


def test_a_gpu_counts_as_a_device_only_with_what_launches_on_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu = [Finding("driver", OK, "CUDA 13.0"), Finding("gpu cuda:0", OK, "NVIDIA H200")]
    for state, devices in ((OK, ["host device", "cuda:0"]), (MISSING, ["host device"])):
        lines = [*gpu, *SCRIPTED[1:], Finding("pycuda", state, "", "x")]
        monkeypatch.setattr(probe, "probe", lambda lines=lines: iter(lines))
        assert json.loads(run_doctor(capsys, "--json")[1])["devices"] == devices


def test_compilers_that_are_missing_or_fail_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> None:
        raise MissingToolError("NVRTC cannot be loaded")

    with monkeypatch.context() as patch:
        patch.setattr(nvrtc, "_load_nvrtc", absent)
        patch.setattr(nvcc, "find_nvcc", lambda: None)
        for kind in ("nvrtc", "nvcc"):
            finding = probe._compiler(kind, "install it")
            assert (finding.state, finding.fix) == (MISSING, "install it")
    monkeypatch.setattr(nvrtc, "cuda_include_dirs", lambda: ())
    try:
        nvrtc.NvrtcToolchain()
    except MissingToolError:
        return
    finding = probe._compiler("nvrtc", "install it")
    assert finding.state == BROKEN, "its headers are missing"
    assert "CUDA_HOME" in finding.fix


def test_landlock_and_seccomp_are_read_from_the_kernel() -> None:
    assert 0 <= probe.landlock_abi() < 100
    assert isinstance(probe.seccomp_available(), bool)
    assert os.name == "posix"
    assert ctypes.CDLL(None)


def test_the_command_runs_from_a_shell() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fsr", "doctor", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "--json" in done.stdout
