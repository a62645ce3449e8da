"""kill -9 of a process that works on the queue, at random moments: no job is lost, ended twice or stuck."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from fsrd.jobs.job import State
from fsrd.jobs.store import JobStore

KILLS, JOBS = 5, 60
WORKER = """
import os, sys
from pathlib import Path
from fsrd.jobs.job import Request
from fsrd.jobs.store import JobStore
store, ended = JobStore(Path(sys.argv[1])), os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
store.reclaim(everything=True)
print(flush=True)
for part in range(0, int(sys.argv[3]), 10):
    store.submit([Request(f"/k/{n}.cu", "1", "host") for n in range(part, part + 10)])
    while (job := store.lease("host")) is not None:
        store.beat(job, {"told": 1}, run=f"run-{job.id}")
        if job.id % 3 or job.run:
            assert store.done(job, {"status": "improved"})
            os.write(ended, f"{job.id}\\n".encode())
        else:
            store.give_back(job)
"""


def test_the_worker_is_killed(tmp_path: Path) -> None:
    chance, path, ended = random.Random(8), tmp_path / "jobs.db", tmp_path / "ended"
    command = [sys.executable, "-c", WORKER, str(path), str(ended), str(JOBS)]
    killed = 0
    while killed < KILLS:
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.25))
        killed += process.poll() is None
        process.kill()
        process.communicate()
        if process.returncode == 0:  # it was too quick for the rest of the kills: there must have been some
            break
        with sqlite3.connect(path) as other:
            assert other.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert killed
    subprocess.run(command, check=True, timeout=200, stdout=subprocess.DEVNULL)
    with JobStore(path) as store:
        jobs = store.jobs(limit=10 * JOBS)
    assert sorted(job.kernel for job in jobs) == sorted(f"/k/{n}.cu" for n in range(JOBS))
    assert {job.state for job in jobs} == {State.DONE}
    told = ended.read_text().split()
    assert len(told) == len(set(told))
    assert len(told) >= JOBS - killed  # a kill between the commit and the telling leaves one out
