"""Experience of made-up kernels for tests."""

from __future__ import annotations

import math
from typing import Any

from fsr.search.experience import Experience, Gained, Where

TRAITS = {"points": 20.0, "folds": "sum", "fold length": 10.0, "held back by": "uncoalesced"}


def gain(action: str, guess: float, got: float, first: bool = True, **params: int | str) -> Gained:
    """One move that gained ``got``, as a factor."""
    at = Where(action, tuple(params.items()), first, "")
    return Gained(at, math.log(guess), math.log(got))


def learned(*moves: Gained, kernel: str = "another", basis: str = "predicted", **more: Any) -> Experience:
    """What one run on the host device left; ``more``: other traits, hardware or version."""
    traits = {**TRAITS, **more.pop("traits", {})}
    return Experience(kernel, traits, basis, more.pop("hardware", "sm_90"), moves, **more)
