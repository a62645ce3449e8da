"""``fsr runs export``: what models were asked, what they answered, and what it was worth, as JSON Lines for training.

*sft*: conversations that led to a candidate that is right and faster. *grpo*: every answer with its reward. A reward is
a function of the recorded outcome alone, so that replaying the answers gives it again; its parts follow AutoTriton's
(arXiv 2507.05687): nothing counts unless the rule gate (a kernel, launched, doing the work itself) was passed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fsr.errors import UsageError
from fsr.llm.book import ANSWERS, read_book
from fsr.records import Json, Status
from fsr.runs.log import read_events

SCHEMA = 1
SCHEMA_PATH = Path(__file__).with_name("trajectory.schema.json")
FORMATS = ("sft", "grpo")
GATE, COMPILED, RIGHT = 0.1, 0.2, 0.7  # what each part adds
MOST_SPEEDUP = 3.0  # natural logarithm, about 20x: beyond it the reward grows no more


def reward_of(status: str | None, speedup: float | None) -> dict[str, Json]:
    """The parts of a reward and their sum. status: of the outcome, None for an answer that was no candidate. speedup:
    over the original, for what is right."""
    known = Status[status.upper()] if status is not None else None
    gate = known is not None and known > Status.INVALID
    compiled = gate and known is not None and known > Status.COMPILE_FAILED
    right = known is not None and known >= Status.SLOW
    gain = min(max(math.log(speedup), 0.0), MOST_SPEEDUP) if right and speedup else 0.0
    total = GATE * gate + COMPILED * compiled + RIGHT * right + gain
    return {
        "gate": float(gate), "compiled": float(compiled), "right": float(right), "speedup": round(gain, 6),
        "total": round(total, 6),
    }  # fmt: skip


def trajectories(folder: Path, form: str) -> Iterator[dict[str, Json]]:
    """The rows of one run, in the order of answering. ``form``: of FORMATS. Raises UsageError when there is none."""
    if form not in FORMATS:
        raise UsageError(f"the format is {form!r}", expected=" or ".join(FORMATS), where="--format")
    events = list(read_events(folder))
    outcomes = _outcomes(events)
    refused: dict[str, dict[str, Any]] = {}
    answers = []
    for entry in read_book(_book_of(folder, events)):
        if entry.get("kind") == "refused":
            refused[entry["hash"]] = entry
        elif entry.get("kind") == "answer":
            answers.append(entry)
    for entry in answers:
        row = _row(folder.name, entry, outcomes.get(entry["hash"]), refused.get(entry["hash"]))
        if row is not None and (form == "grpo" or row.pop("good")):
            yield _formed(row, form)


def _book_of(folder: Path, events: list[dict[str, Any]]) -> Path:
    """Where the answers of a run are: of one that replays another, in that one's folder."""
    options: dict[str, Any] = next((event["options"] for event in events if event["kind"] == "start"), {})
    return (folder.parent / options["replay"] if options.get("replay") else folder) / ANSWERS


def _outcomes(events: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Hash of a question to what became of the candidate that its answer, and those before it, led to."""
    told = {e["id"]: e["outcome"] for e in events if e["kind"] in ("tell", "settle")}
    judged = {e["id"]: e["outcome"] for e in events if e["kind"] == "promote"}
    first = (told.get(0) or {}).get("timing") or {}
    found: dict[str, dict[str, Any]] = {}
    for event in events:
        if event["kind"] != "ask" or event["id"] not in told:
            continue
        outcome = told[event["id"]]
        timing = outcome["timing"] or {}
        both = first.get("median_ns") and timing.get("median_ns")
        evidence = judged.get(event["id"], {}).get("evidence", {})
        for name in event["provenance"].get("answers", ()):
            found[name] = {
                "status": outcome["status"], "speedup": first["median_ns"] / timing["median_ns"] if both else None,
                "basis": timing.get("basis"), "move": event["move"], "candidate": event["hash"],
                "verdict": evidence.get("verdict"),
            }  # fmt: skip
    return found


def _row(
    run: str, entry: Mapping[str, Any], outcome: Mapping[str, Any] | None, refused: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    prompt = entry["prompt"]
    if outcome is None and refused is None:  # answered and not evaluated: nothing is known of it
        return None
    told = outcome or {}
    reward = reward_of(told.get("status"), told.get("speedup"))
    return {
        "schema": SCHEMA, "run": run, "question": entry["hash"], "model": entry["model"], "role": prompt["role"],
        "style": prompt["style"], "prompt_version": prompt["version"],
        "system": prompt["system"], "user": prompt["user"], "answer": entry["answer"]["text"],
        "action": told.get("move"), "candidate": told.get("candidate"), "status": told.get("status"),
        "refused": refused["why"] if refused is not None and outcome is None else None, "basis": told.get("basis"),
        "reward": reward, "verdict": told.get("verdict"),
        "good": bool(told.get("status") in ("screened", "correct", "promoted") and (told.get("speedup") or 0.0) > 1.0),
    }  # fmt: skip


def _formed(row: dict[str, Any], form: str) -> dict[str, Json]:
    row.pop("good", None)
    asked = [{"role": "system", "content": row.pop("system")}, {"role": "user", "content": row.pop("user")}]
    answer = {"role": "assistant", "content": row.pop("answer")}
    if form == "sft":
        return {"format": form, "messages": [*asked, answer], **row}
    # Parts as text columns would differ in type between rows: every row has the same.
    return {"format": form, "prompt": asked, "completion": [answer], **row}


def write_jsonl(rows: Iterator[dict[str, Json]], path: Path) -> int:
    """Write rows; how many there were. The verdict is kept as JSON text, so that all rows have one type."""
    count = 0
    with path.open("w") as file:
        for row in rows:
            flat = {**row, "verdict": None if row["verdict"] is None else json.dumps(row["verdict"])}
            file.write(json.dumps(flat) + "\n")
            count += 1
    return count
