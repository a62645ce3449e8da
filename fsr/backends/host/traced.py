"""Compiles a candidate so that its values can be watched: clang, the instrumented text of LLVM, the tracing runtime."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fsr.backends.flags import refused_flags, split_defines
from fsr.backends.host.compiler import ARCH, PLAIN_VECTORS, default_cache_folder, failure, with_plain_vectors
from fsr.backends.host.instrument import instrument
from fsr.backends.host.linking import link_command
from fsr.backends.host.reach import strangers
from fsr.backends.host.runtime import COMMON, INCLUDE, Compiler, find_compiler, precompiled_header, runtime_objects
from fsr.backends.host.switches import branches_for_switches
from fsr.backends.host.unit import SOURCE_NAME, unit_text
from fsr.errors import MissingToolError
from fsr.records import Candidate, CompileFailure, Image
from fsr.sandbox.compilers import run_compiler

# Products and sums stay apart (their fusion is no part of what is computed), loops stay loops, and what can be a select
# is no branch: a select tells both values at once.
_OPTIONS = (
    "-O2", "-DFSR_TRACE=1", "-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops", "-ffp-contract=off",
    "-fno-finite-loops", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing", "-fwrapv",
    "-fno-delete-null-pointer-checks", "-fno-asynchronous-unwind-tables",
    "-mllvm", "-inline-threshold=100000", "-mllvm", "-two-entry-phi-node-folding-threshold=1000",
    "-mllvm", "-phi-node-folding-threshold=1000", "-mllvm", "-simplifycfg-merge-cond-stores-aggressively=true",
)  # fmt: skip
# Barriers, votes and shuffles of the runtime, and atomics.
_TALK = re.compile(r"@fsr_(?!t_|entry_|bfloat16)\w+\(|\b(?:atomicrmw|cmpxchg)\b")
OLDEST_CLANG = 16  # whose text has opaque pointers, and _Float16 in every function


@dataclass(frozen=True, slots=True)
class TracedImage:
    """An image that HostDevice.trace runs. ``operations``: names by number, see instrument.py; ``blind``: what in it
    cannot be followed. ``alone``: its threads do not talk to each other."""

    image: Image
    operations: tuple[str, ...]
    blind: tuple[str, ...]
    alone: bool = False


def watches(compiler: Compiler) -> bool:
    """Whether kernels compiled by it can be watched."""
    return compiler.family == "clang" and compiler.major >= OLDEST_CLANG


class TracingToolchain:
    """Compiles for watching. Needs clang: g++ has no text of its own language that can be instrumented."""

    def __init__(self, compiler: str | None = None, *, cache_folder: Path | None = None) -> None:
        self._requested, self._folder = compiler, cache_folder or default_cache_folder()

    def compiler(self) -> Compiler:
        """The clang that is used. Raises MissingToolError where there is none."""
        found = find_compiler(self._requested)
        if not watches(found):
            raise MissingToolError(
                f"kernels cannot be watched with {found.version}",
                expected=f"clang++ {OLDEST_CLANG} or newer on PATH", where="lifting", fix="apt-get install clang",
            )  # fmt: skip
        return found

    def compile(self, candidate: Candidate, timeout_s: float = 30.0) -> TracedImage | CompileFailure:
        """The candidate's image. The compiler runs confined. Raises MissingToolError."""
        started, compiler = time.monotonic(), self.compiler()
        if refused := refused_flags(candidate.plan.flags):
            return CompileFailure(f"compiler flags that are not allowed: {' '.join(refused)}")
        flags, definitions = split_defines(candidate.plan.flags)
        entries = candidate.plan.entries
        with tempfile.TemporaryDirectory(prefix="fsr-trace-") as name:
            folder = Path(name)
            (folder / SOURCE_NAME).write_text(unit_text(candidate.source, entries, definitions))
            result, waiting = None, [self._to_text, self._to_image]
            while waiting:
                step = waiting.pop(0)
                code, log = run_compiler(
                    step(compiler, flags, folder),
                    self._readable(compiler),
                    name,
                    started + timeout_s - time.monotonic(),
                )
                if code is None:
                    return CompileFailure(log, timed_out=True)
                if code and (plain := with_plain_vectors(flags, log)) is not None:
                    flags, waiting = plain, [step, *waiting]
                    continue
                if code:
                    return failure(log, code)
                if result is None:
                    result = instrument(branches_for_switches((folder / "unit.ll").read_text()))
                    (folder / "traced.ll").write_text(result.text)
            assert result is not None
            if names := strangers((folder / "unit.o").read_bytes()):
                return CompileFailure(f"it calls what is no device code: {', '.join(names[:5])}")
            objects = runtime_objects(compiler, "tracing", self._folder)
            link = link_command(compiler, folder / "unit.o", objects, folder / "unit.so")
            code, log = run_compiler(link, self._readable(compiler), name, timeout_s)
            if code != 0:
                return failure(log, code or 1)
            data = (folder / "unit.so").read_bytes()
        symbols = {entry: f"fsr_entry_{index}" for index, entry in enumerate(entries)}
        image = Image("host", ARCH, data, symbols, {}, "", time.monotonic() - started, True)
        return TracedImage(image, result.operations, result.blind, _TALK.search(result.text) is None)

    def _readable(self, compiler: Compiler) -> list[str]:
        program = Path(compiler.path).resolve()
        return [str(program.parent.parent), str(INCLUDE), str(self._folder)]

    def _to_text(self, compiler: Compiler, flags: Sequence[str], folder: Path) -> list[str]:
        basic = (*COMMON, *_OPTIONS, *(flag for flag in flags if flag == PLAIN_VECTORS))
        options = (*basic, *(flag for flag in flags if flag.startswith(("-std", "--std"))))
        header = precompiled_header(compiler, basic, self._folder)
        source, output = str(folder / SOURCE_NAME), str(folder / "unit.ll")
        return [compiler.path, *options, *header, "-x", "c++", "-S", "-emit-llvm", source, "-o", output]

    def _to_image(self, compiler: Compiler, flags: Sequence[str], folder: Path) -> list[str]:
        options = ("-O1", "-w", "-fPIC", "-march=x86-64-v3", "-fvisibility=hidden")
        return [compiler.path, *options, "-c", str(folder / "traced.ll"), "-o", str(folder / "unit.o")]
