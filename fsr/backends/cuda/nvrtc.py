"""CUDA text to cubin through NVRTC, which runs in a confined process of its own. Needs no driver and no GPU."""

from __future__ import annotations

import atexit
import base64
import functools
import importlib.util
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fsr.backends.cuda.ptxas import parse_resources
from fsr.backends.flags import refused_flags, split_defines
from fsr.backends.includes import PRELUDE_NAME, builtin_headers, cuda_include_dirs, uses_libcuxx, uses_pipeline
from fsr.backends.own_types import own_types, renamed
from fsr.errors import MissingToolError
from fsr.records import Candidate, CompileFailure, Image
from fsr.sandbox.child import Child, ChildDied, ChildTimedOut
from fsr.sandbox.compilers import MEMORY_BYTES

FILE = "candidate.cu"
LOG_CHARS = 20_000  # a log beyond this is repetition (one error in a deep template can write megabytes)

# Before it the built-in is unknown, and EDG's own word makes an address a constant (github.com/NVIDIA/cccl, #11438).
OFFSETOF_SINCE = (13, 4)
_OFFSETOF = "-D__builtin_offsetof(T,...)=__INTADDR__(&(((T*)0)->__VA_ARGS__))"
_ERROR_LINE = re.compile(rf"{re.escape(FILE)}\((\d+)\): (?:catastrophic )?error", re.ASCII)


def error_line(log: str) -> int | None:
    """The line of the first error that the log places in the candidate, 1-based; None when it names none."""
    match = _ERROR_LINE.search(log)
    return int(match[1]) if match else None


def refusal(candidate: Candidate) -> CompileFailure | None:
    """A failure when the plan carries flags that are not on the allow-list, or has no entry at all."""
    if refused := refused_flags(candidate.plan.flags):
        return CompileFailure(f"compiler flags that a plan may not carry: {' '.join(refused)}")
    if not candidate.plan.launches:
        return CompileFailure("the plan launches nothing")
    return None


def with_defines(candidate: Candidate) -> str:
    """The candidate with its macros before it, its lines numbered as they are: what stands before the candidate, the
    prelude among it, must not be read under them."""
    _, defines = split_defines(candidate.plan.flags)
    source = renamed(candidate.source, own_types(candidate.source))
    return "".join(f"{line}\n" for line in defines) + f'#line 1 "{FILE}"\n{source}'


def built_for(candidate: Candidate, arch: str) -> str:
    """The architecture to build for: that variant of Hopper's which alone has wgmma where the text uses it. Its images
    run on the same GPUs."""
    return "sm_90a" if arch == "sm_90" and "wgmma." in candidate.source else arch


def _as_nvcc(candidate: Candidate) -> str:
    """The same for NVRTC, which lacks ``__NVCC__``: a text that asks for it is nvcc's. NVIDIA's C++ library asks too,
    and must know which of the two it is."""
    asks = "__NVCC__" in candidate.source and not uses_libcuxx(candidate.source)
    return ("#define __NVCC__ 1\n" if asks else "") + with_defines(candidate)


def find_nvrtc() -> Path | None:
    """The newest NVRTC library: of NVIDIA's Python packages, else of CUDA_HOME, else where the system keeps it."""
    for folder in _library_folders():
        found = sorted(folder.glob("libnvrtc.so.[0-9]*"), key=lambda path: [int(n) for n in path.name.split(".")[2:]])
        if found:
            return found[-1]
    return None


def _library_folders() -> Iterator[Path]:
    spec = importlib.util.find_spec("nvidia")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        yield from sorted(Path(location).glob("*/lib"), reverse=True)
    for root in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if root:
            yield Path(root) / "lib64"
    yield from (Path(part) for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part)
    yield Path(f"/usr/lib/{os.uname().machine}-linux-gnu")


class Compiler:
    """NVRTC in a process, started on first use and again after its death. Calls from several threads take turns.

    Raises MissingToolError when the library cannot be loaded."""

    def __init__(self, library: Path, readable: tuple[str, ...]) -> None:
        program = Path(__file__).with_name("nvrtc_server.py")
        self._command = [sys.executable, "-I", "-S", str(program), str(library), str(MEMORY_BYTES), *readable]
        self._lock = threading.Lock()
        self._child: Child | None = self._start()
        self.version = tuple(self._child.greeting["version"])
        atexit.register(self.close)

    def _start(self) -> Child:
        child = Child(self._command, "the process that compiles")
        if "missing" in child.greeting:
            child.close()
            raise _missing(child.greeting["missing"])
        return child

    def ask(self, request: Any, timeout_s: float) -> Any:
        """The answer of :meth:`nvrtc_server.Nvrtc.compile`. Raises ChildDied and ChildTimedOut: the next call starts
        a fresh process."""
        with self._lock:
            child, self._child = self._child or self._start(), None
            answer = child.ask(request | {"timeout_s": timeout_s}, timeout_s=timeout_s)
            if answer.pop("spent"):
                child.close()
            else:
                self._child = child
            return answer

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.close()
            self._child = None


@functools.cache
def _compiler(library: Path, readable: tuple[str, ...]) -> Compiler:
    """The one compiler of this process that may read these folders."""
    return Compiler(library, readable)


class NvrtcToolchain:
    """``arch`` is the real architecture to build for, such as ``sm_90``.

    An instrumented image has the same code with line information added, which compute-sanitizer reports.
    Raises MissingToolError.
    """

    def __init__(self, arch: str = "sm_90", include_dirs: Sequence[Path] = ()) -> None:
        self.arch = arch
        self._include_dirs = (*include_dirs, *cuda_include_dirs())
        library = find_nvrtc()
        if library is None:
            raise _missing("no libnvrtc.so was found")
        readable = {str(library.parent), *(str(path.resolve()) for path in self._include_dirs)}
        self._compiler = _compiler(library, tuple(sorted(readable)))

    @property
    def name(self) -> str:
        """'nvrtc'."""
        return "nvrtc"

    @property
    def version(self) -> str:
        """For example 'nvrtc 13.0'."""
        major, minor = self._compiler.version
        return f"nvrtc {major}.{minor}"

    def compile(
        self, candidate: Candidate, *, instrumented: bool = False, timeout_s: float = 60.0
    ) -> Image | CompileFailure:
        """Compile every entry of the plan; see :class:`fsr.backends.toolchain.Toolchain`."""
        if failure := refusal(candidate):
            return failure
        started = time.perf_counter()
        own = {renamed(e, own_types(candidate.source)): e for e in candidate.plan.entries}
        request = {
            "op": "compile", "source": _as_nvcc(candidate), "file": FILE, "entries": list(own),
            "headers": builtin_headers(), "options": self._options(candidate, instrumented),
        }  # fmt: skip
        try:
            try:
                answer = self._compiler.ask(request, timeout_s)
            except ChildDied as death:  # killed from outside, which says nothing of the candidate: once more
                if death.code != -signal.SIGKILL:
                    raise
                answer = self._compiler.ask(request, timeout_s)
        except ChildTimedOut:
            return CompileFailure(f"compiling took over {timeout_s:g} s", timed_out=True)
        except ChildDied as death:
            return CompileFailure(f"the compiler died ({_cause(death.code)}; {_MEMORY})")
        if "symbols" in answer:
            answer["symbols"] = {own[entry]: symbol for entry, symbol in answer["symbols"].items()}
        return self._image(candidate, answer, instrumented, time.perf_counter() - started)

    def _options(self, candidate: Candidate, instrumented: bool) -> list[str]:
        options = [
            f"--gpu-architecture={built_for(candidate, self.arch)}", f"--pre-include={PRELUDE_NAME}",
            "--ptxas-options=-v", "--device-as-default-execution-space",
            *(f"--include-path={path}" for path in self._include_dirs),
        ]  # fmt: skip
        flags = candidate.plan.flags
        if uses_libcuxx(candidate.source):
            options.append("-DFSR_LIBCUXX")
        if uses_pipeline(candidate.source):
            options.append("-DFSR_PIPELINE")
        if not any("-std=" in flag for flag in flags):
            options.append("--std=c++17")
        if self._compiler.version < OFFSETOF_SINCE and "__builtin_offsetof" in candidate.source:
            options.append(_OFFSETOF)
        if instrumented:
            options.append("--generate-line-info")
        if self._compiler.version >= (12, 9):
            options.append("--no-cache")  # an image out of NVRTC's own cache comes without the resource report
        return [*options, *split_defines(flags)[0]]

    def _image(self, candidate: Candidate, answer: Any, instrumented: bool, seconds: float) -> Image | CompileFailure:
        if "bad" in answer:
            return CompileFailure(f"{answer['bad']!r} is no name of a kernel")
        log = answer["log"].rstrip("\0\n")  # all of it: the resource report stands behind any number of warnings
        if answer["status"]:
            if answer["status"] == 1:
                log = f"the compiler ran out of memory ({_MEMORY})\n{log}"
            return CompileFailure(log[:LOG_CHARS] or "NVRTC failed without a message", error_line(log))
        reported, symbols = parse_resources(log), answer["symbols"]
        if missing := [entry for entry, symbol in symbols.items() if symbol not in reported]:
            return CompileFailure(f"{', '.join(missing)} is not a __global__ function")
        resources = {entry: reported[symbol] for entry, symbol in symbols.items()}
        cubin = base64.b64decode(answer["cubin"])
        return Image("cubin", self.arch, cubin, symbols, resources, log[:LOG_CHARS], seconds, instrumented)


_MEMORY = f"it may use {MEMORY_BYTES >> 30} GiB of memory"


def _cause(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _missing(why: str) -> MissingToolError:
    return MissingToolError(
        f"NVRTC cannot be loaded ({why})",
        expected="the package nvidia-cuda-nvrtc",
        fix="pip install 'fsr[nvrtc]', or install the CUDA toolkit so that nvcc is on the path",
    )
