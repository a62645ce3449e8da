"""A run as an object: started, watched, paused, stopped and resumed from any thread; several live in one process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fsr.errors import FsrError
from fsr.runs.control import Control, StopNow
from fsr.runs.lease import LEASES, Leases
from fsr.runs.log import run_folder
from fsr.runs.options import RefineOptions
from fsr.runs.record import RunRecord
from fsr.runs.refining import Job, carry_out
from fsr.runs.result import Result
from fsr.runs.resuming import RunStart, new_run_folder
from fsr.runs.state import Progress, RunState
from fsr.search.proposers.protocol import Proposer
from fsr.settings import Settings, read_settings

Listener = Callable[[Mapping[str, Any]], None]


class Run:
    """One refinement, made and not yet started.

    Args:
        options: what to refine, where, for how long.
        settings: folders of runs and cache; by default the user's.
        proposers: who proposes beside the deterministic moves.
        leases: whose turn it is on a GPU; by default that of this process, which all its runs share.

    ``Run.resume(name)`` makes the run that goes on with one that was stopped or killed. Raises FsrError as soon as
    something is known to be wrong, the rest from ``wait``. A run from another process is a ``RunRecord``."""

    def __init__(
        self,
        options: RefineOptions,
        *,
        settings: Settings | None = None,
        proposers: Sequence[Proposer] = (),
        leases: Leases = LEASES,
        _resumed: str | None = None,
    ) -> None:
        settings = settings or read_settings()
        runs = Path(settings.runs)
        folder = run_folder(runs, _resumed) if _resumed is not None else new_run_folder(runs, options.kernel)
        earlier = RunStart.read(folder) if _resumed is not None else None
        self.options = earlier.options if earlier is not None else options
        self.name, self.folder = folder.name, folder
        self.state = RunState(self.name, self.options.entry or "", self.options.budget_s)
        self._control = Control(folder)
        self._listeners: list[Listener] = []
        self._watchers: list[Progress] = []
        self._job = Job(
            self.options, settings, folder, earlier, proposers, leases, self._control, self._told, self._stands
        )
        self._thread = threading.Thread(target=self._work, name=f"run {self.name}", daemon=True)
        self._over = threading.Event()
        self._result: Result | None = None
        self._fault: BaseException | None = None

    @classmethod
    def resume(
        cls, name: str, *, settings: Settings | None = None, proposers: Sequence[Proposer] = (), leases: Leases = LEASES
    ) -> Run:
        """The run that goes on with a logged one, under its own options and with what is left of its budget.

        Raises UsageError when there is none of that name."""
        return cls(RefineOptions(Path()), settings=settings, proposers=proposers, leases=leases, _resumed=name)

    # ------------------------------------------------------------ watching

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Have ``listener`` called in the run's thread with every event of the log, as soon as it is on the disk: an
        object with ``kind`` (start, ask, tell, settle, enrich, promote, pause, go on, resume, end), ``at`` (Unix time)
        and more. Returns what ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def watch(self, progress: Progress) -> Callable[[], None]:
        """Have ``progress`` called several times a second with the state, in the run's thread. Returns what ends it."""
        self._watchers.append(progress)
        return lambda: self._watchers.remove(progress)

    @property
    def record(self) -> RunRecord:
        """The run as its folder tells it: its events so far."""
        return RunRecord(self.folder)

    @property
    def over(self) -> bool:
        """Whether it has come to its end, or failed."""
        return self._over.is_set()

    @property
    def result(self) -> Result | None:
        """The result; None before the end, and of a run that failed."""
        return self._result

    # ------------------------------------------------------------ steering

    def start(self, since_s: float = 0.0, *, patience_s: float = 0.0) -> Run:
        """Begin, in a thread of its own; returns at once. ``since_s``: how much of the budget is gone already, to the
        start of a process say. ``patience_s``: how much longer than the budget a verdict on what was found may take. A
        run begins once. Raises RuntimeError the second time."""
        self._job.since_s, self._job.patience_s = since_s, patience_s
        self._thread.start()
        return self

    def stop(self, why: str = "stopped") -> None:
        """End the search; the best so far is judged. Asked again, the run ends at once."""
        self._control.stop(why)

    def pause(self) -> None:
        """Begin nothing new, stop the clock, leave the GPU to others; what is under way is finished first."""
        self._control.pause()

    def go_on(self) -> None:
        """End a pause."""
        self._control.go_on()

    def wait(self, timeout_s: float | None = None) -> Result | None:
        """The result, once it is there; None after ``timeout_s`` without it. Raises what the run raised (FsrError;
        Stopped when it was stopped before its original was tested)."""
        if not self._over.wait(timeout_s):
            return None
        self._thread.join()
        if self._fault is not None:
            raise self._fault
        return self._result

    # ------------------------------------------------------------ inside

    def _work(self) -> None:
        try:
            self._result = carry_out(self._job)
        except StopNow as stop:
            self._fault = Stopped(f"the run was stopped before its original was tested ({stop})")
        except BaseException as fault:
            self._fault = fault
        finally:
            self._over.set()

    def _told(self, event: Mapping[str, Any]) -> None:
        for listener in list(self._listeners):
            listener(event)

    def _stands(self, state: RunState) -> None:
        self.state = state
        for watcher in list(self._watchers):
            watcher(state)


class Stopped(FsrError):  # noqa: N818  # somebody asked for it
    """A run was stopped before there was anything to tell."""
