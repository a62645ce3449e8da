"""An nvcc command line, as far as it says what is compiled and how.

The options are those of ``nvcc --help`` (CUDA 13): values stand behind ``=`` or in the next word, long and short
spellings mean the same. What is not known is carried along untouched.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LAUNCHERS = frozenset({"ccache", "sccache", "distcc", "icecc", "buildcache", "nice", "time"})
# spelling -> the name used here, for options that take a value
VALUED = {
    "-o": "output", "--output-file": "output", "-x": "language", "--x": "language",
    "-I": "include", "--include-path": "include", "-isystem": "include", "--system-include": "include",
    "-include": "pre-include", "--pre-include": "pre-include",
    "-D": "define", "--define-macro": "define", "-U": "undefine", "--undefine-macro": "undefine",
    "-MF": "depfile", "--dependency-output": "depfile", "-MT": "target", "--dependency-target-name": "target",
    "-MQ": "target",
    "-arch": "arch", "--gpu-architecture": "arch", "-code": "code", "--gpu-code": "code",
    "-gencode": "gencode", "--generate-code": "gencode",
    "-std": "std", "--std": "std", "-odir": "folder", "--output-directory": "folder",
    "-ftz": "ftz", "--ftz": "ftz", "-prec-div": "prec-div", "--prec-div": "prec-div",
    "-prec-sqrt": "prec-sqrt", "--prec-sqrt": "prec-sqrt", "-fmad": "fmad", "--fmad": "fmad",
    "-maxrregcount": "maxrregcount", "--maxrregcount": "maxrregcount",
    "-Xptxas": "ptxas", "--ptxas-options": "ptxas", "-Xcompiler": "host", "--compiler-options": "host",
    "-Xlinker": "", "--linker-options": "", "-Xcudafe": "", "-Xnvlink": "", "--nvlink-options": "",
    "-Xfatbin": "", "--fatbin-options": "", "-Xarchive": "", "--archive-options": "", "-ccbin": "",
    "--compiler-bindir": "", "-L": "", "--library-path": "", "-l": "", "--library": "", "-cudart": "", "--cudart": "",
    "-t": "", "--threads": "", "-m": "", "--machine": "", "-rdc": "", "--relocatable-device-code": "",
    "-diag-suppress": "", "--diag-suppress": "", "-diag-error": "", "--diag-error": "", "-diag-warn": "",
    "--diag-warn": "", "-default-stream": "", "--default-stream": "", "-keep-dir": "", "--keep-dir": "",
    "-options-file": "file", "--options-file": "file", "-optf": "file", "-O": "", "--optimize": "",
    "-target-dir": "", "--target-directory": "",
}  # fmt: skip
GLUED = ("-I", "-D", "-U", "-L", "-l", "-O", "-MF", "-MT", "-isystem", "-include")  # as in -Ifolder
FLAGS = {
    "-use_fast_math": "use_fast_math", "--use_fast_math": "use_fast_math",
    "-extra-device-vectorization": "extra-device-vectorization",
    "--extra-device-vectorization": "extra-device-vectorization",
    "-restrict": "restrict", "--restrict": "restrict", "-G": "device-debug", "--device-debug": "device-debug",
    "-dlto": "lto", "-MD": "MD", "--generate-dependencies-with-compile": "MD", "-MMD": "MD",
    "--generate-nonsystem-dependencies-with-compile": "MD",
}  # fmt: skip
# what is asked for instead of compiling; the launcher has no part in it
OTHER_WORK = frozenset({
    "-E", "--preprocess", "-M", "--generate-dependencies", "-MM", "--generate-nonsystem-dependencies", "-run", "--run",
    "-dryrun", "--dryrun", "-V", "--version", "-h", "--help", "-link", "--link", "-lib", "--lib", "-dlink",
    "--device-link", "-keep", "--keep", "-save-temps", "--save-temps", "-qpp-config",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Command:
    """words: the command as it was given. source: index in it of the only .cu input. options: (name, value) of what is
    known, in order, option files opened; a flag's value is ''."""

    words: tuple[str, ...]
    source: int
    options: tuple[tuple[str, str], ...]

    @property
    def path(self) -> str:
        """The source file as it was named."""
        return self.words[self.source]

    def values(self, name: str) -> list[str]:
        """The values of an option, in order."""
        return [value for known, value in self.options if known == name]

    def depfile(self) -> str | None:
        """The dependency file that the command writes; None when it writes none.

        nvcc names it after -MF, else after the output, else after the source (``nvcc --help``, -MD)."""
        if not self.values("MD"):
            return None
        if self.values("depfile"):
            return self.values("depfile")[-1]
        if self.values("output"):
            return str(Path(self.values("output")[-1]).with_suffix(".d"))
        folder = self.values("folder")[-1:] or ["."]
        return str(Path(folder[0], Path(self.path).stem + ".d"))


def read_command(words: list[str], more: str = "") -> Command | str:
    """The command, or why the launcher leaves it alone: no nvcc, other work than compiling, not one .cu file.

    ``more``: options that nvcc takes from its environment (NVCC_PREPEND_FLAGS, NVCC_APPEND_FLAGS), one text."""
    start = 0
    while start < len(words) and Path(words[start]).name in LAUNCHERS:
        start += 1
    if start == len(words) or not Path(words[start]).name.startswith("nvcc"):
        return "the compiler is not nvcc"
    sources, options = [], list[tuple[str, str]]()
    try:
        from_environment = _scan(shlex.split(more), 0, depth=1)
        for index, name, value in (*from_environment, *_scan(words, start + 1, depth=0)):
            if name == "input" and value.endswith(".cu"):
                sources.append(index)
            elif name == "work":
                return f"{value} asks for something else than compiling"
            options.append((name, value))
    except (OSError, ValueError) as fault:
        return f"an options file cannot be read: {fault}"
    if len(sources) != 1 or sources[0] < 0:
        return f"{len(sources)} .cu files in one command" if len(sources) != 1 else "the source is in an options file"
    return Command(tuple(words), sources[0], tuple(options))


def _scan(words: list[str], start: int, depth: int) -> Iterator[tuple[int, str, str]]:
    """(index, name, value) of every word; index -1 inside an options file."""
    rest = list(enumerate(words))[start:]
    while rest:
        index, word = rest.pop(0)
        at = index if depth == 0 else -1
        if word in OTHER_WORK:
            yield at, "work", word
        elif word in FLAGS:
            yield at, FLAGS[word], ""
        elif not word.startswith("-"):
            if word.startswith("@"):
                yield from _file(word[1:], depth)
            else:
                yield at, "input", word
        else:
            spelled, sign, value = word.partition("=")
            glued = next((g for g in GLUED if word.startswith(g) and word != g), None)
            if glued is not None and (spelled not in VALUED or not sign):
                spelled, sign, value = glued, "=", word[len(glued) :]
            if spelled not in VALUED:
                continue
            if not sign and not rest:
                raise ValueError(f"{word} needs a value")
            name, value = VALUED[spelled], value if sign else rest.pop(0)[1]
            if name == "file":
                for path in value.split(","):
                    yield from _file(path, depth)
            else:
                yield at, name, value


def _file(path: str, depth: int) -> Iterator[tuple[int, str, str]]:
    if depth > 8:
        raise ValueError(f"{path} is nested too deeply")
    yield from _scan(shlex.split(Path(path).read_text("utf-8")), 0, depth + 1)


def architectures(command: Command) -> set[str]:
    """The architectures that the output is made for, as numbers with their letter ('90', '90a'), or 'native', 'all',
    'all-major', '?' where one is not understood. Empty when none is named."""
    found = set[str]()
    for name, value in command.options:
        if name in ("arch", "code", "gencode"):
            named = re.findall(r"(?:sm|compute|lto)_(\d+[a-z]?)|\b(native|all-major|all)\b", value)
            found |= {number or word for number, word in named} or {"?"}
    return found
