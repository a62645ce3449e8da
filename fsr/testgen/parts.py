"""Cases that are judged in part: what a few blocks of the original write, where a case in whole takes seconds and no
smaller one is allowed. Only on the host device, and where each block's results are its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fsr.analysis.block_atomics import outer_atomic
from fsr.backends.protocol import Array
from fsr.records import Candidate, Case
from fsr.source.tokens import tokenize

BLOCKS = 6  # of the original's, a case: the first, the last, and others at random
FEW = 4 * BLOCKS  # in a grid of so many blocks a few are no part
_MUTUAL = {  # how names begin that may let blocks meet, and what to say of them
    "__threadfence": "may hand results on to other blocks",
    "asm": "may reach other blocks' memory",
    "cooperative_groups": "may wait for other blocks",
    "red_": "may change what other blocks write",
    "__nv_atomic": "may change what other blocks write",
}


def alone(candidate: Candidate) -> bool:
    """Whether each block's results are its own."""
    return not meeting(candidate)


def meeting(candidate: Candidate) -> str:
    """What may let blocks change one another's results, in words; '' where each block's are its own. Atomics on shared
    memory are a block's own affair."""
    plan = candidate.plan
    if len(plan.launches) != 1:
        return f"its plan of {len(plan.launches)} launches passes results on from one to the next"
    if plan.scratch:
        return f"the scratch buffer {plan.scratch[0].name} may pass results on from block to block"
    names = dict.fromkeys(token.text for token in tokenize(candidate.source) if token.kind == "name")
    found = ((name, does) for name in names for start, does in _MUTUAL.items() if name.startswith(start))
    if (met := next(found, None)) is not None:
        return f"{met[0]} {met[1]}"
    if (atomic := outer_atomic(candidate.source)) is not None:
        on = f" on {atomic.array}" if atomic.array else ""
        return f"{atomic.name}{on} may change what other blocks write"
    return ""


@dataclass(frozen=True, slots=True)
class Part:
    """What is judged of a case. ``blocks``: of the original's grid, by linear number; ``places``: of each output the
    elements that they write, ascending."""

    blocks: tuple[int, ...]
    places: Mapping[str, Array]

    def picked(self, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
        """These elements of each output, in one row."""
        return {name: arrays[name].reshape(-1)[at] for name, at in self.places.items()}

    def index(self, name: str, number: int, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The index that a picked element has in the whole output."""
        return tuple(int(i) for i in np.unravel_index(int(self.places[name][number]), shape))


def chosen_blocks(case: Case, grid: int) -> tuple[int, ...]:
    """The blocks of a grid that a case is judged on; () for all, where they are few."""
    if grid <= FEW:
        return ()
    rng = np.random.default_rng([case.seed % 2**32, 606])
    return tuple(sorted({0, grid - 1, *(int(b) for b in rng.integers(0, grid, BLOCKS - 2))}))
