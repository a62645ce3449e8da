"""The acceptance table of ``fsr refine``: every example refined, every winner checked on two devices.

    python benchmarks/acceptance.py OUT_DIR [--budget 60s] [--examples softmax,gemm] [--device cuda:0]
    python benchmarks/acceptance.py OUT_DIR --merge A/results.json B/results.json    (only writes the table)

Each example is refined by ``python -m fsr refine`` in a process of its own, and its winner checked by ``fsr check`` on
the device and on the host device. One that fails loses no other: results.json and table.md in OUT_DIR are written
anew after every step. The checks on the host device run beside the next refinement, with one compile process.
OUT_DIR/home holds the runs (their logs are what correlation.py reads) and the cache.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

ROOT = Path(__file__).parents[1]
FIRST_EIGHT = ("saxpy", "softmax", "layer_norm", "transpose", "reduction", "gemm", "stencil", "histogram")
THRESHOLDS = {"softmax": 10.0, "reduction": 10.0, "transpose": 2.0}
GEOMETRIC_MEAN = 4.0
CHECK_LIMIT_S = 300.0
REFINE_GRACE_S = 240.0  # beside the budget: the baseline, a last promotion, starting and ending
KEPT_STDERR = 2000

Json = Mapping[str, Any]
Runner = Callable[[Sequence[str], float, Mapping[str, str]], dict[str, Any]]


def run_json(command: Sequence[str], limit_s: float, environment: Mapping[str, str]) -> dict[str, Any]:
    """Run a command that prints one JSON object: the object, or {"status": "broken", "detail": why}."""
    started = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", cwd=ROOT,
        env=dict(environment), start_new_session=True,
    )  # fmt: skip
    try:
        output, errors = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        return {"status": "broken", "detail": f"not finished after {limit_s:g} s", "stderr": errors[-KEPT_STDERR:]}
    try:
        told: dict[str, Any] = json.loads(output)
    except ValueError:
        said = " ".join((errors.strip() or output.strip() or "nothing").splitlines()[-6:])
        detail = f"exit code {process.returncode} and no JSON, but: {said[-400:]}"
        return {"status": "broken", "detail": detail, "stderr": errors[-KEPT_STDERR:]}
    return told | {"exit_code": process.returncode, "wall_s": round(time.monotonic() - started, 1)}


@dataclass
class Acceptance:
    """One pass over the examples. ``results`` by example: refine, check_device, check_host (absent: not done)."""

    out: Path
    budget: str
    device: str
    run: Runner = run_json
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def note(self, example: str, step: str, told: Json) -> None:
        """Keep a result and write both files."""
        with self._lock:
            self.results.setdefault(example, {})[step] = told
            write(self.out, self.results, f"--budget {self.budget} --device {self.device}")
        print(f"{example}: {step}: {told.get('status')} {told.get('detail', '')}", file=sys.stderr, flush=True)

    def all(self, examples: Sequence[Path]) -> None:
        """Refine and check every example."""
        with ThreadPoolExecutor(1) as beside:
            waiting: list[Future[None]] = []
            for path in examples:
                winner = self.refine(path)
                if winner is None:
                    continue
                if self.device != "host":
                    self.check(path, winner, self.device, "check_device")
                waiting.append(beside.submit(self.check, path, winner, "host", "check_host"))
            for future in waiting:
                future.result()

    def refine(self, path: Path) -> Path | None:
        """Refine one example; the winner's path, or None when there is none."""
        from fsr.runs.options import parse_duration

        output = self.out / f"{path.stem}.fsr.cu"
        command = self._fsr("refine", path, "--budget", self.budget, "--device", self.device, "-o", output)
        told = self.run(command, parse_duration(self.budget) + REFINE_GRACE_S, self._environment())
        self.note(path.stem, "refine", told)
        return output if told.get("status") == "improved" and output.exists() else None

    def check(self, path: Path, winner: Path, device: str, step: str) -> None:
        """Check a winner on a device."""
        command = self._fsr("check", winner, "--against", path, "--device", device)
        told = self.run(command, CHECK_LIMIT_S, self._environment())
        self.note(path.stem, step, told)

    def _fsr(self, *words: object) -> list[str]:
        return [sys.executable, "-m", "fsr", *map(str, words), "--json"]

    def _environment(self) -> dict[str, str]:
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        return {**os.environ, "FSR_HOME": str(self.out / "home"), "PYTHONPATH": path}


# ---------------------------------------------------------------- what it comes to


def speedup(result: Json) -> float | None:
    """Of one example: 1 when unchanged, None when it failed."""
    refine = result.get("refine", {})
    if refine.get("status") == "unchanged":
        return 1.0
    best = refine.get("best") if refine.get("status") == "improved" else None
    return None if not best else float(best["speedup"])


def right(result: Json, device: str) -> bool:
    """Whether an example gave something right: unchanged, or a winner that passed both checks."""
    refine = result.get("refine", {})
    steps = ("check_host",) if device == "host" else ("check_device", "check_host")
    improved = refine.get("status") == "improved" and all(
        result.get(step, {}).get("status") == "passed" for step in steps
    )
    return improved or refine.get("status") == "unchanged"


def geometric_mean(results: Mapping[str, Json]) -> float | None:
    """Over the first eight, None unless all of them were run; a failure counts as no speed-up at all, so 0."""
    if any(name not in results for name in FIRST_EIGHT):
        return None
    found = [speedup(results[name]) for name in FIRST_EIGHT]
    values = [0.0 if s is None else s for s in found]
    return 0.0 if min(values) <= 0 else math.exp(sum(map(math.log, values)) / len(values))


def acceptance(results: Mapping[str, Json], device: str) -> dict[str, bool | None]:
    """Which thresholds hold; None where an example that is needed was not run."""
    told: dict[str, bool | None] = {}
    for name, least in THRESHOLDS.items():
        told[f"{name} >= {least:g}"] = (speedup(results[name]) or 0.0) >= least if name in results else None
    mean = geometric_mean(results)
    told[f"geometric mean >= {GEOMETRIC_MEAN:g}"] = None if mean is None else mean >= GEOMETRIC_MEAN
    told["none slower"] = all(not slower(r) for r in results.values()) if results else None
    told["all right, checked on both devices"] = all(right(r, device) for r in results.values()) if results else None
    told["sanitizers silent on every winner"] = all(silent(r) for r in results.values()) if results else None
    return told


def slower(result: Json) -> bool:
    """Whether a told winner is not clearly faster than the original."""
    best = result.get("refine", {}).get("best")
    return bool(best) and float(best["speedup_ci95"][0]) < 1.0


def silent(result: Json) -> bool:
    """Whether every tool that looked at the winner was there and silent; an unchanged kernel has none."""
    best = result.get("refine", {}).get("best")
    said = (best.get("sanitizers") or {"none": "told"}) if best else {}
    return all(word == "silent" for word in said.values())


HEAD = ("example", "baseline us", "winner us", "speed-up", "in a loop", "copy rate", "evaluated", "a second", "seconds",
        "check cuda / host", "sanitizers", "actions")  # fmt: skip


def row(name: str, result: Json) -> list[str]:
    """One line of the table."""
    refine = result.get("refine", {})
    if refine.get("status") not in ("improved", "unchanged"):
        what = str(refine.get("detail") or refine.get("error") or refine.get("status"))
        return [name, *["-"] * (len(HEAD) - 2), what.replace("|", "/").replace("\n", " ")[:120]]
    best = refine["best"] or {}
    low, high = best.get("speedup_ci95", (1.0, 1.0))
    share = best.get("roofline_fraction")
    checks = " / ".join(result.get(step, {}).get("status", "-") for step in ("check_device", "check_host"))
    said = best.get("sanitizers") or {}
    loud = [f"{tool}: {word}" for tool, word in said.items() if word != "silent"]
    return [
        name, f"{refine['baseline']['median_ns'] / 1e3:.2f}", f"{best['median_ns'] / 1e3:.2f}" if best else "-",
        f"{best['speedup']:.2f} [{low:.2f}, {high:.2f}]" if best else "unchanged",
        f"{best['speedup_back_to_back']:.2f}" if best.get("speedup_back_to_back") else "-",
        "-" if share is None else f"{100 * share:.0f} %", str(refine["evaluated"]),
        f"{refine['candidates_per_second']:.1f}", f"{refine['seconds']:.0f}", checks,
        "-" if not best else "; ".join(loud) or f"{len(said)} silent", ", ".join(best.get("actions", [])) or "-",
    ]  # fmt: skip


def table(results: Mapping[str, Json], options: str) -> str:
    """The table and the thresholds as Markdown."""
    ordered = [n for n in FIRST_EIGHT if n in results] + sorted(set(results) - set(FIRST_EIGHT))
    lines = [f"`fsr refine` on the examples, {options}: {where(results)}", ""]
    lines += [f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD)]
    lines += [f"| {' | '.join(row(name, results[name]))} |" for name in ordered]
    mean = geometric_mean(results)
    lines += ["", f"Geometric mean over the first eight: {'not all were run' if mean is None else f'{mean:.2f}'}", ""]
    words = {True: "holds", False: "does NOT hold", None: "not run"}
    device = "host" if "--device host" in options else "cuda"
    lines += [f"- {name}: {words[held]}" for name, held in acceptance(results, device).items()]
    return "\n".join(lines) + "\n"


def where(results: Mapping[str, Json]) -> str:
    """Hardware and versions in a line, from the first result that names them."""
    for result in results.values():
        device = result.get("refine", {}).get("device")
        if device:
            basis = result["refine"]["basis"]
            return f"{device['name']} ({device['arch']}), driver {device['driver']}, {device['runtime']}, {basis} times"
    return "no device answered"


def write(out: Path, results: Mapping[str, Json], options: str) -> None:
    """results.json and table.md, each in one piece."""
    told = {
        "options": options, "examples": results, "geometric_mean": geometric_mean(results),
        "acceptance": acceptance(results, "host" if "--device host" in options else "cuda"),
    }  # fmt: skip
    for name, text in (("results.json", json.dumps(told, indent=1)), ("table.md", table(results, options))):
        draft = out / f"{name}.draft"
        draft.write_text(text)
        draft.replace(out / name)


def merged(paths: Sequence[Path]) -> tuple[dict[str, Json], str]:
    """Results of several passes as one, later ones winning, and their options."""
    results: dict[str, Json] = {}
    options = ""
    for path in paths:
        data = json.loads(path.read_text())
        results |= data["examples"]
        options = data["options"]
    return results, options


def main(arguments: Sequence[str] | None = None) -> int:
    """Ends with 0 when every threshold that could be looked at holds, else 1."""
    parser = argparse.ArgumentParser(description="The acceptance table of fsr refine.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--examples", help="names, separated by commas; all by default")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--merge", nargs="+", type=Path, metavar="RESULTS", help="only join earlier results")
    given = parser.parse_args(arguments)
    out = given.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    if given.merge:
        results, options = merged(given.merge)
        write(out, results, options)
    else:
        sys.path.insert(0, str(ROOT))
        every = {p.stem: p for p in sorted((ROOT / "examples").glob("*.cu")) if ".fsr" not in p.name}
        names = given.examples.split(",") if given.examples else [n for n in (*FIRST_EIGHT, *every) if n in every]
        unknown = [n for n in names if n not in every]
        if unknown:
            parser.error(f"no example {unknown[0]!r}; there are {', '.join(every)}")
        run = Acceptance(out, given.budget, given.device)
        run.all([every[n] for n in dict.fromkeys(names)])
        results = run.results
    print((out / "table.md").read_text())
    held = acceptance(results, given.device)
    return 0 if all(h is not False for h in held.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
