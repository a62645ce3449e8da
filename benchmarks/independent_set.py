"""Judges the candidates of benchmarks/independent by `fsr check`: wrong/ must fail, right/ must pass.

    python benchmarks/independent_set.py [--device host] [--results FILE] [NAME ...]

They were written from the contracts of orig/ alone, in the styles of public kernels (a naive GEMM, a separable filter
with its taps in constant memory, an edge filter, a transposition, a step of dynamic programming, a heat step), as
somebody would who does not know what the checker looks for. The first lines of each say which original it stands
against, why it is wrong or what an expert did, and how it is launched. One line a candidate, JSON in FILE; exit code 1
where anything is misjudged. NAME: the beginning of a file's name.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from fsr.testgen.candidate_file import read_notes

HERE = Path(__file__).parent / "independent"
LIMIT_S = 900


def judged(path: Path, device: str) -> dict[str, object]:
    """What `fsr check` says of a file."""
    against = HERE / "orig" / f"{read_notes(path)['against'][0]}.cu"
    began = time.monotonic()
    command = [sys.executable, "-m", "fsr", "check", path, "--against", against, "--device", device, "--json"]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    told = json.loads(done.stdout) if done.stdout else {"status": "error", "evidence": done.stderr[-600:]}
    kept = {k: told.get(k) for k in ("status", "outcome", "stage", "tests", "evidence")}
    return {"name": path.stem, "kind": path.parent.name, "seconds": round(time.monotonic() - began, 1), **kept}


def main() -> int:
    """Judge them all, or those named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", default="host")
    parser.add_argument("--results", type=Path)
    asked = parser.parse_args()
    counts: Counter[str] = Counter()
    for path in sorted([*(HERE / "wrong").glob("*.cu"), *(HERE / "right").glob("*.cu")]):
        if asked.names and not path.stem.startswith(tuple(asked.names)):
            continue
        row = judged(path, asked.device)
        good = (row["status"] == "passed") == (row["kind"] == "right")
        counts["misjudged"] += not good
        counts[f"{row['kind']} {'accepted' if row['status'] == 'passed' else 'refused'}"] += 1
        print("  " if good else "! ", row["kind"], row["name"], row["status"], row["stage"], row["seconds"], flush=True)
        if asked.results:
            with asked.results.open("a") as file:
                file.write(json.dumps(row) + "\n")
    print(dict(counts))
    return int(bool(counts["misjudged"]))


if __name__ == "__main__":
    sys.exit(main())
