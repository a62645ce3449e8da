"""What each check costs: its share of the time of an evaluation and of a promotion, before and after.

    python benchmarks/costs.py [--device host] [--before TREE] [NAME ...]

Each honest candidate of the corpus (tests/cheats/honest) is compiled, evaluated and promoted twice: the second time the
original's answers are known, as they are in a search. Time is told without that of the checks inside a check: seconds
on the wall and, of this process and all below it, on the CPU; what threads and tools do beside a check counts as its
time. ``--before``: another checkout of fsr that is measured in the same way, in turns with this one. NAME: the
beginnings of candidates' names.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
HONEST = ROOT / "tests" / "cheats" / "honest"
EXAMPLES = {"gemm_tiled": "gemm", "histogram_shared": "histogram", "layer_norm_row_per_block": "layer_norm",
            "reduction_two_passes": "reduction", "saxpy_vector_loads": "saxpy", "softmax_row_per_warp": "softmax",
            "stencil_coarsened": "stencil", "transpose_tiled": "transpose"}  # fmt: skip
# Where a check is called, by module and name; what a checkout does not have is left out.
CHECKS: Mapping[str, str] = {
    "compiling.guard": "guard", "compiling._target_resources": "target's compiler",
    "compiling.run_toolchain": "", "jobs.read_clock": "screening (time or recording)",
    "jobs.shrunk": "shrinking", "promotion.far_failure": "far sizes", "promotion._large": "large sizes",
    "promotion.watch": "orders and memory model", "promotion._recorded": "recorder",
    "promotion._sanitized": "sanitizers", "inspecting.watch": "orders and memory model",
    "inspecting.Future.result": "waiting for sanitizers",
    "promotion._final": "final", "promotion._predicted_final": "final",
    "promotion.held_out_sizes": "held-out sizes, timed", "jobs.slower_at": "a glance at held-out sizes",
    "promotion._looped": "back to back", "promotion._held_out_sizes": "held-out sizes, timed",
    "promotion.read_clock": "time of the promoted", "session.Session.first_failure": "cases",
    "session.Session.expected": "the original's answers", "session.Session.candidate_cases": "choosing cases",
    "session.Session.timed": "timed data",
}  # fmt: skip


class Clock:
    """Exclusive seconds by check and stage: wall and CPU."""

    def __init__(self) -> None:
        self.stage = ""
        self.spent: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._inner: list[list[float]] = []

    def timed(self, label: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its time told."""

        def wrapped(*given: Any, **named: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                return function(*given, **named)
            began = (time.perf_counter(), cpu_s())
            self._inner.append([0.0, 0.0])
            try:
                return function(*given, **named)
            finally:
                took = [time.perf_counter() - began[0], cpu_s() - began[1]]
                inside = self._inner.pop()
                told = self.spent[f"{self.stage}: {label}"]
                for i in range(2):
                    told[i] += took[i] - inside[i]
                    if self._inner:
                        self._inner[-1][i] += took[i]

        return wrapped

    def watch(self) -> None:
        """Put itself around every check."""
        for place, label in CHECKS.items():
            module, *owners, name = place.split(".")
            if importlib.util.find_spec(f"fsr.evaluation.{module}") is None:
                continue
            owner: Any = importlib.import_module(f"fsr.evaluation.{module}")
            for part in owners:
                owner = getattr(owner, part)
            if label and hasattr(owner, name):
                setattr(owner, name, self.timed(label, getattr(owner, name)))


def cpu_s() -> float:
    """Processor seconds of this process and of all below it, ended ones too."""
    parents, ticks = {}, {}
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdigit() else []
        except OSError:
            continue
        if words:
            parents[int(entry.name)] = int(words[1])
            ticks[int(entry.name)] = sum(map(int, words[11:15]))
    own = {os.getpid()}
    while more := {p for p, parent in parents.items() if parent in own} - own:
        own |= more
    return sum(ticks[p] for p in own if p in ticks) / os.sysconf("SC_CLK_TCK")


def _found(name: str, *modules: str) -> Any:
    """What has stood in one of the modules, the newest first."""
    for module in modules:
        if importlib.util.find_spec(module) is not None:
            return getattr(importlib.import_module(module), name)
    raise ImportError(f"{name} is in none of {', '.join(modules)}")


def measured(device: str, names: list[str]) -> dict[str, Any]:
    """Seconds by check, of the checkout that is imported; a candidate's second evaluation and promotion."""
    from fsr.evaluation import jobs, promotion, spec
    from fsr.testgen.candidate_file import read_candidate

    load_kernel = _found("load_kernel", "fsr.runs.kernel", "fsr.app.kernel")
    clock = Clock()
    clock.watch()
    judged = 0
    for name, example in EXAMPLES.items():
        if names and not name.startswith(tuple(names)):
            continue
        kernel = load_kernel(ROOT / "examples" / f"{example}.cu", None)
        candidate = read_candidate(HONEST / f"{name}.cu", kernel.contract)
        session = spec.SessionSpec(kernel.contract, kernel.baseline, device, "sm_90", 3, str(kernel.folder))
        for turn in ("first", "again"):
            clock.stage = f"{turn} evaluation"
            built = clock.timed("compile", jobs.compile_task)(spec.CompileRequest(session, candidate))
            clock.timed("rest", jobs.evaluate_task)(spec.EvaluateRequest(session, candidate, built))
            clock.stage = f"{turn} promotion"
            clock.timed("rest", promotion.promote_task)(spec.PromoteRequest(session, candidate, built))
        judged += 1
    return {"judged": judged, "spent": {k: v for k, v in clock.spent.items() if k.startswith("again")}}


def table(found: Mapping[str, Any]) -> str:
    """A line a check: seconds a candidate and its share of the stage."""
    lines = []
    for stage in ("again evaluation", "again promotion"):
        rows = {k.partition(": ")[2]: v for k, v in found["spent"].items() if k.startswith(stage)}
        wall, cpu = (sum(v[i] for v in rows.values()) for i in range(2))
        count = max(found["judged"], 1)
        lines.append(f"{stage.partition(' ')[2]}: {wall / count:.2f} s on the wall, {cpu / count:.2f} s of CPU each")
        for name, (w, c) in sorted(rows.items(), key=lambda row: -row[1][1]):
            shares = f"{100 * w / max(wall, 1e-9):5.1f} % {100 * c / max(cpu, 1e-9):5.1f} %"
            lines.append(f"  {name:<30} {w / count:7.2f} {c / count:7.2f}   {shares}")
    return "\n".join(lines)


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", default="host")
    parser.add_argument("--before", type=Path)
    parser.add_argument("--json", action="store_true", help="this checkout alone, for the program that asks")
    given = parser.parse_args()
    if given.json:
        print(json.dumps(measured(given.device, given.names)))
        return 0
    for label, tree in (("before", given.before), ("after", ROOT)):
        if tree is None:
            continue
        command = [sys.executable, str(Path(__file__).resolve()), "--json", "--device", given.device, *given.names]
        tree = tree.resolve()
        searched = [str(tree), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(searched)}
        ran = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
        if ran.returncode:
            print(f"{label}: failed\n{ran.stderr[-1500:]}", file=sys.stderr)
            return 1
        print(f"{label}: {tree}\n{table(json.loads(ran.stdout.splitlines()[-1]))}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
