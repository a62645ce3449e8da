"""One wrong input: what lies in its folder, what is typed, and what may come of it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.commandline import ROW_SUM

Prepare = Callable[[Path, Path], None]
KERNEL = ROW_SUM
BODY = KERNEL[KERNEL.index("__global__") :]
_BLOCK = KERNEL.split("// ///")[1].splitlines()[1:]
TOML = "\n".join(line.removeprefix("//").removeprefix(" ") for line in _BLOCK) + "\n"
PLAN: dict[str, Any] = {
    "launches": [
        {"entry": "row_sum", "grid": ["ceil_div(rows, 64)", "1", "1"], "block": ["64", "1", "1"], "shared_bytes": "0",
         "args": ["x", "y", "rows", "cols"]}
    ],
    "scratch": [], "flags": [],
}  # fmt: skip
LONG = "n" * 5000
USAGE, FAILED, TOOL = frozenset({2}), frozenset({1}), frozenset({4})
REFUSED = USAGE | FAILED
MAY_PASS = REFUSED | {0}


@dataclass(frozen=True)
class Bad:
    """prepare: is given the folder of the files and the home. arguments: after ``fsr``; ``{work}`` is the folder.
    codes: exit codes that are right. words: must be told. env: over the usual; limits: of the process."""

    name: str
    group: str
    arguments: tuple[str, ...]
    codes: frozenset[int]
    prepare: Prepare
    words: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[int, int] = field(default_factory=dict)
    as_nobody: bool = False


def files(**named: str | bytes) -> Prepare:
    """Writes files into the folder; ``kernel_cu`` is kernel.cu, the kernel itself unless it is given."""

    def prepare(work: Path, home: Path) -> None:
        for name, text in ({"kernel_cu": KERNEL} | named).items():
            path = work / name.replace("_", ".")
            path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))

    return prepare


def then(*steps: Prepare) -> Prepare:
    """One after the other."""

    def prepare(work: Path, home: Path) -> None:
        for step in steps:
            step(work, home)

    return prepare


def evidence(plan: object) -> str:
    """The text of a .json beside a candidate."""
    return json.dumps({"best": {"plan": plan}})


def refine(*more: str, kernel: str = "kernel.cu", budget: str = "60s") -> tuple[str, ...]:
    """A refinement that would end soon."""
    return ("refine", kernel, "--device", "host", "--budget", budget, "--evaluations", "1", *more)


def check(candidate: str = "candidate.cu", *more: str) -> tuple[str, ...]:
    """A check on the host device."""
    return ("check", candidate, "--against", "kernel.cu", "--device", "host", *more)


def made(how: str, name: str) -> Prepare:
    def prepare(work: Path, home: Path) -> None:
        path = work / name
        path.unlink(missing_ok=True)
        match how:
            case "fifo":
                os.mkfifo(path)
            case "folder":
                path.mkdir()
            case "loop":
                path.symlink_to(name)
            case "dangling":
                path.symlink_to("nowhere")
            case "zero":
                path.symlink_to("/dev/zero")
            case "null":
                path.symlink_to("/dev/null")
            case "unreadable":
                path.write_text(KERNEL)
                path.chmod(0)
            case "socket":
                with socket.socket(socket.AF_UNIX) as s, suppress(OSError):
                    here = Path.cwd()
                    os.chdir(work)
                    s.bind(name)
                    os.chdir(here)
            case "sparse":
                with path.open("wb") as file:
                    file.truncate(8 << 30)

    return prepare


HOWS = ("fifo", "folder", "loop", "dangling", "zero", "null", "unreadable", "socket", "sparse")
