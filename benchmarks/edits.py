"""How many evaluations the loop needs to reach edits that are known to be good and hidden among noise.

``python benchmarks/edits.py OUT_DIR [SEEDS] [KERNEL...]``: kernels of benchmarks/edits, where the deterministic moves
stop short, on the host device; each with edits that are known to be good, in any order. A scripted model stands
behind the real proposer, roles, bandit, sharing and evaluation. What it is good for is assumed, and stands here:
asked plainly, one answer in five is a good edit; told a step of the right kind, every second, of a wrong kind, one in
twenty; its own Judge and macro steps name the right kind three times in five; every fourth good edit comes with a
slip that the compiler refuses; shown that, it mends three in four. Of the noise, two in five are no code that could
be evaluated, the rest is wrong, does not compile, or is right and no faster.

Every candidate is evaluated once a kernel; what the loop asks for again under another setting costs nothing. A table
goes to OUT_DIR/edits.json and to standard output: evaluations (all proposers', without the original) until the best
is within 2 % of all good edits together, for each good edit; how many of them came to the device, and how many were
the model's.
"""

from __future__ import annotations

import json
import random
import re
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from fsr.app.checking import evaluated
from fsr.features.schema import BOTTLENECKS
from fsr.identity import candidate_hash
from fsr.llm.asking import Asking
from fsr.llm.attempts import arms_of
from fsr.llm.book import Book
from fsr.llm.code import edited, file_of
from fsr.llm.exchange import Answer, Prompt
from fsr.llm.ledger import Ledger, estimated_tokens
from fsr.llm.named import ModelSpec
from fsr.llm.proposer import ModelProposer
from fsr.llm.roles.macro import TYPES
from fsr.records import Candidate, Outcome, Status
from fsr.runs.baseline import qualify
from fsr.runs.fleet import open_fleet
from fsr.runs.kernel import Kernel, load_kernel
from fsr.runs.options import RefineOptions
from fsr.search.proposal import Rules, Space
from fsr.search.proposers.deterministic import Deterministic
from fsr.search.refinement import Refinement
from fsr.transform.registry import all_actions

FOLDER = Path(__file__).with_name("edits")
MOST = 40  # evaluations a run
PLAIN, GUIDED, ASTRAY, NAMED, SLIPS, MENDED, NO_CODE = 0.2, 0.5, 0.05, 0.6, 0.25, 0.75, 0.4
SETTINGS = {
    "all on": ("judge", "macro", "repair"), "no judge": ("macro", "repair"), "no macro": ("judge", "repair"),
    "no repair": ("judge", "macro"), "none": (),
}  # fmt: skip
# What a wrong answer changes; nothing that could hang, which would be refused as well and take half a minute each.
WRONG = (
    ("y[i] =", "y[i] = 1 +"),
    ("y[i] =", "if (i % 97 != 96) y[i] ="),
    ("if (i >= n) return;", "if (i >= n - 1) return;"),
    ("blockIdx.x * blockDim.x", "blockIdx.x * 64"),
)
_PART = re.compile(r"### ([^\n]+)\n(.*?)(?=^### |\Z)", re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(r"<{5,} SEARCH\n(.*?)={5,}\n(.*?)>{5,} REPLACE\n", re.DOTALL)


@dataclass(frozen=True)
class Good:
    """An edit that is known to be good. kind: of the macro steps. parts: (search, replace)."""

    kind: str
    parts: tuple[tuple[str, str], ...]

    def left(self, file: str) -> bool:
        """Whether it can still be made."""
        return all(file.count(old) == 1 for old, _ in self.parts)

    def applied(self, file: str, *, slip: bool = False) -> str:
        """The file with it; ``slip``: with a semicolon missing, as models forget one."""
        for number, (old, new) in enumerate(self.parts):
            file = file.replace(old, new.replace(";\n", "\n", 1) if slip and number == len(self.parts) - 1 else new)
        return file


def goods_of(kernel: Path) -> list[Good]:
    """The edits of a kernel."""
    text = kernel.with_suffix(".edits").read_text()
    return [Good(kind, tuple(_BLOCK.findall(body))) for kind, body in _PART.findall(text)]


class Scripted:
    """The model of the module's docstring: a provider that answers from what the prompt shows."""

    name = "scripted"

    def __init__(self, goods: list[Good], seed: int) -> None:
        self.goods, self.chance = goods, random.Random(f"scripted {seed}")

    def ask(self, prompt: Prompt, cancelled: threading.Event) -> Answer:
        """Whatever the role asks for."""
        text = {"judge": self._judge, "macro": self._macro}.get(prompt.role, self._code)(prompt)
        return Answer(text, estimated_tokens(prompt.user), estimated_tokens(text), 0.0, dollars=0.0)

    def close(self) -> None:
        """Nothing was started."""

    def _file(self, prompt: Prompt) -> str:
        return str(re.findall(r"```cuda\n(.*?)```", prompt.user, re.DOTALL)[0])

    def _kinds(self, prompt: Prompt) -> list[str]:
        return sorted({g.kind for g in self.goods if g.left(self._file(prompt))})

    def _judge(self, prompt: Prompt) -> str:
        if prompt.style == "failure":
            return json.dumps({"critical_issue": "it does not compile", "why": "a slip", "minimal_fix": "mend it"})
        kinds = self._kinds(prompt)
        named = self.chance.choice(kinds) if kinds and self.chance.random() < NAMED else "something else"
        return json.dumps({"bottleneck": next(iter(BOTTLENECKS)), "method": named, "plan": "do that"})

    def _macro(self, prompt: Prompt) -> str:
        kinds, regions = self._kinds(prompt), prompt.fields[1].values
        right = bool(kinds) and self.chance.random() < NAMED
        kind = self.chance.choice(kinds if right else [k for k in TYPES if k not in kinds])
        return json.dumps({"type": kind, "region": self.chance.choice(regions)})

    def _code(self, prompt: Prompt) -> str:
        file = self._file(prompt)
        if prompt.role == "repair":
            slipped = [g for g in self.goods if any(new.replace(";\n", "\n", 1) in file for _, new in g.parts[-1:])]
            if slipped and self.chance.random() < MENDED:
                new = slipped[0].parts[-1][1]
                return _fenced(file.replace(new.replace(";\n", "\n", 1), new))
            return self._noise(file)
        told = re.search(r"^- (?:type|method): (.+)$", prompt.user, re.MULTILINE)
        left = [g for g in self.goods if g.left(file)]
        fitting = [g for g in left if told is None or g.kind == told[1]]
        odds = PLAIN if told is None else GUIDED if fitting else ASTRAY
        if left and self.chance.random() < odds:
            return _fenced(self.chance.choice(fitting or left).applied(file, slip=self.chance.random() < SLIPS))
        return self._noise(file)

    def _noise(self, file: str) -> str:
        if self.chance.random() < NO_CODE:
            return self.chance.choice(["The kernel is memory bound.", _fenced(file), "```python\nimport triton\n```"])
        kind = self.chance.choice(("wrong", "does not compile", "no faster"))
        if kind == "does not compile":
            return _fenced(file.replace("int i =", "int i = undeclared +", 1))
        if kind == "no faster":
            return _fenced(file.replace("    for (", f"    #pragma unroll {self.chance.randrange(2, 9)}\n    for (", 1))
        old, new = self.chance.choice(WRONG)
        return _fenced(file.replace(old, new, 1))


def _fenced(file: str) -> str:
    return f"```cuda\n{file}```"


class Bench:
    """One kernel: its workers and what was evaluated already."""

    def __init__(self, path: Path, workers: Any, spec: Any, kernel: Kernel, first: Outcome) -> None:
        self.kernel, self.goods = kernel, goods_of(path)
        self._workers, self._spec, self._known = workers, spec, {candidate_hash(kernel.baseline): first}

    def outcome(self, candidate: Candidate) -> Outcome:
        """Of a candidate; the same every time."""
        name = candidate_hash(candidate)
        if name not in self._known:
            self._known[name] = evaluated(self._workers, self._spec, candidate)[1]
        return self._known[name]

    def best_ns(self) -> float:
        """With all good edits."""
        file = file_of(self.kernel.baseline)
        for good in self.goods:
            assert good.left(file), good.parts[0][0]
            file = good.applied(file)
        outcome = self.outcome(edited(_fenced(file), self.kernel.baseline, self.kernel.contract))
        assert outcome.timing is not None, outcome.evidence
        return outcome.timing.median_ns

    def run(self, roles: tuple[str, ...] | None, seed: int, wanted_ns: float) -> dict[str, Any]:
        """Until the best is within 2 % of ``wanted_ns``. roles: beside the Coder; None for no model at all."""
        models = [] if roles is None else [self._model(roles, seed)]
        space = Space(Rules(self.kernel.contract), all_actions())
        refinement = Refinement(self.kernel.baseline, space, [*models, Deterministic(seed)])
        count = own = ran = 0
        reached = False
        while count < MOST and not reached:
            for model in models:
                _waited(model)
            proposal = refinement.ask()
            if proposal is None:
                break
            outcome = self.outcome(proposal.candidate)
            refinement.tell(proposal.id, outcome)
            if proposal.id:
                count, own = count + 1, own + (proposal.proposer == "scripted")
                ran += outcome.status not in (Status.INVALID, Status.COMPILE_FAILED)
            best = refinement.archive.best
            best_ns = best.time_ns if best is not None and best.time_ns else float("inf")
            reached = best_ns <= 1.02 * wanted_ns
        refused = dict(models[0].asking.refused) if models else {}
        refinement.close()
        return {"seed": seed, "reached": reached, "evaluations": count, "of_model": own, "ran": ran, "best_ns": best_ns,
                "refused": refused}  # fmt: skip

    def _model(self, roles: tuple[str, ...], seed: int) -> ModelProposer:
        spec = ModelSpec("scripted", url="http://localhost/v1", model="scripted", roles=("coder", "crossover", *roles))
        arms = [a for a in arms_of(spec.roles) if "macro" in roles or not a.startswith("policy")]
        asking = Asking(spec, Scripted(self.goods, seed), Book(None, Ledger()))
        return ModelProposer(asking, seed, arms=arms)


def _waited(model: ModelProposer, most_s: float = 60.0) -> None:
    """Until it has something to suggest or nothing to think about: evaluations take far longer than its answers."""
    until = time.monotonic() + most_s
    while model._view is not None and model.thinking and model._ready.empty() and time.monotonic() < until:
        time.sleep(0.001)


def benches(paths: list[Path]) -> Iterator[tuple[Path, Bench]]:
    for path in paths:
        options = RefineOptions(path, device="host")
        kernel = load_kernel(path)
        with open_fleet(options, 1, single=True) as fleet:
            spec = fleet.spec(kernel, options)
            report = qualify(fleet.workers, spec, kernel, lambda: None)
            yield path, Bench(path, fleet.workers, spec, kernel, report.outcome)


def main() -> None:
    out, seeds, names = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3, sys.argv[3:]
    out.mkdir(parents=True, exist_ok=True)
    table: list[dict[str, Any]] = []
    for path, bench in benches([p for p in sorted(FOLDER.glob("*.cu")) if not names or p.stem in names]):
        base, wanted = bench.outcome(bench.kernel.baseline), bench.best_ns()
        assert base.timing is not None
        alone = bench.run(None, 0, wanted)
        base_ns = base.timing.median_ns
        row: dict[str, Any] = {
            "kernel": path.stem, "edits": len(bench.goods), "edits_speedup": base_ns / wanted,
            "alone_speedup": base_ns / alone["best_ns"], "alone_evaluations": alone["evaluations"],
        }  # fmt: skip
        for name, roles in SETTINGS.items():
            row[name] = [bench.run(roles, seed, wanted) for seed in range(seeds)]
        table.append(row)
        (out / "edits.json").write_text(json.dumps(table, indent=1))
        told = [f"{name} {_median(row[name], 'evaluations', row['edits']):.1f}" for name in SETTINGS]
        speed = f"{row['edits_speedup']:.1f}x, without them {row['alone_speedup']:.2f}x"
        print(f"{path.stem:10} {row['edits']} edits: {speed}; evaluations an edit: {', '.join(told)}", flush=True)
    for name in SETTINGS:
        runs = [(r, row["edits"]) for row in table for r in row[name]]
        each = [statistics.median(r[key] / edits for r, edits in runs) for key in ("evaluations", "ran", "of_model")]
        reached = sum(r["reached"] for r, _ in runs)
        words = f"{each[0]:.2f} evaluations for each edit, {each[1]:.2f} on the device, {each[2]:.2f} of the model's"
        print(f"{name:10} {words}; reached in {reached} of {len(runs)}")


def _median(runs: list[dict[str, Any]], key: str, edits: int) -> float:
    return float(statistics.median(r[key] for r in runs)) / edits


if __name__ == "__main__":
    main()
