"""What a model beside the deterministic proposer costs or brings, in a scripted world with a planted optimum.

``python benchmarks/models.py [SEEDS]``: the time until 90 % of the final speed-up (in log), alone, beside a useless
model and beside a strong one, of whose answers every fifth, at random, is the planted optimum; over seeds. The world is
the one that the search's own tests use. Time is counted in evaluations of right candidates, so that a busy machine
changes nothing: a wrong one fails its first case and takes WRONG of that, as measured with 22 evaluations each of
softmax and transpose on the host device (medians 2.4 s of 8.1 s, 0.16 s of 1.4 s).
"""

from __future__ import annotations

import math
import random
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fsr.llm.proposer import charged
from fsr.search.proposal import Rules, Space
from fsr.search.proposers.deterministic import Deterministic
from fsr.search.proposers.protocol import Suggestion
from fsr.search.refinement import Refinement
from tests.conformance.proposers import Scripted, cost, noted
from tests.search.scripted import BASELINE, CONTRACT, Knob, failed, timed

ACTIONS = (
    Knob("tile", (4, 8, 16, 32, 64), 1.1), Knob("unroll", (1, 2, 4, 8), 1.1),
    *(Knob(f"idle{n}", (1, 2, 3, 4, 5), 1.3) for n in range(4)),
)  # fmt: skip
EVALUATIONS = 200
WRONG = 0.3  # of the time that a right candidate takes


def useless() -> Iterator[Suggestion]:
    for number in range(10_000):
        yield Suggestion(noted(number, wrong=1), 0, f"noise {number}", "coder", cost=charged(0.05, number))


def strong(chance: random.Random) -> Iterator[Suggestion]:
    wrong = gains = 0
    for number in range(10_000):
        good = chance.random() < 0.2
        candidate = noted(number, tile=32, unroll=4) if good else noted(number, wrong=1)
        yield Suggestion(candidate, 0, f"edit {number}", "coder", cost=charged(0.05, wrong, gains))
        wrong, gains = (0, 1) if good else (wrong + 1, gains)


def to_ninety(seed: int, script: Iterator[Suggestion] | None) -> tuple[float, int]:
    """The time until the best stood at 90 % of the planted optimum's log speed-up, and the model's candidates in it."""
    beside = [] if script is None else [Scripted("model", script)]
    refinement = Refinement(BASELINE, Space(Rules(CONTRACT), ACTIONS), [*beside, Deterministic(seed)])
    first = refinement.ask()
    assert first is not None
    refinement.tell(first.id, timed(1000.0))
    wanted, took, others = 0.9 * math.log(1000.0 / 192.3), 0.0, 0
    for _ in range(1, EVALUATIONS):
        proposal = refinement.ask()
        if proposal is None:
            break
        wrong = "wrong=1" in proposal.candidate.source
        took += WRONG if wrong else 1.0
        others += proposal.proposer == "model"
        refinement.tell(proposal.id, failed() if wrong else cost(proposal.candidate))
        best = refinement.archive.best
        if best is not None and math.log(1000.0 / (best.time_ns or 1000.0)) >= wanted:
            break
    return took, others


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    alone: list[float] = []
    for name in ("alone", "useless", "strong"):
        found = []
        for seed in range(seeds):
            script = {"useless": useless(), "strong": strong(random.Random(seed))}.get(name)
            found.append(to_ninety(seed, script))
        times = [took for took, _ in found]
        alone = alone or times
        middle, mean = (of(times) / of(alone) for of in (statistics.median, statistics.mean))
        others = statistics.mean(count for _, count in found)
        told = f"median {statistics.median(times):5.1f}, {middle:.2f} of alone; mean {statistics.mean(times):5.1f},"
        print(f"{name:8} {told} {mean:.2f} of alone; {others:.1f} candidates of the model's", flush=True)


if __name__ == "__main__":
    main()
