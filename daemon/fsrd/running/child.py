"""One refinement in a process of its own: ``python -m fsrd.running.child``.

The first line of standard input is the order, a JSON object; every further one is a word: pause, go on, stop (the best
so far is judged). At its end, when whoever gave the order is gone, so is the run: its log is whole, and it is resumed.
What it has to tell goes to standard output, one JSON object a line: ``run`` with its name, ``state`` twice a second,
then ``result`` or ``fault`` (``retry``: another attempt may help; ``once``: failing in the same words again settles
it).
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from fsr.errors import BaselineError, FsrError, SourceError, StorageError, UsageError
from fsr.runs.options import RefineOptions
from fsr.runs.record import RunRecord
from fsr.runs.run import Run, Stopped
from fsr.runs.state import RunState
from fsr.settings import Settings

STATE_S = 0.5
PATIENCE = 2.0  # of the budget: nobody waits for the run, and what it found would be lost
EXIT_ORPHAN = 70


def main() -> None:
    """Read the order, run, tell."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")  # nothing that the run's own code prints gets among the lines
    os.dup2(2, 1)
    order = json.loads(sys.stdin.readline())
    _be_nice(order["nice"], order["idle_disk"])
    try:
        run = _run_of(order)
    except FsrError as fault:
        _tell(out, "fault", error=str(fault), retry=False)
        return
    if isinstance(run, RunRecord):
        _tell(out, "run", name=run.name)
        _tell(out, "result", result=run.result)
        return
    _tell(out, "run", name=run.name)
    run.watch(_Telling(out))
    threading.Thread(target=_listen, args=(run,), daemon=True).start()
    _answer(out, run)


def _answer(out: TextIO, run: Run) -> None:
    """Carry it out and tell what it came to; ``kept``: whether there is a record of it to look at or to go on with."""
    run.start(patience_s=PATIENCE * run.options.budget_s)
    try:
        result = run.wait()
        assert result is not None
        _tell(out, "result", result=result.to_json())
    except Stopped as fault:
        _tell(out, "fault", error=str(fault), retry=True)
    except FsrError as fault:
        kept = (run.folder / "events.jsonl").is_file()
        once = isinstance(fault, BaselineError)
        _tell(out, "fault", error=str(fault), retry=not _lasts(fault), once=once, kept=kept)


def _lasts(fault: FsrError) -> bool:
    """A kernel that cannot be used stays so until it is saved again; a full disk, a busy device or a cluster that does
    not answer does not."""
    return (
        isinstance(fault, UsageError | SourceError) and not isinstance(fault, StorageError) and fault.where != "--ray"
    )


def _run_of(order: Mapping[str, Any]) -> Run | RunRecord:
    """The run to go on with where there is one, a new one otherwise; the record of one that ended already."""
    settings = Settings(order["home"], order["cache"], order["workers"])
    if order["run"]:
        try:
            record = RunRecord(Path(settings.runs) / order["run"])
            if record.result is not None and not record.result["interrupted"]:
                return record
            return Run.resume(order["run"], settings=settings)
        except (UsageError, StorageError):
            pass  # it ended before its search began, or was written by another version
    options = {**order["options"], "kernel": Path(order["options"]["kernel"])}
    return Run(RefineOptions(**options), settings=settings)


class _Telling:
    """Tells how a run stands, now and then."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._next, self._phase = out, 0.0, ""

    def __call__(self, state: RunState) -> None:
        now = time.monotonic()
        if now < self._next and state.phase == self._phase:
            return
        self._next, self._phase = now + STATE_S, state.phase
        _tell(
            self._out, "state", phase=state.phase, entry=state.entry, elapsed_s=round(state.elapsed_s, 2),
            budget_s=state.budget_s, told=state.told, rejected=state.rejected, speedup=state.speedup,
            best=state.best.proposal.move if state.best is not None else "", rate=round(state.rate, 3),
        )  # fmt: skip


def _listen(run: Run) -> None:
    words = {"pause": run.pause, "go on": run.go_on, "stop": run.stop}
    for line in sys.stdin:
        words.get(line.strip(), lambda: None)()
    os._exit(EXIT_ORPHAN)


def _be_nice(nice: int, idle_disk: bool) -> None:
    import psutil

    os.nice(nice)
    if idle_disk:
        psutil.Process().ionice(psutil.IOPRIO_CLASS_IDLE)


def _tell(out: TextIO, kind: str, **fields: Any) -> None:
    out.write(json.dumps({"kind": kind, **fields}) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
