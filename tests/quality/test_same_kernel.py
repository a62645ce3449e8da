"""A/A: the same kernel against itself on a noisy machine must not come out as faster; a real gain must.

Chance is tested as a rate over fixed seeds. The machine is made up: its noise, drift, spikes and the grain of its clock
are at least as bad as what was seen on GPUs.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import pytest

from fsr.evaluation.timing import TimingPolicy, paired
from fsr.evaluation.verdict import paired_verdict
from fsr.records import VerdictKind

SEEDS = 200
FALSE_FASTER = 0.05
FOUND = 0.95


@dataclass
class Machine:
    """Time passes with every sample, and the machine's mood with it."""

    seed: int
    noise: float = 0.01
    drift: float = 0.0  # relative change over a thousand samples, back and forth
    spikes: float = 0.0  # share of samples that an interruption makes up to three times as long
    grain_ns: float = 32.0
    uneven: float = 0.0  # relative, what the place of a plan's buffers costs or gains

    def __post_init__(self) -> None:
        self.random, self.samples = random.Random(self.seed), 0
        self.phase = self.random.uniform(0, 2 * math.pi)

    def sample(self, true_ns: float) -> float:
        self.samples += 1
        mood = 1 + self.drift * math.sin(self.phase + self.samples * 2 * math.pi / 1000)
        value = true_ns * mood * math.exp(self.random.gauss(0, self.noise))
        if self.random.random() < self.spikes:
            value *= self.random.uniform(1, 3)
        return round(value / self.grain_ns) * self.grain_ns


class Kernel:
    """A prepared plan on the machine that takes ``true_ns``."""

    def __init__(self, machine: Machine, true_ns: float) -> None:
        self.machine, self.true_ns = machine, true_ns
        self.place = 1.0 + machine.random.gauss(0, machine.uneven)  # what the place of its buffers costs

    def time_ns(self) -> float:
        return self.machine.sample(self.true_ns * self.place)

    def exchange(self, other: Kernel) -> None:
        self.place, other.place = other.place, self.place


MACHINES = {
    "calm": {"noise": 0.003},
    "noisy": {"noise": 0.03},
    "drifting": {"noise": 0.01, "drift": 0.1},
    "interrupted": {"noise": 0.01, "spikes": 0.1},
    "coarse": {"noise": 0.004, "grain_ns": 0.01},  # as a share of the time, below
    "uneven": {"noise": 0.003, "uneven": 0.02},
}
POLICY = TimingPolicy(final_pairs=30, final_budget_ns=0.0)


def verdicts(name: str, speedup: float, seeds: int) -> list[VerdictKind]:
    """The final's verdict for every seed, on a kernel of 1 ms (of a hundred grains on the coarse clock)."""
    true_ns = 100 * 0.01 if name == "coarse" else 1e6
    found = []
    for seed in range(seeds):
        machine = Machine(seed, **MACHINES[name])
        old = [Kernel(machine, true_ns) for _ in range(3)]
        new = [Kernel(machine, true_ns / speedup) for _ in range(3)]
        samples = paired(old, new, POLICY)  # type: ignore[arg-type]  # only the clock of a prepared plan is used
        found.append(paired_verdict(*samples, seed=seed).kind)
    return found


@pytest.mark.parametrize("name", MACHINES)
def test_the_same_kernel_is_rarely_called_faster_than_itself(name: str) -> None:
    found = verdicts(name, 1.0, SEEDS)
    assert found.count(VerdictKind.FASTER) <= FALSE_FASTER * SEEDS, {k: found.count(k) for k in VerdictKind}
    assert found.count(VerdictKind.SLOWER) <= FALSE_FASTER * SEEDS, {k: found.count(k) for k in VerdictKind}


@pytest.mark.parametrize("name", MACHINES)
def test_a_gain_of_a_tenth_is_found(name: str) -> None:
    found = verdicts(name, 1.1, 60)
    assert found.count(VerdictKind.FASTER) >= FOUND * 60, {k: found.count(k) for k in VerdictKind}
