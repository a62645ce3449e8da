"""What the original of a run computes, for the actions that write it anew."""

from __future__ import annotations

from fsr.computation.computation import Computation
from fsr.lifting.lift import lift
from fsr.runs.budget import Budget
from fsr.runs.kernel import Kernel
from fsr.runs.options import RefineOptions
from fsr.runs.state import RunState

_LEAST_S, _SHARE, _MOST_S = 40.0, 0.15, 10.0


def computation_of(kernel: Kernel, options: RefineOptions, budget: Budget, state: RunState) -> Computation | None:
    """The computation, lifted and checked; None where it is not known, or where the run is too short for asking:
    lifting takes a few seconds."""
    few = options.evaluations is not None or budget.left_s < _LEAST_S
    if few or options.keep_launch or len(kernel.contract.plan.launches) != 1:
        return None
    limit_s = min(_MOST_S, _SHARE * budget.left_s)
    found = lift(kernel.contract, kernel.baseline, limit_s=limit_s, compile_s=limit_s)
    if found.computation is None:
        state.notes.append(f"what it computes is not known: {found.why}")
    return found.computation
