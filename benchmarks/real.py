"""Kernels that other people wrote: what a run makes of each, and whether it finds what an expert would do.

    python benchmarks/real.py FOLDER OUT [--device host] [--budget 60s] [--only NAME ...] [--tree TREE]
        [--about FILE]

FOLDER holds a folder a kernel: its files, and its contract in NAME.fsr.toml or in the kernel's own file. Each kernel
is copied to OUT, what its build would have given it is put there (a macro, a header), ``fsr refine`` runs on it, one
kernel at a time, and it is lifted. OUT/rows.jsonl gets a line a kernel; kernels that have one are left out, so that a
sweep that was cut off goes on; OUT/table.md is the table of all of them. ``--tree``: another checkout whose fsr is to
run.

What is known of the kernels stands in FOLDER/about.json, or where ``--about`` says (see About). The expert's move is
*offered* when a move that it stands for was among those that the search could make on the original
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class About:
    """What is known of kernels, by folder; kept beside them. expert: what an expert would do first, as a pattern of
    moves that do it. edits: text to replace in a file: what a kernel's own build gives it, or its contract leaves out.
    headers: files that its folder lacks."""

    expert: Mapping[str, str]
    edits: Mapping[str, Sequence[tuple[str, str, str]]]
    headers: Mapping[str, Mapping[str, str]]

    @staticmethod
    def read(path: Path) -> About:
        """From JSON with these names; nothing is known where the file is not there."""
        found = json.loads(path.read_text()) if path.is_file() else {}
        return About(*(found.get(name, {}) for name in ("expert", "edits", "headers")))

    def is_expert(self, name: str, moves: Iterable[str]) -> bool | None:
        """Whether one of the moves is the expert's; None where an expert has none."""
        pattern = self.expert.get(name)
        return None if pattern is None else any(re.search(pattern, move) for move in moves)


def prepared(source: Path, target: Path, about: About) -> Path | None:
    """A copy of a kernel's folder, ready to run; its file with a kernel, or None where there is no contract."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    for path in target.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for name, old, new in about.edits.get(source.name, ()):
        path = target / name
        path.write_text(path.read_text().replace(old, new))
    for name, text in about.headers.get(source.name, {}).items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text)
    for contract in target.glob("*.fsr.toml"):
        stem = contract.name.removesuffix(".fsr.toml")
        return next((p for s in (".cu", ".cuh") if (p := target / f"{stem}{s}").is_file()), None)
    return next((p for p in sorted(target.glob("*.cu")) if "/// fsr" in p.read_text(errors="replace")), None)


def _environment(tree: Path, home: Path) -> dict[str, str]:
    """The tree's fsr before any other, that of the folder this is called from too, and the packages that are found by
    path today."""
    paths = os.pathsep.join(filter(None, [str(tree.resolve()), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": paths, "PYTHONSAFEPATH": "1", "FSR_HOME": str(home)}


def refined(kernel: Path, options: argparse.Namespace, home: Path) -> dict[str, Any]:
    """What ``fsr refine`` says, and what it tried."""
    command = [sys.executable, "-m", "fsr", "refine", str(kernel), "--device", options.device, "--budget",
               options.budget, "--json", "--no-cache"]  # fmt: skip
    environment = _environment(options.tree, home)
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
    environment = _environment(options.tree, home)
    ran = subprocess.run([sys.executable, "-c", OFFERED, str(kernel)], env=environment, capture_output=True, text=True)
    try:
        found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return {"lifted": False, "why": ran.stderr[-300:], "lines": [], "moves": []}
    return found


def row_of(source: Path, options: argparse.Namespace, about: About) -> dict[str, Any]:
    """All that is told of one kernel."""
    kernel = prepared(source, options.out / "kernels" / source.name, about)
    row: dict[str, Any] = {"name": source.name, "load": os.getloadavg()[0], "device": options.device}
    if kernel is None:
        return {**row, "status": "no contract"}
    home = options.out / "home"
    run, lifting = refined(kernel, options, home), offered(kernel, options, home)
    row |= run | {"lifted": lifting["lifted"], "computes": lifting["lines"], "not_lifted": lifting["why"],
                  "faults": lifting.get("faults", []), "moves": len(lifting["moves"])}  # fmt: skip
    row["expert_offered"] = about.is_expert(source.name, [*lifting["moves"], *run.get("asked", [])])
    row["expert_in_winner"] = about.is_expert(source.name, run.get("by", []))
    return row


_ASKED = {"expert's move offered": 0.8, "in the winner": 0.6, "improved": 0.7}


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as Markdown, and the shares."""
    told = {True: "yes", False: "no", None: "-"}
    heads = ("kernel", "status", "speed-up", "tried", "lifted", "expert's move offered", "in the winner",
             "winner's moves", "load")  # fmt: skip
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for r in sorted(rows, key=lambda r: str(r["name"])):
        speedup = f"{r['speedup']:.3g}" if r.get("speedup") else ""
        lifted = told[bool(r.get("lifted"))] + (f": {r['not_lifted'][:60]}" if r.get("not_lifted") else "")
        by = ", ".join(r.get("by") or ())[:90] or str(r.get("why") or "")[:90].replace("\n", " ")
        lines.append(
            f"| {r['name']} | {r['status']} | {speedup} | {r.get('evaluated', '')} | {lifted} | "
            f"{told[r.get('expert_offered')]} | {told[r.get('expert_in_winner')]} | {by} | {r['load']:.1f} |"
        )
    return "\n".join([*lines, "", *shares(rows)]) + "\n"


def shares(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """How many of the kernels where an expert has a move it is offered for, applied to, and that were improved; and of
    all that ran how many are lifted and improved."""
    run = [r for r in rows if r["status"] != "no contract"]
    expert = [r for r in run if r.get("expert_offered") is not None]
    counts = {
        "expert's move offered": sum(bool(r["expert_offered"]) for r in expert),
        "in the winner": sum(bool(r["expert_in_winner"]) for r in expert),
        "improved": sum(r["status"] == "improved" for r in expert),
    }
    lines = [f"Of {len(expert)} kernels where an expert has a move:"] if expert else []
    for what, n in counts.items() if expert else ():
        lines.append(f"- {what}: {n}, {n / len(expert):.0%} (asked: {_ASKED[what]:.0%})")
    lifted, improved = sum(bool(r.get("lifted")) for r in run), sum(r["status"] == "improved" for r in run)
    return [*lines, f"Of all {len(run)}: lifted {lifted}, improved {improved}."]


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="host")
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--tree", type=Path, default=ROOT)
    parser.add_argument("--about", type=Path)
    options = parser.parse_args()
    about = About.read(options.about or options.folder / "about.json")
    options.out.mkdir(parents=True, exist_ok=True)
    kept = options.out / "rows.jsonl"
    rows = [json.loads(line) for line in kept.open()] if kept.exists() else []
    done = {r["name"] for r in rows}
    for source in sorted(p for p in options.folder.iterdir() if p.is_dir()):
        if source.name in done or (options.only and not any(source.name.startswith(o) for o in options.only)):
            continue
        rows.append(row_of(source, options, about))
        with kept.open("a") as file:
            print(json.dumps(rows[-1]), file=file)
        (options.out / "table.md").write_text(table(rows))
        print(table(rows[-1:]).splitlines()[2], flush=True)
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
