"""The longer answers of ``fsr lookup``: --batch, --manifest, --explain and --unused."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fsr.backends.cuda.present import present
from fsr.builds.command import read_command
from fsr.builds.manifest import Line, write_manifest
from fsr.builds.queue import put as put_job
from fsr.builds.queue import queue_of
from fsr.builds.serving import Served, served, unfit
from fsr.builds.unused import told, unused
from fsr.cache.explain import Considered, considered, explain
from fsr.cache.layers import Found, Layers
from fsr.cache.lookup import write_files
from fsr.errors import EXIT_DONE, EXIT_FAILED, EXIT_MISS, EXIT_USAGE, FsrError, StorageError, UsageError
from fsr.given import as_key
from fsr.report.words import number_text


def answer(options: dict[str, Any], index: int, layers: Layers) -> int:
    """What --batch, --manifest, --explain or --unused asks for; the exit code. Raises FsrError."""
    if options["batch"]:
        return batch(options, index, layers)
    if options["manifest"]:
        return manifest(options, index, layers)
    if options["unused"]:
        found = list(unused(_kernels(options["kernels"]), [path for _, path in layers.databases]))
        if found or options["json"]:
            print(told(found, bool(options["json"])))
        return EXIT_FAILED if found else EXIT_DONE
    return explained(options, index, layers)


def batch(options: dict[str, Any], index: int, layers: Layers) -> int:
    """One JSON object a line for each kernel, in their order."""
    names = options["kernels"] or (line.strip() for line in sys.stdin)
    code = EXIT_DONE
    for name in filter(None, names):
        row = _answer_for(name, options, index, layers)
        print(json.dumps(row), flush=True)
        worst = {"error": EXIT_USAGE, "miss": EXIT_MISS}.get(row["status"], EXIT_DONE)
        code = EXIT_USAGE if EXIT_USAGE in (code, worst) else max(code, worst)
    return code


def _answer_for(name: str, options: dict[str, Any], index: int, layers: Layers) -> dict[str, Any]:
    try:
        given = as_key(name, options["include_dirs"], options["defines"])
        found = layers.find(name, entry=options["entry"], device=index, tier=options["tier"] or "exact", given=given)
        if found is None:
            if options["queue"]:
                queue(name, options)
            return {"kernel": name, "status": "miss"}
        folder = f"{options['o']}/{found.hit.key}" if options["o"] else found.place
        paths = write_files(found.hit, folder)
    except FsrError as fault:
        return {"kernel": name, "status": "error", "why": str(fault)}
    body = json.loads(found.hit.body)
    best = body["evidence"].get("best") or {}
    return {
        "kernel": name, "status": "hit", "tier": found.hit.tier, "key": found.hit.key, "entry": body["key"]["entry"],
        "speedup": best.get("speedup"), "files": paths,
    }  # fmt: skip


def queue(kernel: str, options: dict[str, Any]) -> None:
    """Leave a job for the daemon of the home that the options name. Raises StorageError when it cannot be written."""
    place = queue_of(options["home"])
    try:
        put_job(place, Path(kernel), options["include_dirs"], options["defines"])
    except (OSError, ValueError) as fault:
        raise StorageError(f"the job cannot be queued: {fault}", where=str(place)) from None


def manifest(options: dict[str, Any], index: int, layers: Layers) -> int:
    """Write the manifest; says on standard error what was left out and why."""
    hardware = layers.hardware(index)
    flags = options["compile"] or (f"-arch={hardware.arch}" if hardware else "")
    lines = []
    for kernel in _kernels(options["kernels"]):
        found = layers.find(str(kernel), device=index, given=None)
        if found is None:
            continue
        chosen = fitting(found, kernel, flags)
        if isinstance(chosen, str):
            print(f"fsr lookup: {kernel}: {chosen}; left out", file=sys.stderr)
            continue
        lines.append(Line.of(kernel, found, chosen))
    changed = write_manifest(Path(options["manifest"]), lines, flags)
    state = "written" if changed else "unchanged"
    print(f"fsr lookup: {options['manifest']} {state}: {number_text(len(lines), 'winner')}", file=sys.stderr)
    return EXIT_DONE


def fitting(found: Found, kernel: Path, flags: str) -> Served | str:
    """The winner for a build of this kernel with these compiler flags, or why not."""
    command = read_command(["nvcc", *shlex.split(flags), "-c", str(kernel)])
    if isinstance(command, str):
        return command
    return unfit(command, found.hit, kernel) or served(found.hit, kernel)


def _kernels(names: list[str]) -> Iterator[Path]:
    for name in names:
        path = Path(name)
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*.cu") if not p.name.endswith(".fsr.cu") and _is_file(p))
        elif path.is_file():
            yield path
        else:
            raise UsageError("the kernel file cannot be read: no such file", where=name, fix="check the path")


def _is_file(path: Path) -> bool:
    """Whether it is a file, or leads to one: a link to itself or to nothing is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def explained(options: dict[str, Any], index: int, layers: Layers) -> int:
    """Say for every layer which part of the key missed, and whether a build that keeps its launch may use the hit."""
    kernel = Path(options["kernels"][0])
    given = as_key(kernel, options["include_dirs"], options["defines"])
    rows = []
    device = layers.hardware(index) or index  # one layer may have seen what another has not
    for name, database in layers.databases:
        answer = considered(kernel, Path(database), device, given)
        if options["json"]:
            rows.append({"layer": name, "database": database, "winners": _rows(answer[1], kernel) if answer else []})
        else:
            print(f"{name} cache {database}")
            print("\n".join(f"  {line}" for line in explain(kernel, Path(database), device, given)))
    found = layers.find(str(kernel), device=index, given=given)
    chosen = None if found is None else served(found.hit, kernel)
    if options["json"]:
        why = chosen if isinstance(chosen, str) else None
        print(json.dumps({"kernel": str(kernel), "hit": found is not None, "layers": rows, "not_in_builds": why,
                          "gpu": present() is not None}))  # fmt: skip
    elif isinstance(chosen, str):
        print(f"in a build, the original stays: {chosen}")
    elif chosen is not None:
        print("in a build, it takes the original's place")
    return EXIT_DONE if found is not None else EXIT_MISS


def _rows(rows: list[Considered], kernel: Path) -> list[dict[str, Any]]:
    return [
        {"key": row.key, "entry": row.entry and row.entry.key.entry,
         "missed": [{"part": m.part, "stored": m.stored, "here": m.here, "told": m.told} for m in row.missed]}
        for row in rows
    ]  # fmt: skip
