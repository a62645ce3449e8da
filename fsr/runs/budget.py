"""The clock of a run: who may take how long, so that it ends within its budget, verdict included.

What stages cost is learned in this run: testing the original says what a candidate and a promotion will cost, and the
promotions that were made say it better. The search leaves room for a promotion; whatever overruns its part is killed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

LEAVING_S = 0.5  # to write what was found and to end the workers
PROMOTION_SHARE = 0.2  # of the budget, kept for promotion
PROMOTION_MOST_S = 30.0
LARGEST_SHARE = 0.45  # where promoting costs more
LARGEST_REST = 0.6  # of what testing the original has left
# Of the original's qualification: a promotion opens a session anew, and tests and times as much again.
PROMOTION_OF_BASELINE = 1.2
PREDICTED_OF_BASELINE = 2.4  # where held-out sizes are recorded, and mutants run, on the same cores
EVALUATION_OF_BASELINE = 0.35
# What a promotion costs is a guess until one was made, and where times are predicted it was seen to take twice as long
# and more. A search that finds nothing better hands its time over, so that what it has gets its verdict.
DOUBT, DOUBT_BESIDE_GPU = 2.5, 1.3
OVERRUN_SHARE, OVERRUN_S = 0.08, 3.0
HOPEFUL = 0.3  # a stage may cost this much of what is expected; where not even that is left, it is not begun
LATE = 0.5  # of what is usually kept, while nothing is found: what comes later than that may overrun
ROOM = 1.25  # what is told to be enough is this much more than what is expected
# Beside an H200: the start of compute-sanitizer's tools takes 4 s, beside the tests. Of 43 promotions (2026-11-29) the
# median took 8.9 s from the end of the search, 3 s of it for mutants alone, which time may end.
BESIDE_GPU_S = 6.0
# As many runs of the original: with 160 ms a promotion took 28 s, with 77 ms 20 s, with 2 ms 5 s (an H100).
RUNS_OF_ORIGINAL = 100


@dataclass(slots=True)
class Budget:
    """The seconds of one run. ``total_s``: asked for. ``spent_s``: in earlier lives of a resumed run. ``sanitized``: a
    promotion runs sanitizers. ``predicted``: there is no GPU. ``found``: there is something to promote. ``patience_s``:
    how much longer the run may take for a verdict on what its search found. Pauses do not count."""

    total_s: float
    spent_s: float = 0.0
    sanitized: bool = False
    predicted: bool = False
    found: bool = True
    patience_s: float = 0.0
    clock: Callable[[], float] = time.monotonic
    _began: float = field(init=False)
    _paused: float | None = field(default=None, init=False)
    _baseline_s: float | None = field(default=None, init=False)
    _original_s: float = field(default=0.0, init=False)
    _rest_s: float | None = field(default=None, init=False)
    _evaluation_s: float | None = field(default=None, init=False)
    _promotion_s: float | None = field(default=None, init=False)
    _gained_s: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._began = self.clock() - self.spent_s

    # ------------------------------------------------------------ the clock

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run began, earlier lives included and pauses not."""
        return (self._paused if self._paused is not None else self.clock()) - self._began

    @property
    def left_s(self) -> float:
        """Seconds that the run may still take; negative past its end."""
        return self.total_s - LEAVING_S - self.elapsed_s

    @property
    def promotion_left_s(self) -> float:
        """Seconds that promotions may still take."""
        return self.left_s + self.patience_s

    @property
    def verdict_left_s(self) -> float:
        """Seconds that a promotion under way may still take: one that takes longer than was expected may overrun the
        budget within what a run promises to keep, 10 % and 5 s, rather than lose what was found."""
        return self.promotion_left_s + OVERRUN_SHARE * self.total_s + OVERRUN_S

    @property
    def search_left_s(self) -> float:
        """Seconds that the search may still take: what is left, less what the promotion needs."""
        return self.left_s - self.reserve_s

    def pause(self) -> None:
        """Stop the clock."""
        if self._paused is None:
            self._paused = self.clock()

    def go_on(self) -> None:
        """Start the clock again."""
        if self._paused is not None:
            self._began += self.clock() - self._paused
            self._paused = None

    # ------------------------------------------------------------ what stages cost

    def baseline_took(self, seconds: float, original_s: float = 0.0) -> None:
        """The original was tested and timed, its session opened on the way. ``original_s``: what one run of it takes at
        the timed sizes, where a GPU says."""
        self._baseline_s, self._original_s = seconds, original_s
        self._rest_s = max(0.0, self.left_s)

    def evaluation_took(self, seconds: float) -> None:
        """A candidate that was right was compiled, tested and timed; a mean that follows."""
        self._evaluation_s = seconds if self._evaluation_s is None else 0.7 * self._evaluation_s + 0.3 * seconds

    def promotion_took(self, seconds: float) -> None:
        """A promotion was made to its end."""
        self._promotion_s = max(seconds, self._promotion_s or 0.0)

    def gained(self) -> None:
        """The search has found something that is clearly better than all before."""
        self._gained_s = self.elapsed_s

    @property
    def evaluation_s(self) -> float:
        """What evaluating a right candidate is expected to take."""
        if self._evaluation_s is not None:
            return self._evaluation_s
        return EVALUATION_OF_BASELINE * (self._baseline_s or 0.0)

    @property
    def promotion_s(self) -> float:
        """What a promotion is expected to take."""
        if self._promotion_s is not None:
            return self._promotion_s
        times = PREDICTED_OF_BASELINE if self.predicted else PROMOTION_OF_BASELINE
        beside = BESIDE_GPU_S + RUNS_OF_ORIGINAL * self._original_s if self.sanitized else 0.0
        return times * (self._baseline_s or 0.0) + beside

    @property
    def reserve_s(self) -> float:
        """Seconds of the budget that the search leaves to promotion."""
        usual = min(PROMOTION_MOST_S, PROMOTION_SHARE * self.total_s)
        most = LARGEST_SHARE * self.total_s if self._rest_s is None else LARGEST_REST * self._rest_s
        whole = min(most, max(usual, self.promotion_s))
        if self.found and self._gained_s is not None:
            idle_s = self.elapsed_s - self._gained_s
            doubt = DOUBT if self.predicted else DOUBT_BESIDE_GPU
            whole = max(whole, min(most, whole + idle_s, doubt * self.promotion_s))
        return whole if self.found else max(HOPEFUL * whole, min(LATE * usual, whole))

    # ------------------------------------------------------------ is it enough?

    def enough_to_try(self) -> bool:
        """Whether a candidate could be evaluated and promoted in what is left, if all goes well."""
        return self.left_s >= HOPEFUL * (self.evaluation_s + self.promotion_s)

    def enough_to_promote(self) -> bool:
        """Whether a promotion could end in what is left, if all goes well."""
        return self.promotion_left_s > 0 and self.promotion_left_s >= HOPEFUL * self.promotion_s

    def needed_s(self) -> float:
        """A budget, larger than this, that would be enough to test the original, a few candidates, and promote one."""
        baseline = self._baseline_s if self._baseline_s is not None else 2.0 * self.elapsed_s
        whole = baseline + 3 * self.evaluation_s + self.promotion_s
        if self._baseline_s is None:
            whole = baseline * (1.0 + 3 * EVALUATION_OF_BASELINE + PROMOTION_OF_BASELINE)
        # The search leaves its reserve, and the reserve is bounded by its share; what was not enough is not told to be.
        return rounded_up(max(ROOM * whole, self.promotion_s / LARGEST_SHARE, ROOM * self.total_s))


def rounded_up(seconds: float) -> float:
    """To a number that a person would type: 5 s below a minute, 30 s below ten, else minutes."""
    step = 5.0 if seconds <= 60 else 30.0 if seconds <= 600 else 60.0
    return max(step, math.ceil(seconds / step) * step)
