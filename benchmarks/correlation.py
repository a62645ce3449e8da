"""Predicted against measured times: rank correlation per example, from the logs of runs on a GPU.

    python benchmarks/correlation.py OUT_DIR --runs FOLDER [--most 40] [--examples gemm,softmax] [--workers N]

FOLDER: any that holds folders of runs (FSR_HOME/runs, or several benchmarks' output folders), at whatever depth.
Needs no GPU: candidates and measured times come from the logs (events.jsonl), predictions from the host device. Logs
hold every candidate; those of an older log are made again from the names of their moves, as far as the actions still
give the same (their hashes say so). Of each example the
run with the most timed candidates counts; at most ``--most`` of them, spread evenly over the ranks, are predicted.

OUT_DIR/correlation.json, written anew after each example: pairs, Spearman's rank correlation, and how far a ratio of
two predictions is from the ratio of the measured times (what ERROR_FACTOR in fsr/prediction/predict.py stands for), as
the factors that 50, 80, 90 and 95 % of the pairs stay within; of pairs whose times differ by 10, 25 and 50 % and more,
in how many the faster one is told.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from fsr.cache.digest import text_digest  # noqa: E402
from fsr.evaluation.clock import predicted  # noqa: E402
from fsr.evaluation.compiling import build  # noqa: E402
from fsr.evaluation.session import session_of  # noqa: E402
from fsr.evaluation.spec import Binaries, CompileRequest, SessionSpec  # noqa: E402
from fsr.identity import candidate_from_json, candidate_hash, outcome_from_json  # noqa: E402
from fsr.records import Basis, Candidate, Status  # noqa: E402
from fsr.runs.kernel import Kernel, load_kernel  # noqa: E402  # the checkout, installed or not
from fsr.runs.log import read_events  # noqa: E402
from fsr.runs.resuming import RunStart  # noqa: E402
from fsr.search.proposal import Rules, Space  # noqa: E402
from fsr.transform.registry import all_actions  # noqa: E402
from fsr.workers.local import local_workers  # noqa: E402
from fsr.workers.protocol import Task, WorkerFault  # noqa: E402

MOST = 40
FEWEST = 20  # candidates an example needs for its correlation to count
PREDICT_LIMIT_S = 120.0
SHARES = (50, 80, 90, 95)
APART = (10, 25, 50)  # percent


@dataclass(frozen=True)
class Measured:
    """A right candidate and its time on a GPU, in nanoseconds."""

    move: str
    candidate: Candidate
    time_ns: float
    status: str


@dataclass(frozen=True)
class Run:
    """What a log tells: the kernel as it was, the target, and every timed candidate; ``note``: what is missing."""

    name: str
    kernel: Kernel
    target: str
    measured: tuple[Measured, ...]
    note: str = ""


# ---------------------------------------------------------------- reading logs


def read_run(folder: Path) -> Run | str:
    """A run on a GPU, or why it does not count."""
    events = list(read_events(folder))
    if not events or events[0]["kind"] != "start":
        return "it never started its search"
    start = RunStart.read(folder)
    if start.baseline.timing is None or start.baseline.timing.basis is not Basis.MEASURED:
        return "its times are not measured"
    name = start.options.kernel.name
    here = [found for kept in ("examples", "benchmarks") for found in sorted((ROOT / kept).rglob(name))]
    paths = (p for p in (start.options.kernel, *here) if p.is_file())
    path = next((p for p in paths if text_digest(p.read_bytes()) == start.source), None)
    if path is None:
        return f"the kernel {start.options.kernel.name} is not here as it was"
    kernel = load_kernel(path, start.options.entry)
    target = next((e["result"]["device"]["arch"] for e in events if e["kind"] == "end"), start.options.target)
    candidates, note = candidates_of(events, kernel, target, start)
    moves = {e["id"]: e["move"] for e in events if e["kind"] == "ask"}
    return Run(folder.name, kernel, target, tuple(_timed(events, candidates, moves)), note)


def _timed(
    events: Sequence[dict[str, Any]], candidates: dict[int, Candidate], moves: dict[int, str]
) -> Iterator[Measured]:
    for event in events:
        if event["kind"] != "tell" or event["id"] not in candidates:
            continue
        outcome = outcome_from_json(event["outcome"])
        if outcome.status >= Status.SLOW and outcome.timing is not None:
            told = outcome.status.name.lower()
            yield Measured(moves[event["id"]], candidates[event["id"]], outcome.timing.median_ns, told)


def candidates_of(
    events: Sequence[dict[str, Any]], kernel: Kernel, target: str, start: RunStart
) -> tuple[dict[int, Candidate], str]:
    """Candidate by proposal id, from the asks themselves or, in an older log, by replaying the search."""
    asks = [e for e in events if e["kind"] == "ask"]
    rules = Rules(kernel.contract, start.options.keep_launch, target)
    space = Space(rules, all_actions(), lambda action, fault: None)
    found: dict[int, Candidate] = {}
    for ask in asks:
        if "candidate" in ask:
            found[ask["id"]] = candidate_from_json(ask["candidate"])
            continue
        for candidate in made_again(ask, found, kernel.baseline, start.given, space):
            if candidate is not None and candidate_hash(candidate) == ask["hash"]:
                found[ask["id"]] = candidate
                break
    lost = len(asks) - len(found)
    return found, f"{lost} of {len(asks)} could not be made again: the actions have changed since" if lost else ""


def made_again(
    ask: dict[str, Any], found: dict[int, Candidate], baseline: Candidate, given: Candidate | None, space: Space
) -> Iterator[Candidate | None]:
    """What a logged proposal may have been: its move on its parent, or, retuned, the parent's path with that move in
    place of one of the same action and region."""
    move, parent = ask["move"], found.get(ask["parent"]) if ask["parent"] is not None else baseline
    if ask["origin"] in ("baseline", "given"):
        yield baseline if ask["origin"] == "baseline" else given
    elif parent is not None and ask["origin"] == "action":
        yield space.replay(parent, (move,))
    elif parent is not None:
        for index, name in enumerate(parent.actions):
            if name.split("[")[0] == move.split("[")[0]:
                path = (*parent.actions[:index], move, *parent.actions[index + 1 :])
                yield space.replay(baseline, path)


def best_runs(folder: Path, wanted: Sequence[str]) -> tuple[dict[str, Run], dict[str, str]]:
    """Of each kernel the run with the most timed candidates; and why other runs do not count."""
    best: dict[str, Run] = {}
    refused: dict[str, str] = {}
    for each in sorted(p.parent for p in folder.rglob("events.jsonl")):
        try:
            run = read_run(each)
        except Exception as fault:  # one log must not lose the others
            run = f"{type(fault).__name__}: {fault}"
        if isinstance(run, str):
            refused[each.name] = run
            continue
        name = run.kernel.file.path.stem
        if (not wanted or name in wanted) and len(run.measured) >= len(best[name].measured if name in best else ()):
            best[name] = run
    return best, refused


def spread(measured: Sequence[Measured], most: int) -> list[Measured]:
    """At most ``most``, evenly over the ranks of their times, fastest and slowest among them."""
    ranked = sorted({m.candidate: m for m in measured}.values(), key=lambda m: m.time_ns)
    if len(ranked) <= most:
        return ranked
    return [ranked[round(i * (len(ranked) - 1) / (most - 1))] for i in range(most)]


# ---------------------------------------------------------------- predicting


def predict_task(request: CompileRequest) -> float:
    """Predicted nanoseconds of a candidate on the host device; a task of the workers."""
    session = session_of(request.spec)
    built = build(request.spec, request.candidate)
    if not isinstance(built, Binaries):
        raise ValueError(str(built)[:300])
    case, data = session.timed()[0]
    return predicted(session, built, request.candidate.plan, case, data).timing.median_ns


def predictions(run: Run, chosen: Sequence[Measured], workers: int) -> tuple[list[float | None], list[str]]:
    """Predicted nanoseconds of each, None where there is no prediction; and why not."""
    spec = SessionSpec(run.kernel.contract, run.kernel.baseline, "host", run.target, 0, str(run.kernel.folder))
    found: list[float | None] = [None] * len(chosen)
    why: list[str] = []
    path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), str(ROOT), path]))
    with local_workers(0, workers) as pool:
        tickets = {
            pool.submit(
                "device", Task("correlation:predict_task", CompileRequest(spec, m.candidate), PREDICT_LIMIT_S)
            ): i
            for i, m in enumerate(chosen)
        }
        while tickets:
            for completion in pool.wait(0.5):
                index, told = tickets.pop(completion.ticket), completion.result
                if isinstance(told, WorkerFault):
                    why.append(f"{chosen[index].move}: {told.kind}: {told.detail.strip().splitlines()[-1][:200]}")
                elif math.isfinite(told):
                    found[index] = told
                else:
                    why.append(f"{chosen[index].move}: predicted not to run on {run.target}")
    return found, why


# ---------------------------------------------------------------- statistics


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0.0] * len(values)
    for _, group in itertools.groupby(enumerate(order, 1), key=lambda pair: values[pair[1]]):
        members = list(group)
        mean = sum(place for place, _ in members) / len(members)
        for _, index in members:
            found[index] = mean
    return found


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Spearman's rank correlation: Pearson's of the ranks, which is exact with ties. None when either is constant."""
    x, y = ranks(a), ranks(b)
    mean = (len(x) + 1) / 2
    top = sum((p - mean) * (q - mean) for p, q in zip(x, y, strict=True))
    bottom = math.sqrt(sum((p - mean) ** 2 for p in x) * sum((q - mean) ** 2 for q in y))
    return None if bottom == 0 else top / bottom


def percentile(values: Sequence[float], share: float) -> float:
    """The value that ``share`` % of the values do not exceed (the nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share / 100 * len(ordered)) - 1)]


def factors(errors: Sequence[float]) -> dict[str, float] | None:
    """Absolute differences of logarithms as factors that shares of them stay within."""
    if not errors:
        return None
    return {f"{share} %": round(math.exp(percentile(errors, share)), 3) for share in SHARES}


def told(pairs: Sequence[tuple[float, float]]) -> dict[str, tuple[int, int]]:
    """Of the pairs of (predicted, measured) times that lie so far apart: how many come in the right order, of how
    many."""
    found = {f"{percent} %": (0, 0) for percent in APART}
    for (p, m), (q, n) in itertools.combinations(pairs, 2):
        right = (p < q) == (m < n) and p != q
        for percent in APART:
            if max(m, n) >= (1 + percent / 100) * min(m, n):
                yes, of = found[f"{percent} %"]
                found[f"{percent} %"] = (yes + right, of + 1)
    return found


def compared(pairs: Sequence[tuple[float, float]], baseline: tuple[float, float] | None) -> dict[str, Any]:
    """Statistics of (predicted, measured) pairs; ``baseline`` is the original's pair."""
    logs = [math.log(p / m) for p, m in pairs]
    between = [abs(a - b) for a, b in itertools.combinations(logs, 2)]
    to_baseline = [] if baseline is None else [abs(x - math.log(baseline[0] / baseline[1])) for x in logs]
    rho = spearman([p for p, _ in pairs], [m for _, m in pairs]) if len(pairs) > 2 else None
    middle = sorted(logs)[len(logs) // 2] if logs else 0.0
    return {
        "spearman": None if rho is None else round(rho, 3), "candidates": len(pairs), "enough": len(pairs) >= FEWEST,
        "predicted_over_measured": round(math.exp(middle), 3), "ratio_error": factors(between),
        "speedup_error": factors([e for e in to_baseline if e > 0]), "told": told(pairs),
    }  # fmt: skip


def correlated(run: Run, most: int, workers: int) -> dict[str, Any]:
    """One example: its statistics and pairs."""
    started = time.monotonic()
    chosen = spread(run.measured, most)
    original = next((m for m in run.measured if not m.candidate.actions), None)
    asked = chosen if original is None or original in chosen else [original, *chosen[1:]]
    found, why = predictions(run, asked, workers)
    usable = [(p, m) for p, m in zip(found, asked, strict=True) if p is not None]
    base = next(((p, m.time_ns) for p, m in usable if m is original), None)
    figures = compared([(p, m.time_ns) for p, m in usable], base)
    rows = [
        {"move": m.move, "actions": list(m.candidate.actions), "status": m.status, "measured_ns": m.time_ns,
         "predicted_ns": p} for p, m in usable
    ]  # fmt: skip
    return figures | {
        "run": run.name, "target": run.target, "timed": len(run.measured), "note": run.note, "not_predicted": why,
        "seconds": round(time.monotonic() - started, 1), "pairs": rows,
    }  # fmt: skip


# ---------------------------------------------------------------- the script


def summary(examples: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Over all examples: the median correlation, and the error of ratios pooled."""
    rhos = sorted(e["spearman"] for e in examples.values() if e.get("spearman") is not None and e["enough"])
    middle = (rhos[(len(rhos) - 1) // 2] + rhos[len(rhos) // 2]) / 2 if rhos else None
    pooled: list[float] = []
    for example in examples.values():
        logs = [math.log(p["predicted_ns"] / p["measured_ns"]) for p in example.get("pairs", [])]
        pooled += [abs(a - b) for a, b in itertools.combinations(logs, 2)]
    right = {key: tuple(map(sum, zip(*(e["told"][key] for e in examples.values() if "told" in e), strict=True)))
             for key in (f"{percent} %" for percent in APART)} if examples else {}  # fmt: skip
    return {"median_spearman": middle, "examples_that_count": len(rhos), "ratio_error": factors(pooled), "told": right}


def write(out: Path, examples: dict[str, dict[str, Any]], refused: dict[str, str]) -> None:
    """correlation.json in one piece."""
    draft = out / "correlation.json.draft"
    told = {"summary": summary(examples), "examples": examples, "runs_left_out": refused}
    draft.write_text(json.dumps(told, indent=1) + "\n")
    draft.replace(out / "correlation.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Ends with 0 when at least one example could be compared, else 1."""
    parser = argparse.ArgumentParser(description="Predicted against measured times, from the logs of runs on a GPU.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--runs", type=Path, required=True, help="folder that holds run folders, at whatever depth")
    parser.add_argument("--examples", help="names, separated by commas; all by default")
    parser.add_argument("--most", type=int, default=MOST, help="candidates of one example")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    runs, refused = best_runs(options.runs, options.examples.split(",") if options.examples else ())
    examples: dict[str, dict[str, Any]] = {}
    for name, run in runs.items():
        try:
            examples[name] = correlated(run, options.most, options.workers)
        except Exception as fault:  # one example must not lose the others
            refused[run.name] = f"{type(fault).__name__}: {fault}"
        write(options.out, examples, refused)
        told = examples.get(name, {})
        print(f"{name}: spearman {told.get('spearman')} over {told.get('candidates')}, ratios within "
              f"{told.get('ratio_error')}, {told.get('seconds')} s {told.get('note')}", flush=True)  # fmt: skip
    write(options.out, examples, refused)
    print(json.dumps(summary(examples)))
    for name, why in refused.items():
        print(f"left out: {name}: {why}")
    return 0 if examples else 1


if __name__ == "__main__":
    sys.exit(main())
