"""A benchmark: every workload refined, then timed beside its peers, each recorded as soon as it is done."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fsr.backends.select import backend_named, parse_device, resolve_device
from fsr.bench.plots import draw
from fsr.bench.refining import Refine, Refining, refine
from fsr.bench.results import FILE, WINNER, Record, append, read
from fsr.bench.rounds import PEERS, Arena, Comparison, Opener
from fsr.bench.sides import ProcessSide, SideFailureError
from fsr.bench.suite import Suite, Workload
from fsr.bench.table import table
from fsr.errors import FsrError, MissingToolError, UsageError
from fsr.expressions import evaluate
from fsr.records import Basis
from fsr.runs.kernel import load_kernel

TABLE = "table.md"
Say = Callable[[str, str], None]  # (a line to keep or '', what is done now)


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """device, target, seed, budget_s: as of a refinement, for each workload. peers: of PEERS. out: the folder of all
    that is written. again: workloads that have a record are done anew. retime: those, and no others, are timed anew
    with the winners that were found. quick: the suite's own short selection. part: (i, n) for every n-th of
    the chosen ones, beginning with the i-th (from 1)."""

    out: Path
    device: str = "auto"
    target: str = "sm_90"
    budget_s: float = 60.0
    seed: int = 0
    peers: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    quick: bool = False
    again: bool = False
    retime: bool = False
    part: tuple[int, int] = (1, 1)

    def __post_init__(self) -> None:
        for peer in self.peers:
            if peer not in PEERS:
                raise UsageError(f"unknown peer {peer!r}", expected=f"of {', '.join(PEERS)}", where="--peers")


@dataclass
class Bench:
    """One pass over a suite. ``refine`` and ``opener`` stand in for processes and devices in tests."""

    suite: Suite
    options: BenchOptions
    say: Say = field(default=lambda kept, now: None)
    refine: Refine = field(default=refine)
    opener: Opener = field(default=ProcessSide)

    def run(self) -> dict[str, Record]:
        """Do the chosen workloads that have no record yet (or as ``again`` and ``retime`` say), and write the table and
        plots of all records in the folder. Returns those of the chosen ones. Raises FsrError for options that cannot
        be; what fails on the way is told in the records."""
        options = self.options
        device = str(resolve_device(parse_device(options.device)))
        chosen = self.suite.chosen(options.only, quick=options.quick)[options.part[0] - 1 :: options.part[1]]
        for name in ("winners", "logs", "home", "exchange"):
            (options.out / name).mkdir(parents=True, exist_ok=True)
        done = read([options.out]) if (options.out / FILE).exists() else {}
        waiting = [w for w in chosen if options.again or (w.name in done) == options.retime]
        if kept := len(chosen) - len(waiting):
            which = "no record to time anew" if options.retime else "a record; --again does them anew"
            self.say(f"{kept} have {which}, in {options.out}", "")
        if options.peers and backend_named(device).basis is not Basis.MEASURED:
            self.say(f"peers are left out: {', '.join(options.peers)} need a GPU, and times here are predicted", "")
        for number, workload in enumerate(waiting, 1):
            head = f"{number}/{len(waiting)} {workload.name}"
            told = done[workload.name].refine if options.retime else self._refined(workload, device, head)
            record = self._record(workload, told, head, device)
            append(options.out, record)
            self.say(f"{head}: {_told(record)}", "")
            written(read([options.out]), options.out)
        found = read([options.out]) if (options.out / FILE).exists() else {}
        return {w.name: found[w.name] for w in chosen if w.name in found}

    def _refined(self, workload: Workload, device: str, head: str) -> Mapping[str, Any]:
        options = self.options
        self.say("", f"{head}: refining for {options.budget_s:g} s")
        asked = Refining(
            device, options.target, options.budget_s, options.seed, options.out / "home", options.out / "winners"
        )
        return self.refine(asked, workload.kernel, options.out / "logs" / f"{workload.name}.log")

    def _record(self, workload: Workload, told: Mapping[str, Any], head: str, device: str) -> Record:
        options, basis = self.options, backend_named(device).basis
        record = Record(
            workload.name, workload.family, str(told["status"]), basis.value, options.budget_s, refine=_brief(told),
            device=told.get("device") or {}, least=workload.least,
        )  # fmt: skip
        if record.status not in ("improved", "unchanged"):
            record = replace(record, status="failed", detail=str(told.get("detail") or told.get("error") or told))
        try:
            if basis is Basis.MEASURED:
                winner = {WINNER: Path(told["output"])} if told.get("output") else {}
                return _with(record, workload, self._arena(device, head).compare(workload, winner))
            return _predicted(workload, record, told)
        except (FsrError, SideFailureError) as fault:
            detail = fault.what if isinstance(fault, FsrError) else str(fault)
            return replace(record, status="failed", detail="; ".join(filter(None, [record.detail, detail])))

    def _arena(self, device: str, head: str) -> Arena:
        options = self.options
        return Arena(
            device, options.out / "exchange", options.out / "logs", options.peers, options.seed,
            tuning_s=options.budget_s, opener=self.opener, tell=lambda now: self.say("", f"{head}: {now}"),
        )  # fmt: skip


def _with(record: Record, workload: Workload, compared: Comparison) -> Record:
    """The record with what was measured; an original that stays is its own winner."""
    facts, times = compared.facts, dict(compared.medians)
    status, detail = record.status, record.detail
    if WINNER in compared.failures:
        status, detail = "failed", compared.failures[WINNER]
    elif status == "unchanged":
        times[WINNER] = times["naive"]
    return replace(
        record, status=status, detail=detail, device=facts["device"], sizes=facts["sizes"], times_ns=times,
        quartiles=compared.quartiles, failures=compared.failures, apart=compared.apart, rounds=compared.rounds,
        bytes=_evaluated(workload.bytes, facts["sizes"]) or facts["bytes"],
        flops=_evaluated(workload.flops, facts["sizes"]), copy_bytes_per_s=facts["copy_bytes_per_s"],
        flops_per_s=facts["flops_per_s"], versions=facts["versions"],
    )  # fmt: skip


def _predicted(workload: Workload, record: Record, told: Mapping[str, Any]) -> Record:
    """The record with the two predicted times; nothing else is known without a clock."""
    if record.status == "failed":
        return record
    sizes = load_kernel(workload.kernel).contract.timed_sizes()[0]
    naive = float(told["baseline"]["median_ns"])
    winner = float(told["best"]["median_ns"]) if told["best"] else naive
    return replace(
        record, sizes=sizes, times_ns={"naive": naive, WINNER: winner}, flops=_evaluated(workload.flops, sizes)
    )


def _evaluated(expression: str, sizes: Mapping[str, int]) -> float | None:
    return float(evaluate(expression, sizes)) if expression else None


def _brief(told: Mapping[str, Any]) -> dict[str, Any]:
    """Of what a refinement told, that which a reader of the record asks for."""
    keys = (
        "status",
        "baseline",
        "why",
        "detail",
        "evaluated",
        "seconds",
        "run",
        "candidates_per_second",
        "notes",
        "output",
    )
    best = told.get("best") or {}
    kept = {k: best[k] for k in ("speedup", "speedup_ci95", "median_ns", "actions") if k in best}
    return {k: told[k] for k in keys if k in told} | ({"best": kept} if kept else {})


def _told(record: Record) -> str:
    """A line on a record."""
    if record.status == "failed":
        return f"failed: {' '.join(record.detail.split())[:200]}"
    parts = [record.status, f"{record.speedup or 1.0:.2f}× over naive ({record.basis})"]
    if record.against_peer:
        parts.append(f"{record.against_peer:.2f}× over {record.best_peer}")
    return ", ".join([*parts, *(f"no {peer}" for peer in record.failures)])


def written(records: Mapping[str, Record], out: Path) -> str:
    """Write table.md of records, whole or not at all, and the plots where matplotlib is; a note where it is not."""
    draft = out / f".{TABLE}.{os.getpid()}"  # of several runs in one folder each has its own
    draft.write_text(table(records.values()))
    draft.replace(out / TABLE)
    try:
        draw(records.values(), out)
    except MissingToolError as missing:
        return f"no plots: {missing.what}"
    return ""


def tabled(folders: Sequence[Path], out: Path | None) -> str:
    """The table of several folders' records as one; with ``out`` it is written there, with the plots. Raises
    StorageError."""
    records = read(folders)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        written(records, out)
    return table(records.values())
