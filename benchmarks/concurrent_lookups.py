"""Many processes look a kernel up while another publishes its winner again and again: no error, nothing torn.

    python benchmarks/concurrent_lookups.py OUT_DIR [--processes 64] [--seconds 20]

Every published winner is two files of many lines that all hold its number; a lookup that finds lines of two numbers, or
files of two, has read a torn winner. Each lookup opens the database anew, as `fsr lookup` does. Every process also has
the files written to the same folder, as builds do, and reads them back.

OUT_DIR/concurrent.json: lookups, errors, torn ones, publications, and the median of a lookup in milliseconds, of one
process alone and of all together.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from lookup_bench import H200, KERNEL, an_entry  # noqa: E402

from fsr.cache.digest import text_digest  # noqa: E402
from fsr.cache.lookup import find, write_files  # noqa: E402
from fsr.cache.store import Store  # noqa: E402

DRIVER = "580.95.05"
DEVICE = H200 | {"driver": DRIVER}
LINES = 400


def numbered(number: int) -> dict[str, str]:
    """The files of the winner of that number."""
    return {f"softmax.fsr.{kind}": f"// {kind} {number}\n" * LINES for kind in ("cu", "cuh")}


def publish(database: str, over: Event, told: Any) -> None:
    """Publish winner after winner until it is over; tells how many."""
    first = an_entry(text_digest(KERNEL.read_bytes()), DRIVER, 0)
    count = 0
    with Store(Path(database)) as store:
        while not over.is_set():
            count += 1
            store.publish(replace(first, files=numbered(count)))
    told.put(count)


def look_up(database: str, over: Event, told: Any) -> None:
    """Look up until it is over; tells the milliseconds of each, what went wrong, and how many were torn."""
    times, faults, torn = [], [], 0
    while not over.is_set():
        started = time.perf_counter()
        try:
            hit = find(KERNEL, database, device=DEVICE)
            times.append((time.perf_counter() - started) * 1e3)
            if hit is None:
                faults.append("a miss")
                continue
            paths = write_files(hit, str(Path(database).parent / "winners" / hit.key))
            written = [Path(path).read_text() for path in paths]
            torn += whole(hit.files.values(), both=True) is False or whole(written, both=False) is False
        except Exception as fault:  # whatever it is, it is counted and told
            faults.append(f"{type(fault).__name__}: {fault}")
    told.put((times, faults[:3], len(faults), torn))


def whole(texts: Any, *, both: bool) -> bool:
    """Whether every text is all lines of one number; ``both``: of the same number (files are replaced one by one)."""
    numbers = [{line.rpartition(" ")[2] for line in text.splitlines()} for text in texts]
    counts = [len(text.splitlines()) for text in texts]
    same = len(set.union(*numbers)) == 1 if both else all(len(found) == 1 for found in numbers)
    return same and set(counts) == {LINES}


def measured(folder: Path, processes: int, seconds: float) -> dict[str, Any]:
    """One round with that many readers and one writer."""
    context = multiprocessing.get_context("fork")
    database = str(folder / f"{processes}.db")
    with Store(Path(database)) as store:
        store.publish(replace(an_entry(text_digest(KERNEL.read_bytes()), DRIVER, 0), files=numbered(0)))
    over, told, published = context.Event(), context.Queue(), context.Queue()
    writer = context.Process(target=publish, args=(database, over, published))
    readers = [context.Process(target=look_up, args=(database, over, told)) for _ in range(processes)]
    for process in (writer, *readers):
        process.start()
    time.sleep(seconds)
    over.set()
    answers = [told.get(timeout=120) for _ in readers]
    count = published.get(timeout=120)
    for process in (writer, *readers):
        process.join(120)
    times = [t for answer in answers for t in answer[0]]
    return {
        "processes": processes, "lookups": len(times), "publications": count,
        "errors": sum(answer[2] for answer in answers), "first_errors": [e for a in answers for e in a[1]][:5],
        "torn": sum(answer[3] for answer in answers), "median_ms": round(statistics.median(times), 3),
        "all_looked": all(answer[0] for answer in answers),
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Ends with 0 when there was no error and nothing torn."""
    parser = argparse.ArgumentParser(description="Lookups while a writer publishes.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--processes", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fsr-concurrent-") as name:
        rounds = [measured(Path(name), count, options.seconds) for count in (1, options.processes)]
    text = json.dumps({"rounds": rounds}, indent=1)
    (options.out / "concurrent.json").write_text(text + "\n")
    print(text)
    return 0 if all(not r["errors"] and not r["torn"] and r["all_looked"] for r in rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
