"""What a model is shown to choose from: parents, legal moves that were not tried, regions of the code."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from fsr.llm.roles import macro
from fsr.llm.roles.chooser import MOST_MOVES
from fsr.records import Status
from fsr.search.policy import Policy, bottlenecks_of
from fsr.search.proposal import Trial
from fsr.search.proposers.protocol import View
from fsr.transform.protocol import Action, Move

PARENTS = 4
A_KIND = 4  # offers of one action, so that no other is crowded out by its parameters
MENDS = "mends"  # in the provenance of a repair: the failed trial that it is of
STEP = "step"  # in the provenance of a step: its type
UNCALLED = 0.05  # how likely a step is that no bottleneck calls for, beside one that relieves all of the time
REPAIRS = 2  # rounds, until a failing line of candidates is given up
BROKEN = (Status.INVALID, Status.COMPILE_FAILED, Status.CRASHED, Status.TIMED_OUT, Status.WRONG)
# What relieves a bottleneck, as macro steps; the policy's choice where no model makes one.
STEPS = {
    "uncoalesced": "reordering", "atomics": "parallelization", "latency": "pipelining", "occupancy": "tiling",
    "bandwidth": "fusion", "compute": "cheaper arithmetic", "shared-conflicts": "tiling",
    "instructions": "cheaper arithmetic", "launch": "fusion",
}  # fmt: skip


def parent(view: View, chance: random.Random) -> Trial:
    """An elite to change: the fastest most often, each next one a third as often, and less the slower it is."""
    elites = view.elites[:PARENTS]
    best = elites[0].time_ns or 1.0
    return chance.choices(elites, [3.0**-n * (best / (t.time_ns or best)) ** 4 for n, t in enumerate(elites)])[0]


def moves(view: View, trial: Trial) -> list[tuple[Action, Move]]:
    """Legal moves on a candidate that were not tried on it, most promising first, a few of each action."""
    tried = {t.proposal.move for t in view.trials if t.proposal.parent == trial.proposal.id}
    causes, policy = bottlenecks_of(trial.outcome.features), Policy()
    found = [(a, m) for a, m in view.space.moves(trial.proposal.candidate) if m.name not in tried]
    found.sort(key=lambda pair: -policy.estimate(pair[0], pair[1], causes))
    counts: Counter[str] = Counter()
    kept = []
    for action, move in found:
        counts[action.name] += 1
        if counts[action.name] <= A_KIND:
            kept.append((action, move))
    return kept[:MOST_MOVES]


def regions(view: View, trial: Trial) -> list[str]:
    """Where something could be changed: what the actions call their places, and the whole."""
    found = [move.region for _, move in view.space.moves(trial.proposal.candidate)]
    return list(dict.fromkeys(["kernel", "launch", *sorted(found)]))[:12]


def step_of(view: View, trial: Trial, chance: random.Random) -> str:
    """A kind of change: most likely what the bottlenecks call for, less so the more often it gained nothing."""
    worth = dict.fromkeys(macro.TYPES, UNCALLED)
    for name, share in bottlenecks_of(trial.outcome.features).items():
        if name in STEPS:
            worth[STEPS[name]] += share
    made = [t for t in view.trials if t.proposal.provenance.get(STEP) in worth]
    known = {t.proposal.id: t.time_ns for t in view.trials}
    for t in made:
        before = known.get(t.proposal.parent or 0)
        gained = t.time_ns is not None and before is not None and t.time_ns < before
        worth[str(t.proposal.provenance[STEP])] *= 1.5 if gained else 0.5
    return chance.choices(list(worth), list(worth.values()))[0]


def broken(view: View, proposer: str) -> list[Trial]:
    """Failed candidates of a proposer that nobody has tried to mend yet, newest first, within REPAIRS rounds."""
    mended = {t.proposal.provenance.get(MENDS) for t in view.trials}
    return [
        t for t in reversed(view.trials)
        if t.proposal.proposer == proposer and t.outcome.status in BROKEN and t.proposal.id not in mended
        and t.proposal.origin != "chooser" and rounds(t) < REPAIRS
    ]  # fmt: skip


def rounds(trial: Trial) -> int:
    """How often the line of a candidate was mended."""
    told = trial.proposal.provenance.get("rounds", 0)
    return told if isinstance(told, int) else 0


def partner(view: View, trial: Trial) -> Trial | None:
    """The fastest elite of another design."""
    others: Sequence[Trial] = [t for t in view.elites if t.proposal.id not in (trial.proposal.id, 0)]
    return others[0] if others else None
