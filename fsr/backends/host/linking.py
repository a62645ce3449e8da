"""The command that makes a shared object of a unit and the runtime."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from fsr.backends.host.runtime import Compiler
from fsr.sandbox.environment import run_tool

_OPTIONS = ("-shared", "-nodefaultlibs", "-Wl,-z,defs", "-Wl,-Bsymbolic")
_LIBRARIES = ("-lm", "-lc", "-lgcc")
_OUTPUT = "fsr-output.so"


def link_command(compiler: Compiler, unit: Path, objects: Sequence[Path], output: Path) -> list[str]:
    """Links ``unit`` with the runtime's objects. The linker is not told of sanitizers: their runtimes would come along,
    and ours takes their place.

    The command is the linker's own, where the compiler tells it: clang's start takes longer than the linking."""
    names = tuple(map(str, objects))
    words = _linker(compiler, names) or _through(compiler, names)
    at = words.index(names[0])
    return [str(output) if word == _OUTPUT else word for word in (*words[:at], str(unit), *words[at:])]


def _through(compiler: Compiler, objects: tuple[str, ...]) -> tuple[str, ...]:
    """How the compiler is asked to link."""
    return compiler.path, *_OPTIONS, "-o", _OUTPUT, *objects, *_LIBRARIES


@cache
def _linker(compiler: Compiler, objects: tuple[str, ...]) -> tuple[str, ...]:
    """How clang would call the linker; nothing where it does not say. (What g++ calls is no linker.)"""
    if compiler.family != "clang":
        return ()
    told = run_tool([*_through(compiler, objects), "-###"])
    lines = told.stderr.strip().splitlines()
    words = tuple(shlex.split(lines[-1])) if told.returncode == 0 and lines else ()
    whole = words and Path(words[0]).is_absolute() and words.count(_OUTPUT) == 1 and set(objects) <= set(words)
    return words if whole else ()
