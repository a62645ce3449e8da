"""What works on this machine, found by trying it: the lines of ``fsr doctor``."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import platform
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from fsr.backends.backend import BROKEN, MISSING, NOTE, OK, Finding
from fsr.backends.select import backends
from fsr.errors import FsrError
from fsr.llm.named import ModelSpec, read_spec
from fsr.sandbox.confine import FIX, support
from fsr.sandbox.environment import run_tool
from fsr.sandbox.launch import confined
from fsr.settings import read_settings


def probe() -> Iterator[Finding]:
    """All findings, in the order of the way of a kernel; takes a few seconds, most of it compiling."""
    yield Finding("python", OK, f"{platform.python_version()} at {sys.executable}")
    for backend in backends():
        yield from backend.findings()
    yield from _sandbox()
    yield _ray()
    yield from _models()


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
        done = run_tool(command, timeout=60)
        return (inside / "made").is_file() and not done.stdout and outside.read_text() == "private"


def _ray() -> Finding:
    if importlib.util.find_spec("ray") is None:
        return Finding("ray", NOTE, "not installed; used for several GPUs or a cluster", "pip install 'fsr[ray]'")
    return Finding("ray", OK, importlib.metadata.version("ray"))


def _models() -> Iterator[Finding]:
    """The packages that models need, and whether those of the configuration answer. Servers on other hosts are not
    asked: nothing leaves this machine because somebody looks at what works on it."""
    for name, package, extra in (("hosted models", "openai", "llm"), ("local models", "llama_cpp", "local-llm")):
        there = importlib.util.find_spec(package) is not None
        fix = "" if there else f"pip install 'fsr[{extra}]'"
        yield Finding(name, OK if there else NOTE, f"{package} is {'' if there else 'not '}installed", fix)
    settings = read_settings()
    for named in dict.fromkeys((*settings.llm, *settings.models)):
        try:
            spec = read_spec(named, settings.models)
        except FsrError as fault:
            yield Finding(f"model {named}", BROKEN, fault.what, fault.fix)
            continue
        yield _answering(named, spec)


def _answering(named: str, spec: ModelSpec) -> Finding:
    if spec.local:
        return Finding(f"model {named}", OK, f"{spec.path}; roles: {', '.join(spec.roles)}")
    if spec.leaves:
        return Finding(f"model {named}", NOTE, f"on {spec.host}: not asked here")
    parts = urlsplit(spec.url)
    try:
        with socket.create_connection((spec.host, parts.port or 80), timeout=2.0):
            return Finding(f"model {named}", OK, f"{spec.url} takes connections")
    except OSError as fault:
        return Finding(f"model {named}", MISSING, f"{spec.url}: {fault.strerror or fault}", "start its server")


def findings(report: Callable[[Finding], None] = lambda finding: None) -> list[Finding]:
    """All findings as a list; ``report`` is called with each as it is found."""
    found = []
    for finding in probe():
        report(finding)
        found.append(finding)
    return found
