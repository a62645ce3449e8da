"""How much sooner the daemon is done with a folder of kernels on several GPUs than on one.

    python benchmarks/daemon_throughput.py OUT_DIR [--gpus 2] [--evaluations 40] [--budget 60s]

Eight examples in a folder, the real service and its queue, a run a kernel: first on one GPU, then on so many, each time
from nothing, and with the same share of the processor for a run. Long runs are saved last, and so taken first. The GPUs
are not looked at for other users, which there must not be.

OUT_DIR/daemon_throughput.json: for each number of GPUs the seconds from the first lease to the last end, and of every
kernel its device, seconds, status and speed-up; the ratio of the two (at least 1.8 is promised for two).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "daemon"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from fsr.settings import Settings
from fsrd.config import Config, RunTable, WatchedFolder
from fsrd.jobs.job import Job, State
from fsrd.politeness.rules import PoliteTable
from fsrd.running.process import CHILD
from fsrd.service.devices import Slot, slots_of
from fsrd.service.service import Service

ROOT = Path(__file__).parents[1]
KERNELS = ("histogram", "saxpy", "transpose", "stencil", "scale_bias", "gemm", "layer_norm", "softmax")
LONGEST_S = 1800.0
LIVE = (State.QUEUED, State.RUNNING)


def folder_of(kernels: Sequence[Path], folder: Path) -> Path:
    """A folder of copies, each saved a second after the one before."""
    folder.mkdir(parents=True)
    for number, kernel in enumerate(kernels):
        copy = folder / kernel.name
        shutil.copyfile(kernel, copy)
        os.utime(copy, (time.time() - 100 + number,) * 2)
    return folder


def measured(
    folder: Path, home: Path, slots: Sequence[Slot], run: RunTable, command: Sequence[str] = CHILD
) -> dict[str, Any]:
    """What a service with these slots makes of a folder that it sees for the first time."""
    polite = PoliteTable(gpu_idle=False, battery=True, nice=0, idle_disk=False)
    config = Config(folder=(WatchedFolder(path=str(folder)),), run=run, polite=polite)
    service = Service(Settings(str(home), str(home / "cache.db")), config, slots, command=command)
    on: dict[int, str] = {}
    service.start()
    try:
        wanted, ends = len(list(folder.glob("*.cu"))), time.monotonic() + LONGEST_S
        while time.monotonic() < ends:
            on |= {worker.job.id: worker.slot.device for worker in list(service.workers) if worker.job is not None}
            counts = service.store.counts()
            if sum(counts.values()) >= wanted and not any(counts.get(state.value, 0) for state in LIVE):
                break
            time.sleep(0.05)
        jobs = service.store.jobs()
    finally:
        service.close()
    return told(jobs, on)


def told(jobs: Sequence[Job], on: dict[int, str]) -> dict[str, Any]:
    """The jobs of a service as a record."""
    rows = []
    for job in sorted(jobs, key=lambda job: job.started or 0.0):
        result = job.result or {}
        seconds = round((job.ended or 0.0) - (job.started or 0.0), 2)
        rows.append({
            "kernel": Path(job.kernel).name, "device": on.get(job.id, ""), "seconds": seconds, "state": job.state.value,
            "status": result.get("status", job.error), "speedup": (result.get("best") or {}).get("speedup"),
        })  # fmt: skip
    began, ended = min(job.started or 0.0 for job in jobs), max(job.ended or 0.0 for job in jobs)
    return {"seconds": round(ended - began, 2), "kernels": rows}


def compared(
    kernels: Sequence[Path], slots: Sequence[Slot], out: Path, run: RunTable, command: Sequence[str] = CHILD
) -> dict[str, Any]:
    """One slot against all of them; what was found is written to ``out`` after each."""
    out.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    for count in (1, len(slots)):
        with tempfile.TemporaryDirectory(prefix="fsr-throughput-") as name:
            folder = folder_of(kernels, Path(name).resolve() / "kernels")
            found[str(count)] = measured(folder, Path(name).resolve() / "home", slots[:count], run, command)
        found["ratio"] = round(found["1"]["seconds"] / found[str(count)]["seconds"], 3)
        (out / "daemon_throughput.json").write_text(json.dumps(found, indent=1))
        print(json.dumps({str(count): found[str(count)]}), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--evaluations", type=int, default=40)
    parser.add_argument("--budget", default="60s")
    given = parser.parse_args()
    paths = [str(ROOT), str(ROOT / "daemon"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))  # for runs, where fsr is not installed
    slots = slots_of("auto", "sm_90")[: given.gpus]
    if len(slots) < 2:
        sys.exit(f"{len(slots)} GPU here, at least 2 are needed to compare")
    workers = max(1, (os.cpu_count() or 2) // len(slots) - 1)
    run = RunTable(budget=given.budget, evaluations=given.evaluations, workers=workers)
    found = compared([ROOT / "examples" / f"{name}.cu" for name in KERNELS], slots, given.out, run)
    print(f"{found['ratio']} times the throughput of one GPU")


if __name__ == "__main__":
    main()
