"""Writes kernels with their contracts from a seed: what kernels do, as people write it.

Nothing here knows of an action. A kernel is a body out of ``BODIES`` in a style of its own (names, types, guards,
loops, macros, where pointers are declared); each is read back through the ordinary contract reader.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.kernels import blocks, points, rows  # noqa: E402, F401  # they register their bodies
from benchmarks.kernels.bodies import BODIES  # noqa: E402
from benchmarks.kernels.sources import Subject  # noqa: E402
from fsr.contract.load import load_contract  # noqa: E402
from fsr.records import Candidate  # noqa: E402
from fsr.source.file import KernelFile  # noqa: E402


def written(number: int, seed: int) -> str:
    """The text of one kernel; every body comes round, each time in another style."""
    names = sorted(BODIES)
    chance = random.Random(f"{seed}:{number}")
    return BODIES[names[number % len(names)]](chance).text()


def of_generator(count: int, seed: int) -> list[Subject]:
    """``count`` generated kernels, read as a user's file is."""
    found = []
    for number in range(count):
        name = sorted(BODIES)[number % len(BODIES)]
        file = KernelFile.from_text(written(number, seed))
        contract = load_contract(file)
        entries = dict.fromkeys(launch.entry for launch in contract.plan.launches)
        candidate = Candidate(file.cut(contract.entry, *entries).text, contract.plan)
        found.append(Subject(f"generated/{number:03}-{name}", candidate, contract))
    return found
