"""``fsr doctor``: every line says what was tried, what is missing comes with a fix."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from fsr.backends.backend import BROKEN, MISSING, NOTE, OK, Finding
from fsr.backends.cuda import nvcc, nvrtc
from fsr.backends.cuda import probe as cuda_probe
from fsr.backends.cuda.gpus import driver_gpus
from fsr.backends.host import probe as host_probe
from fsr.cli import main, probe
from fsr.errors import MissingToolError
from fsr.sandbox.confine import Support, support
from tests.nvidia import FakeDriver, use_driver


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
    Finding("host device", OK, "clang, a kernel ran", "", "host device"),
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
    for launches, devices in ((True, ["cuda:0", "host device"]), (False, ["host device"])):
        lines = [*cuda_probe._gpu_lines(["NVIDIA H200"], launches), *SCRIPTED[1:]]
        monkeypatch.setattr(probe, "probe", lambda lines=lines: iter(lines))
        assert json.loads(run_doctor(capsys, "--json")[1])["devices"] == devices


def test_compilers_that_are_missing_or_fail_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(nvrtc, "find_nvrtc", lambda: None)
        patch.setattr(nvcc, "find_nvcc", lambda: None)
        for kind in ("nvrtc", "nvcc"):
            finding = cuda_probe._compiler(kind, "install it")
            assert (finding.state, finding.fix) == (MISSING, "install it")
    monkeypatch.setattr(nvrtc, "cuda_include_dirs", lambda: ())
    try:
        nvrtc.NvrtcToolchain()
    except MissingToolError:
        return
    finding = cuda_probe._compiler("nvrtc", "install it")
    assert finding.state == BROKEN, "its headers are missing"
    assert "CUDA_HOME" in finding.fix


@pytest.mark.parametrize(("landlock", "seccomp"), [(0, True), (5, False), (0, False)])
def test_a_kernel_that_cannot_contain_code_is_told(
    monkeypatch: pytest.MonkeyPatch, landlock: int, seccomp: bool
) -> None:
    monkeypatch.setattr(probe, "support", lambda: Support(landlock, seccomp))
    found = {f.what: f for f in probe._sandbox()}
    assert (found["landlock"].state == OK, found["seccomp"].state == OK) == (bool(landlock), seccomp)
    assert "sandbox" not in found
    assert all("not run on the CPU" in f.fix for f in found.values() if f.state == MISSING)


def test_containment_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    if support().complete:
        assert {f.what: f.state for f in probe._sandbox()}["sandbox"] == OK
    monkeypatch.setattr(probe, "support", lambda: Support(7, True))
    monkeypatch.setattr(probe, "confined", lambda command, **_: command)  # nothing is confined
    assert {f.what: f.state for f in probe._sandbox()}["sandbox"] == BROKEN


def test_the_command_runs_from_a_shell() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fsr", "doctor", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "--json" in done.stdout


def test_gpus_are_listed_by_name_with_the_drivers_version(monkeypatch: pytest.MonkeyPatch) -> None:
    use_driver(monkeypatch, FakeDriver("NVIDIA H200", "NVIDIA L4"))
    gpus = [gpu.name for gpu in driver_gpus()]
    assert cuda_probe._driver(gpus) == Finding("driver", OK, "CUDA 13.1")
    assert [(f.what, f.detail) for f in cuda_probe._gpu_lines(gpus, True)] == [
        ("gpu cuda:0", "NVIDIA H200"),
        ("gpu cuda:1", "NVIDIA L4"),
    ]


def test_a_driver_that_does_not_start_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    use_driver(monkeypatch, FakeDriver("NVIDIA H200", init=100))
    assert driver_gpus() == ()
    finding = cuda_probe._driver([])
    assert finding.state == BROKEN
    assert "nvidia-smi" in finding.fix


@pytest.mark.parametrize(
    ("script", "state"),
    [
        ("echo '========= ERROR SUMMARY: 0 errors'; echo 'sm__cycles_elapsed.max cycle 3000'", OK),
        ("echo 'Failed to initialize the profiler'", BROKEN),
        ("exit 1", BROKEN),
    ],
)
def test_tools_on_the_gpu_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, state: str) -> None:
    for name in ("compute-sanitizer", "ncu"):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(cuda_probe, "_write_kernel", lambda folder: ["true"])
    found = list(cuda_probe._gpu_tools(wanted=True))
    assert [(f.what, f.state) for f in found] == [("compute-sanitizer", state), ("ncu", state)]
    assert all(bool(f.fix) == (state == BROKEN) for f in found)

    def no_launch(folder: Path) -> list[str]:
        raise MissingToolError("no PyCUDA")

    monkeypatch.setattr(cuda_probe, "_write_kernel", no_launch)
    assert [f.state for f in cuda_probe._gpu_tools(wanted=True)] == [NOTE, NOTE]


def test_pycuda_is_missing_only_where_there_is_a_gpu() -> None:
    if importlib.util.find_spec("pycuda"):
        pytest.skip("PyCUDA is installed here")
    assert cuda_probe._pycuda(wanted=True).state == MISSING
    assert cuda_probe._pycuda(wanted=False).state == NOTE


def test_a_host_device_without_a_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_args: object) -> None:
        raise MissingToolError("no C++ compiler", fix="apt-get install clang-22")

    monkeypatch.setattr(host_probe, "HostToolchain", absent)
    finding = host_probe.host_device()
    assert (finding.state, finding.fix) == (MISSING, "apt-get install clang-22")


def test_the_kernel_that_tools_watch_is_written_for_the_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = SimpleNamespace(info=SimpleNamespace(arch="sm_90"), close=lambda: None)
    monkeypatch.setattr("fsr.backends.cuda.device.CudaDevice", lambda: gpu)
    try:
        command = cuda_probe._write_kernel(tmp_path)
    except MissingToolError as missing:
        pytest.skip(str(missing))
    assert command[-1] == str(tmp_path)
    assert (tmp_path / "image.cubin").read_bytes().startswith(b"\x7fELF")
