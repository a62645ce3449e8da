"""What the original of a run computes, for the actions that write it anew."""

from __future__ import annotations

import threading
from collections.abc import Callable

from fsr.computation.computation import Computation
from fsr.lifting.lift import Lifting, lift
from fsr.runs.budget import Budget
from fsr.runs.kernel import Kernel

_LEAST_S, _MOST_S = 4.0, 12.0  # of the budget: to begin at all, and to think
_SHARE, _COMPILE_SHARE = 0.2, 0.4  # of the budget: to think and to be waited for twice as long, to compile
_TICK_S = 0.1


class Restating:
    """Finds the computation of a kernel while its original is qualified, which leaves cores idle. A run that is too
    short for it does without."""

    def __init__(self, kernel: Kernel, budget: Budget) -> None:
        self._found: Lifting | None = None
        self._budget, self._thread = budget, threading.Thread(target=self._lift, args=(kernel,), daemon=True)
        self._limit_s = min(_MOST_S, _SHARE * budget.left_s)
        self._until_s = budget.elapsed_s + 2 * self._limit_s
        self._compile_s = min(_MOST_S, _COMPILE_SHARE * budget.left_s)
        if budget.left_s >= _LEAST_S:
            self._thread.start()

    def _lift(self, kernel: Kernel) -> None:
        self._found = lift(kernel.contract, kernel.baseline, limit_s=self._limit_s, compile_s=self._compile_s)

    def computation(self, tick: Callable[[], None], notes: list[str]) -> Computation | None:
        """The computation, lifted and checked; None, and a note, where it is not known. ``tick`` is called while
        it is waited for."""
        if self._thread.ident is None:
            return None
        while self._thread.is_alive() and self._budget.elapsed_s < self._until_s:
            self._thread.join(_TICK_S)
            tick()
        found = self._found
        if found is None or found.computation is None:
            why = "finding it out took too long" if found is None else found.why
            notes.append(f"what it computes is not known: {why}")
            return None
        return found.computation
