"""CUDA text to cubin inside this process, through NVRTC. Needs no driver and no GPU."""

from __future__ import annotations

import contextlib
import ctypes
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fsr.backends.cuda.ptxas import parse_resources
from fsr.backends.flags import refused_flags
from fsr.backends.includes import PRELUDE_NAME, builtin_headers, cuda_include_dirs, uses_libcuxx
from fsr.errors import HarnessError, MissingToolError
from fsr.records import Candidate, CompileFailure, Image, Resources

FILE = "candidate.cu"
LOG_CHARS = 20_000  # a log beyond this is repetition (one error in a deep template can write megabytes)

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


def entries_of(candidate: Candidate) -> list[str]:
    """The distinct entry expressions of the plan, in order of first launch."""
    return list(dict.fromkeys(launch.entry for launch in candidate.plan.launches))


class NvrtcToolchain:
    """NVRTC through cuda-bindings. ``arch`` is the real architecture to build for, such as ``sm_90``.

    An instrumented image has the same code with line information added, which compute-sanitizer reports.
    """

    def __init__(self, arch: str = "sm_90", include_dirs: Sequence[Path] = ()) -> None:
        self._nvrtc = _load_nvrtc()
        self.arch = arch
        self._include_dirs = (*include_dirs, *cuda_include_dirs())
        headers = builtin_headers()
        self._header_names = [name.encode() for name in headers]
        self._header_texts = [text.encode() for text in headers.values()]

    @property
    def name(self) -> str:
        """'nvrtc'."""
        return "nvrtc"

    @property
    def version(self) -> str:
        """For example 'nvrtc 13.0'."""
        major, minor = self._call(self._nvrtc.nvrtcVersion())
        return f"nvrtc {major}.{minor}"

    def compile(
        self, candidate: Candidate, *, instrumented: bool = False, timeout_s: float = 60.0
    ) -> Image | CompileFailure:
        """Compile every entry of the plan; see :class:`fsr.backends.toolchain.Toolchain`.

        The time-out is looked at between the compiler's passes, so a single long pass overruns it: the
        process that compiles is to have a limit of its own as well.
        """
        if failure := refusal(candidate):
            return failure
        started = time.perf_counter()
        with self._program(candidate.source) as program:
            for entry in entries_of(candidate):
                if self._nvrtc.nvrtcAddNameExpression(program, entry.encode())[0]:
                    return CompileFailure(f"{entry!r} is no name of a kernel")
            cancelled = self._run(program, self._options(candidate, instrumented), timeout_s)
            log = self._log(program)
            if cancelled is not None:
                if cancelled:
                    return CompileFailure(f"compiling took over {timeout_s:g} s", timed_out=True)
                return CompileFailure(log[:LOG_CHARS] or "NVRTC failed without a message", error_line(log))
            return self._image(program, candidate, log, instrumented, time.perf_counter() - started)

    def _options(self, candidate: Candidate, instrumented: bool) -> list[bytes]:
        options = [
            f"--gpu-architecture={self.arch}", f"--pre-include={PRELUDE_NAME}",
            "--ptxas-options=-v", "--device-as-default-execution-space",
            *(f"--include-path={path}" for path in self._include_dirs),
        ]  # fmt: skip
        flags = candidate.plan.flags
        if uses_libcuxx(candidate.source):
            options.append("-DFSR_LIBCUXX")
        if not any("-std=" in flag for flag in flags):
            options.append("--std=c++17")
        if instrumented:
            options.append("--generate-line-info")
        if tuple(self._call(self._nvrtc.nvrtcVersion())) >= (12, 9):
            options.append("--no-cache")  # an image out of NVRTC's own cache comes without the resource report
        return [option.encode() for option in [*options, *flags]]

    @contextlib.contextmanager
    def _program(self, source: str) -> Iterator[Any]:
        program = self._call(
            self._nvrtc.nvrtcCreateProgram(
                source.encode(), FILE.encode(), len(self._header_names), self._header_texts, self._header_names
            )
        )
        try:
            yield program
        finally:
            self._nvrtc.nvrtcDestroyProgram(program)

    def _run(self, program: Any, options: list[bytes], timeout_s: float) -> bool | None:
        """None when it compiled, else whether the time-out was the reason that it did not."""
        deadline = time.monotonic() + timeout_s
        expired = False

        def poll(_payload: int | None, _reserved: int | None) -> int:
            nonlocal expired
            expired = expired or time.monotonic() > deadline
            return int(expired)

        callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(poll)
        if hasattr(self._nvrtc, "nvrtcSetFlowCallback"):
            address = ctypes.cast(callback, ctypes.c_void_p).value
            with contextlib.suppress(RuntimeError):  # the library can be older than its bindings
                self._nvrtc.nvrtcSetFlowCallback(program, address, 0)
        result = self._nvrtc.nvrtcCompileProgram(program, len(options), options)[0]
        return None if result == self._nvrtc.nvrtcResult.NVRTC_SUCCESS else expired

    def _image(
        self, program: Any, candidate: Candidate, log: str, instrumented: bool, seconds: float
    ) -> Image | CompileFailure:
        symbols = {
            entry: self._call(self._nvrtc.nvrtcGetLoweredName(program, entry.encode())).decode()
            for entry in entries_of(candidate)
        }
        size = self._call(self._nvrtc.nvrtcGetCUBINSize(program))
        cubin = bytes(size)
        self._call(self._nvrtc.nvrtcGetCUBIN(program, cubin))
        reported = parse_resources(log)
        if missing := [entry for entry, symbol in symbols.items() if symbol not in reported]:
            return CompileFailure(f"{', '.join(missing)} is not a __global__ function")
        resources: dict[str, Resources] = {entry: reported[symbol] for entry, symbol in symbols.items()}
        return Image("cubin", self.arch, cubin, symbols, resources, log[:LOG_CHARS], seconds, instrumented)

    def _log(self, program: Any) -> str:
        """All of it: the resource report stands at its end, behind any number of warnings."""
        size = self._call(self._nvrtc.nvrtcGetProgramLogSize(program))
        text = bytes(size)
        self._call(self._nvrtc.nvrtcGetProgramLog(program, text))
        return text.decode(errors="replace").rstrip("\0\n")

    def _call(self, answer: tuple[Any, ...]) -> Any:
        """The values of one NVRTC call, its status checked."""
        status, *values = answer
        if status != self._nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise HarnessError(f"NVRTC answered {status}", where="fsr.backends.cuda.nvrtc")
        return values[0] if len(values) == 1 else tuple(values)


def _load_nvrtc() -> Any:
    """The nvrtc bindings, with the library behind them found. Raises MissingToolError."""
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError, OSError) as error:
        raise MissingToolError(
            f"NVRTC cannot be loaded ({error})",
            expected="the packages cuda-bindings and nvidia-cuda-nvrtc",
            fix="pip install 'fsr[nvrtc]', or install the CUDA toolkit so that nvcc is on the path",
        ) from error
    return nvrtc
