"""Several measuring scripts on one machine at once, each lane on cores of its own, in the time there is.

    python benchmarks/lanes.py PLAN.toml OUT [--seconds 570]

PLAN holds [[run]] tables: ``name``, ``lane`` (runs of one lane follow one another, lanes go side by side), ``cores``
(as taskset takes them; all where it is left out), ``seconds`` (at most) and ``command``, in which {out} is OUT/NAME, a
folder of its own, and {python} this interpreter. What a run prints goes to OUT/NAME.log.

OUT/done.json tells of each run that ended: its status, its seconds, its last line. Those that ended well are left out
when the plan is begun again, so that one that takes longer than a machine is lent goes on; a run that reaches its
limit, or the end of ``--seconds``, is interrupted, and begun again the next time: most scripts here go on where they
were. Exits 1 while anything failed or is left.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[1]
LEAST_S = 5.0  # less is left to begin nothing with
LEAVING_S = 8.0  # from the interrupt on, for what a script writes at its end


@dataclass(frozen=True)
class Run:
    """One command of a plan."""

    name: str
    lane: str
    command: str
    seconds: float
    cores: str = ""

    def words(self, out: Path) -> list[str]:
        """What is executed."""
        pinned = ["taskset", "-c", self.cores] if self.cores else []
        return [*pinned, *shlex.split(self.command.format(out=out / self.name, python=sys.executable))]


@dataclass(frozen=True)
class Ended:
    """How a run ended. status: 'ok', 'failed' or 'interrupted'."""

    status: str
    seconds: float
    last: str


class Board:
    """What is known of all runs, kept in OUT/done.json."""

    def __init__(self, out: Path) -> None:
        self._path, self._lock = out / "done.json", threading.Lock()
        self.ended: dict[str, Ended] = {}
        if self._path.is_file():
            self.ended = {name: Ended(**row) for name, row in json.loads(self._path.read_text()).items()}

    def tell(self, name: str, ended: Ended) -> None:
        """Note how a run ended."""
        with self._lock:
            self.ended[name] = ended
            written = self._path.with_suffix(".new")
            written.write_text(json.dumps({n: asdict(e) for n, e in self.ended.items()}, indent=1))
            written.replace(self._path)

    def is_done(self, name: str) -> bool:
        """Whether a run ended well."""
        return name in self.ended and self.ended[name].status == "ok"


def read_plan(path: Path) -> list[Run]:
    """The runs of a plan. Raises ValueError saying which entry is not one."""
    found = []
    for number, row in enumerate(tomllib.loads(path.read_text()).get("run", []), start=1):
        try:
            found.append(Run(**row))
        except TypeError as error:
            raise ValueError(f"{path}: run {number}: {error}") from None
    names = [run.name for run in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{path}: names that come twice: {', '.join(sorted(twice))}")
    return found


def carried_out(run: Run, out: Path, left_s: float) -> Ended:
    """Run it for as long as it and the machine may take."""
    began, log = time.monotonic(), out / f"{run.name}.log"
    (out / run.name).mkdir(exist_ok=True)
    with log.open("a") as told:
        process = subprocess.Popen(
            run.words(out), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=told, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            status = "ok" if process.wait(min(run.seconds, left_s)) == 0 else "failed"
        except subprocess.TimeoutExpired:
            status = "interrupted"
            _end(process)
    lines = log.read_text(errors="replace").strip().splitlines()
    return Ended(status, round(time.monotonic() - began, 1), lines[-1][:200] if lines else "")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt it and all that it began, then kill what is left."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(LEAVING_S)
    with suppress(ProcessLookupError):  # what it began may outlive it
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def follow(runs: Sequence[Run], board: Board, out: Path, ends: float) -> None:
    """One lane: its runs one after the other, until the time is over."""
    for run in runs:
        left_s = ends - time.monotonic() - LEAVING_S
        if board.is_done(run.name) or left_s < LEAST_S:
            continue
        ended = carried_out(run, out, left_s)
        board.tell(run.name, ended)
        print(f"{run.name}: {ended.status} after {ended.seconds:.0f} s: {ended.last}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=570.0)
    given = parser.parse_args(arguments)
    # Begun in the background of a shell it ignores interrupts, and what it runs would too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    runs, out = read_plan(given.plan), given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    board, ends = Board(out), time.monotonic() + given.seconds
    by_lane = groupby(sorted(runs, key=lambda run: run.lane), key=lambda run: run.lane)
    lanes = [threading.Thread(target=follow, args=(list(lane), board, out, ends)) for _, lane in by_lane]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    left = [run.name for run in runs if not board.is_done(run.name)]
    print(f"{len(runs) - len(left)} of {len(runs)} done" + (f"; left: {', '.join(left)}" if left else ""))
    return int(bool(left))


if __name__ == "__main__":
    sys.exit(main())
