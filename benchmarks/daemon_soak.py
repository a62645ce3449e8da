"""A soak of the daemon: file events in every pattern that tests know, against a real folder and the real service.

    python benchmarks/daemon_soak.py OUT_DIR [--events 10000] [--seed 1] [--idle 60]

The service runs as a user's does, paused, so that jobs stay queued. After every pattern its queue is held against what
the files say: one new job for every kernel whose content is another, none for any other. OUT_DIR/soak.json: events,
steps, jobs, everything missed or doubled (nothing is expected), the seconds until a 500-file checkout was queued (at
most 2 are promised), resident memory over time (below 150 MB, flat to 5 %), and the share of a core when nothing
happens (below 0.5 %).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "daemon")]

from tests.daemon.watching.patterns import PATTERNS, STEPS_OF, World, checkout  # noqa: E402

QUIET_S, PATIENCE_S = 1.0, 30.0


class Daemon:
    """The service in a home of its own, seen from outside."""

    def __init__(self, home: Path, folder: Path) -> None:
        (home / "daemon").mkdir(parents=True)
        (home / "daemon" / "paused").touch()
        (home / "daemon.toml").write_text('[run]\ndevice = "host"\n')
        environment = os.environ | {"FSR_HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path[:2])}
        self._process = subprocess.Popen([sys.executable, "-m", "fsrd.main", str(folder)], env=environment)
        self.process = psutil.Process(self._process.pid)
        self._home, self._database = home, home / "daemon" / "jobs.db"
        until(lambda: (home / "daemon" / "address").exists())

    def jobs(self, after: int = 0) -> list[tuple[int, str]]:
        with sqlite3.connect(f"file:{self._database}?mode=ro", uri=True) as database:
            return database.execute("SELECT id, kernel FROM jobs WHERE id > ? ORDER BY id", (after,)).fetchall()

    def live(self) -> Counter[str]:
        with sqlite3.connect(f"file:{self._database}?mode=ro", uri=True) as database:
            return Counter(row[0] for row in database.execute("SELECT kernel FROM jobs WHERE state = 'queued'"))

    def resident(self) -> int:
        return self.process.memory_info().rss

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(60)


def until(true: Callable[[], object], seconds: float = PATIENCE_S) -> bool:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if true():
            return True
        time.sleep(0.05)
    return bool(true())


def step(world: World, daemon: Daemon, pattern: Callable[[World], None]) -> dict[str, Any]:
    """One pattern, and what the queue made of it."""
    before, last = world.kernels(), (daemon.jobs()[-1:] or [(0, "")])[0][0]
    pattern(world)
    ended, after = time.monotonic(), world.kernels()
    wanted = {kernel for kernel, content in after.items() if before.get(kernel) != content}
    whole = until(lambda: wanted <= {kernel for _, kernel in daemon.jobs(last)})
    took = time.monotonic() - ended
    time.sleep(QUIET_S)
    until(lambda: set(daemon.live()) == set(after))
    made = Counter(kernel for _, kernel in daemon.jobs(last))
    return {
        "pattern": pattern.__name__, "wanted": len(wanted), "seconds": round(took, 2),
        "missed": sorted(wanted - set(made)) if not whole else [], "unwanted": sorted(set(made) - wanted),
        "doubled": sorted(k for k, n in made.items() if n > STEPS_OF.get(pattern, 1)),
        "live_wrong": sorted(set(daemon.live()) ^ set(after)) + [k for k, n in daemon.live().items() if n > 1],
    }  # fmt: skip


def soak(folder: Path, events: int, chance: random.Random, idle_s: float) -> dict[str, Any]:
    world = World(folder, chance)
    daemon = Daemon(folder / "home", world.root)
    try:
        until(lambda: len(daemon.jobs()) == len(world.kernels()))
        steps, memory = [], []
        while world.operations < events:
            steps += [step(world, daemon, pattern) for pattern in chance.sample(PATTERNS, len(PATTERNS))]
            memory.append(daemon.resident())
            print(f"{world.operations} operations, {len(steps)} steps, {memory[-1] / 1e6:.1f} MB", flush=True)
        cpu = sum(daemon.process.cpu_times()[:2])
        time.sleep(idle_s)
        idle = (sum(daemon.process.cpu_times()[:2]) - cpu) / idle_s
    finally:
        daemon.end()
    keys = ("missed", "unwanted", "doubled", "live_wrong")
    return {
        "operations": world.operations, "steps": len(steps), "patterns": len(PATTERNS),
        "jobs": sum(s["wanted"] for s in steps), "faults": [s for s in steps if any(s[key] for key in keys)],
        "resident_mb": [round(m / 1e6, 1) for m in memory], "idle_cpu_percent": round(100 * idle, 3),
    }  # fmt: skip


def large_checkout(folder: Path, chance: random.Random) -> dict[str, Any]:
    """500 files, between the end of git's own work and the last job."""
    world = World(folder, chance)
    checkout(world, 500)
    daemon = Daemon(folder / "home", world.root)
    try:
        until(lambda: len(daemon.jobs()) == len(world.kernels()))
        return step(world, daemon, lambda world: checkout(world, 500)) | {"pattern": "checkout of 500"}
    finally:
        daemon.end()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--idle", type=float, default=60.0)
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fsr-soak-") as first, tempfile.TemporaryDirectory() as second:
        found = {"checkout": large_checkout(Path(first), random.Random(given.seed))}
        print(found["checkout"], flush=True)
        found |= soak(Path(second), given.events, random.Random(given.seed), given.idle)
    (given.out / "soak.json").write_text(json.dumps(found, indent=1))
    print(json.dumps({key: value for key, value in found.items() if key != "resident_mb"}, indent=1))


if __name__ == "__main__":
    main()
