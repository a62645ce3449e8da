"""The public API of Python: ``fsr.refine``, ``fsr.evaluate``, ``fsr.Run`` (and ``fsr.lookup``, of the cache)."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Unpack

from fsr.app.checking import Judgement, judge
from fsr.app.interrupts import interrupts
from fsr.runs.options import OptionFields, RefineOptions
from fsr.runs.result import Result
from fsr.runs.run import Run, Stopped
from fsr.runs.state import RunState

LISTENS_S = 0.5  # between two looks at whether Ctrl-C was pressed where Python forgot it
Progress = Callable[[RunState], None]


def refine(kernel: str | PathLike[str], *, progress: Progress | None = None, **options: Unpack[OptionFields]) -> Result:
    """Find a faster kernel that is proven to do the same as the one in a file.

    ``options``: fields of RefineOptions, for example ``budget_s=60`` and ``device="host"``. ``progress``: called
    several times a second with how the run stands. Ctrl-C ends the search and judges the best so far. Raises
    FsrError."""
    return to_its_end(Run(RefineOptions(Path(kernel), **options)), progress)


def evaluate(
    candidate: str | PathLike[str], against: str | PathLike[str], **options: Unpack[OptionFields]
) -> Judgement:
    """Test a candidate file against a kernel, every search-time and held-out case, and time both. Raises FsrError."""
    return judge(Path(candidate), RefineOptions(Path(against), **options), timed=True)


def to_its_end(run: Run, progress: Progress | None = None, *, since_s: float = 0.0) -> Result:
    """Start a run, of whose budget ``since_s`` is gone already, and wait for it. Ctrl-C stops it as everybody else
    does: once ends its search, twice all of it; it is raised again where there was nothing to judge yet."""
    if progress is not None:
        run.watch(progress)
    run.start(since_s)
    heard = 0
    while True:
        try:
            if heard < interrupts():  # one that Python forgot
                raise KeyboardInterrupt
            result = run.wait(LISTENS_S)
            if result is not None:
                return result
        except KeyboardInterrupt:
            heard += 1
            run.stop("Ctrl-C")
        except Stopped:
            if heard:
                raise KeyboardInterrupt from None
            raise
