"""What NVIDIA's part of ``fsr doctor`` tries: driver, GPUs, compilers, PyCUDA and the tools that watch a run."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fsr.backends.backend import BROKEN, MISSING, NOTE, OK, Finding
from fsr.backends.cuda.compiler import cuda_toolchain
from fsr.backends.cuda.gpus import driver_gpus, driver_library
from fsr.backends.cuda.nvcc import NvccToolchain
from fsr.backends.cuda.nvrtc import NvrtcToolchain
from fsr.backends.cuda.replay import write_replay
from fsr.backends.cuda.sanitizer import find_sanitizer
from fsr.backends.protocol import Buffer
from fsr.errors import FsrError, HarnessError, MissingToolError
from fsr.records import Candidate, CompileFailure, ConcreteLaunch, Image, Launch, Plan, Role
from fsr.sandbox.environment import run_tool


def findings() -> Iterator[Finding]:
    """All, in the order of the way of a kernel."""
    gpus = [gpu.name for gpu in driver_gpus()]
    driver, pycuda = _driver(gpus), _pycuda(bool(gpus))
    yield driver
    yield from _gpu_lines(gpus, driver.state == OK and pycuda.state == OK)
    yield _compiler("nvrtc", "pip install 'fsr[nvrtc]'")
    yield _compiler("nvcc", "install the CUDA toolkit (needed only where NVRTC is missing)")
    yield pycuda
    yield from _gpu_tools(bool(gpus))


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


def _gpu_lines(gpus: list[str], launches: bool) -> Iterator[Finding]:
    """``launches``: whether PyCUDA is there to launch on them."""
    if not gpus:
        yield Finding("gpu", MISSING, "none", "run fsr where a GPU is, or use --device host")
    for index, name in enumerate(gpus):
        yield Finding(f"gpu cuda:{index}", OK, name, device=f"cuda:{index}" if launches else "")


def _candidate(source: str) -> Candidate:
    """One kernel ``k``."""
    one = ("1", "1", "1")
    return Candidate(source, Plan((Launch("k", one, one, "0", ()),)))


def _compiler(kind: str, fix: str) -> Finding:
    """A CUDA compiler, by compiling a small kernel."""
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
    from fsr.backends.cuda.device import CudaDevice

    device = CudaDevice()
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
        done = run_tool(command, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""
