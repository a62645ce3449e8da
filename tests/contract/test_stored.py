"""The plan beside a candidate: read strictly; what is damaged or absurd is one message at its file."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest

from fsr.contract.load import load_contract
from fsr.contract.stored import stored_plan
from fsr.errors import ContractError, SourceError
from fsr.identity import to_json
from fsr.records import Plan
from fsr.source.file import KernelFile
from tests.commandline import ROW_SUM

CONTRACT = load_contract(KernelFile.from_text(ROW_SUM, "k.cu"))
PLAN: dict[str, Any] = {
    "launches": [
        {"entry": "row_sum", "grid": ["rows", "1", "1"], "block": ["32", "1", "1"], "shared_bytes": "4 * cols",
         "args": ["x", "y", "rows", {"dtype": "int32", "value": "cols"}]}
    ],
    "scratch": [{"name": "s", "dtype": "float32", "count": "rows", "zeroed": True}], "flags": ["--use_fast_math"],
}  # fmt: skip


def read(tmp_path: Path, text: str) -> Plan | None:
    (tmp_path / "c.json").write_text(text)
    return stored_plan(tmp_path / "c.cu", CONTRACT)


def changed(path: str, value: Any) -> str:
    plan = copy.deepcopy(PLAN)
    at: Any = plan
    *way, last = [int(p) if p.isdigit() else p for p in path.split(".")]
    for part in way:
        at = at[part]
    at[last] = value
    return json.dumps({"best": {"plan": plan}})


def test_what_fsr_wrote_reads_back_and_no_file_is_no_plan(tmp_path: Path) -> None:
    found = read(tmp_path, json.dumps({"best": {"plan": PLAN}}))
    assert found is not None
    assert to_json(found) == PLAN
    assert stored_plan(tmp_path / "other.cu", CONTRACT) is None


def test_a_repeated_launch_reads_back(tmp_path: Path) -> None:
    found = read(tmp_path, changed("launches.0.repeat", "cols"))
    assert found is not None
    assert found.launches[0].repeat == "cols"
    with pytest.raises(SourceError, match="for an expression"):
        read(tmp_path, changed("launches.0.repeat", 3))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"best": 3}', '{"best": {"plan": []}}', "[" * 100_000])
def test_what_is_no_plan_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(SourceError, match=r"the evidence beside the candidate (is no JSON|holds no plan)") as told:
        read(tmp_path, text)
    assert told.value.where.endswith("c.json")


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("launches", [], "has 0 launches"),
        ("launches", PLAN["launches"] * 300, "has 300 launches"),
        ("launches.0.grid", ["rows"], "1 parts"),
        ("launches.0.grid.0", 7, "7 for an expression"),
        ("launches.0.grid.0", "rowz", "rowz"),
        ("launches.0.block.0", "4096", "4096 threads"),
        ("launches.0.grid.1", "2 ** 40", "grid"),
        ("launches.0.args.0", "nowhere", "argument 'nowhere'"),
        ("launches.0.args.3", {"dtype": "int33", "value": "1"}, "dtype 'int33'"),
        ("launches.0.entry", "", "entry"),
        ("scratch.0.count", "2 ** 62", "4,611,686,018,427,387,904 elements"),
        ("scratch.0.count", "-1", "-1"),
        ("scratch.0.name", "x", "names 'x' twice"),
        ("scratch.0.zeroed", "yes", "scratch 0"),
        ("flags", ["a\nb"], "flags"),
        ("flags", "fast", "list"),
    ],
)
def test_an_absurd_part_is_named(tmp_path: Path, path: str, value: Any, words: str) -> None:
    with pytest.raises((SourceError, ContractError)) as told:
        read(tmp_path, changed(path, value))
    assert words in str(told.value)
    assert "c.json" in told.value.where


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "c.json")
    with pytest.raises(SourceError, match="named pipe"):
        stored_plan(tmp_path / "c.cu", CONTRACT)
