"""A run with a hosted model, against the server's own books: bill, cap on money, export, and replay of the rewards.

``python benchmarks/hosted.py OUT_DIR [EVALUATIONS]``: an OpenAI-compatible server on loopback answers with a row sum
by warps once in five times and with noise otherwise. Three runs on the host device: one with the model, one that
replays its answers without a server, one under a cap on money. OUT_DIR/hosted.json: tokens by the bill and by the
server (to be equal), dollars beyond the cap (one answer at most), and rewards of both exports that differ (none).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from fsr.app.trajectories import trajectories
from fsr.runs.options import RefineOptions
from fsr.runs.run import Run
from fsr.settings import Settings
from tests.commandline import ROW_SUM
from tests.llm.kernels import WARP
from tests.llm.server import Reply, Request, ScriptedServer

NOISE = (
    "Use shared memory.", WARP.replace("j = lane", "j = lane + 1"), WARP.replace("float sum", "flot sum"),
    "```python\nimport triton\n```",
)  # fmt: skip
PRICE = 10.0  # dollars for a million tokens, in and out


def answer(request: Request, number: int) -> Reply:
    """A legal choice where one is asked for; else the good kernel, each time in other words, or noise."""
    if "response_format" in request:
        fields = request["response_format"].get("json_schema", {}).get("schema", {}).get("properties", {})
        return Reply(json.dumps({name: (v.get("enum") or ["why"])[0] for name, v in fields.items()}))
    text = WARP if number % 5 == 4 else NOISE[number % len(NOISE)]
    return Reply(f"```cuda\n{text}// {number}\n```" if "__global__" in text else text)


def refined(options: RefineOptions, settings: Settings) -> tuple[Path, Mapping[str, Any]]:
    """The folder of a run and its result."""
    run = Run(options, settings=settings).start()
    result = run.wait()
    assert result is not None
    print(f"{run.name}: {result.status}, {result.evaluated} evaluated, {result.seconds:.0f} s", flush=True)
    return run.folder, result.to_json()


def rewards(folder: Path) -> dict[Any, Any]:
    """Question to reward, of a run's export."""
    return {row["question"]: row["reward"] for row in trajectories(folder, "grpo")}


def main() -> None:
    out, evaluations = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 8
    out.mkdir(parents=True, exist_ok=True)
    os.environ["FSR_LLM_KEY"] = "sk-of-the-benchmark"
    kernel = out / "row_sum.cu"
    kernel.write_text(ROW_SUM)
    server = ScriptedServer(answer)
    model = {"use": f"{server.url}#m", "dollars_in": PRICE, "dollars_out": PRICE, "concurrency": 1}
    settings = Settings(str(out / "home"), str(out / "home" / "cache.db"), models={"m": model})
    options = RefineOptions(
        kernel, "host", evaluations=evaluations, budget_s=1500.0, workers=1, use_cache=False, llm=("m",), yes=True,
        output=out / "row_sum.fsr.cu",
    )  # fmt: skip
    first, told = refined(options, settings)
    bill = told["models"]["m"]
    found: dict[str, Any] = {"bill": [bill["tokens_in"], bill["tokens_out"]], "server": list(server.charged)}
    asked = len(server.requests)
    again, _ = refined(replace(options, replay=first.name), settings)
    before, after = rewards(first), rewards(again)
    found["asked by the replay"] = len(server.requests) - asked
    found["rewards"] = len(before)
    found["rewards that differ"] = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    cap = 0.4 * bill["dollars"]
    charged = sum(server.charged)
    _, capped = refined(replace(options, max_cost=cap), settings)
    found["cap"] = {
        "dollars": cap, "spent": capped["models"]["m"]["dollars"],
        "by the server": (sum(server.charged) - charged) * PRICE / 1e6, "rests": capped["models"]["m"]["rests"],
        "dearest answer": max(e["answer"]["dollars"] for e in _answers(first)),
    }  # fmt: skip
    server.close()
    (out / "hosted.json").write_text(json.dumps(found, indent=1))
    print(json.dumps(found, indent=1))


def _answers(folder: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    return [row for row in rows if row["kind"] == "answer"]


if __name__ == "__main__":
    main()
