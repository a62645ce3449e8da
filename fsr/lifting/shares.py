"""How much of its outputs what is watched writes: at small sizes it may be all border."""

from __future__ import annotations

from collections.abc import Sequence

from fsr.contract.model import Argument
from fsr.lifting.watching import Run

_MOSTLY = 0.5  # of an output, beneath which what is written is hardly seen between its borders


def idle(runs: Sequence[Sequence[Run]], outputs: Sequence[Argument]) -> bool:
    """Whether all that is watched holds what it held."""
    return not any(own[0].part or own[0].made(a.name).any() for own in runs for a in outputs)


def narrow(runs: Sequence[Sequence[Run]], outputs: Sequence[Argument]) -> bool:
    """Whether most of an output that is written stays as it was, whatever the sizes."""
    for a in outputs:
        written = [float(own[0].made(a.name).mean()) for own in runs if not own[0].part]
        if written and 0 < max(written) < _MOSTLY:
            return True
    return False
