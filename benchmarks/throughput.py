"""Candidates a second through compile, smoke test and screening, on the parameter space of the GEMM example.

    python benchmarks/throughput.py OUT_DIR [--device cuda:0] [--workers N] [--most N] [--seed 0]
        [--kernel FILE --space FILE.tune.toml [--tuner-seconds 60]]

Every configuration of ``tile-contraction`` (about 310) goes through the same tasks as in a refinement, with one compile
worker a core and a device worker a device; the best time so far is the incumbent, so that only what may be an
improvement takes full tests. Qualifying the baseline is told apart and not counted; nor is the writing of the
candidates' sources.
Results go to OUT_DIR/throughput.json, also when some candidates fail.

With ``--space`` the candidates are the configurations of a tuning space (fsr.bench.tuner) in place of the tilings, and
Kernel Tuner then goes through the same ones for ``--tuner-seconds`` (0: not at all) on the same machine: what both do
in a second. ``--device auto`` takes every GPU there is, each of which opens its session before the clock starts.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from fsr.bench.tuner import Tuner, TunerAsked, candidate_text, read_space  # noqa: E402
from fsr.errors import BaselineError  # noqa: E402
from fsr.evaluation.faults import outcome_of_fault  # noqa: E402
from fsr.evaluation.spec import Binaries, CompileRequest, EvaluateRequest, SessionSpec  # noqa: E402
from fsr.identity import candidate_hash  # noqa: E402
from fsr.lifting.lift import lift  # noqa: E402
from fsr.records import Candidate, Outcome  # noqa: E402
from fsr.runs.baseline import qualify  # noqa: E402
from fsr.runs.fleet import open_fleet  # noqa: E402  # the checkout, installed or not
from fsr.runs.kernel import Kernel, load_kernel  # noqa: E402
from fsr.runs.options import RefineOptions  # noqa: E402
from fsr.search.archive import Archive  # noqa: E402
from fsr.search.proposal import Proposal, Rules, Trial  # noqa: E402
from fsr.testgen.candidate_file import candidate_of  # noqa: E402
from fsr.transform.computed.action import FROM_COMPUTATION  # noqa: E402
from fsr.transform.gemm.config import GemmConfig, fits  # noqa: E402
from fsr.transform.protocol import Move  # noqa: E402
from fsr.workers.protocol import Completion, Task, WorkerFault, Workers  # noqa: E402

TARGET_A_SECOND = 20.0
AHEAD = 2  # evaluations that a device is given before their turn
COMPILE_LIMIT_S, EVALUATE_LIMIT_S, BASELINE_LIMIT_S = 90.0, 120.0, 300.0


def gemm_space() -> Iterator[GemmConfig]:
    """Every configuration worth compiling for floats (310), in a fixed order."""
    extents = (16, 32, 64, 128, 256)
    for bm, bn, bk, tm, tn, buffers in product(extents, extents, (8, 16, 32), (2, 4, 8, 16), (2, 4, 8), (2, 1)):
        config = GemmConfig(bm, bn, bk, tm, tn, buffers)
        if tm * tn >= 8 and fits(config, 4, 4, 4):
            yield config


def space(kernel: Kernel, target: str, seed: int) -> list[Candidate]:
    """Every distinct tiling as a candidate, shuffled: neighbours in the space cost alike."""
    computation = lift(kernel.contract, kernel.baseline).computation
    subject = Rules(kernel.contract, target=target, computation=computation).subject(kernel.baseline)
    (action,) = (a for a in FROM_COMPUTATION if a.name == "tile-contraction")
    every = (Move(action.name, "plan", config.params()) for config in gemm_space())
    found: dict[str, Candidate] = {}
    for move in (*action.moves(subject), *every):
        candidate = action.apply(subject, move)
        found.setdefault(candidate_hash(candidate), candidate)
    candidates = list(found.values())
    random.Random(seed).shuffle(candidates)
    return candidates


def tuner_of(options: argparse.Namespace) -> Tuner:
    """Kernel Tuner on the space that was asked for."""
    out = options.out / "tuned.cu"
    return Tuner(TunerAsked(options.kernel, options.space, options.device, options.tuner_seconds, options.seed, out))


def tuned_space(kernel: Kernel, options: argparse.Namespace) -> list[Candidate]:
    """Every configuration of a tuning space as a candidate, shuffled."""
    told, where, every = read_space(options.space), str(options.space), tuner_of(options).configurations()
    random.Random(options.seed).shuffle(every)
    return [replace(candidate_of(candidate_text(told, x), kernel.contract, where), actions=(str(x),)) for x in every]


def tuner_rate(options: argparse.Namespace) -> dict[str, Any]:
    """The same space by Kernel Tuner, on an idle machine: what came of it."""
    started = time.monotonic()
    told = tuner_of(options).tune()
    seconds = time.monotonic() - started
    return {**told, "seconds": round(seconds, 2), "per_second": round(int(str(told["configurations"])) / seconds, 2)}


class Course:
    """All candidates through both pools, as the engine of a refinement does it, without a search."""

    def __init__(self, spec: SessionSpec, workers: Workers, baseline_ns: float) -> None:
        self.spec, self.workers, self.baseline_ns = spec, workers, baseline_ns
        self.archive = Archive()
        self.statuses: Counter[str] = Counter()
        self.stage_s: defaultdict[str, float] = defaultdict(float)
        self.compile_s = self.device_s = 0.0
        self.faults: list[str] = []
        self._compiling: dict[int, Candidate] = {}
        self._compiled: deque[tuple[Candidate, Binaries]] = deque()
        self._evaluating: dict[int, Candidate] = {}

    @property
    def best(self) -> Trial | None:
        """The fastest right candidate that is faster than the original."""
        found = self.archive.best
        return found if found is not None and (found.time_ns or math.inf) < self.baseline_ns else None

    @property
    def best_ns(self) -> float:
        """Its time; the original's where there is none."""
        return self.best.time_ns or self.baseline_ns if self.best is not None else self.baseline_ns

    def run(self, candidates: Sequence[Candidate]) -> float:
        """Seconds that it took."""
        started = time.monotonic()
        waiting = list(reversed(candidates))
        ahead = AHEAD * self.workers.size("device")
        depth = self.workers.size("compile") + ahead
        while waiting or self._compiling or self._compiled or self._evaluating:
            while waiting and len(self._compiling) < depth:
                candidate = waiting.pop()
                task = Task("fsr.evaluation.jobs:compile_task", CompileRequest(self.spec, candidate), COMPILE_LIMIT_S)
                self._compiling[self.workers.submit("compile", task)] = candidate
            while self._compiled and len(self._evaluating) < ahead:  # later ones are to know what is best by then
                self._evaluate(*self._compiled.popleft())
            for completion in self.workers.wait(0.1):
                self._take(completion)
        return time.monotonic() - started

    def _take(self, completion: Completion) -> None:
        candidate = self._compiling.pop(completion.ticket, None)
        if candidate is None:
            candidate = self._evaluating.pop(completion.ticket)
            self.device_s += completion.seconds
            self._told(candidate, completion, "tests")
            return
        self.compile_s += completion.seconds
        if not isinstance(completion.result, Binaries):
            self._told(candidate, completion, "compile")
            return
        self._compiled.append((candidate, completion.result))

    def _evaluate(self, candidate: Candidate, binaries: Binaries) -> None:
        request = EvaluateRequest(self.spec, candidate, binaries, self.best_ns)
        task = Task("fsr.evaluation.jobs:evaluate_task", request, EVALUATE_LIMIT_S)
        self._evaluating[self.workers.submit("device", task)] = candidate

    def _told(self, candidate: Candidate, completion: Completion, stage: str) -> None:
        result = completion.result
        if isinstance(result, WorkerFault):
            self.faults.append(f"{candidate.actions[-1]}: {result.kind}: {result.detail[-300:]}")
            result = outcome_of_fault(result.kind, result.detail, result.error, stage, completion.seconds)
        assert isinstance(result, Outcome)
        name = result.status.name.lower()
        self.statuses[name] += 1
        self.stage_s[name] += completion.seconds
        self.archive.add(Trial(Proposal(0, candidate, "", None, candidate.actions[-1], ""), result))


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """One pass, as the JSON that is written."""
    kernel = load_kernel(options.kernel)
    cores = options.workers or len(os.sched_getaffinity(0))
    asked = RefineOptions(options.kernel, options.device, seed=options.seed)
    with open_fleet(asked, cores, single=options.device != "auto") as fleet:
        workers, spec = fleet.workers, fleet.spec(kernel, asked)
        found = (tuned_space(kernel, options) if options.space
                 else space(kernel, spec.target, options.seed))  # fmt: skip
        candidates = found[: options.most]
        started = time.monotonic()
        warm = [workers.submit("compile", Task("fsr.evaluation.jobs:compile_task",
                CompileRequest(spec, kernel.baseline), COMPILE_LIMIT_S, worker=i)) for i in range(cores)]  # fmt: skip
        devices = workers.size("device")
        try:
            report = qualify(workers, spec, kernel, lambda: None, BASELINE_LIMIT_S)
        except BaselineError as fault:
            return {"error": f"the baseline was not qualified: {fault.what}"}
        assert report.outcome.timing is not None
        while workers.pending("compile") or workers.pending("device"):
            workers.wait(0.2)
        baseline_s = time.monotonic() - started
        course = Course(spec, workers, report.outcome.timing.median_ns)
        seconds = course.run(candidates)
        rate = len(candidates) / seconds
        return {
            "kernel": options.kernel.name, "device": report.device.name, "arch": report.device.arch,
            "driver": report.device.driver, "runtime": report.device.runtime,
            "basis": report.outcome.timing.basis.value,
            "cores": cores, "devices": devices, "candidates": len(candidates),
            "seconds": round(seconds, 2), "per_second": round(rate, 2),
            "holds": rate >= TARGET_A_SECOND, "compile_seconds_summed": round(course.compile_s, 2),
            "compile_busy_share": round(course.compile_s / seconds / cores, 3),
            "device_seconds": round(course.device_s, 2),
            "device_busy_share": round(course.device_s / seconds / devices, 3),
            "statuses": dict(course.statuses), "seconds_by_status": {k: round(v, 2) for k, v in course.stage_s.items()},
            "best": course.best and course.best.proposal.move,
            "best_speedup": round(report.outcome.timing.median_ns / course.best_ns, 2),
            "baseline_seconds": round(baseline_s, 2), "workers_warmed": len(warm), "faults": course.faults[:20],
        }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Ends with 0 when the rate reaches the target, else 1."""
    parser = argparse.ArgumentParser(description="Candidates a second on the GEMM example's parameter space.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--workers", type=int, help="compile processes; one a core by default")
    parser.add_argument("--most", type=int, help="only so many candidates")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kernel", type=Path, default=ROOT / "examples" / "gemm.cu")
    parser.add_argument("--space", type=Path, help="a tuning space to go through, then by Kernel Tuner too")
    parser.add_argument("--tuner-seconds", type=float, default=60.0)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    told, written = measured(options), options.out / "throughput.json"
    written.write_text(json.dumps(told, indent=1) + "\n")
    if options.space and options.tuner_seconds > 0 and "error" not in told:
        told["kernel_tuner"] = tuner_rate(options)
        written.write_text(json.dumps(told, indent=1) + "\n")
    print(written.read_text(), end="")
    return 0 if told.get("holds") else 1


if __name__ == "__main__":
    sys.exit(main())
