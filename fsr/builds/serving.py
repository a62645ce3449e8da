"""Whether a build may take a stored winner in its kernel's place: never where it was not proven.

A winner was proven for one kind of GPU, for the sizes, alignments and overlaps that the contract promises, for one
launch, one set of compiler flags and one meaning of every macro. A build that keeps its call sites can vouch for none
of it by itself, so each must follow from the file and from the command.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsr.builds.command import Command, architectures
from fsr.cache.lookup import Hit

_DEFAULTS = {"ftz": "false", "prec-div": "true", "prec-sqrt": "true", "fmad": "true"}  # nvcc --help
_SWITCHES = ("use_fast_math", "extra-device-vectorization", "restrict", "maxrregcount", *_DEFAULTS)
# headers of CUDA and C++ that define no kernel: none has a folder in its name (thrust/, cub/, torch/, ATen/ have)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Served:
    """What a build compiles instead. text: the source. flags: compiler flags to add, nvcc's spelling."""

    text: str
    flags: tuple[str, ...]


def served(hit: Hit, kernel: Path) -> Served | str:
    """The winner for a build that keeps the kernel's launch, or why it must not be used.

    ``hit``: of tier 'exact'. The flags it was proven with are added where the file has no second kernel that they
    would change too."""
    body = json.loads(hit.body)
    if len(hit.files) != 1:
        header = next((name for name in hit.files if name.endswith(".cuh")), "a header")
        return f"its launch differs from the original's: call the launcher in {header} (`fsr lookup {kernel}`)"
    (text,) = hit.files.values()
    original = kernel.read_bytes().decode("utf-8", "surrogateescape")
    included = dict(body["key"]["includes"])
    if "/// fsr" not in original and not any(name.endswith(".fsr.toml") for name in included):
        return (
            "its contract was inferred, so nobody promised its sizes and alignments: "
            f"`fsr contract {kernel} --write`, then refine again"
        )
    before, after = list(body["key"]["flags"]), list(body["candidate"]["plan"]["flags"])
    more = [flag for flag in after if flag not in before]
    if [flag for flag in before if flag not in after]:
        return "it was proven without a flag that the contract names"
    if more and (why := _more_than_the_kernel(original, kernel.parent, included)):
        return f"it needs {' '.join(more)}, and {why}"
    return Served(text, tuple(spelled_for_nvcc(more)))


def _more_than_the_kernel(original: str, folder: Path, included: Iterable[str]) -> str:
    """Why flags of the whole file would change more than the kernel; empty when they do not."""
    paths = [folder / name for name in included if not name.endswith((".toml", ".py"))]
    texts = [original, *(path.read_text(errors="surrogateescape") for path in paths)]
    code = [_COMMENT.sub(" ", text) for text in texts]
    count = sum(len(re.findall(r"\b__global__\b", text)) for text in code)
    if count != 1:
        return f"the file has {count} kernels, which would change with it"
    known = {Path(name).name for name in included}
    for text in code:
        for name in _INCLUDE.findall(text):
            if Path(name).name not in known and ("/" in name or name.endswith(".cuh")):
                return f"{name} may define kernels, which would change with it"
    return ""


def spelled_for_nvcc(flags: Iterable[str]) -> list[str]:
    """Flags in NVRTC's spelling as nvcc takes them."""
    return [re.sub(r"^--?ptxas-options=", "-Xptxas=", flag) for flag in flags]


def unfit(command: Command, hit: Hit, kernel: Path) -> str:
    """Why this command would not compile what was proven: another architecture, flags, macros. Empty when it does."""
    body = json.loads(hit.body)
    arch = str(body["device"]["arch"]).removeprefix("sm_")
    made_for = {re.sub(r"[a-z]$", "", name) if name[:1].isdigit() else name for name in architectures(command)}
    if made_for != {arch}:
        told = ", ".join(sorted(made_for)) or "nvcc's default architecture"
        return f"compiled for {told}, proven for sm_{arch} only"
    debugging = command.values("device-debug") or command.values("lto")
    if debugging or any("O0" in value for value in command.values("ptxas")):
        return "debugging and link-time optimization keep the original"
    if command.values("pre-include"):
        return "a header is included before the file"
    asked, proven = _switches_of(command), _switches(body["key"]["flags"])
    if asked != proven:
        different = " ".join(sorted(f"{name}={value}" for name, value in asked ^ proven))
        return f"flags differ from those of the contract: {different}"
    return _macros_differ(command, body, kernel) or _includes_differ(command, body, kernel)


def _switches_of(command: Command) -> set[tuple[str, str]]:
    return _normal([(name, value) for name, value in command.options if name in _SWITCHES])


def _switches(flags: Sequence[str]) -> set[tuple[str, str]]:
    pairs = [flag.lstrip("-").partition("=")[::2] for flag in flags]
    return _normal([(name, value) for name, value in pairs if name in _SWITCHES])


def _normal(pairs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    last = dict(pairs)
    return {(name, value) for name, value in last.items() if _DEFAULTS.get(name) != value}


def _macros_differ(command: Command, body: dict[str, Any], kernel: Path) -> str:
    """A macro that the command sets and the kernel's files name means something else than when it was proven."""
    given = [(name, value) for name, value in command.options if name in ("define", "undefine")]
    for value in command.values("host"):
        for word in value.split(","):
            if word.startswith(("-D", "-U")):
                given.append(("define" if word[1] == "D" else "undefine", word[2:]))
            elif word.startswith(("-include", "-imacros")):
                return "a header is included before the file"
    proven = {f"{flag[1]}{flag[2:].strip()}" for flag in body["key"]["flags"] if flag[:2] in ("-D", "-U")}
    asked = {f"{'D' if kind == 'define' else 'U'}{text}" for kind, text in given}
    different = {text[1:].partition("=")[0] for text in asked ^ proven}
    if not different:
        return ""
    files = [kernel, *(kernel.parent / name for name, _ in body["key"]["includes"] if not name.endswith(".toml"))]
    named = {word for path in files for word in re.findall(r"[A-Za-z_]\w*", path.read_text(errors="surrogateescape"))}
    told = sorted(different & named) or sorted(different & {text[1:].partition("=")[0] for text in proven})
    return f"the macro {told[0]} is set otherwise than when it was proven" if told else ""


def _includes_differ(command: Command, body: dict[str, Any], kernel: Path) -> str:
    """A winner that was found with folders of includes: the command's must lead to the same files."""
    included = [name for name, _ in body["key"]["includes"]]
    contracts = [kernel, *(kernel.parent / name for name in included if name.endswith(".toml"))]
    stated = any("include_dirs" in path.read_text("utf-8", "replace") for path in contracts)
    if not stated and not any(text.startswith("-I") for text in body["key"].get("given", ())):
        return ""
    from fsr.source.file import KernelFile

    file = KernelFile.read(kernel, [Path(folder) for folder in command.values("include")])
    here = {path.resolve() for path in file.included}
    proven = {(kernel.parent / name).resolve() for name in included if not name.endswith((".toml", ".py"))}
    different = sorted(path.name for path in here ^ proven)
    return f"{different[0]} is not what it was proven with, under this command's -I" if different else ""
