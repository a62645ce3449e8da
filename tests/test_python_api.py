"""The public API: what its page shows runs, all of it is on the page, and importing it costs nothing."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import fsr
from fsr.runs.options import OptionFields, RefineOptions
from fsr.search.proposers.background import Background
from tests.commandline import ROW_SUM

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "python.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_importing_it_loads_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import fsr; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert [name for name in done.stdout.split() if name.split(".")[0] == "fsr"] == ["fsr"]
    assert len(done.stdout.split()) <= 2  # __future__ beside it


def test_all_of_it_is_there_and_typed() -> None:
    for name in fsr.__all__:
        thing = getattr(fsr, name)
        assert thing.__doc__
        if inspect.isfunction(thing):
            hints = inspect.signature(thing)
            assert hints.return_annotation is not inspect.Signature.empty
    with pytest.raises(AttributeError, match="nothing"):
        _ = fsr.nothing  # type: ignore[attr-defined]


def test_the_options_as_keywords_are_those_of_the_record() -> None:
    fields = {f.name for f in dataclasses.fields(RefineOptions)} - {"kernel"}
    assert set(OptionFields.__annotations__) == fields
    kinds, keywords = get_type_hints(RefineOptions), get_type_hints(OptionFields)
    assert {name: kinds[name] for name in fields} == keywords
    assert all(f"`{name}`" in PAGE for name in fields)


def test_every_member_of_a_run_is_on_the_page() -> None:
    members = [name for name in vars(fsr.Run) if not name.startswith("_")]
    assert [name for name in members if not re.search(rf"`(Run\.)?{name}\b|, `{name}\b", PAGE)] == []
    members = [name for name in vars(fsr.RunRecord) if not name.startswith("_")]
    told = PAGE[PAGE.index("A run of another process") :]
    assert [name for name in members if name not in ("told", "standing") and f"`{name}" not in told] == []


def test_blocks_of_the_page_and_the_readme_are_python() -> None:
    readme = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert BLOCKS
    assert readme
    for block in (*BLOCKS, *readme):
        ast.parse(block)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FSR_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "softmax.cu").write_text(ROW_SUM)
    return tmp_path


def test_what_the_page_shows_runs(home: Path) -> None:
    """The blocks as they stand, on a small kernel; a budget in seconds becomes a number of evaluations."""
    names: dict[str, Any] = {}
    first, second, third = (re.sub(r"budget_s=\d+", "budget_s=300, evaluations=2", block) for block in BLOCKS)
    exec(first, names)
    assert names["result"].status in ("improved", "unchanged")
    assert names["result"].to_json()["evaluated"] == 2
    assert fsr.Result.from_json(names["result"].to_json()) == names["result"]
    with pytest.raises(fsr.FsrError, match="stopped before"):
        exec(second, names)
    exec(third, names)
    assert isinstance(names["run"], fsr.Run)
    assert isinstance(names["run"]._job.proposers[0], Background)
