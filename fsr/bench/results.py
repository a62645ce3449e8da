"""What a benchmark found: one record a workload, a line of JSON each, appended as it goes.

Several runs may share a folder, at once too (a GPU each): a line is written in one piece, and of two records of one
workload the later counts.
"""

from __future__ import annotations

import fcntl
import json
import os
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from fsr.bench.kernels import NAIVE
from fsr.errors import StorageError
from fsr.identity import to_json

FILE = "results.jsonl"
WINNER = "winner"


@dataclass(frozen=True, slots=True)
class Record:
    """One workload. status: 'improved', 'unchanged' or 'failed'. basis: 'measured' or 'predicted'. times_ns: median
    time of every contender ('naive', 'winner', peers), in nanoseconds; quartiles: the middle half of its samples.
    failures: contender to why it has no time. bytes, flops: of one run; None where unknown. refine: what
    ``fsr refine --json`` told. detail: of a failure. least: of the best peer's
    speed, what the suite aims at."""

    workload: str
    family: str
    status: str
    basis: str
    budget_s: float
    device: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    times_ns: Mapping[str, float] = field(default_factory=dict)
    quartiles: Mapping[str, Any] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    apart: Mapping[str, Any] = field(default_factory=dict)
    rounds: int = 0
    bytes: float | None = None
    flops: float | None = None
    copy_bytes_per_s: float | None = None
    flops_per_s: float | None = None
    versions: Mapping[str, Any] = field(default_factory=dict)
    refine: Mapping[str, Any] = field(default_factory=dict)
    detail: str = ""
    least: float = 0.5

    @property
    def speedup(self) -> float | None:
        """Of the winner over the original; None where either has no time."""
        return _ratio(self.times_ns.get(NAIVE), self.times_ns.get(WINNER))

    @property
    def best_peer(self) -> str | None:
        """The fastest of the peers."""
        peers = {n: t for n, t in self.times_ns.items() if n not in (NAIVE, WINNER)}
        return min(peers, key=lambda n: peers[n]) if peers else None

    @property
    def against_peer(self) -> float | None:
        """How much faster the winner is than the fastest peer; None without one."""
        peer = self.best_peer
        return None if peer is None else _ratio(self.times_ns[peer], self.times_ns.get(WINNER))

    @property
    def copy_share(self) -> float | None:
        """Bytes that a run has to move over the winner's time, as a share of the copy rate."""
        return _share(self.bytes, self.times_ns.get(WINNER), self.copy_bytes_per_s)

    @property
    def peak_share(self) -> float | None:
        """Operations over the winner's time, as a share of the measured FP32 peak (over 1 with tensor cores)."""
        return _share(self.flops, self.times_ns.get(WINNER), self.flops_per_s)

    @property
    def memory_bound(self) -> bool | None:
        """Whether moving takes longer than computing at the two ceilings; None where it is not known."""
        if not self.bytes or not self.copy_bytes_per_s:
            return None
        computing_s = self.flops / self.flops_per_s if self.flops and self.flops_per_s else 0.0
        return self.bytes / self.copy_bytes_per_s >= computing_s

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Record:
        """The inverse of ``to_json``; fields of other versions are left out."""
        return cls(**{f.name: told[f.name] for f in fields(cls) if f.name in told})


def _ratio(a: float | None, b: float | None) -> float | None:
    return a / b if a and b else None


def _share(amount: float | None, time_ns: float | None, rate: float | None) -> float | None:
    return amount / (time_ns * 1e-9) / rate if amount and time_ns and rate else None


def append(folder: Path, record: Record) -> None:
    """Add a record to a folder's file. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    line = json.dumps(to_json(record)).encode() + b"\n"
    with (folder / FILE).open("ab+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if file.seek(0, os.SEEK_END):  # a run that was killed may have left half a line
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else b"\n" + line
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def read(folders: Iterable[Path]) -> dict[str, Record]:
    """The records of folders (or files) by workload, the later winning. A line that was cut off is passed over. Raises
    StorageError for a folder without any."""
    found: dict[str, Record] = {}
    for folder in folders:
        path = folder / FILE if folder.is_dir() else folder
        records = list(_records(path)) if path.exists() else []
        if not records:
            raise StorageError(
                "there are no results", expected=f"a folder with {FILE}", where=str(path), fix="fsr bench SUITE -o OUT"
            )
        found |= {record.workload: record for record in records}
    return found


def _records(path: Path) -> Iterator[Record]:
    for line in path.read_bytes().split(b"\n"):
        try:
            yield Record.from_json(json.loads(line))
        except (ValueError, TypeError):
            continue


def geometric_mean(values: Iterable[float]) -> float | None:
    """None of nothing."""
    found = list(values)
    return statistics.geometric_mean(found) if found else None
