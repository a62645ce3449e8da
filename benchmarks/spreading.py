"""A sweep over many processes with a limit of time, whose records lie on disk as soon as they are made.

Units of work go to processes of one core each; what a unit yields is written at once, a JSON line a record, so that
whatever ends the sweep loses only what is under way. A sweep goes on where its file ends: its caller leaves out what is
there.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Work = Callable[[Any, float], Iterator[Record]]
"""Yields the records of a unit; stops between two once time.monotonic() is past the second argument."""

GRACE_S = 20.0  # what a record that is under way at the limit may still take
LONGEST_WAIT_S = 86_400.0  # more than a month is more than a poll can take
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_END = None


def read(path: Path) -> list[Record]:
    """The records of a file, none where there is no file; a line that was cut off is left out."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


@dataclass(slots=True)
class _Worker:
    process: multiprocessing.process.BaseProcess
    link: Connection
    unit: Any = None


@dataclass(slots=True)
class Spread:
    """``work`` (of a module, so that another process finds it) on the units that ``next_unit`` gives, None at their
    end, over ``workers`` processes and at most ``seconds``. Every record goes to ``out`` and to ``told``."""

    work: Work
    next_unit: Callable[[], Any]
    told: Callable[[Record], None]
    out: Path
    workers: int
    seconds: float
    lost: list[Any] = field(default_factory=list)

    def run(self) -> None:
        """Until the units or the time are over."""
        until = time.monotonic() + self.seconds
        for name in THREADS:
            os.environ[name] = "1"
        _end_line(self.out)
        crew: list[_Worker] = []
        with self.out.open("a", buffering=1) as stream:
            try:
                crew += [self._start(index, until) for index in range(self.workers)]
                for worker in crew:
                    self._feed(worker, until)
                while busy := {w.link: w for w in crew if w.unit is not None}:
                    left = until + GRACE_S - time.monotonic()
                    ready = wait(list(busy), timeout=min(max(left, 0.0), LONGEST_WAIT_S))
                    if not ready and left <= 0:
                        break
                    for link in ready:
                        self._heard(busy[link], stream, until)  # type: ignore[index]
            finally:
                for worker in crew:
                    _stop(worker)

    def _start(self, index: int, until: float) -> _Worker:
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self.work, index, until), daemon=False)
        process.start()
        theirs.close()
        return _Worker(process, mine)

    def _feed(self, worker: _Worker, until: float) -> None:
        worker.unit = self.next_unit() if time.monotonic() < until else None
        worker.link.send(worker.unit)

    def _heard(self, worker: _Worker, stream: Any, until: float) -> None:
        try:
            record = worker.link.recv()
        except (EOFError, OSError):  # the process is gone: its unit is lost, the others go on
            print(f"a worker ended on {worker.unit}", file=sys.stderr)
            self.lost.append(worker.unit)
            worker.unit = None
            return
        if record is _END:
            self._feed(worker, until)
            return
        stream.write(json.dumps(record) + "\n")
        self.told(record)


def _serve(link: Connection, work: Work, index: int, until: float) -> None:
    """A worker: units in, records out, None behind the last of each."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[index % len(cores)]})
    while (unit := link.recv()) is not None:
        for record in work(unit, until):
            link.send(record)
        link.send(_END)


def _stop(worker: _Worker) -> None:
    worker.link.close()
    worker.process.join(5.0 if worker.unit is None else 0.0)
    if worker.process.is_alive():
        worker.process.kill()
        worker.process.join()


def _end_line(path: Path) -> None:
    """End the last line of a file where something was cut off."""
    if path.exists() and (text := path.read_bytes()) and not text.endswith(b"\n"):
        with path.open("ab") as stream:
            stream.write(b"\n")
