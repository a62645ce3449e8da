"""Nsight Compute over one run of a plan, in a process of its own, and its table as counters."""

from __future__ import annotations

import contextlib
import csv
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from fsr.backends.backend import Counted
from fsr.backends.cuda.watching import find_tool, watch_replay
from fsr.backends.protocol import Buffer
from fsr.features.schema import DEFINITIONS, LEAST, SUM, Counters
from fsr.records import ConcreteLaunch, Image

TIMEOUT_S = 18.0
METRICS: dict[str, list[str]] = {d.name: d.metric.split(" or ") for d in DEFINITIONS if d.metric}
_REFUSED = re.compile(r".*(?:ERR_NVGPUCTRPERM|does not have permission|LibraryNotLoaded|not supported on).*")
_ERROR = re.compile(r"==ERROR== .*")
_UNKNOWN = re.compile(r"(?:Failed to find metric|metrics? (?:was|were) not found:?)\s+([\w.]+)")
_OVER: dict[str, Callable[[list[float]], float]] = {SUM: sum, LEAST: min}

_not_here: set[str] = set()  # metrics that this process's GPU does not have


def read_counters(
    image: Image, launches: Sequence[ConcreteLaunch], buffers: Sequence[Buffer], index: int = 0
) -> Counted:
    """Run the plan once under ncu on GPU ``index``, on cold caches and at whatever clocks the GPU has. Metrics that a
    GPU does not know are left out; without ncu, or where counters may not be read, a note says so."""
    program = find_tool("ncu", "nsight-compute")
    if program is None:
        return Counted(note="ncu is not installed (it comes with the CUDA toolkit)", never=True)
    from fsr.backends.cuda.replay import write_replay

    with tempfile.TemporaryDirectory(prefix="fsr-counters-") as name:
        write_replay(Path(name), image, launches, buffers)
        counted, unknown = _count(program, Path(name), index)
        if unknown - _not_here:
            _not_here.update(unknown)
            counted, _ = _count(program, Path(name), index)
    return counted


def _count(program: str, folder: Path, index: int) -> tuple[Counted, set[str]]:
    wanted = [metric for names in METRICS.values() for metric in names if metric not in _not_here]
    command = [
        program, "--csv", "--page=raw", "--print-units=base", "--clock-control=none", "--cache-control=all",
        f"--metrics={','.join(wanted)}",
    ]  # fmt: skip
    watched = watch_replay(command, folder, index, TIMEOUT_S)
    if watched.code is None:
        return Counted(note=f"ncu did not end within {TIMEOUT_S:g} s"), set()
    return read_report(watched.output), set(_UNKNOWN.findall(watched.output))


def read_report(output: str) -> Counted:
    """ncu's table, which follows whatever else was printed."""
    lines = output.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    rows = [] if begin is None else [_values(row) for row in csv.DictReader(lines[begin:]) if row.get("ID")]
    known = [row for row in rows if row]
    if known:
        return Counted(over_launches(known))
    refused = _REFUSED.search(output)
    said = refused or _ERROR.search(output)
    why = said[0] if said else " / ".join(lines[-3:])
    return Counted(note=f"ncu read no counters: {why.strip()[:300]}", never=bool(refused))


def _values(row: Mapping[str, str]) -> dict[str, float]:
    """Counters of one launch by field; what is no number ('n/a') is left out."""
    found: dict[str, float] = {}
    for name, metrics in METRICS.items():
        for metric in metrics:
            with contextlib.suppress(ValueError):
                found.setdefault(name, float((row.get(metric) or "").replace(",", "")))
    return found


def over_launches(rows: Iterable[Mapping[str, float]]) -> Counters:
    """One record for a plan: its definition says how each field is taken over the launches (at least one)."""
    rows = list(rows)
    longest = max(rows, key=lambda row: row.get("cycles", 0.0))
    values: dict[str, float | None] = {}
    for told in (d for d in DEFINITIONS if d.metric):
        present = [row[told.name] for row in rows if told.name in row]
        values[told.name] = _OVER[told.over](present) if present and told.over in _OVER else longest.get(told.name)
    return Counters(**values)
