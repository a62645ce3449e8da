"""No program that fsr starts sees a secret: found in the source, since a short-lived one is hardly ever caught."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import fsr
from fsr.sandbox.environment import clean_environment

ROOT = Path(fsr.__file__).parent
CLEAN = "run_tool"  # gives it one itself
STARTS = (CLEAN, *(f"subprocess.{name}" for name in ("run", "Popen", "check_output", "check_call", "call")))
# These run what the user runs, fsr itself included, in the user's environment.
THE_USERS = {"builds/launching.py", "bench/refining.py"}


def starts() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in STARTS:
                yield path.relative_to(ROOT).as_posix(), node


def test_what_looks_like_a_secret_is_left_out() -> None:
    given = {"PATH": "/bin", "OPENAI_API_KEY": "sk-1", "HF_TOKEN": "hf", "aws_secret": "s", "LANG": "C"}
    assert clean_environment(given) == {"PATH": "/bin", "LANG": "C"}


def test_every_program_is_given_an_environment_of_its_own() -> None:
    found = list(starts())
    assert len(found) > 12
    given = [(file, call) for file, call in found if ast.unparse(call.func) != CLEAN]
    bare = [f"{file}:{call.lineno}" for file, call in given if not any(k.arg == "env" for k in call.keywords)]
    assert [place for place in bare if place.partition(":")[0] not in THE_USERS] == []
