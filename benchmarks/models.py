"""What a model beside the deterministic proposer costs or brings, in a scripted world with a planted optimum.

``python benchmarks/models.py [SEEDS]``: evaluations until 90 % of the final speed-up (in log), alone, beside a useless
model and beside a strong one that proposes the planted optimum once in five answers; medians over seeds. The world is
the one that the search's own tests use; time is counted in evaluations, so that a busy machine changes nothing.
"""

from __future__ import annotations

import math
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


def useless() -> Iterator[Suggestion]:
    for number in range(10_000):
        yield Suggestion(noted(number, wrong=1), 0, f"noise {number}", "coder", cost=charged(0.05, number))


def strong() -> Iterator[Suggestion]:
    for number in range(10_000):
        good = number % 5 == 4
        candidate = noted(number, tile=32, unroll=4) if good else noted(number, wrong=1)
        yield Suggestion(candidate, 0, f"edit {number}", "coder", cost=charged(0.05, number % 5))


def to_ninety(seed: int, script: Iterator[Suggestion] | None) -> int:
    """Evaluations until the best stood at 90 % of the planted optimum's log speed-up."""
    beside = [] if script is None else [Scripted("model", script)]
    refinement = Refinement(BASELINE, Space(Rules(CONTRACT), ACTIONS), [Deterministic(seed), *beside])
    first = refinement.ask()
    assert first is not None
    refinement.tell(first.id, timed(1000.0))
    wanted = 0.9 * math.log(1000.0 / 192.3)
    for number in range(1, EVALUATIONS):
        proposal = refinement.ask()
        if proposal is None:
            break
        wrong = "wrong=1" in proposal.candidate.source
        refinement.tell(proposal.id, failed() if wrong else cost(proposal.candidate))
        best = refinement.archive.best
        if best is not None and math.log(1000.0 / (best.time_ns or 1000.0)) >= wanted:
            return number
    return EVALUATIONS


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    alone = statistics.median(to_ninety(seed, None) for seed in range(seeds))
    for name, script in (("alone", None), ("useless", useless), ("strong", strong)):
        found = [to_ninety(seed, None if script is None else script()) for seed in range(seeds)]
        middle = statistics.median(found)
        print(f"{name:8} {middle:6.1f} evaluations (mean {statistics.mean(found):.1f}), {middle / alone:.2f} of alone")


if __name__ == "__main__":
    main()
