"""The parts of every host image that do not change: runtime objects and the precompiled language header.

They are built once a compiler and kept in the user's cache folder under a hash of all they are made from.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fsr.backends.host.built_once import built_once
from fsr.errors import MissingToolError
from fsr.sandbox.environment import run_tool

EMULATOR = Path(__file__).resolve().parents[2] / "emulator"
INCLUDE = EMULATOR / "include"
_RUNTIME = EMULATOR / "runtime"
_PLAIN = ("fiber", "block", "named", "launch", "async", "wgmma")
# What each kind of build consists of, and the macro that its sources see.
_PARTS = {
    "plain": _PLAIN,
    "recording": (*_PLAIN, "recorder", "locals", "shadow", "knowledge", "order", "statistics"),
    "tracing": (*_PLAIN, "tracer"),
}
_MACROS = {"plain": (), "recording": ("-DFSR_RECORD",), "tracing": ("-DFSR_TRACE",)}
_NEWEST_CLANG, _NEWEST_GCC = 24, 17

# Common to the runtime and to kernels: objects of one shared library, calls bound inside it.
COMMON = (
    "-std=c++17", "-march=x86-64-v3", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-w",
    "-fno-stack-protector", "-fno-threadsafe-statics", "-fno-semantic-interposition", "-Wno-register", f"-I{INCLUDE}",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler: its path, 'clang' or 'gcc', and the first line of its --version."""

    path: str
    family: str
    version: str

    @property
    def major(self) -> int:
        """The first number of its version; 0 where that tells none."""
        found = re.search(r"(\d+)\.\d+", self.version)
        return int(found[1]) if found else 0


def _names() -> Iterator[str]:
    yield from (f"clang++-{n}" for n in range(_NEWEST_CLANG, 13, -1))
    yield "clang++"
    yield from (f"g++-{n}" for n in range(_NEWEST_GCC, 9, -1))
    yield "g++"


@cache
def find_compiler(path: str | None = None) -> Compiler:
    """The compiler given, or the best installed one: clang++ (newest first), then g++.

    Raises MissingToolError when there is none."""
    candidates = [path] if path else _names()
    for name in candidates:
        found = shutil.which(name)
        if not found:
            continue
        run = run_tool([found, "--version"])
        if run.returncode == 0:
            family = "clang" if "clang" in run.stdout else "gcc"
            return Compiler(found, family, run.stdout.splitlines()[0])
    raise MissingToolError(
        f"no C++ compiler for the host device{f' at {path}' if path else ''}",
        expected="clang++ (14 or newer) or g++ (10 or newer) on PATH",
        fix="apt-get install clang, or apt-get install g++",
    )


def _digest(compiler: Compiler, extra: tuple[str, ...]) -> str:
    content = hashlib.sha256("\0".join((compiler.path, compiler.version, *COMMON, *extra)).encode())
    for path in sorted([*INCLUDE.rglob("*"), *_RUNTIME.glob("*")]):
        if path.is_file():
            content.update(str(path.relative_to(EMULATOR)).encode() + b"\0" + path.read_bytes())
    return content.hexdigest()[:24]


@cache
def runtime_objects(compiler: Compiler, kind: str, folder: Path) -> tuple[Path, ...]:
    """Compiled runtime files of a kind of build, built on first use: 'plain', 'recording' or 'tracing'. ``folder`` is
    the cache; safe in parallel."""
    parts = _PARTS[kind]

    def build(path: Path) -> None:
        flags = [*COMMON, "-O2", f"-I{_RUNTIME}", *_MACROS[kind]]
        for part in parts:
            _run([compiler.path, *flags, "-c", str(_RUNTIME / f"{part}.cpp"), "-o", str(path / f"{part}.o")])

    target = built_once(folder / f"runtime-{kind}-{_digest(compiler, parts)}", build)
    return tuple(target / f"{part}.o" for part in parts)


# What the header itself instantiates comes with it: else every unit does that again, in half of its time or more.
_ONCE = {"clang": ("-fpch-instantiate-templates",), "gcc": ()}


@cache
def precompiled_header(compiler: Compiler, flags: tuple[str, ...], folder: Path) -> list[str]:
    """Arguments that include the language header, precompiled for exactly these flags."""
    name = "cuda.pch" if compiler.family == "clang" else "cuda.h.gch"
    options = (*flags, *_ONCE[compiler.family])

    def build(path: Path) -> None:
        header = INCLUDE / "fsr" / "cuda.h"
        (path / "cuda.h").write_text(f'#include "{header}"\n')
        if compiler.family == "clang":
            # The folder's name tells the headers' content; their times (a fresh checkout) mean nothing.
            source = ["-Xclang", "-fno-pch-timestamp", str(header)]
        else:
            source = [str(path / "cuda.h")]
        _run([compiler.path, *options, "-x", "c++-header", *source, "-o", str(path / name)])

    target = built_once(folder / f"header-{_digest(compiler, options)}", build)
    if compiler.family == "clang":
        return ["-include-pch", str(target / name)]
    return ["-include", str(target / "cuda.h")]


def _run(command: list[str]) -> None:
    run = run_tool(command)
    if run.returncode:
        raise MissingToolError(
            f"{command[0]} cannot compile the host device's runtime: {run.stderr.strip()[:2000]}",
            expected="a C++17 compiler for x86-64 with its standard library",
            fix="install clang and libstdc++-dev, or g++",
        )
