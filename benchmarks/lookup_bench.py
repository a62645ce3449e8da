"""What a hit of ``fsr lookup`` costs: whole processes beside ``python3 -c 'import sqlite3'``, alternating.

    python benchmarks/lookup_bench.py OUT_DIR [--runs 30] [--entries 100,100000]

Two databases are made, of few and of many winners, each holding one for examples/softmax.cu on the GPU of this machine.
The command is the installed ``fsr`` script, else ``python -m fsr``, of the interpreter that runs this file.

Which GPU is here is read from the kernel driver's files under /proc/driver/nvidia. On a machine without any, the same
files are laid out in a folder, and the process is started by a line that points fsr at them before it calls fsr's own
main(): everything else, from the start of the interpreter to the file that is written, is what ``fsr lookup`` does. No
option or environment variable exists for this, so that nobody can be told a winner of other hardware by accident.

OUT_DIR/lookup.json: medians in milliseconds, ratio to the import of sqlite3 (at most 2), change from few to many
entries (within 20 %), and the exit code of a miss (3).
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from fsr.backends.cuda.present import asked, present  # noqa: E402
from fsr.cache.digest import hardware_of, json_digest, text_digest  # noqa: E402  # the checkout, installed or not
from fsr.cache.entry import Entry  # noqa: E402
from fsr.cache.key import CacheKey  # noqa: E402
from fsr.cache.store import Store  # noqa: E402

H200 = {
    "vendor": "nvidia", "name": "NVIDIA H200", "arch": "sm_90", "sm_count": 132, "memory_bytes": 150109880320,
    "sm_clock_mhz": 1980, "memory_clock_mhz": 3201, "power_limit_w": 700, "mig": "disabled",
}  # fmt: skip
KERNEL = ROOT / "examples" / "softmax.cu"
RATIO, CHANGE = 2.0, 0.2  # what acceptance allows
STAND_IN = (
    "from fsr.backends.cuda import present; present.present.__defaults__ = ({proc!r},); "
    "import fsr.__main__; fsr.__main__.main()"
)


def fake_proc(folder: Path) -> str:
    """The kernel driver's files for one GPU."""
    gpu = folder / "gpus" / "0000:01:00.0"
    gpu.mkdir(parents=True)
    (folder / "version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 2025\n")
    (gpu / "information").write_text("Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-00000000-0000-0000-0000-000000000001\n")
    return str(folder)


def an_entry(source: str, driver: str, number: int) -> Entry:
    """A winner about as large as real ones are."""
    text = KERNEL.read_text()
    key = CacheKey(source, (), "softmax", json_digest(number), (), "nvrtc 13.0", json_digest(hardware_of(H200)),
                   driver, 1)  # fmt: skip
    best = {"speedup": 16.6, "speedup_ci95": [16.5, 16.7], "actions": ["row-per-block@softmax"], "number": number}
    candidate = {"source": text, "plan": {"launches": []}, "actions": [], "language": "cuda"}
    return Entry(key, "measured", H200, {"softmax.fsr.cu": text}, {"best": best}, candidate)


def build_database(path: Path, entries: int, uuid: str, driver: str) -> None:
    """A database of that many winners, the last of them the one that is looked up."""
    with Store(path) as store:
        store.saw_device(uuid, driver, H200 | {"driver": driver})
        store.publish(an_entry(text_digest(KERNEL.read_bytes()), driver, 0))
    with sqlite3.connect(path) as connection:
        for pragma in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-500000"):  # only while it is filled
            connection.execute(f"PRAGMA {pragma}")
        connection.row_factory = sqlite3.Row
        held = dict(connection.execute("SELECT * FROM winners").fetchone())
        columns = ", ".join(held)
        places = ", ".join(f":{name}" for name in held)
        first = an_entry("", driver, 0)
        rows = (_filler(held, first, number) for number in range(1, entries))
        connection.executemany(f"INSERT INTO winners ({columns}) VALUES ({places})", rows)
        connection.commit()
        connection.execute("PRAGMA journal_mode=WAL")  # as fsr leaves it
    connection.close()


def _filler(held: dict[str, Any], first: Entry, number: int) -> dict[str, Any]:
    key = replace(first.key, source=text_digest(str(number).encode()))
    body = replace(first, key=key).to_body()
    return held | {
        "key": key.digest(), "source": key.source, "base": key.without_driver(), "context": key.context(),
        "body": body, "body_digest": text_digest(body.encode()),
    }  # fmt: skip


def command(proc: str | None) -> list[str]:
    """What starts ``fsr``."""
    if proc is not None:
        return [sys.executable, "-c", STAND_IN.format(proc=proc)]
    script = Path(sys.executable).parent / "fsr"
    return [str(script)] if script.exists() else [sys.executable, "-m", "fsr"]


def timed_ms(words: Sequence[str], environment: dict[str, str]) -> float:
    """Wall milliseconds of a whole process. Raises RuntimeError when it fails."""
    started = time.perf_counter()
    done = subprocess.run(words, env=environment, capture_output=True, text=True, cwd=ROOT, check=False)
    took = (time.perf_counter() - started) * 1e3
    if done.returncode:
        raise RuntimeError(f"{words[:3]} ended with {done.returncode}: {done.stderr[-500:]}")
    return took


def measured(runs: int, sizes: Sequence[int], folder: Path) -> dict[str, Any]:
    """Medians over ``runs`` rounds; in each round every command runs once."""
    found = present() or asked()
    proc = None if found is not None else fake_proc(folder / "proc")
    driver, uuids = found or present(proc or "") or ("", [""])
    start = command(proc)
    environments, built_s = {}, {}
    for size in sizes:
        home = folder / str(size)
        started = time.monotonic()
        build_database(home / "cache.db", size, uuids[0], driver)
        built_s[str(size)] = round(time.monotonic() - started, 1)
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        own = {k: v for k, v in os.environ.items() if k not in ("FSR_CACHE", "COVERAGE_PROCESS_START")}
        environments[size] = {**own, "FSR_HOME": str(home), "PYTHONPATH": path}
    bare = [sys.executable, "-c", "import sqlite3"]
    lookup = [*start, "lookup", str(KERNEL)]
    times: dict[str, list[float]] = {"import sqlite3": [], **{f"{size} entries": [] for size in sizes}}
    for turn in range(runs + 2):
        round_ms = {"import sqlite3": timed_ms(bare, environments[sizes[0]])}
        round_ms |= {f"{size} entries": timed_ms(lookup, environments[size]) for size in sizes}
        if turn >= 2:  # the first two warm the file cache
            for name, took in round_ms.items():
                times[name].append(took)
    other = folder / "other.cu"
    other.write_text("__global__ void k(float *x) {}\n")
    miss = subprocess.run(
        [*start, "lookup", str(other)], env=environments[sizes[0]], capture_output=True, cwd=ROOT, check=False
    )
    medians = {name: statistics.median(values) for name, values in times.items()}
    few, many = medians[f"{sizes[0]} entries"], medians[f"{sizes[-1]} entries"]
    ratio, change = max(few, many) / medians["import sqlite3"], many / few - 1
    return {
        "median_ms": {name: round(value, 2) for name, value in medians.items()}, "runs": runs,
        "ratio": round(ratio, 3), "ratio_holds": ratio <= RATIO, "change": round(change, 3),
        "change_holds": abs(change) <= CHANGE, "miss_exit_code": miss.returncode, "miss_holds": miss.returncode == 3,
        "command": " ".join(start[:3]) if proc is None else "fsr's main() with stand-in files of the driver",
        "python": sys.version.split()[0], "build_seconds": built_s,
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Ends with 0 when all three limits hold, else 1."""
    parser = argparse.ArgumentParser(description="The cost of a hit of fsr lookup.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--entries", default="100,100000")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fsr-lookup-") as name:
        told = measured(options.runs, [int(n) for n in options.entries.split(",")], Path(name))
    text = json.dumps(told, indent=1)
    (options.out / "lookup.json").write_text(text + "\n")
    print(text)
    return 0 if told["ratio_holds"] and told["change_holds"] and told["miss_holds"] else 1


if __name__ == "__main__":
    sys.exit(main())
