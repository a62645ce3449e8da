"""The pages say what the program does: every command has help and a page, and the help there is today's."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import click
import pytest

from fsr import errors
from fsr.runs.kernel import load_kernel
from fsr.runs.options import RefineOptions
from fsr.search.proposal import Rules, moves_of
from fsr.settings import VARIABLES
from fsr.transform.registry import all_actions

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "command-line.md").read_text()


@pytest.fixture(scope="module")
def generator() -> Any:
    spec = spec_from_file_location("generate_command_line", DOCS / "generate_command_line.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_help_on_the_page_is_todays() -> None:
    check = [sys.executable, str(DOCS / "generate_command_line.py"), "--check"]
    ran = subprocess.run(check, capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode == 0, ran.stderr


def test_the_page_of_features_is_what_the_schema_says() -> None:
    check = [sys.executable, str(DOCS / "generate_features.py"), "--check"]
    ran = subprocess.run(check, capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode == 0, ran.stderr


def test_every_command_and_option_says_what_it_is_for(generator: Any) -> None:
    for name, command in generator.commands():
        assert command.help, name
        assert f"### {name}\n" in PAGE
        options = [p for p in command.params if isinstance(p, click.Option)]
        assert [f"{name} {option.name}" for option in options if not option.help] == []


def test_every_exit_code_and_variable_is_on_the_page() -> None:
    codes = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert codes <= {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)}
    assert all(f"`{variable}`" in PAGE for variable in VARIABLES.values())


def test_every_option_of_the_api_has_its_flag() -> None:
    flags = {"budget_s": "budget", "use_cache": "no-cache", "output": "out", "kernel": "KERNEL"}
    flags |= {"include_dirs": "include-dir", "defines": "define"}
    for name in RefineOptions.__dataclass_fields__:
        flag = flags.get(name, name.replace("_", "-"))
        assert flag in PAGE


def test_links_between_pages_lead_somewhere() -> None:
    for page in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_files_that_trust_names_are_there() -> None:
    named = re.findall(r"`((?:tests|fsr)/[\w/.]+)`", (DOCS / "trust.md").read_text())
    assert named
    assert [path for path in named if not (DOCS.parent / path).exists()] == []


def rows_of_actions() -> dict[str, str]:
    """Action name to its row on the page of actions."""
    rows = (DOCS / "actions.md").read_text().splitlines()
    return {name: row for row in rows if row.startswith("| `") for name in re.findall(r"`([\w-]+)`", row.split("|")[1])}


def test_every_action_is_on_its_page_with_its_parameters() -> None:
    rows, seen = rows_of_actions(), set()
    assert set(rows) == {action.name for action in all_actions()}
    for path in sorted((DOCS.parent / "examples").glob("*.cu")):
        kernel = load_kernel(path)
        for action, move in moves_of(Rules(kernel.contract).subject(kernel.baseline), all_actions()):
            seen.add(action.name)
            assert [key for key, _ in move.params if f"`{key}`" not in rows[action.name].split("|")[4]] == [], move.name
    assert len(seen) > 15
