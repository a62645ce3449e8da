"""What features are worth to the search: the same seeds with bottlenecks guiding and without.

    python benchmarks/guidance.py OUT_DIR [KERNEL ...] [--device auto] [--seeds 5] [--evaluations 40] [--limit 60]
                                  [--predicted] [--workers N] [--seconds S]

For every kernel (all examples by default) and seed two searches run, each with one proposal out at a time: one knows
what holds its elites back, the other does not; all else is equal, and both know what the kernel computes. Told is
after how many evaluations each first has 90 % of the better one's final speed-up (one more than were made, if never),
and the ratio guided / unguided, with its median over kernels and seeds. A candidate is compiled, timed and, beside a
GPU, recorded once, and all searches are told the same, so that noise of timing favours neither; a guided search knows
its causes at once, where in a refinement they come when a core is idle. Counters are not read. ``--limit`` bounds the
searches that run together: they are compared over as many evaluations as both had made by then. ``--predicted`` takes
times from one recording a candidate on the CPU, and tests nothing: the two searches of each kernel and seed are then a
task of their own, ``--workers`` of them at a time. A line goes to OUT_DIR/guidance.jsonl for each pair of searches;
after ``--seconds`` it stops, ends with 2, and the same command once more goes on. The summary is printed and goes to
OUT_DIR/guidance.json.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.tasks import Lost, each  # noqa: E402
from fsr.backends.protocol import DeviceFault  # noqa: E402
from fsr.evaluation.clock import recorded_features  # noqa: E402
from fsr.evaluation.compiling import build  # noqa: E402
from fsr.evaluation.enriching import DESK as ENRICHING  # noqa: E402
from fsr.evaluation.faults import outcome_of_fault  # noqa: E402
from fsr.evaluation.spec import (  # noqa: E402
    BaselineReport,
    Binaries,
    CompileRequest,
    Enriched,
    EnrichRequest,
    EvaluateRequest,
    SessionSpec,
)
from fsr.features.lifted import binary_features, launch_features  # noqa: E402
from fsr.features.schema import Features  # noqa: E402
from fsr.hardware.gpus import closest_target  # noqa: E402
from fsr.lifting.lift import lift  # noqa: E402
from fsr.prediction.predict import predict  # noqa: E402
from fsr.records import Basis, Candidate, Outcome, Status, Timing  # noqa: E402
from fsr.runs.fleet import open_fleet  # noqa: E402
from fsr.runs.kernel import Kernel, load_kernel  # noqa: E402
from fsr.runs.options import RefineOptions  # noqa: E402
from fsr.search.policy import AIMED, Policy  # noqa: E402
from fsr.search.proposal import Proposal, Rules, Space  # noqa: E402
from fsr.search.proposers.deterministic import Deterministic  # noqa: E402
from fsr.search.refinement import Refinement  # noqa: E402
from fsr.testgen.placing import place  # noqa: E402
from fsr.transform.registry import all_actions  # noqa: E402
from fsr.workers import protocol  # noqa: E402
from fsr.workers.protocol import Completion, Pool, WorkerFault, Workers  # noqa: E402

SHARE = 0.9  # of the final speed-up
FEWEST = 5  # evaluations that a pair of searches must have made to be compared
LIMIT_S = 120.0
SETUP_S = 120.0  # what searches may take beyond their limit: the original's outcome, and candidates under way


@dataclass
class Search:
    """One search: its seed, whether features guide it, and the best speed-up after each evaluation."""

    seed: int
    guided: bool
    refinement: Refinement
    most: int
    curve: list[float] = field(default_factory=list)
    waiting: Proposal | None = None
    over: bool = False

    @classmethod
    def begin(cls, kernel: Kernel, rules: Rules, seed: int, guided: bool, most: int, baseline: Outcome) -> Search:
        proposer = Deterministic(seed)
        proposer.policy = Policy(aimed=AIMED if guided else 0.0)
        space = Space(rules, all_actions(), lambda name, fault: None)
        refinement = Refinement(kernel.baseline, space, [proposer])
        refinement.ask()
        refinement.tell(0, baseline)
        return cls(seed, guided, refinement, most)

    def next(self) -> Proposal | None:
        """The next proposal; None when this search is over."""
        self.waiting = self.refinement.ask() if len(self.curve) < self.most else None
        self.over = self.waiting is None
        return self.waiting

    def tell(self, outcome: Outcome, baseline_ns: float) -> None:
        """The outcome of the proposal that was out."""
        assert self.waiting is not None
        self.refinement.tell(self.waiting.id, outcome)
        best = self.refinement.archive.best
        self.curve.append(baseline_ns / (best.time_ns or baseline_ns) if best is not None else 1.0)
        self.waiting = None


@dataclass
class Evaluations:
    """Outcomes by candidate, each found once: compiled, evaluated, and recorded where the device does not itself."""

    workers: Workers
    spec: SessionSpec
    baseline_ns: float
    known: dict[str, Outcome] = field(default_factory=dict)
    _flying: dict[int, tuple[str, str, Candidate, Any]] = field(default_factory=dict)
    _wanted: set[str] = field(default_factory=set)

    def want(self, proposal: Proposal) -> None:
        """Begin finding out, unless it is known or under way."""
        if proposal.hash not in self._wanted:
            self._wanted.add(proposal.hash)
            request = CompileRequest(self.spec, proposal.candidate)
            self._submit("compile", "fsr.evaluation.jobs:compile_task", request, "compiled", proposal.hash,
                         proposal.candidate)  # fmt: skip

    def _submit(
        self, pool: Pool, function: str, request: Any, step: str, key: str, candidate: Candidate, kept: Any = None
    ) -> None:
        self._flying[self.workers.submit(pool, protocol.Task(function, request, LIMIT_S))] = step, key, candidate, kept

    def wait(self) -> None:
        """Take what is done."""
        for completion in self.workers.wait(0.1):
            step, key, candidate, kept = self._flying.pop(completion.ticket)
            result = completion.result
            if step == "compiled" and isinstance(result, Binaries):
                request = EvaluateRequest(self.spec, candidate, result, self.baseline_ns)
                self._submit(
                    "device", "fsr.evaluation.jobs:evaluate_task", request, "evaluated", key, candidate, result
                )
            elif step == "evaluated" and self._worth_recording(result):
                look = EnrichRequest(self.spec, candidate, kept)
                self._submit(
                    "compile", "fsr.evaluation.enriching:record_task", look, "recorded", key, candidate, result
                )
            elif step == "recorded":
                features = result.features if isinstance(result, Enriched) else kept.features
                self.known[key] = replace(kept, features=kept.features.merged(features))
            else:
                self.known[key] = outcome_of(completion)

    def _worth_recording(self, result: object) -> bool:
        right = isinstance(result, Outcome) and result.status >= Status.SCREENED
        return right and not self.spec.backend.records

    def idle(self) -> bool:
        """Whether nothing is under way."""
        return not self._flying


class Predictions:
    """Outcomes by candidate from one recording each, without tests: what is compared is the order of proposals, and
    those of deterministic actions are right. ``processes`` of them at a time."""

    def __init__(self, spec: SessionSpec, processes: int) -> None:
        self.spec, self.known = spec, dict[str, Outcome]()
        self._pool = ProcessPoolExecutor(processes)
        self._flying: dict[Future[Outcome], str] = {}

    def want(self, proposal: Proposal) -> None:
        """As Evaluations.want."""
        if proposal.hash not in self.known and proposal.hash not in self._flying.values():
            self._flying[self._pool.submit(predicted, self.spec, proposal.candidate)] = proposal.hash

    def now(self, candidate: Candidate) -> Outcome:
        """The outcome of one candidate, waited for. Not in this process: its host device must not be inherited."""
        return self._pool.submit(predicted, self.spec, candidate).result()

    def wait(self) -> None:
        """As Evaluations.wait."""
        for done in wait(self._flying, return_when=FIRST_COMPLETED).done:
            self.known[self._flying.pop(done)] = done.result()

    def idle(self) -> bool:
        """As Evaluations.idle."""
        return not self._flying

    def close(self) -> None:
        """End its processes; what is under way is finished first."""
        self._pool.shutdown(cancel_futures=True)


def predicted(spec: SessionSpec, candidate: Candidate) -> Outcome:
    """One recording at the first timed sizes as an outcome; nothing is tested."""
    built = build(spec, candidate)
    if not isinstance(built, Binaries):
        return Outcome(Status.COMPILE_FAILED, "compile")
    case, data = ENRICHING.inputs(spec)
    launches, buffers = place(spec.contract, candidate.plan, case, data)
    try:
        profile = ENRICHING.recorder().record(built.run, launches, buffers)
    except DeviceFault:
        return Outcome(Status.CRASHED, "screening")
    gpu = closest_target(spec.target)
    found = predict(profile, built.resources, gpu, float(sum(b.array.nbytes for b in buffers)))
    if not math.isfinite(found.time_ns) or profile.faults:
        return Outcome(Status.WRONG, "screening")
    features = Features(launch_features(launches), binary_features(launches, built.resources, gpu))
    features = features.merged(recorded_features(found, profile, spec.target))
    timing = Timing(Basis.PREDICTED, found.time_ns, (found.time_ns,))
    return Outcome(Status.CORRECT, "tests", timing=timing, features=features)


def outcome_of(completion: Completion) -> Outcome:
    """A completion as an outcome, a worker's fault too."""
    result = completion.result
    if isinstance(result, WorkerFault):
        return outcome_of_fault(result.kind, result.detail, result.error, "tests", completion.seconds)
    assert isinstance(result, Outcome)
    return result


def qualified(workers: Workers, spec: SessionSpec) -> Outcome:
    """The original's outcome, recorded. Raises what its task raises."""
    ticket = workers.submit("device", protocol.Task("fsr.evaluation.jobs:baseline_task", spec, 300.0))
    report: Any = awaited(workers, ticket)
    if isinstance(report, WorkerFault):
        raise report.error or RuntimeError(report.detail)
    assert isinstance(report, BaselineReport)
    if spec.backend.records:
        return report.outcome
    binaries = awaited(
        workers,
        workers.submit(
            "compile", protocol.Task("fsr.evaluation.jobs:compile_task", CompileRequest(spec, spec.baseline), LIMIT_S)
        ),
    )
    look = EnrichRequest(spec, spec.baseline, binaries)
    found = awaited(
        workers, workers.submit("compile", protocol.Task("fsr.evaluation.enriching:record_task", look, LIMIT_S))
    )
    features = found.features if isinstance(found, Enriched) else report.outcome.features
    return replace(report.outcome, features=report.outcome.features.merged(features))


def awaited(workers: Workers, ticket: int) -> Any:
    """The result of the only task in flight."""
    while True:
        for completion in workers.wait(0.2):
            if completion.ticket == ticket:
                return completion.result


@dataclass(frozen=True)
class Task:
    """Searches that share what they find out about candidates: guided and unguided, of one kernel and some seeds."""

    path: Path
    seeds: tuple[int, ...]
    wanted: argparse.Namespace

    def pairs(self) -> list[dict[str, Any]]:
        """Each pair of searches, as it is kept."""
        begun = time.monotonic()
        found = list(pairs(self._searched()))
        return [{"kernel": self.path.stem, **pair, "seconds": time.monotonic() - begun} for pair in found]

    def _searched(self) -> list[Search]:
        """All searches, whether they ended in time or not."""
        wanted = self.wanted
        options = RefineOptions(self.path, wanted.device, wanted.target, use_cache=False)
        kernel = load_kernel(self.path, None)
        if wanted.predicted:
            spec = SessionSpec(kernel.contract, kernel.baseline, "host", wanted.target, 0, str(kernel.folder))
            predictions = Predictions(spec, len(self.seeds))
            try:
                return _search(kernel, spec, predictions, predictions.now(kernel.baseline), self)
            finally:
                predictions.close()
        with open_fleet(options, wanted.workers, single=True) as fleet:
            spec = fleet.spec(kernel, options)
            baseline = qualified(fleet.workers, spec)
            assert baseline.timing is not None
            evaluations = Evaluations(fleet.workers, spec, baseline.timing.median_ns)
            return _search(kernel, spec, evaluations, baseline, self)


def _search(
    kernel: Kernel, spec: SessionSpec, evaluations: Evaluations | Predictions, baseline: Outcome, task: Task
) -> list[Search]:
    assert baseline.timing is not None
    rules = Rules(kernel.contract, target=spec.target, computation=lift(kernel.contract, kernel.baseline).computation)
    searches = [
        Search.begin(kernel, rules, seed, guided, task.wanted.evaluations, baseline)
        for seed in task.seeds
        for guided in (True, False)
    ]
    deadline = time.monotonic() + task.wanted.limit
    while time.monotonic() < deadline and not all(search.over for search in searches):
        for search in searches:
            _advance(search, evaluations, baseline.timing.median_ns)
        if not evaluations.idle():
            evaluations.wait()
    return searches


def _advance(search: Search, evaluations: Evaluations | Predictions, baseline_ns: float) -> None:
    """Tell a search all that is known of what it waits for, and begin what is not."""
    while not search.over:
        if search.waiting is None and search.next() is None:
            return
        assert search.waiting is not None
        outcome = evaluations.known.get(search.waiting.hash)
        if outcome is None:
            evaluations.want(search.waiting)
            return
        search.tell(outcome, baseline_ns)


def reached(curve: Sequence[float], final: float) -> int:
    """After how many evaluations a search had its share of the final speed-up; one more than it made, if never."""
    return next((n for n, speedup in enumerate(curve, 1) if speedup >= SHARE * final), len(curve) + 1)


def pairs(searches: Sequence[Search]) -> Iterator[dict[str, Any]]:
    """Guided and unguided search of each seed, over as many evaluations as both made."""
    for guided in (s for s in searches if s.guided):
        twin = next(s for s in searches if s.seed == guided.seed and not s.guided)
        made = min(len(guided.curve), len(twin.curve))
        if made < FEWEST and not (guided.over and twin.over):
            continue
        one, other = guided.curve[:made], twin.curve[:made]
        final = max([1.0, *one[-1:], *other[-1:]])
        counts = reached(one, final), reached(other, final)
        yield {
            "seed": guided.seed, "evaluations": made, "final": final, "guided": counts[0], "unguided": counts[1],
            "ratio": counts[0] / counts[1], "final_guided": one[-1:], "final_unguided": other[-1:],
        }  # fmt: skip


def tasks(wanted: argparse.Namespace, known: Sequence[dict[str, Any]]) -> list[Task]:
    """What is not known yet: by kernel and seed where many run at a time, by kernel where a device is shared."""
    done = {(p["kernel"], p["seed"]) for p in known}
    found = []
    for path in wanted.kernels or sorted((ROOT / "examples").glob("*.cu")):
        left = [seed for seed in range(wanted.seeds) if (path.stem, seed) not in done]
        shared = [tuple(left)] if left else []
        found += [Task(path, seeds, wanted) for seeds in ([(s,) for s in left] if wanted.predicted else shared)]
    return found


def summary(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Medians by kernel and over all pairs."""
    by_kernel = {name: [p for p in found if p["kernel"] == name] for name in sorted({p["kernel"] for p in found})}
    ratios = [p["ratio"] for p in found]
    return {
        "median_ratio": statistics.median(ratios) if ratios else None,
        "pairs": len(ratios),
        "kernels": {
            name: {
                "median_ratio": statistics.median(p["ratio"] for p in own),
                "guided/unguided": ", ".join(f"{p['guided']}/{p['unguided']}" for p in own),
            }
            for name, own in by_kernel.items()
        },
    }


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("kernels", nargs="*", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--workers", type=int, help="tasks at a time with --predicted; else workers of the one task")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--evaluations", type=int, default=40)
    parser.add_argument("--predicted", action="store_true", help="times from a recording each, without tests")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for searches that run together")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so long; another call goes on")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Search, compare, print a line a pair and the medians: 0, 1 where nothing could be compared, 2 where the time was
    over first."""
    wanted = options_of(arguments)
    wanted.out.mkdir(parents=True, exist_ok=True)
    book = wanted.out / "guidance.jsonl"
    found = [json.loads(line) for line in book.read_text().splitlines()] if book.exists() else []
    left = tasks(wanted, found)
    workers = (wanted.workers or os.cpu_count() or 1) if wanted.predicted else 1
    ended = 0
    for task, result in each(Task.pairs, left, workers, seconds=wanted.seconds, limit_s=wanted.limit + SETUP_S):
        ended += 1
        if isinstance(result, Lost):
            print(f"{task.path.stem} {task.seeds}: {result.why}", file=sys.stderr)
            continue
        with book.open("a") as file:
            file.writelines(json.dumps(pair) + "\n" for pair in result)
        found += result
        print(
            "\n".join(f"{p['kernel']:<14} seed {p['seed']}: {p['guided']}/{p['unguided']}" for p in result), flush=True
        )
    told = summary(found)
    (wanted.out / "guidance.json").write_text(json.dumps(told, indent=1) + "\n")
    print(json.dumps(told, indent=1))
    return 2 if ended < len(left) else 0 if found else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
