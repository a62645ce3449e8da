"""A suite: a folder of kernels with contracts, the same computations in torch, and what the figures need.

It holds suite.toml (quick = [names]; by workload [flops] and [bytes], size expressions, and [least], a number) and, in
a folder for each family, NAME.cu (plain code with its contract), references.py (NAME(...) with torch tensors, and
library_NAME(...) where a library has it) and NAME.tune.toml where Kernel Tuner has a space (:mod:`fsr.bench.tuner`).

A reference has parameters by the names of arguments and sizes, as the reference of a contract; it may update tensors of
role inout in place. A parameter with a function as its default is what is compiled: a step of a long loop, say.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from fsr.errors import UsageError

TABLE, REFERENCES = "suite.toml", "references.py"
_KEYS = {"quick", "flops", "bytes", "least"}
LEAST = 0.5  # of the best peer's speed, where a suite aims at nothing else


@dataclass(frozen=True, slots=True)
class Workload:
    """One kernel file of a suite. ``references``: the file with its torch functions, None without one for it.
    ``library``: whether that has ``library_NAME`` too. ``space``: a tuning space, None without one. ``flops``:
    floating-point operations of a run, ``bytes``: what it has to move, as size expressions; '' where unknown, or where
    the contract says it. ``least``: of the best peer's speed, what is aimed at."""

    name: str
    family: str
    kernel: Path
    references: Path | None = None
    library: bool = False
    space: Path | None = None
    flops: str = ""
    bytes: str = ""
    least: float = LEAST


@dataclass(frozen=True, slots=True)
class Suite:
    """All workloads in order of family and name; ``quick``: names of those that stand for it in a short run."""

    root: Path
    workloads: tuple[Workload, ...]
    quick: tuple[str, ...] = ()

    def chosen(self, patterns: Sequence[str] = (), *, quick: bool = False) -> tuple[Workload, ...]:
        """Those whose name or FAMILY/name matches one of the shell patterns (all without any). Raises UsageError for a
        pattern that matches none."""
        pool = [w for w in self.workloads if w.name in self.quick] if quick and not patterns else self.workloads
        for pattern in patterns:
            if not any(_matches(w, pattern) for w in pool):
                raise UsageError(
                    f"no workload matches {pattern!r}", expected="of: " + ", ".join(w.name for w in self.workloads),
                    where="--only", fix="name one of them, or a pattern such as 'gemm*'",
                )  # fmt: skip
        return tuple(w for w in pool if not patterns or any(_matches(w, p) for p in patterns))


def _matches(workload: Workload, pattern: str) -> bool:
    return fnmatchcase(workload.name, pattern) or fnmatchcase(f"{workload.family}/{workload.name}", pattern)


def load_suite(root: Path) -> Suite:
    """The suite in a folder. Raises UsageError for a folder without kernels, two workloads of one name and a table that
    names none."""
    if not root.is_dir():
        raise UsageError(f"{root} is no folder", expected="a folder of .cu files with contracts", where="SUITE")
    table = _table(root / TABLE)
    kernels = sorted(p for p in root.rglob("*.cu") if not p.stem.endswith((".fsr", ".tune")))
    workloads = tuple(_workload(root, path, table) for path in kernels)
    names = [w.name for w in workloads]
    if not names:
        raise UsageError(f"{root} holds no kernel", expected="FAMILY/NAME.cu, each with its contract", where="SUITE")
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"two workloads are called {twice[0]!r}", expected="a name each", where=str(root))
    for key in sorted(_KEYS):
        for name in table.get(key, ()):
            if name not in names:
                raise UsageError(
                    f"{key} names {name!r}, which the suite does not have", expected="of: " + ", ".join(names),
                    where=str(root / TABLE), fix="correct the name",
                )  # fmt: skip
    return Suite(root, workloads, tuple(table.get("quick", ())))


def _table(path: Path) -> Mapping[str, Any]:
    try:
        table = tomllib.loads(path.read_text()) if path.exists() else {}
    except tomllib.TOMLDecodeError as fault:
        raise UsageError(f"it is no TOML: {fault}", where=str(path), fix="correct it there") from None
    if unknown := set(table) - _KEYS:
        raise UsageError(f"unknown key {min(unknown)!r}", expected=", ".join(sorted(_KEYS)), where=str(path))
    return table


def _workload(root: Path, path: Path, table: Mapping[str, Any]) -> Workload:
    references, space = path.with_name(REFERENCES), path.with_suffix(".tune.toml")
    functions = _functions(references) if references.exists() else set()
    return Workload(
        path.stem, path.parent.relative_to(root).as_posix(), path, references if path.stem in functions else None,
        f"library_{path.stem}" in functions, space if space.exists() else None,
        table.get("flops", {}).get(path.stem, ""), table.get("bytes", {}).get(path.stem, ""),
        table.get("least", {}).get(path.stem, LEAST),
    )  # fmt: skip


def _functions(path: Path) -> set[str]:
    """Names that a module defines at its top, without importing it: torch need not be here."""
    try:
        body = ast.parse(path.read_text()).body
    except SyntaxError as fault:
        raise UsageError(f"it is no Python: {fault.msg}", where=f"{path}:{fault.lineno}") from None
    targets = [t for n in body if isinstance(n, ast.Assign) for target in n.targets for t in ast.walk(target)]
    return {n.name for n in body if isinstance(n, ast.FunctionDef)} | {t.id for t in targets if isinstance(t, ast.Name)}
