"""What the original of a run computes, for the actions that write it anew."""

from __future__ import annotations

import threading
from collections.abc import Callable

from fsr.lifting.found import Lifting
from fsr.lifting.lift import lift
from fsr.runs.budget import Budget
from fsr.runs.kernel import Kernel
from fsr.runs.lifting_beside import lift_beside

_LEAST_S = 4.0  # of the budget: to begin at all
_MOST_S, _SHARE, _SHARE_BESIDE_GPU = 25.0, 0.3, 0.45  # to think: seconds, and of the budget
_MOST_AWAITED_S, _AWAITED_SHARE = 24.0, 0.4  # to be waited for before the search begins, and to compile
_BESIDE_GPU_S = 5.0  # the same where a GPU would wait meanwhile: other cores think on while it works
_TICK_S = 0.1
_ENDS_S = 3.0  # from being stopped to having ended, at the most
_NOT_KNOWN = "what the original computes is not known"
_CONSEQUENCE = "its text is rewritten, and no kernel is written anew from what it computes"


class Restating:
    """Finds the computation of a kernel while its original is qualified, which leaves cores idle, and beside the
    search where it takes longer. A run that is too short for it does without. ``predicted``: the search would take the
    cores that it thinks on. ``beside``: there are cores for a process of its own."""

    def __init__(self, kernel: Kernel, budget: Budget, *, predicted: bool = True, beside: bool = False) -> None:
        self._found: Lifting | None = None
        self._stop, self._how = threading.Event(), lift_beside if beside else lift
        self._budget, self._thread = budget, threading.Thread(target=self._lift, args=(kernel,), daemon=True)
        self._told = budget.left_s < _LEAST_S
        self._limit_s = min(_MOST_S, (_SHARE if predicted else _SHARE_BESIDE_GPU) * budget.left_s)
        most_s = _MOST_AWAITED_S if predicted else _BESIDE_GPU_S
        self._until_s = budget.elapsed_s + min(most_s, _AWAITED_SHARE * budget.left_s)
        self._compile_s = min(_MOST_AWAITED_S / 2, _AWAITED_SHARE * budget.left_s)
        if not self._told:
            self._thread.start()

    def _lift(self, kernel: Kernel) -> None:
        try:
            self._found = self._how(
                kernel.contract, kernel.baseline, limit_s=self._limit_s, compile_s=self._compile_s,
                stopped=self._stop.is_set,
            )  # fmt: skip
        except Exception as fault:  # a run does without it: what it has besides is worth more
            told = f"{type(fault).__name__}: {fault}"
            self._found = Lifting(None, f"a fault of fsr while it was found out ({told}); please report it")

    def close(self) -> None:
        """Stop finding out: a thread that the interpreter ends in the middle of what is not Python can abort it."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(_ENDS_S)

    @property
    def thinking(self) -> bool:
        """Whether something may still be found that nobody was told of."""
        return not self._told

    def lifted(self, tick: Callable[[], None], notes: list[str]) -> Lifting | None:
        """The kernel lifted and checked, as a whole or some launches of it; None where that is not known yet, or will
        not be. ``tick`` is called while it is waited for."""
        while self._thread.is_alive() and self._budget.elapsed_s < self._until_s:
            self._thread.join(_TICK_S)
            tick()
        return self.late(notes)

    def late(self, notes: list[str]) -> Lifting | None:
        """The lifting, once; None while it is not known, and a note where it will not be. Returns at once."""
        if self._told or self._thread.is_alive():
            return None
        self._told = True
        assert self._found is not None
        found = self._found
        if found.computation is None:
            notes.append(f"{_NOT_KNOWN}: {found.why}; {_CONSEQUENCE}")
        if found.alone:
            notes.append(
                f"what these kernels of the plan compute is known: {', '.join(one.kernel for one in found.alone)}"
            )
        return found if found.computation is not None or found.alone else None

    def given_up(self, notes: list[str]) -> None:
        """The search is over; a note where the computation is still not known."""
        if not self._told:
            self._told = True
            notes.append(f"{_NOT_KNOWN}: finding it out took too long; {_CONSEQUENCE}")
