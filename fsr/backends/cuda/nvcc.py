"""CUDA text to cubin through the nvcc program: the fallback where NVRTC is not installed."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from fsr.backends.cuda.nvrtc import FILE, LOG_CHARS, built_for, error_line, refusal, with_defines
from fsr.backends.cuda.ptxas import parse_resources
from fsr.backends.flags import split_defines
from fsr.backends.symbols import match_symbols
from fsr.errors import MissingToolError
from fsr.records import Candidate, CompileFailure, Image
from fsr.sandbox.compilers import run_compiler
from fsr.sandbox.environment import run_tool

# NVRTC's spelling to nvcc's, where they differ
_SPELLING = (("--extra-device-vectorization", "-extra-device-vectorization"), ("--ptxas-options=", "-Xptxas="))


def find_nvcc() -> str | None:
    """The nvcc program: on the path, else under CUDA_HOME or /usr/local/cuda; None when there is none."""
    found = shutil.which("nvcc")
    for root in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        found = found or (shutil.which("nvcc", path=str(Path(root) / "bin")) if root else None)
    return found


class NvccToolchain:
    """nvcc in a process of its own for each compile, five to ten times slower than NVRTC.

    The kernels' addresses are taken in a host function after the candidate's text, which makes the templates
    of the plan be instantiated; only device code is built.
    """

    def __init__(self, arch: str = "sm_90", include_dirs: Sequence[Path] = ()) -> None:
        program = find_nvcc()
        if program is None:
            raise MissingToolError(
                "nvcc is not installed", expected="nvcc on the path or under CUDA_HOME", fix="pip install 'fsr[nvrtc]'"
            )
        self._program = program
        self.arch = arch
        self._include_dirs = tuple(include_dirs)

    @property
    def name(self) -> str:
        """'nvcc'."""
        return "nvcc"

    @cached_property
    def version(self) -> str:
        """For example 'nvcc 13.0'."""
        text = run_tool([self._program, "--version"]).stdout
        match = re.search(r"release (\d+\.\d+)", text)
        return f"nvcc {match[1] if match else 'unknown'}"

    def compile(
        self, candidate: Candidate, *, instrumented: bool = False, timeout_s: float = 60.0
    ) -> Image | CompileFailure:
        """Compile every entry of the plan; see :class:`fsr.backends.toolchain.Toolchain`."""
        if failure := refusal(candidate):
            return failure
        started = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="fsr-nvcc-") as folder:
            flags, _ = split_defines(candidate.plan.flags)
            (Path(folder) / FILE).write_text(_with_anchor(candidate), encoding="utf-8")
            code, log = run_compiler(
                self._command(flags, instrumented, built_for(candidate, self.arch)), self._readable(), folder, timeout_s
            )
            if code is None:
                return CompileFailure(log, timed_out=True)
            output = Path(folder) / "out.cubin"
            if code or not output.is_file():
                return CompileFailure(log[:LOG_CHARS] or f"nvcc ended with {code} and no message", error_line(log))
            cubin = output.read_bytes()
        reported = parse_resources(log)
        symbols = match_symbols(candidate.plan.entries, list(reported))
        if missing := [entry for entry in candidate.plan.entries if entry not in symbols]:
            return CompileFailure(f"no symbol in the binary for {', '.join(missing)}: is it a __global__ function?")
        resources = {entry: reported[symbol] for entry, symbol in symbols.items()}
        return Image(
            "cubin", self.arch, cubin, symbols, resources, log[:LOG_CHARS], time.perf_counter() - started, instrumented
        )  # fmt: skip

    def _readable(self) -> list[str]:
        """What nvcc reads beside the system's folders: its toolkit and the folders of includes."""
        return [str(Path(self._program).resolve().parents[1]), *(str(path) for path in self._include_dirs)]

    def _command(self, flags: Sequence[str], instrumented: bool, arch: str) -> list[str]:
        translated = []
        for flag in flags:
            for ours, theirs in _SPELLING:
                flag = flag.replace(ours, theirs)
            translated.append(flag)
        if not any("-std=" in flag for flag in flags):
            translated.append("-std=c++17")
        if instrumented:
            translated.append("-lineinfo")
        includes = [f"-I{path}" for path in self._include_dirs]
        return [
            self._program, "-cubin", f"-gencode=arch={arch.replace('sm', 'compute')},code={arch}", "-Xptxas=-v",
            "--expt-relaxed-constexpr",
            *includes, *translated, "-o", "out.cubin", FILE,
        ]  # fmt: skip


def _with_anchor(candidate: Candidate) -> str:
    """The candidate with the anchor behind."""
    taken = "".join(f" to[{i}] = (void*)(&{entry});" for i, entry in enumerate(candidate.plan.entries))
    return f"{with_defines(candidate)}\nvoid fsr_anchor(void** to) {{{taken} }}\n"
