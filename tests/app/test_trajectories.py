"""Trajectories of a recorded run: valid rows, rewards that follow from the outcomes, and only good ones for sft."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fsr.app.trajectories import SCHEMA_PATH, reward_of, trajectories, write_jsonl
from fsr.errors import UsageError
from fsr.identity import to_json
from fsr.llm.exchange import Answer, Prompt
from fsr.llm.named import ModelSpec
from fsr.records import Outcome, Status
from tests.llm.kernels import timed

jsonschema = pytest.importorskip("jsonschema", reason="the package jsonschema is not installed")
MODEL = ModelSpec("m", url="http://localhost/v1", model="m").name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run with four answers: right and faster, wrong, refused, and one that was never evaluated."""
    prompts = [Prompt("coder", "whole", 1, "system", f"user {n}") for n in range(4)]
    names = [p.hash(MODEL) for p in prompts]
    book: list[dict[str, Any]] = [
        {
            "kind": "answer",
            "hash": name,
            "model": MODEL,
            "prompt": to_json(prompt),
            "answer": to_json(Answer("x", 1, 2, 0.1)),
        }
        for name, prompt in zip(names, prompts, strict=True)
    ]
    book.append({"kind": "refused", "hash": names[2], "why": "prose", "detail": "words"})
    outcomes = [timed(1000.0), timed(250.0), Outcome(Status.WRONG, "tests")]
    events: list[dict[str, Any]] = []
    for number, outcome in enumerate(outcomes):
        provenance = {"answers": [names[number - 1]]} if number else {}
        events.append({"kind": "ask", "id": number, "provenance": provenance, "move": "coder@m", "hash": str(number)})
        events.append({"kind": "tell", "id": number, "outcome": to_json(outcome)})
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(e) + "\n" for e in events))
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(e) + "\n" for e in book))
    return tmp_path


@pytest.mark.parametrize(("form", "count"), [("grpo", 3), ("sft", 1)])
def test_rows_are_valid_and_only_what_was_judged_is_told(folder: Path, form: str, count: int) -> None:
    out = folder / "out.jsonl"
    assert write_jsonl(trajectories(folder, form), out) == count
    schema = json.loads(SCHEMA_PATH.read_text())
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    for row in rows:
        jsonschema.validate(row, schema)
    assert len({tuple(sorted(row)) for row in rows}) == 1
    assert rows[0]["reward"]["total"] == pytest.approx(0.1 + 0.2 + 0.7 + 1.386294)


@pytest.mark.parametrize("form", ["grpo", "sft"])
def test_rows_load_with_the_datasets_library(folder: Path, form: str) -> None:
    datasets = pytest.importorskip("datasets", reason="the package datasets is not installed")
    out = folder / "out.jsonl"
    count = write_jsonl(trajectories(folder, form), out)
    loaded = datasets.load_dataset("json", data_files=str(out), split="train", cache_dir=str(folder / "cache"))
    assert len(loaded) == count
    told = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["reward"]["total"] for row in loaded] == [row["reward"]["total"] for row in told]
    asked = "messages" if form == "sft" else "prompt"
    assert [row[asked][0]["role"] for row in loaded] == ["system"] * count


def test_a_run_that_replays_another_has_the_others_answers_and_rewards_of_its_own(folder: Path) -> None:
    again = folder.parent / "again"
    again.mkdir()
    start = {"kind": "start", "options": {"replay": folder.name}}
    events = (folder / "events.jsonl").read_text().replace("250.0", "500.0")
    (again / "events.jsonl").write_text(json.dumps(start) + "\n" + events)
    first, second = (list(trajectories(run, "grpo")) for run in (folder, again))
    assert [row["question"] for row in first] == [row["question"] for row in second]
    assert [row["completion"] for row in first] == [row["completion"] for row in second]
    totals = [[row["reward"]["total"] for row in rows] for rows in (first, second)]  # type: ignore[call-overload,index]
    assert totals[0][1:] == totals[1][1:]
    assert totals[0][0] - totals[1][0] == pytest.approx(0.693147, abs=1e-5)


def test_rewards_rise_with_what_an_answer_is_worth() -> None:
    steps = [
        (None, None),
        ("invalid", None),
        ("compile_failed", None),
        ("wrong", None),
        ("slow", 0.5),
        ("correct", 2.0),
    ]
    totals: list[Any] = [reward_of(*step)["total"] for step in steps]
    assert totals == sorted(totals)
    assert totals[0] == totals[1] == 0.0
    assert len(set(totals[1:])) == 5
    assert reward_of("wrong", 50.0) == reward_of("wrong", None)


def test_an_unknown_format_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="the format is"):
        list(trajectories(folder, "dpo"))
