"""What works on this machine, found by trying it: the lines of ``fsr doctor``."""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fsr.backends.cuda.gpus import driver_gpus, driver_library
from fsr.backends.cuda.sanitizer import find_sanitizer
from fsr.errors import FsrError, HarnessError, MissingToolError
from fsr.records import Candidate, CompileFailure, Launch, Plan
from fsr.sandbox.confine import FIX, support
from fsr.sandbox.launch import confined

OK, MISSING, BROKEN, NOTE = "ok", "missing", "broken", "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line. ``state``: 'ok'; 'missing' (can be installed); 'broken' (there, and fails when used); 'note' (not
    needed for what this machine can do)."""

    what: str
    state: str
    detail: str
    fix: str = ""


def probe() -> Iterator[Finding]:
    """All findings, in the order of the way of a kernel; takes a few seconds, most of it compiling."""
    yield Finding("python", OK, f"{platform.python_version()} at {sys.executable}")
    gpus = [gpu.name for gpu in driver_gpus()]
    yield _driver(gpus)
    yield from _gpu_lines(gpus)
    yield _compiler("nvrtc", "pip install 'fsr[nvrtc]'")
    yield _compiler("nvcc", "install the CUDA toolkit (needed only where NVRTC is missing)")
    yield _pycuda(bool(gpus))
    yield from _gpu_tools(bool(gpus))
    yield _host_device()
    yield from _sandbox()
    yield _ray()


def _driver(gpus: list[str]) -> Finding:
    fix = "install NVIDIA's driver; without a GPU fsr verifies on the host device and predicts times"
    library = driver_library()
    if library is None:
        return Finding("driver", MISSING, "no NVIDIA driver library (libcuda.so.1)", fix)
    version = ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(version))
    text = f"CUDA {version.value // 1000}.{version.value % 1000 // 10}"
    if not gpus:
        return Finding("driver", BROKEN, f"{text}, but no GPU can be used", "check nvidia-smi and the container's GPUs")
    return Finding("driver", OK, text)


def _gpu_lines(gpus: list[str]) -> Iterator[Finding]:
    if not gpus:
        yield Finding("gpu", MISSING, "none", "run fsr where a GPU is, or use --device host")
    for index, name in enumerate(gpus):
        yield Finding(f"gpu cuda:{index}", OK, name)


def _candidate(source: str) -> Candidate:
    """One kernel ``k``."""
    one = ("1", "1", "1")
    return Candidate(source, Plan((Launch("k", one, one, "0", ()),)))


def _compiler(kind: str, fix: str) -> Finding:
    """A CUDA compiler, by compiling a small kernel."""
    from fsr.backends.cuda.nvcc import NvccToolchain
    from fsr.backends.cuda.nvrtc import NvrtcToolchain

    candidate = _candidate("#include <cuda_fp16.h>\n__global__ void k(__half* x) { x[0] = __float2half(1.0f); }")
    try:
        toolchain = NvrtcToolchain() if kind == "nvrtc" else NvccToolchain()
        answer = toolchain.compile(candidate)
    except MissingToolError as error:
        return Finding(kind, MISSING, error.what, fix)
    if isinstance(answer, CompileFailure):
        headers = "set CUDA_HOME to a toolkit with its headers, or pip install nvidia-cuda-runtime"
        return Finding(kind, BROKEN, f"{toolchain.version}: {answer.log.splitlines()[0]}", headers)
    return Finding(kind, OK, f"{toolchain.version}, a kernel in {answer.compile_s:.2f} s")


def _pycuda(wanted: bool) -> Finding:
    fix = "pip install 'fsr[cuda]' (builds with the CUDA toolkit's headers, about two minutes)"
    if importlib.util.find_spec("pycuda") is None:
        return Finding("pycuda", MISSING if wanted else NOTE, "not installed; it launches on NVIDIA GPUs", fix)
    from fsr.backends.cuda.pycuda_driver import load_pycuda

    try:
        load_pycuda()
    except MissingToolError as error:
        return Finding("pycuda", BROKEN if wanted else NOTE, error.what, error.fix)
    return Finding("pycuda", OK, importlib.metadata.version("pycuda"))


def _gpu_tools(wanted: bool) -> Iterator[Finding]:
    """compute-sanitizer and ncu, each over one small kernel: both depend on what the GPU's host allows."""
    with tempfile.TemporaryDirectory(prefix="fsr-doctor-") as folder:
        try:
            replay = _write_kernel(Path(folder)) if wanted else []
        except FsrError:
            replay = []
        for name, program, options, sign, lost in (
            ("compute-sanitizer", find_sanitizer(), ["--tool=memcheck"], "ERROR SUMMARY: 0", "wins are not sanitized"),
            ("ncu", shutil.which("ncu") or shutil.which("ncu", path="/usr/local/cuda/bin"),
             ["--clock-control", "none", "--metrics", "sm__cycles_elapsed.max"], "sm__cycles_elapsed", "no counters"),
        ):  # fmt: skip
            if program is None:
                yield Finding(name, MISSING if wanted else NOTE, "not found", f"CUDA toolkit; without it: {lost}")
            elif not replay:
                yield Finding(name, NOTE, f"{program}, not tried: no kernel can be launched here")
            else:
                answer = _answer([program, *options, *replay])
                fix = "" if sign in answer else f"the GPU's host must allow profiling and debugging; until then: {lost}"
                yield Finding(
                    name, BROKEN if fix else OK, f"{program} {'fails on' if fix else 'watched'} a kernel", fix
                )


def _write_kernel(folder: Path) -> list[str]:
    """A small kernel for fsr's replay process, and the command that runs it. Raises FsrError."""
    from fsr.backends.cuda.compiler import cuda_toolchain
    from fsr.backends.cuda.replay import write_replay
    from fsr.backends.protocol import Buffer
    from fsr.backends.select import DeviceSpec, open_device
    from fsr.records import ConcreteLaunch, Image, Role

    device = open_device(DeviceSpec("cuda"))
    arch = device.info.arch
    device.close()
    image = cuda_toolchain(arch).compile(_candidate("__global__ void k(float* x) { x[threadIdx.x] = 1.0f; }"))
    if not isinstance(image, Image):
        raise HarnessError(image.log)
    launch = ConcreteLaunch("k", (1, 1, 1), (32, 1, 1), 0, ("x",))
    write_replay(folder, image, [launch], [Buffer("x", np.zeros(32, np.float32), Role.OUT)])
    return [sys.executable, "-m", "fsr.backends.cuda.replay", str(folder)]


def _answer(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _host_device() -> Finding:
    """The host device, by compiling and running one kernel on it."""
    from fsr.backends.host.compiler import HostToolchain
    from fsr.backends.protocol import Buffer
    from fsr.backends.select import DeviceSpec, open_device
    from fsr.records import ConcreteLaunch, Role

    fix = "install a C++ compiler: apt-get install clang-22 (or clang, or g++)"
    candidate = _candidate("__global__ void k(float* x) { x[threadIdx.x] = threadIdx.x * 2.0f; }")
    try:
        toolchain = HostToolchain()
        image = toolchain.compile(candidate)
        if isinstance(image, CompileFailure):
            return Finding("host device", BROKEN, f"{toolchain.version}: {image.log[:200]}", fix)
        device = open_device(DeviceSpec("host"))
        try:
            launch = ConcreteLaunch("k", (1, 1, 1), (32, 1, 1), 0, ("x",))
            with device.prepare(image, [launch], [Buffer("x", np.zeros(32, np.float32), Role.OUT)]) as prepared:
                prepared.run()
                right = bool(prepared.read()["x"][31] == 62.0)
        finally:
            device.close()
    except MissingToolError as error:
        return Finding("host device", MISSING, error.what, error.fix or fix)
    except (FsrError, OSError) as error:
        return Finding("host device", BROKEN, str(error).splitlines()[0], fix)
    return Finding("host device", OK if right else BROKEN, f"{toolchain.version}, a kernel ran", "" if right else fix)


# ---------------------------------------------------------------- containment of code that runs on the host


def _sandbox() -> Iterator[Finding]:
    """What the kernel offers to contain code with, and whether it holds when tried."""
    found = support()
    abi = f"ABI {found.landlock}" if found.landlock else "not in this kernel"
    for name, there, detail in (
        ("landlock", found.landlock, abi),
        ("seccomp", found.seccomp, "yes" if found.seccomp else "not here"),
    ):
        fix = f"{FIX}; without it code written by a model is not run on the CPU"
        yield Finding(name, OK if there else MISSING, detail, "" if there else fix)
    if found.complete:
        kept = _contained()
        detail = "a confined program could not read, write or signal outside" if kept else "a confined program got out"
        yield Finding("sandbox", OK if kept else BROKEN, detail, "" if kept else "report this with `uname -a`")
    cores = len(os.sched_getaffinity(0))
    yield Finding("cores", OK, f"{cores} usable: so many kernels compile at once")


def _contained() -> bool:
    """Whether a confined shell can use its own folder and nothing outside of it."""
    with tempfile.TemporaryDirectory(prefix="fsr-doctor-") as folder:
        outside, inside = Path(folder, "outside"), Path(folder, "inside")
        inside.mkdir()
        outside.write_text("private")
        script = f"echo made > {inside}/made; cat {outside}; echo changed > {outside}; kill -0 $PPID && echo sent"
        command = confined(
            ["/bin/sh", "-c", script], read=[], write=[str(inside)], memory_bytes=1 << 30, file_bytes=1 << 20, cpu_s=5
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return (inside / "made").is_file() and not done.stdout and outside.read_text() == "private"


def _ray() -> Finding:
    if importlib.util.find_spec("ray") is None:
        return Finding("ray", NOTE, "not installed; used for several GPUs or a cluster", "pip install 'fsr[ray]'")
    return Finding("ray", OK, importlib.metadata.version("ray"))


def findings(report: Callable[[Finding], None] = lambda finding: None) -> list[Finding]:
    """All findings as a list; ``report`` is called with each as it is found."""
    found = []
    for finding in probe():
        report(finding)
        found.append(finding)
    return found
