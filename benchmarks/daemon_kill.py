"""kill -9 of the daemon at random moments, while kernels are saved and runs (stand-ins that take 0.3 s) go on.

    python benchmarks/daemon_kill.py OUT_DIR [--kills 200] [--seed 1]

OUT_DIR/kill.json: kills, jobs, and what was lost, doubled or stuck afterwards (nothing is expected); after every kill
the database is checked (PRAGMA integrity_check).
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "daemon")]

from tests.daemon.stand_in import kernel  # noqa: E402

LONGEST_S = 1.5
SERVE = """
import sys, time
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from fsrd.service.instance import Instance, Place
from tests.daemon.stand_in import service_of
folder = Path(sys.argv[1])
instance = Instance(Place(folder / "home"))
service = service_of(folder)
service.start()
print(flush=True)
time.sleep(3600)
"""


def started(folder: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(folder), *sys.path[:2]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def rows(database: Path, query: str) -> list[Any]:
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=30) as opened:
        return opened.execute(query).fetchall()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    chance, saved, damage = random.Random(given.seed), Counter[str](), []
    with tempfile.TemporaryDirectory(prefix="fsr-kill-") as name:
        folder = Path(name)
        (folder / "kernels").mkdir()
        database = folder / "home" / "daemon" / "jobs.db"
        for number in range(given.kills):
            process = started(folder)
            ends = time.monotonic() + chance.uniform(0.0, LONGEST_S)
            for _ in range(chance.randrange(3)):  # saved while it works, and the kill comes at any moment after
                stem = f"k{chance.randrange(30)}"
                saved[stem] += 1
                kernel(folder / "kernels", stem, f"work 0.3 {saved[stem]}")
                time.sleep(max(0.0, min(0.4, ends - time.monotonic())))
            time.sleep(max(0.0, ends - time.monotonic()))
            process.send_signal(signal.SIGKILL)
            process.wait()
            if rows(database, "PRAGMA integrity_check") != [("ok",)]:
                damage.append(number)
        process = started(folder)
        began = time.monotonic()
        query = "SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')"
        while rows(database, query) != [(0,)] and time.monotonic() < began + 300:
            time.sleep(0.5)
        time.sleep(3.0)
        jobs = rows(database, "SELECT kernel, digest, state FROM jobs")
        process.kill()
    ended = Counter((k, d) for k, d, state in jobs if state == "done")
    last = {k: state for k, _, state in jobs}
    found = {
        "kills": given.kills, "kernels": len(saved), "saves": saved.total(), "jobs": len(jobs),
        "states": dict(Counter(state for *_, state in jobs)), "damaged": damage,
        "lost": sorted(stem for stem in saved if last.get(str(folder / "kernels" / f"{stem}.cu")) != "done"),
        "doubled": [str(key) for key, count in ended.items() if count > 1],
        "stuck": sorted(k for k, _, state in jobs if state in ("queued", "running")),
    }  # fmt: skip
    (given.out / "kill.json").write_text(json.dumps(found, indent=1))
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
