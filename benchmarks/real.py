"""Kernels that other people wrote: what a run makes of each, and whether it finds what an expert would do.

    python benchmarks/real.py FOLDER OUT [--device host] [--budget 60s] [--only NAME ...] [--tree TREE]

FOLDER holds a folder a kernel: its files, and its contract in NAME.fsr.toml. Each kernel is copied to OUT, what its
build would have given it is put there (a macro, a header), ``fsr refine`` runs on it, one kernel at a time, and it is
lifted. OUT/rows.jsonl gets a line a kernel; kernels that have one are left out, so that a sweep that was cut off goes
on; OUT/table.md is the table of all of them. ``--tree``: another checkout whose fsr is to run.

The expert's move is *offered* when a move that it stands for was among those that the search could make on the original
or on what it tried, and *in the winner* when it is on the winner's path.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

# What an expert would do first, by folder, as patterns of moves that do it.
EXPERT: Mapping[str, str] = {
    "01-reduction": r"row-per-|reduce-atomics|fold-",
    "03-transpose": r"tile-transpose|tile-permute",
    "04-convolutionSeparable": r"(tile|march)-stencil|coarsen|thread-coarsening|shared-padding",
    "06-nbody": r"row-per-|split-|coarsen",
    "07-matrixMul": r"tile-gemm|tile-contraction",
    "12-hotspot": r"block-shape@.*x=32|fast-math|tile-stencil|float-literals",
    "14-kmeans": r"tile-transpose|tile-permute",
    "16-pathfinder": r"march-|registers|shuffle",
    "18-lud": r"tile-gemm|tile-contraction",
    "19-polybench-gemm": r"tile-gemm|tile-contraction",
    "21-polybench-atax": r"row-per-|fold-(rows|columns)",
    "26-apex-scaled_masked_softmax": r"fast-math",
    "27-vllm-rms_norm": r"row-per-.*(cache=register|width=4)|fold-rows.*(keep=registers|pack=4)",
    "30-ggml-im2col": r"index32|block-shape|swap-ids|restate.*itself|pack-elements",
    "33-flash-attention-minimal": r"row-per-|split-|shared-padding|online|more-warps",
    "36-game-of-life": r"tile-stencil|march-stencil|coarsen|restate.*(stencil|coarsen)",
    "38-sobel": r"tile-stencil|march-stencil|coarsen-rows",
    "40-sgemm-naive": r"tile-gemm|tile-contraction",
}  # fmt: skip

# What a kernel's own build gives it and its folder lacks: text to replace in a file, and headers.
EDITS: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "19-polybench-gemm": [("gemm.cu", "<polybench.h>", '"polybench.h"')],
    "21-polybench-atax": [("atax.cu", "<polybench.h>", '"polybench.h"')],
    "26-apex-scaled_masked_softmax": [("scaled_masked_softmax.h", "<c10/macros/Macros.h>", '"halves.h"')],
    "27-vllm-rms_norm": [("layernorm_kernels.cu", "<cub/cub.cuh>", "<cub/block/block_reduce.cuh>")],
}
_HALVES = """#pragma once
#define C10_WARP_SIZE 32
#include <cuda_fp16.h>
#include <cuda_bf16.h>
namespace c10 { typedef __half Half; typedef __nv_bfloat16 BFloat16; }
"""
HEADERS: Mapping[str, Mapping[str, str]] = {
    "26-apex-scaled_masked_softmax": {"halves.h": _HALVES},
    "30-ggml-im2col": {"ggml.h": "#pragma once\n#define GGML_UNUSED(x) (void)(x)\n"},
}


def prepared(source: Path, target: Path) -> Path | None:
    """A copy of a kernel's folder, ready to run; its file with a kernel, or None where there is no contract."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    for path in target.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for name, old, new in EDITS.get(source.name, ()):
        path = target / name
        path.write_text(path.read_text().replace(old, new))
    for name, text in HEADERS.get(source.name, {}).items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text)
    for contract in target.glob("*.fsr.toml"):
        stem = contract.name.removesuffix(".fsr.toml")
        return next((p for s in (".cu", ".cuh") if (p := target / f"{stem}{s}").is_file()), None)
    return None


def refined(kernel: Path, options: argparse.Namespace, home: Path) -> dict[str, Any]:
    """What ``fsr refine`` says, and what it tried."""
    command = [sys.executable, "-m", "fsr", "refine", str(kernel), "--device", options.device, "--budget",
               options.budget, "--json", "--no-cache"]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(options.tree), "FSR_HOME": str(home)}
    began = time.monotonic()
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    seconds = time.monotonic() - began
    try:
        found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return {"status": "failed", "seconds": seconds, "why": ran.stderr[-300:]}
    best = found.get("best") or {}
    events = [json.loads(x) for path in (home / "runs" / str(found.get("run"))).glob("*.jsonl") for x in path.open()]
    asked = [str(e.get("move", "")) for e in events if "move" in e]
    return {
        "status": found["status"], "speedup": best.get("speedup"), "by": best.get("actions", []),
        "evaluated": found.get("evaluated"), "rejected": found.get("rejected"), "why": found.get("why"),
        "notes": found.get("notes"), "defects": found.get("defects"), "asked": asked, "seconds": seconds,
    }  # fmt: skip


OFFERED = """
import json, sys
from pathlib import Path
from fsr.lifting.lift import lift
from fsr.runs.kernel import load_kernel
from fsr.computation.printing import lines
from fsr.search.proposal import Rules, Space
from fsr.transform.registry import all_actions
kernel = load_kernel(Path(sys.argv[1]))
found = lift(kernel.contract, kernel.baseline)
faults = []
space = Space(Rules(kernel.contract, False, "sm_90", found.computation), all_actions(),
              lambda action, fault: faults.append(f"{action}: {fault!r}"))
moves = [move.name for _, move in space.moves(kernel.baseline)]
print(json.dumps({"lifted": found.computation is not None, "why": found.why, "seconds": found.seconds, "faults": faults,
                  "lines": lines(found.computation) if found.computation else [], "moves": moves}))
"""


def offered(kernel: Path, options: argparse.Namespace, home: Path) -> dict[str, Any]:
    """Whether a kernel is lifted, and the moves on its original."""
    environment = os.environ | {"PYTHONPATH": str(options.tree), "FSR_HOME": str(home)}
    ran = subprocess.run([sys.executable, "-c", OFFERED, str(kernel)], env=environment, capture_output=True, text=True)
    try:
        found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return {"lifted": False, "why": ran.stderr[-300:], "lines": [], "moves": []}
    return found


def is_expert(name: str, moves: Iterable[str]) -> bool | None:
    """Whether one of the moves is the expert's; None where an expert has none."""
    pattern = EXPERT.get(name)
    return None if pattern is None else any(re.search(pattern, move) for move in moves)


def row_of(source: Path, options: argparse.Namespace) -> dict[str, Any]:
    """All that is told of one kernel."""
    kernel = prepared(source, options.out / "kernels" / source.name)
    row: dict[str, Any] = {"name": source.name, "load": os.getloadavg()[0], "device": options.device}
    if kernel is None:
        return {**row, "status": "no contract"}
    home = options.out / "home"
    run, lifting = refined(kernel, options, home), offered(kernel, options, home)
    row |= run | {"lifted": lifting["lifted"], "computes": lifting["lines"], "not_lifted": lifting["why"],
                  "faults": lifting.get("faults", []), "moves": len(lifting["moves"])}  # fmt: skip
    row["expert_offered"] = is_expert(source.name, [*lifting["moves"], *run.get("asked", [])])
    row["expert_in_winner"] = is_expert(source.name, run.get("by", []))
    return row


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as Markdown, and their counts."""
    told = {True: "yes", False: "no", None: "-"}
    lines = ["| kernel | status | speed-up | evaluated | lifted | expert's move offered | in the winner | load |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for r in sorted(rows, key=lambda r: str(r["name"])):
        speedup = f"{r['speedup']:.3g}" if r.get("speedup") else ""
        lifted = told[bool(r.get("lifted"))] + (f": {r['not_lifted'][:60]}" if r.get("not_lifted") else "")
        lines.append(
            f"| {r['name']} | {r['status']} | {speedup} | {r.get('evaluated', '')} | {lifted} | "
            f"{told[r.get('expert_offered')]} | {told[r.get('expert_in_winner')]} | {r['load']:.1f} |"
        )
    run = [r for r in rows if r["status"] != "no contract"]
    expert = [r for r in run if r.get("expert_offered") is not None]
    counts = {
        "improved": sum(r["status"] == "improved" for r in run),
        "lifted": sum(bool(r.get("lifted")) for r in run),
        "expert's move offered": sum(bool(r["expert_offered"]) for r in expert),
        "in the winner": sum(bool(r["expert_in_winner"]) for r in expert),
    }
    told_of = {"improved": len(run), "lifted": len(run)}
    lines += ["", ", ".join(f"{what}: {n} of {told_of.get(what, len(expert))}" for what, n in counts.items())]
    return "\n".join(lines) + "\n"


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="host")
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--tree", type=Path, default=ROOT)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    kept = options.out / "rows.jsonl"
    rows = [json.loads(line) for line in kept.open()] if kept.exists() else []
    done = {r["name"] for r in rows}
    for source in sorted(p for p in options.folder.iterdir() if p.is_dir()):
        if source.name in done or (options.only and not any(source.name.startswith(o) for o in options.only)):
            continue
        rows.append(row_of(source, options))
        with kept.open("a") as file:
            print(json.dumps(rows[-1]), file=file)
        (options.out / "table.md").write_text(table(rows))
        print(table(rows[-1:]).splitlines()[2], flush=True)
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
