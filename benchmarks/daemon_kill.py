"""kill -9 of the daemon at random moments of its life, its start among them, while kernels are saved and refined.

    python benchmarks/daemon_kill.py OUT_DIR [--kills 200] [--seed 1] [--longest 2.5]

The process that is killed is the service as `fsr daemon start` begins it, its watching, queue and HTTP server; only its
two devices and what a run does are stand-ins, runs of 0.3 s that write their winner. Kernels are saved with a content
of their own while it starts, works and is dead. OUT_DIR/kill.json: kills, how many came before the service was ready,
seconds from its start until it was, saves, jobs, and what was found wrong (nothing is expected):

    damaged   kills after which the database was not intact (PRAGMA integrity_check)
    lost      kernels whose last content was not refined, or whose winner is not of it
    doubled   contents that became two jobs, and kernels that two runs worked on at once
    stuck     jobs that had not ended PATIENCE_S after the last start
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "daemon")]

from fsrd.watching.content import Contents  # noqa: E402
from tests.daemon.stand_in import kernel  # noqa: E402

KERNELS, PATIENCE_S = 30, 300.0
# The service's own main function, with two devices and runs that are stand-ins.
SERVE = """
import functools, sys
from benchmarks.daemon_kill import RUN
from fsrd import main
from fsrd.service.devices import Slot
from tests.daemon.stand_in import FakeSensors
main.slots_of = lambda *_: (Slot("cuda:0", "H200"), Slot("cuda:1", "H200"))
main.Service = functools.partial(main.Service, sensors=FakeSensors(), command=(sys.executable, "-c", RUN, sys.argv[2]))
main.serve((sys.argv[1],), foreground=False)
"""
# Speaks the protocol of fsrd.running.child; its winner is the kernel's first line. The journal tells who worked when.
RUN = """
import json, os, select, sys, time
order = json.loads(sys.stdin.readline())
kernel, output, began = order["options"]["kernel"], order["options"]["output"], time.monotonic()
def tell(kind, **fields): print(json.dumps({"kind": kind, **fields}), flush=True)
def noted():
    with open(sys.argv[1], "a") as journal: journal.write(json.dumps([kernel, began, time.monotonic()]) + chr(10))
tell("run", name=order["run"] or f"run-of-{os.path.basename(kernel)}")
winner = open(kernel).readline()
while time.monotonic() < began + 0.3:
    if select.select([sys.stdin], [], [], 0.05)[0] and not sys.stdin.readline():
        noted()
        os._exit(70)
    tell("state", phase="search", entry="k", elapsed_s=1.0, budget_s=9.0, told=3, rejected={}, speedup=1.5, best="",
         rate=1.0)
os.makedirs(os.path.dirname(output), exist_ok=True)
open(output, "w").write(winner)
noted()
tell("result", result={"status": "improved", "why": "", "run": "r", "basis": "predicted", "output": output,
     "best": {"speedup": 2.0}})
"""


class Daemon:
    """One life of the service."""

    def __init__(self, folder: Path) -> None:
        environment = os.environ | {"FSR_HOME": str(folder / "home"), "PYTHONPATH": os.pathsep.join(sys.path[:2])}
        self._address, self._began = folder / "home" / "daemon" / "address", time.time()
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(folder / "kernels"), str(folder / "journal")], env=environment,
            stdout=subprocess.DEVNULL, stderr=(folder / "errors").open("ab"),
        )  # fmt: skip

    def ready_s(self) -> float | None:
        """Seconds from its start until it could be asked; None while it cannot."""
        try:
            at = self._address.stat().st_mtime
        except OSError:
            return None
        return at - self._began if at >= self._began else None

    def kill(self) -> None:
        if self._process.poll() is not None:
            sys.exit(f"the service ended by itself with {self._process.returncode}")
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


def rows(database: Path, query: str) -> list[Any]:
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=30) as opened:
        return opened.execute(query).fetchall()


class Saves:
    """Somebody who saves kernels, no content twice."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.count, self._chance = folder, Counter[str](), chance
        folder.mkdir()

    def until(self, end: float) -> None:
        """Now and then, until a moment."""
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, self._chance.expovariate(2.0)))
            if time.monotonic() < end:
                stem = f"k{self._chance.randrange(KERNELS)}"
                self.count[stem] += 1
                kernel(self.folder, stem, f"work 0.3 {self.count[stem]}")


def overlapping(journal: Path) -> list[str]:
    """Kernels that two processes worked on at once."""
    spans = dict[str, list[tuple[float, float]]]()
    for line in journal.read_text().splitlines():
        path, began, ended = json.loads(line)
        spans.setdefault(path, []).append((began, ended))
    return [
        path for path, pairs in spans.items()
        if any(later[0] < earlier[1] for earlier, later in pairwise(sorted(pairs)))
    ]  # fmt: skip


def judged(folder: Path, saves: Saves) -> dict[str, Any]:
    """What the queue, the journal and the folder say in the end."""
    jobs = rows(folder / "home" / "daemon" / "jobs.db", "SELECT kernel, digest, state FROM jobs")
    done = {(k, d) for k, d, state in jobs if state == "done"}
    contents, lost = Contents(os.path.realpath), []
    for stem in saves.count:
        path = saves.folder.resolve() / f"{stem}.cu"
        content, winner = contents.read(str(path)), path.parent / ".fsr" / f"{stem}.fsr.cu"
        kept = winner.exists() and winner.read_text().split() == path.read_text().splitlines()[0].split()
        if content is None or (str(path), content.digest) not in done or not kept:
            lost.append(stem)
    return {
        "kernels": len(saves.count), "saves": saves.count.total(), "jobs": len(jobs),
        "states": dict(Counter(state for *_, state in jobs)), "lost": lost,
        "doubled": [k for k, n in Counter((k, d) for k, d, _ in jobs).items() if n > 1]
        + overlapping(folder / "journal"),
        "stuck": sorted(k for k, _, state in jobs if state in ("queued", "running")),
    }  # fmt: skip


def killed(folder: Path, kills: int, chance: random.Random, longest_s: float) -> dict[str, Any]:
    """Kill it so often, then let it end its work."""
    saves, database = Saves(folder / "kernels", chance), folder / "home" / "daemon" / "jobs.db"
    (folder / "home").mkdir()
    starts, early, damaged = list[float](), 0, list[int]()
    for number in range(kills):
        daemon = Daemon(folder)
        saves.until(time.monotonic() + chance.uniform(0.0, longest_s))
        ready_s = daemon.ready_s()
        daemon.kill()
        starts += [ready_s] if ready_s is not None else []
        early += ready_s is None
        if database.exists() and rows(database, "PRAGMA integrity_check") != [("ok",)]:
            damaged.append(number)
        saves.until(time.monotonic() + chance.uniform(0.0, 0.1))
        if number % 20 == 19:
            print(f"{number + 1} kills, {early} before it was ready, {saves.count.total()} saves", flush=True)
    daemon, ends = Daemon(folder), time.monotonic() + PATIENCE_S
    while daemon.ready_s() is None and time.monotonic() < ends:
        time.sleep(0.1)
    time.sleep(3.0)  # what was saved last is queued
    live = "SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')"
    while rows(database, live) != [(0,)] and time.monotonic() < ends:
        time.sleep(0.5)
    time.sleep(3.0)
    daemon.kill()
    head = {
        "kills": kills, "before it was ready": early,
        "start_s": round(statistics.median(starts), 2) if starts else None, "damaged": damaged,
    }  # fmt: skip
    return head | judged(folder, saves)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=2.5, help="seconds that a life lasts at most")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fsr-kill-") as name:
        found = killed(Path(name).resolve(), given.kills, random.Random(given.seed), given.longest)
        errors = (Path(name) / "errors").read_text(errors="replace")
    (given.out / "kill.json").write_text(json.dumps(found, indent=1))
    print(errors[-2000:], json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
