"""The scripts that measure: what they import is there, though no test runs them."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[1] / "benchmarks").glob("*.py"))


def imported(script: Path) -> Iterator[tuple[str, str]]:
    """The modules of the project's that a script imports from, with each name."""
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("fsr", "fsrd"):
            yield from ((str(node.module), alias.name) for alias in node.names)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_what_a_script_imports_is_there(script: Path) -> None:
    for module, name in imported(script):
        there = hasattr(importlib.import_module(module), name)
        assert there or importlib.util.find_spec(f"{module}.{name}"), f"{module} has no {name}"


def test_scripts_are_seen() -> None:
    assert any(list(imported(script)) for script in SCRIPTS)
