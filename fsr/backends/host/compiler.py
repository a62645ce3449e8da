"""CUDA source to a shared object that the host device executes: a C++ compiler, our headers, our runtime."""

from __future__ import annotations

import itertools
import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from fsr.backends.flags import refused_flags, split_defines
from fsr.backends.host.kept import KeptObjects, key_of, own_digest
from fsr.backends.host.linking import link_command
from fsr.backends.host.reach import strangers
from fsr.backends.host.runtime import COMMON, INCLUDE, find_compiler, precompiled_header, runtime_objects
from fsr.backends.host.unit import SOURCE_NAME, blank_comments, unit_text
from fsr.emulator.elf import Variable, attach_source, read_variables, spread_shared
from fsr.hardware.c_types import narrow_integers
from fsr.hardware.limits import STATIC_SHARED_BYTES
from fsr.records import Candidate, CompileFailure, Image, Resources
from fsr.sandbox.compilers import MEMORY_BYTES, run_compiler

ARCH = "x86-64-v3"
_LOG_CHARS = 4000

# Meaning first: fused multiply-add as nvcc does by default, no errno, type puns and wrapping as kernels expect.
_KERNEL = (
    "-g1", "-fno-finite-loops", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing", "-fwrapv",
    "-fno-delete-null-pointer-checks", "-fno-asynchronous-unwind-tables",
)  # fmt: skip
_RECORD = ("-O1", "-DFSR_RECORD=1", "-fsanitize=thread")
_COUNTED = {
    "clang": ("-fsanitize-coverage=trace-pc", "-fsanitize-coverage=bb,trace-pc,no-prune"),
    "gcc": ("-fsanitize-coverage=trace-pc",),
}
# An optimiser makes selections of branches, and stores what both sides store once. No access is looked at.
_COVERED = ("-O0", "-fno-sanitize=all")
# Locals that were not set hold a pattern, and shared variables lie apart (spread_shared): what reads either differs.
_WATCHED = (
    "-fsanitize=alignment,shift-exponent,float-cast-overflow", "-ftrivial-auto-var-init=pattern", "-fdata-sections",
    "-DFSR_WATCHED=1",
)  # fmt: skip
# A load stays where it is written: a GPU's compiler need not move it to the branch that alone uses it.
_WATCHED_CLANG = ("-mllvm", "-instcombine-code-sinking=0")
_RECORD_CLANG = (
    "-fno-vectorize", "-fno-slp-vectorize", "-fsanitize=array-bounds",
    "-mllvm", "-tsan-instrument-read-before-write=1", "-mllvm", "-tsan-instrument-atomics=0",
    "-mllvm", "-tsan-instrument-func-entry-exit=0", "-mllvm", "-tsan-distinguish-volatile=1",
)  # fmt: skip
_RECORD_GCC = (
    "-fno-tree-vectorize",
    "-fsanitize=bounds",
    "-fno-gnu-unique",
    "--param=tsan-instrument-func-entry-exit=0",
    "--param=tsan-distinguish-volatile=1",
)
_PLAIN_GCC = ("-fno-gnu-unique", "--param=tsan-instrument-func-entry-exit=0")


class HostToolchain:
    """Compiles for the host device (a Toolchain). The compiler runs confined: see fsr.sandbox.

    Args:
        compiler: path or name of a C++ compiler; None takes clang++, else g++.
        cache_folder: where the runtime objects are kept; None is the user's cache folder.
        checked: kernels trap where a signed integer overflows.
        watched: every build is instrumented to be watched rather than recorded: it counts no instructions, and finds
            more that is wrong.
        covered: instrumented builds have every branch that the source has, so that what a run goes through is told;
            accesses are not looked at.
        level: how far plain builds are optimised: '-O2', or '-O1', which compiles unrolled tiles in a quarter of the
            time and pays where they are executed little.
    """

    def __init__(
        self, compiler: str | None = None, *, cache_folder: Path | None = None, checked: bool = False,
        watched: bool = False, covered: bool = False, level: str = "-O2",
    ) -> None:  # fmt: skip
        self._requested, self._folder, self._checked, self._watched = compiler, cache_folder, checked, watched
        self._covered, self._level = covered, level

    @property
    def name(self) -> str:
        """'host'."""
        return "host"

    @property
    def version(self) -> str:
        """The compiler's own version line. Raises MissingToolError."""
        return f"host {find_compiler(self._requested).version}"

    def compile(
        self, candidate: Candidate, *, instrumented: bool = False, timeout_s: float = 60.0
    ) -> Image | CompileFailure:
        """As Toolchain.compile. What a CPU cannot execute (inline PTX, textures) is a
        CompileFailure that names the construct and its line."""
        started, instrumented = time.monotonic(), instrumented or self._watched
        if refused := refused_flags(candidate.plan.flags):
            return CompileFailure(f"compiler flags that are not allowed: {' '.join(refused)}")
        flags, definitions = split_defines(candidate.plan.flags)
        if not _NARROW.search(candidate.source):
            flags = [*flags, _TO_THE_ENDS]
        entries = candidate.plan.entries
        text = unit_text(candidate.source, entries, definitions)
        key, log = self._key(text, flags, instrumented), ""
        kept = KeptObjects(_kept_folder(self._folder))
        data = kept.find(key)
        if data is None:
            built = self._built(text, flags, instrumented, timeout_s)
            if isinstance(built, CompileFailure):
                return built
            data, log = built
            if not log:
                kept.store(key, data)
        return _image(candidate.source, entries, data, log, time.monotonic() - started, instrumented)

    def _key(self, text: str, flags: Sequence[str], instrumented: bool) -> str:
        """What an object is made from: the commands name compiler, headers and runtime with digests of them."""
        commands = self._commands(flags, instrumented, Path("unit"))
        return key_of([own_digest(), str(self._watched), text, *itertools.chain(*commands)])

    def _built(
        self, text: str, flags: Sequence[str], instrumented: bool, timeout_s: float
    ) -> tuple[bytes, str] | CompileFailure:
        """The shared object of a unit, and what the compilers said."""
        ends = time.monotonic() + timeout_s
        with tempfile.TemporaryDirectory(prefix="fsr-host-") as folder:
            unit = Path(folder, "unit.o")
            Path(folder, SOURCE_NAME).write_text(text)
            log, waiting = "", self._commands(flags, instrumented, Path(folder))
            while waiting:
                code, told = run_compiler(waiting.pop(0), self._readable(), folder, ends - time.monotonic())
                if code is None:
                    return CompileFailure(told, timed_out=True)
                if code and (plain := with_plain_vectors(flags, told)) is not None:
                    flags = plain
                    waiting = self._commands(flags, instrumented, Path(folder))
                    continue
                log += told
                if code:
                    return failure(log, code)
                if names := strangers(unit.read_bytes()):
                    return CompileFailure(f"it calls what is no device code: {', '.join(names[:5])}")
                if self._watched and waiting:
                    unit.write_bytes(spread_shared(unit.read_bytes()))
            return unit.with_suffix(".so").read_bytes(), log

    def _readable(self) -> list[str]:
        """What a compiler reads beside the system's folders: itself, our headers, what is built once."""
        program = Path(find_compiler(self._requested).path).resolve()
        return [str(program.parent.parent), str(INCLUDE), str(self._folder or default_cache_folder())]

    def _optimisation(self, family: str, instrumented: bool) -> tuple[str, ...]:
        if instrumented:
            return _instrumentation(family, self._watched)
        return (self._level, *_PLAIN_GCC) if family == "gcc" else (self._level,)

    def _commands(self, flags: Sequence[str], instrumented: bool, folder: Path) -> list[list[str]]:
        compiler, cache = find_compiler(self._requested), self._folder or default_cache_folder()
        options = (*COMMON, *_KERNEL, *self._optimisation(compiler.family, instrumented), *_numerics(flags))
        options += _TRAPPING[compiler.family] if self._checked else ()
        options += _COVERED if self._covered and instrumented else ()
        header = precompiled_header(compiler, options, cache)
        casts = [_TO_THE_ENDS] * (compiler.family == "clang" and _TO_THE_ENDS in flags)  # the header is the same
        objects, unit = runtime_objects(compiler, "recording" if instrumented else "plain", cache), folder / "unit.o"
        return [
            [compiler.path, *options, *casts, *header, "-x", "c++", "-c", str(folder / SOURCE_NAME), "-o", str(unit)],
            link_command(compiler, unit, objects, unit.with_suffix(".so")),
        ]


# What compilers say of vectors that look at their own address where a unit takes them for plain bytes.
_TREATED_AS_BYTES = re.compile(
    r"aligned_at|fsr_alignment|trivially.copyable|non-trivial|decomposes into|structured binding|implicitly deleted"
)
PLAIN_VECTORS = "-DFSR_PLAIN_VECTORS=1"


def with_plain_vectors(flags: Sequence[str], log: str) -> list[str] | None:
    """The flags under which a unit may compile that, by what the compiler said, takes vectors for plain bytes; None
    where that is not what it said, or they are plain already."""
    refused = _TREATED_AS_BYTES.search(log) is not None and PLAIN_VECTORS not in flags
    return [*flags, PLAIN_VECTORS] if refused else None


# A GPU casts what does not fit to the nearest end, and a float's NaN to 0 (recorded: programs *_cast_past_ends). To 8
# and 16 bits it casts to 32 and cuts, which clang has no option for: as it does without, they keep the low bits.
_TO_THE_ENDS = "-fno-strict-float-cast-overflow"
_NARROW = re.compile(rf"\b(?:{'|'.join(narrow_integers())})\b")

_OVERFLOW = "-fsanitize=signed-integer-overflow"
_TRAPPING = {
    "clang": (_OVERFLOW, "-fsanitize-trap=signed-integer-overflow"),
    "gcc": (_OVERFLOW, "-fsanitize-undefined-trap-on-error"),
}


def default_cache_folder() -> Path:
    """Where runtime objects and precompiled headers are kept for this user."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("fsr")) / "host"


def _kept_folder(folder: Path | None) -> Path:
    return (folder or default_cache_folder()) / "units"


def _instrumentation(family: str, watched: bool) -> tuple[str, ...]:
    own = _RECORD_CLANG if family == "clang" else _RECORD_GCC
    seen = (*_WATCHED, *_WATCHED_CLANG) if family == "clang" else _WATCHED
    return (*_RECORD, *own, *(seen if watched else _COUNTED[family]))


def _numerics(flags: Sequence[str]) -> tuple[str, ...]:
    """nvcc's defaults and its numeric flags. Division and square root stay exact: a GPU's approximate ones have
    error bounds that a test's tolerance must allow for anyway."""
    fast = any(re.fullmatch("--?use_fast_math", flag) for flag in flags)
    contract = "off" if any(re.fullmatch("--?fmad=false", flag) for flag in flags) else "fast"
    standard = [flag.lstrip("-") for flag in flags if re.fullmatch(r"--?std=.*", flag)]
    options = [f"-ffp-contract={contract}"]
    if standard and standard[-1] != "std=c++14":  # the headers need C++17, which accepts C++14 kernels
        options.append(f"-{standard[-1]}")
    options += [PLAIN_VECTORS] * (PLAIN_VECTORS in flags)
    return (*options, "-DFSR_USE_FAST_MATH=1") if fast else tuple(options)


_ERROR = re.compile(rf"^(?:{re.escape(SOURCE_NAME)}):(\d+)(?::\d+)?: (?:fatal )?error: (.*)$", re.MULTILINE)
_MENTION = re.compile(rf"{re.escape(SOURCE_NAME)}:(\d+)")


def failure(log: str, code: int) -> CompileFailure:
    """The compiler's words, cut to a screen or two, and the line of the candidate that they are about."""
    if code < 0 or "bad_alloc" in log or "out of memory" in log:
        log = f"the compiler died (it may use {MEMORY_BYTES >> 30} GiB of memory)\n{log}"
    log = re.sub(r"^(?:In file included| {17}) from .*\n", "", log, flags=re.MULTILINE).replace(f"{INCLUDE}/", "")
    found = _ERROR.search(log) or _MENTION.search(log)
    line = int(found[1]) if found else None
    text = log.strip() or f"the compiler failed with exit code {code}"
    return CompileFailure(text[:_LOG_CHARS], line)


def _image(
    source: str, entries: Sequence[str], data: bytes, log: str, seconds: float, instrumented: bool
) -> Image | CompileFailure:
    kernels = set(re.findall(r"__global__[^;{}]*?\b(\w+)\s*\(", _without_bounds(blank_comments(source))))
    shared = read_variables(data).shared
    resources = {}
    for entry in entries:
        used = _static_shared(entry, kernels, shared)
        if used > STATIC_SHARED_BYTES:
            return CompileFailure(
                f"{entry} uses too much shared data ({used} bytes, {STATIC_SHARED_BYTES} max for static __shared__)"
            )
        resources[entry] = Resources(static_shared_bytes=used)
    if instrumented:
        data = attach_source(data, source)
    symbols = {entry: f"fsr_entry_{index}" for index, entry in enumerate(entries)}
    return Image("host", ARCH, data, symbols, resources, log.strip(), seconds, instrumented)


def _without_bounds(source: str) -> str:
    return re.sub(r"__launch_bounds__\s*\([^()]*(?:\([^()]*\)[^()]*)*\)", "", source)


def _static_shared(entry: str, kernels: set[str], shared: Sequence[Variable]) -> int:
    """Bytes of ``__shared__`` variables that a launch of ``entry`` needs: its own, and those of device functions
    and file scope. Of several instantiations of one kernel template the largest counts."""
    own = re.sub(r"<.*", "", entry).rsplit("::", 1)[-1].strip()
    common, instances = 0, dict[str, int]()
    for variable in shared:
        names = {name for name in kernels if f"{len(name)}{name}" in variable.function or variable.function == name}
        if own in names:
            instances[variable.function] = instances.get(variable.function, 0) + variable.size_bytes
        elif not names and variable.name not in _RUNTIME_VARIABLES:
            common += variable.size_bytes
    return common + max(instances.values(), default=0)


_RUNTIME_VARIABLES = ("_ZN3fsr12_GLOBAL__N_111shared_tailE",)
