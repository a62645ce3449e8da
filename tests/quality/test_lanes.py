"""Runs of a plan: side by side by lane, in the time there is, and only what is left the next time."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "lanes.py"


@pytest.fixture(name="lanes")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("script_lanes", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def plan(folder: Path, *rows: tuple[str, str, str, float]) -> Path:
    path = folder / "plan.toml"
    path.write_text("".join(
        f"[[run]]\nname = '{name}'\nlane = '{lane}'\nseconds = {seconds}\ncommand = '''{command}'''\n"
        for name, lane, command, seconds in rows
    ))  # fmt: skip
    return path


def told(out: Path) -> dict[str, tuple[str, str]]:
    return {name: (row["status"], row["last"]) for name, row in json.loads((out / "done.json").read_text()).items()}


def test_each_run_has_a_folder_and_only_what_is_left_is_begun_again(lanes: ModuleType, tmp_path: Path) -> None:
    asked, out = tmp_path / "asked", tmp_path / "out"
    rows = [
        ("first", "a", "sh -c 'echo one >> {out}/seen; echo well'", 30.0),
        ("second", "a", f"sh -c 'test -e {asked} && echo mended'", 30.0),
        ("beside", "b", "{python} -c 'print(6 * 7)'", 30.0),
    ]
    assert lanes.main([str(plan(tmp_path, *rows)), str(out), "--seconds", "60"]) == 1
    assert told(out) == {"first": ("ok", "well"), "second": ("failed", ""), "beside": ("ok", "42")}
    asked.touch()
    assert lanes.main([str(tmp_path / "plan.toml"), str(out), "--seconds", "60"]) == 0
    assert told(out)["second"] == ("ok", "mended")
    assert (out / "first" / "seen").read_text() == "one\n"


def test_one_that_takes_too_long_is_interrupted_and_the_next_goes_on(lanes: ModuleType, tmp_path: Path) -> None:
    slow = "sh -c \"trap 'echo kept; exit 1' INT; echo begun; sleep 60 & wait\""
    rows = [("slow", "a", slow, 1.0), ("next", "a", "echo well", 30.0)]
    assert lanes.main([str(plan(tmp_path, *rows)), str(tmp_path / "out"), "--seconds", "60"]) == 1
    assert told(tmp_path / "out") == {"slow": ("interrupted", "kept"), "next": ("ok", "well")}


def test_nothing_is_begun_that_there_is_no_time_for(
    lanes: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert lanes.main([str(plan(tmp_path, ("late", "a", "echo well", 30.0))), str(out), "--seconds", "3"]) == 1
    assert not (out / "done.json").exists()
    assert "left: late" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[run]]\nname = 'a'\n", "run 1: .*lane"),
        ("[[run]]\nname = 'a'\nlane = 'b'\nseconds = 1\ncommand = 'x'\n" * 2, "twice: a"),
    ],
)
def test_a_plan_that_is_none_is_told(lanes: ModuleType, tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(ValueError, match=says):
        lanes.read_plan(tmp_path / "plan.toml")
