"""Whether runs keep their budgets: how long each took beside what it was given, as a table.

    python benchmarks/budgets.py OUT_DIR [--device host] [--budgets 10s,30s,60s] [--kernels softmax,fixed]

Every example, a softmax of 8192 x 50257 (`large`) and a transposition whose contract allows 4096 x 4096 only (`fixed`)
are refined by ``python -m fsr refine`` in a process of its own, from its start to its end by the wall clock. A run
keeps its budget B when it ends within B + 10 % + 5 s, with a result or one message that says what would be enough.
results.json and table.md in OUT_DIR are written anew after every run; the load of the machine stands in the table.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SHARE, FIXED_S = 0.10, 5.0  # what a run may take beyond its budget
GIVEN_UP_S = 400.0
HEAD = ("kernel", "budget s", "took s", "over s", "kept", "status", "tried", "load before", "why")


def kernels(folder: Path) -> dict[str, Path]:
    """Name to file: the examples, and the two that are made here in ``folder``."""
    found = {p.stem: p for p in sorted((ROOT / "examples").glob("*.cu")) if ".fsr" not in p.name}
    softmax = re.sub(
        r"cols = \{.*?\}", "cols = {min = 1, max = 65536, timed = 50257}", found["softmax"].read_text(), count=1
    )
    transpose = found["transpose"].read_text()
    fixed = re.sub(r"= \{min = \d+, max = \d+, timed = \d+\}", "= {min = 4096, max = 4096, timed = 4096}", transpose)
    for name, text, old in (("large", softmax, found["softmax"].read_text()), ("fixed", fixed, transpose)):
        assert text != old, f"the contract of {name} was not found"
        found[name] = folder / f"{name}.cu"
        found[name].write_text(text)
    return found


def refined(path: Path, budget_s: float, device: str, out: Path) -> dict[str, Any]:
    """One run: what it said, and how long its process took."""
    load, started = os.getloadavg()[0], time.monotonic()
    command = [sys.executable, "-m", "fsr", "refine", str(path), "--budget", f"{budget_s:g}s", "--device", device,
               "--no-cache", "--json", "-o", str(out / f"{path.stem}.fsr.cu")]  # fmt: skip
    environment = {
        **os.environ,
        "FSR_HOME": str(out / "home"),
        "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
    }
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=GIVEN_UP_S, check=False, cwd=ROOT
        )
    except subprocess.TimeoutExpired:
        return {"took_s": GIVEN_UP_S, "load": load, "status": "given up", "why": "", "evaluated": None}
    took_s = time.monotonic() - started
    try:
        told = json.loads(done.stdout)
    except ValueError:
        said = " ".join(line.strip() for line in done.stderr.splitlines() if not re.match(r"fsr: \w+: \w+, ", line))
        told = {"status": "too small" if "is too small" in said else "failed", "why": said[-300:], "evaluated": 0}
    kept = {name: told[name] for name in ("status", "why", "evaluated")}
    return {"took_s": round(took_s, 1), "load": round(load, 1), **kept}


def kept(result: Mapping[str, Any]) -> bool:
    """Whether a run ended in time and said something useful."""
    in_time = result["took_s"] <= result["budget_s"] * (1 + SHARE) + FIXED_S
    return in_time and result["status"] in ("improved", "unchanged", "too small")


def table(results: Sequence[Mapping[str, Any]], device: str) -> str:
    """All runs as Markdown, and in how many the budget was not kept."""
    lines = [f"Budgets on {device}, {os.cpu_count()} CPUs; kept means within budget + 10 % + 5 s", ""]
    lines += [f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD)]
    for r in results:
        over = r["took_s"] - r["budget_s"]
        why = str(r["why"]).replace("|", "/").replace("\n", " ")[:140]
        cells = (r["kernel"], f"{r['budget_s']:g}", f"{r['took_s']:.1f}", f"{over:+.1f}", "yes" if kept(r) else "NO",
                 r["status"], r["evaluated"], f"{r['load']:.1f}", why)  # fmt: skip
        lines.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    broken = [f"{r['kernel']} at {r['budget_s']:g} s" for r in results if not kept(r)]
    return "\n".join([*lines, "", f"{len(results)} runs; not kept: {', '.join(broken) or 'none'}"]) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Ends with 0 when every budget was kept, else 1."""
    parser = argparse.ArgumentParser(description="Whether runs keep their budgets.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="host")
    parser.add_argument("--budgets", default="10s,30s,60s")
    parser.add_argument("--kernels", help="names, separated by commas; all by default")
    given = parser.parse_args(arguments)
    out = given.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    every = kernels(out)
    names = given.kernels.split(",") if given.kernels else list(every)
    if set(names) - set(every):
        parser.error(f"no kernel {sorted(set(names) - set(every))[0]!r}; there are {', '.join(every)}")
    results: list[dict[str, Any]] = []
    for budget_s in [float(text.rstrip("s")) for text in given.budgets.split(",")]:
        for name in names:
            found = refined(every[name], budget_s, given.device, out)
            results.append({"kernel": name, "budget_s": budget_s, **found})
            (out / "results.json").write_text(json.dumps({"device": given.device, "runs": results}, indent=1))
            (out / "table.md").write_text(table(results, given.device))
            print(results[-1], file=sys.stderr, flush=True)
    print((out / "table.md").read_text())
    return 0 if all(kept(r) for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
