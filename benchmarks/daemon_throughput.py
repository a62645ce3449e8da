"""How much sooner the daemon is done with a folder of kernels on several GPUs than on one.

    python benchmarks/daemon_throughput.py OUT_DIR [--gpus 2] [--evaluations 40] [--budget 30s] [--longest 450]

Eight examples in a folder, the real service and its queue, a run a kernel: first on one GPU, then on so many, each time
from nothing, and with the same share of the processor for a run. Long runs are saved last, and so taken first. The GPUs
are not looked at for other users, which there must not be. It ends within ``--longest`` seconds, and on SIGTERM, with
all that it started.

OUT_DIR/daemon_throughput.json, written anew whenever a kernel is done: for each number of GPUs the seconds from the
first lease to the last end, candidates evaluated, and of every kernel its device, seconds, status and speed-up; then
the ratio of the two in kernels and in candidates a second (at least 1.8 is promised for two).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "daemon"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from fsr.settings import Settings
from fsrd.config import Config, RunTable, WatchedFolder
from fsrd.jobs.job import Job
from fsrd.politeness.rules import PoliteTable
from fsrd.running.process import CHILD
from fsrd.service.devices import Slot, slots_of
from fsrd.service.service import Service

ROOT = Path(__file__).parents[1]
KERNELS = ("histogram", "saxpy", "transpose", "stencil", "scale_bias", "gemm", "layer_norm", "softmax")
LONGEST_S, FIRST_SHARE = 450.0, 0.65  # one GPU takes twice as long as two


def folder_of(kernels: Sequence[Path], folder: Path) -> Path:
    """A folder of copies, each saved a second after the one before."""
    folder.mkdir(parents=True)
    for number, kernel in enumerate(kernels):
        copy = folder / kernel.name
        shutil.copyfile(kernel, copy)
        os.utime(copy, (time.time() - 100 + number,) * 2)
    return folder


def measured(
    folder: Path, slots: Sequence[Slot], run: RunTable, command: Sequence[str], ends: float,
    tell: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:  # fmt: skip
    """What a service with these slots makes of a folder that it sees for the first time, until ``ends`` (monotonic) at
    the latest; told whenever a kernel is done."""
    home = folder.with_name("home")
    polite = PoliteTable(gpu_idle=False, battery=True, nice=0, idle_disk=False)
    config = Config(folder=(WatchedFolder(path=str(folder)),), run=run, polite=polite)
    service = Service(Settings(str(home), str(home / "cache.db")), config, slots, command=command)
    on: dict[int, str] = {}
    wanted, done = len(list(folder.glob("*.cu"))), 0
    service.start()
    try:
        while time.monotonic() < ends and done < wanted:
            on |= {worker.job.id: worker.slot.device for worker in list(service.workers) if worker.job is not None}
            jobs = service.store.jobs()
            if (now := sum(not job.state.live for job in jobs)) > done:
                done = now
                tell(told(jobs, on, wanted))
            time.sleep(0.05)
        jobs = service.store.jobs()
    finally:
        service.close()
    return told(jobs, on, wanted)


def told(jobs: Sequence[Job], on: dict[int, str], wanted: int) -> dict[str, Any]:
    """The jobs of a service that have ended, of so many, as a record."""
    ended = sorted((job for job in jobs if not job.state.live), key=lambda job: job.started or 0.0)
    rows = []
    for job in ended:
        result = job.result or {}
        rows.append({
            "kernel": Path(job.kernel).name, "device": on.get(job.id, ""), "state": job.state.value,
            "seconds": round((job.ended or 0.0) - (job.started or 0.0), 2), "status": result.get("status", job.error),
            "speedup": (result.get("best") or {}).get("speedup"), "evaluated": result.get("evaluated", 0),
        })  # fmt: skip
    began, last = (
        (min(job.started or 0.0 for job in ended), max(job.ended or 0.0 for job in ended)) if ended else (0, 0)
    )
    return {
        "seconds": round(last - began, 2), "left_undone": wanted - len(ended),
        "evaluated": sum(row["evaluated"] for row in rows), "kernels": rows,
    }  # fmt: skip


def compared(
    kernels: Sequence[Path], slots: Sequence[Slot], out: Path, run: RunTable, command: Sequence[str] = CHILD,
    longest_s: float = LONGEST_S,
) -> dict[str, Any]:  # fmt: skip
    """One slot against all of them; what was found so far is written to ``out``. Without a ratio where kernels were
    left undone."""
    out.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}

    def tell(count: int, record: dict[str, Any]) -> None:
        found[str(count)] = record
        (out / "daemon_throughput.json").write_text(json.dumps(found, indent=1))

    began = time.monotonic()
    for count, share in ((1, FIRST_SHARE), (len(slots), 1.0)):
        with tempfile.TemporaryDirectory(prefix="fsr-throughput-", ignore_cleanup_errors=True) as name:
            folder = folder_of(kernels, Path(name).resolve() / "kernels")
            ends = began + share * longest_s
            record = measured(folder, slots[:count], run, command, ends, partial(tell, count))
        tell(count, record)
        print(json.dumps({str(count): record}), flush=True)
    one, all_of_them = found["1"], found[str(len(slots))]
    if one["left_undone"] == all_of_them["left_undone"] == 0:
        found["ratio"] = round(one["seconds"] / all_of_them["seconds"], 3)
        if one["evaluated"]:
            found["ratio_of_candidates"] = round(found["ratio"] * all_of_them["evaluated"] / one["evaluated"], 3)
    tell(len(slots), all_of_them)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--evaluations", type=int, default=40)
    parser.add_argument("--budget", default="30s")
    parser.add_argument("--longest", type=float, default=LONGEST_S, help="seconds for all of it")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended on the way out
    paths = [str(ROOT), str(ROOT / "daemon"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))  # for runs, where fsr is not installed
    slots = slots_of("auto", "sm_90")[: given.gpus]
    if len(slots) < 2:
        sys.exit(f"{len(slots)} GPU here, at least 2 are needed to compare")
    workers = max(1, (os.cpu_count() or 2) // len(slots) - 1)
    run = RunTable(budget=given.budget, evaluations=given.evaluations, workers=workers)
    kernels = [ROOT / "examples" / f"{name}.cu" for name in KERNELS]
    found = compared(kernels, slots, given.out, run, longest_s=given.longest)
    print(f"{found.get('ratio')} times the throughput of one GPU, {found.get('ratio_of_candidates')} in candidates")


if __name__ == "__main__":
    main()
