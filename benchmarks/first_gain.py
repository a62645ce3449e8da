"""How soon a run finds its first improvement, with a local model beside the deterministic moves and without one.

    python benchmarks/first_gain.py OUT_DIR MODEL.gguf [--kernel examples/softmax.cu] [--seeds 10]

Runs on the host device, with and without the model by turns, each ended as soon as a right candidate is faster than the
original. OUT_DIR/first_gain.json: for each run the evaluations and seconds from the original's verdict to then, and of
the model its answers, how many of them were no legal choice (none is expected), and how long they took in seconds, the
loading of the file apart (at most 2 are promised).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from fsr.records import Status
from fsr.runs.options import RefineOptions
from fsr.runs.run import Run
from fsr.settings import Settings


class FirstGain:
    """Listens to a run and ends it at its first improvement."""

    def __init__(self, run: Run) -> None:
        self._run, self._origin = run, (0.0, 0.0)  # when the original was told, and its time
        self._by: dict[int, str] = {}
        self.evaluations, self.seconds, self.proposer = 0, float("inf"), ""
        run.subscribe(self.heard)

    def heard(self, event: Mapping[str, Any]) -> None:
        """An event of the log."""
        if event["kind"] == "ask":
            self._by[event["id"]] = event["proposer"]
        if event["kind"] != "tell" or self.proposer:
            return
        outcome = event["outcome"]
        time_ns = (outcome.get("timing") or {}).get("median_ns")
        if event["id"] == 0:
            self._origin = (event["at"], time_ns)
            return
        self.evaluations += 1
        right = Status[outcome["status"].upper()] >= Status.CORRECT
        if right and time_ns is not None and time_ns < self._origin[1]:
            self.seconds, self.proposer = event["at"] - self._origin[0], self._by[event["id"]]
            self._run.stop("it was faster")
            self._run.stop("it was faster")


def first_gain(kernel: Path, seed: int, llm: tuple[str, ...], home: Path) -> dict[str, Any]:
    """One run."""
    options = RefineOptions(
        kernel,
        "host",
        seed=seed,
        evaluations=40,
        budget_s=600.0,
        workers=1,
        use_cache=False,
        llm=llm,
        output=home / "o.cu",
    )
    run = Run(options, settings=Settings(str(home), str(home / "cache.db")))
    found = FirstGain(run)
    run.start().wait()
    row = {"seed": seed, "model": bool(llm), "evaluations": found.evaluations, "seconds": round(found.seconds, 2),
           "by": found.proposer}  # fmt: skip
    answers = run.folder / "answers.jsonl"
    lines = [json.loads(line) for line in answers.read_text().splitlines()] if answers.is_file() else []
    row["answers_s"] = [line["answer"]["seconds"] for line in lines if line["kind"] == "answer"]
    row["illegal"] = sum(line["kind"] == "refused" and line["why"] != "duplicate" for line in lines)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--kernel", type=Path, default=Path(__file__).parents[1] / "examples" / "softmax.cu")
    parser.add_argument("--seeds", type=int, default=10)
    told = parser.parse_args()
    told.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for seed in range(told.seeds):
        for llm in ((f"local:{told.model.absolute()}",), ()):
            rows.append(first_gain(told.kernel, seed, llm, told.out / "home"))
            print(rows[-1], flush=True)
    found: dict[str, Any] = {"runs": rows}
    for name, model in (("with", True), ("without", False)):
        own = [row for row in rows if row["model"] is model]
        found[name] = {key: statistics.median(row[key] for row in own) for key in ("evaluations", "seconds")}
    answers = [s for row in rows for s in row["answers_s"]]
    found["answers"] = {"count": len(answers), "slowest_s": max(answers, default=None),
                        "median_s": statistics.median(answers) if answers else None,
                        "illegal": sum(row["illegal"] for row in rows)}  # fmt: skip
    (told.out / "first_gain.json").write_text(json.dumps(found, indent=1))
    print(json.dumps({key: value for key, value in found.items() if key != "runs"}, indent=1))


if __name__ == "__main__":
    main()
