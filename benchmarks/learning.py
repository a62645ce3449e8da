"""What experience of other kernels is worth to the search on a kernel that it never saw.

    python benchmarks/learning.py OUT_DIR [--split 1] [--seeds 20] [--evaluations 20] [--learn 16] [--seconds S]

The suite's workloads, made small (benchmarks/small_world.py), are dealt by ``--split`` into two thirds to learn from
and a third held back. On each of the two thirds the search runs once, ``--learn`` evaluations, and leaves its
experience in OUT_DIR/cache.db as any run does. On each workload held back it runs ``--seeds`` times with each policy:
moves at random (any untried one on any of the elites), today's guesses, and the guesses with that experience; and once
with each of the last two for twice as long. Told is after how many evaluations each first had 90 % of the best
speed-up that any of them found; one more than it made, if never. Where that best is under LEAST there is nothing to
find, and the workload is left out of the ratios, as is one whose original is too dear to be recorded.

Everything that was found out stays in OUT_DIR: after ``--seconds`` it stops and ends with 2, and the same command goes
on. OUT_DIR/learning.json holds the ratios over the workloads that are done: of the mean number of evaluations over
seeds.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.small_world import TARGET, World  # noqa: E402
from fsr.bench.suite import Workload, load_suite  # noqa: E402
from fsr.cache.experience import keep, kept  # noqa: E402
from fsr.cache.store import Store  # noqa: E402
from fsr.records import Basis  # noqa: E402
from fsr.search.experience import Experience, gained  # noqa: E402
from fsr.search.prior import Prior, prior  # noqa: E402
from fsr.search.proposal import Trial  # noqa: E402
from fsr.search.proposers.deterministic import Deterministic  # noqa: E402
from fsr.search.refinement import Refinement  # noqa: E402
from fsr.search.traits import traits  # noqa: E402
from fsr.transform.protocol import Action, Move  # noqa: E402

SHARE = 0.9  # of the best speed-up
LEAST = 1.1  # speed-up: with less there is nothing to find
LONG = 1000  # seed of the long runs
DEAR = ("attention", "recurrent")  # families whose candidates take long to record: they come last
HARD = 3.0  # evaluations that the guesses need on the average: with more, the first guess is wrong
POLICIES = ("random", "guesses", "learned")
RATIOS = (("learned", "random"), ("guesses", "random"), ("learned", "guesses"))


class Chance(Deterministic):
    """The search as it is, but for its choice of moves: each untried one on each elite is as good as any other."""

    def _score(self, trial: Trial, action: Action, move: Move) -> float:
        drawn = f"{self._seed}:{len(self._numbers)}:{self._told}:{self._numbers.get(trial.proposal.id)}:{move.name}"
        return random.Random(drawn).random()


class Over(Exception):  # noqa: N818  # no error
    """The time is over."""


def search(world: World, proposer: Deterministic, evaluations: int, check: Callable[[], None]) -> Refinement:
    """A search of that many evaluations, one at a time."""
    refinement = Refinement(world.baseline, world.space, [proposer])
    for _ in range(evaluations + 1):
        check()
        proposal = refinement.ask()
        if proposal is None:
            break
        refinement.tell(proposal.id, world.outcome(proposal.candidate))
    return refinement


def curve(refinement: Refinement) -> list[float]:
    """The best speed-up after each evaluation."""
    original, *others = refinement.trials
    best, found = original.time_ns or math.inf, list[float]()
    for trial in others:
        best = min(best, trial.time_ns or math.inf)
        found.append((original.time_ns or 0.0) / best)
    return found


def about(world: World, kernel: str) -> Experience:
    """What is known of a kernel before anything was tried on it."""
    known = traits(world.rules, world.baseline, world.outcome(world.baseline))
    return Experience(kernel, known, Basis.PREDICTED.value, TARGET, ())


def learn(world: World, evaluations: int, store: Store, check: Callable[[], None]) -> None:
    """One run, and what it leaves."""
    told, refinement = about(world, world.name), search(world, Deterministic(0), evaluations, check)
    experience = Experience(told.kernel, told.traits, told.basis, told.hardware, gained(refinement.trials))
    keep(store, world.name, experience.to_json())


def proposer(policy: str, seed: int, known: Prior) -> Deterministic:
    """The search's own, by one of POLICIES."""
    if policy == "random":
        return Chance(seed)
    return Deterministic(seed, prior=known if policy == "learned" else None)


def judged(world: World, known: Prior, wanted: argparse.Namespace, check: Callable[[], None]) -> dict[str, Any]:
    """Evaluations until SHARE of the best that was seen, by policy and seed."""
    curves = {
        policy: [curve(search(world, proposer(policy, seed, known), wanted.evaluations, check))
                 for seed in range(wanted.seeds)] for policy in wanted.policies
    }  # fmt: skip
    long = [curve(search(world, proposer(policy, LONG, known), 2 * wanted.evaluations, check))
            for policy in wanted.policies if policy != "random"]  # fmt: skip
    best = max([1.0, *(c[-1] for c in (*long, *(c for own in curves.values() for c in own)) if c)])
    return {
        "workload": world.name, "sizes": world.contract.timed_sizes()[0], "best": best,
        "candidates": world.book.count("outcome"),
        "needed": {policy: [reached(c, best, wanted.evaluations) for c in own] for policy, own in curves.items()},
    }  # fmt: skip


def reached(found: Sequence[float], best: float, most: int) -> int:
    """After how many evaluations a search had its share of the best speed-up; one more than it may make, if never."""
    return next((n for n, speedup in enumerate(found, 1) if speedup >= SHARE * best), most + 1)


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Ratios over all workloads, and over those whose first guess is wrong."""
    with_gain = [row for row in rows if row["best"] >= LEAST]
    hard = [row for row in with_gain if statistics.mean(row["needed"]["guesses"]) > HARD]
    return {"workloads": len(rows), "nothing to find": [r["workload"] for r in rows if r["best"] < LEAST],
            "all": _ratios(with_gain), "first guess wrong": _ratios(hard)}  # fmt: skip


def _ratios(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    means = {row["workload"]: {p: statistics.mean(n) for p, n in row["needed"].items()} for row in rows}
    found: dict[str, Any] = {"workloads": len(rows), "evaluations": means}
    for one, other in RATIOS:
        ratios = [m[one] / m[other] for m in means.values() if one in m and other in m]
        if ratios:
            found[f"{one}/{other}"] = {
                "geometric mean": round(statistics.geometric_mean(ratios), 3),
                "median": round(statistics.median(ratios), 3), "worst": round(max(ratios), 3),
            }  # fmt: skip
    return found


def dealt(workloads: Sequence[Workload], split: int) -> tuple[list[Workload], list[Workload]]:
    """Two thirds to learn from and a third held back."""
    shuffled = random.Random(split).sample(list(workloads), len(workloads))
    cut = round(len(shuffled) / 3)
    learned, held = (
        sorted(part, key=lambda w: (w.family in DEAR, w.name)) for part in (shuffled[cut:], shuffled[:cut])
    )
    return learned, held


def _sweep(wanted: argparse.Namespace, check: Callable[[], None], rows: list[dict[str, Any]], dear: list[str]) -> None:
    """Learn and judge, into ``rows``; ``dear``: names of workloads that are left out for what they cost."""
    learned, held = dealt(load_suite(wanted.suite).workloads, wanted.split)
    with Store(wanted.out / "cache.db") as store:
        done = {told["kernel"] for told in kept(store)}
        for work in learned:
            world = World(work.kernel, wanted.out) if work.name not in done else None
            if world is None or world.dear:
                dear += [work.name] if world is not None else []
                continue
            learn(world, wanted.learn, store, check)
            print(f"learned from {work.name}, {world.book.cost_s:.0f} s", flush=True)
        names = {w.name for w in learned}
        experience = [Experience.from_json(told) for told in kept(store) if told["kernel"] in names]
    for work in held:
        check()
        world = World(work.kernel, wanted.out)
        if world.dear:
            dear.append(work.name)
            continue
        told = about(world, world.name)
        row = judged(world, prior(told.traits, told.basis, told.hardware, experience), wanted, check)
        rows.append(row)
        means = {policy: round(statistics.mean(n), 1) for policy, n in row["needed"].items()}
        print(f"{work.name:24} best {row['best']:7.2f}x {means}, {world.book.cost_s:.0f} s", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Ends with 0, or 2 where the time was over first."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--suite", type=Path, default=ROOT / "benchmarks" / "suite")
    parser.add_argument("--split", type=int, default=1, help="seed that deals the workloads")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--evaluations", type=int, default=20, help="of each search on a workload held back")
    parser.add_argument("--learn", type=int, default=16, help="evaluations on each workload that is learned from")
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=POLICIES)
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so long; another call goes on")
    wanted = parser.parse_args(arguments)
    wanted.out.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + wanted.seconds

    def check() -> None:
        if time.monotonic() > until:
            raise Over

    rows: list[dict[str, Any]] = []
    dear: list[str] = []
    try:
        _sweep(wanted, check, rows, dear)
        ended = True
    except Over:
        ended = False
        print("the time is over: the same command goes on", file=sys.stderr)
    told = {**summary(rows), "too dear": dear, "whole": ended, "rows": rows}
    (wanted.out / "learning.json").write_text(json.dumps(told, indent=1) + "\n")
    print(json.dumps({k: v for k, v in told.items() if k != "rows"}, indent=1))
    return 0 if ended else 2


if __name__ == "__main__":
    sys.exit(main())
