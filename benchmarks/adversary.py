"""Composed candidates against the checker: how many wrong ones it takes, how many right ones it refuses.

    python benchmarks/adversary.py OUT.jsonl [--wrong 5000] [--right 2000] [--seed 0] [--workers N] [--seconds S]
                                   [--kernels FOLDER ...] [--device host|cuda:N]

Originals: the examples, the honest candidates of the corpus, and every kernel with a contract in the folders, in an
order drawn by the seed, right and wrong ones of each mixed, so that a sweep that is cut off is still a fair sample. A
candidate that was judged before, but for blanks, is not judged again. Each is judged by the tasks of ``fsr check`` on
the device, in workers where that is a GPU, which several share here since nothing is timed. A wrong one that is taken
counts only where a witness proves it wrong: a case that its trigger names, on which its outputs are beyond what the
tests allow ('unproven' otherwise: mostly triggers that nothing fires). One line a candidate; a sweep goes on where OUT
ends, and prints the counts so far. Exit code 1 where anything is misjudged.
"""

from __future__ import annotations

import argparse
import atexit
import collections
import contextlib
import functools
import itertools
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.composing import Composed, wrong  # noqa: E402  # the checkout, installed or not
from benchmarks.kernels.sources import Subject, of_folder, of_repository  # noqa: E402
from benchmarks.rewriting import reshaped  # noqa: E402
from benchmarks.spreading import Record, Spread, read  # noqa: E402
from fsr.app.checking import Asked, judged_by  # noqa: E402
from fsr.backends.protocol import DeviceFault  # noqa: E402
from fsr.backends.select import recording_backend  # noqa: E402
from fsr.errors import FsrError  # noqa: E402
from fsr.evaluation.jobs import compile_task, evaluate_task  # noqa: E402
from fsr.evaluation.promotion import promote_task  # noqa: E402
from fsr.evaluation.session import Session, session_of  # noqa: E402
from fsr.evaluation.spec import CompileRequest, EvaluateRequest, PromoteRequest, PromotionPart, SessionSpec  # noqa: E402
from fsr.evaluation.testing import Runnable, run_once  # noqa: E402
from fsr.identity import digest  # noqa: E402
from fsr.records import Case, FaultKind, Image, Outcome, Status  # noqa: E402
from fsr.runs.fleet import Fleet, open_fleet  # noqa: E402
from fsr.runs.options import RefineOptions  # noqa: E402
from fsr.testgen.cases import HOST_ELEMENTS, cases_at, families_of  # noqa: E402
from fsr.testgen.compare import compare  # noqa: E402
from fsr.testgen.fitting import elements  # noqa: E402
from fsr.testgen.values import build  # noqa: E402

BUDGET_S = 300.0  # as fsr check's
WITNESSES = 10
WITNESS_ELEMENTS = 1 << 21
TOGETHER = {"wrong": 10, "right": 4}  # candidates of one original in a row: its session is opened once for them
JUDGED = ("taken", "refused")


def judged(spec: SessionSpec, composed: Composed) -> tuple[bool, str]:
    """Whether a candidate passes all tests, as ``fsr check`` runs them; and where it failed."""
    return judged_here(spec, composed) if spec.backend.records else judged_by_workers(spec, composed)


def judged_by_workers(spec: SessionSpec, composed: Composed) -> tuple[bool, str]:
    """The same in processes that a crash may end."""
    outcome = judged_by(fleet(spec.device).workers, spec, composed.candidate, BUDGET_S, Asked(timed=False))
    return outcome.status >= Status.SLOW, told(outcome)


@functools.cache
def fleet(device: str) -> Fleet:
    """The workers on a device, until this process ends."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(open_fleet(RefineOptions(Path(), device), 1, single=True))


def judged_here(spec: SessionSpec, composed: Composed) -> tuple[bool, str]:
    """The same in this process."""
    built = compile_task(CompileRequest(spec, composed.candidate))
    if isinstance(built, Outcome):
        return False, told(built)
    try:
        outcome = evaluate_task(EvaluateRequest(spec, composed.candidate, built))
        if outcome.status >= Status.CORRECT:
            final = PromoteRequest(spec, composed.candidate, built, BUDGET_S, PromotionPart.TESTS, own_tested=True)
            outcome = promote_task(final)
    except DeviceFault as fault:
        return False, f"{fault.fault.kind}: {fault.fault.detail}"
    return outcome.status >= Status.SLOW, told(outcome)


@functools.cache
def judged_itself(spec: SessionSpec) -> bool:
    """Whether the original compiles as a candidate of its own: it may lack what its build would have given it."""
    return not isinstance(compile_task(CompileRequest(spec, spec.baseline)), Outcome)


def told(outcome: Outcome) -> str:
    """The stage, and the failure in a line."""
    kept = ("case", "sizes", "family", "kind", "detail", "argument", "log")
    words = " ".join(f"{k}={outcome.evidence[k]}" for k in kept if outcome.evidence.get(k))
    return f"{outcome.stage} {words[:400]}".strip()


def witness(session: Session, composed: Composed) -> str:
    """A case on which the candidate is wrong beyond what is allowed; '' where none was found."""
    image = recording_backend().toolchain(session.spec.target).compile(composed.candidate)
    if not isinstance(image, Image):
        return ""
    for case in _triggering(session, composed):
        if not session.original.counts(case) or elements(session.contract, case.size_map()) > WITNESS_ELEMENTS:
            continue
        data = build(session.contract, case, 1)
        try:
            expected = session.original.expected(case)
        except FsrError:  # too large for the original, here and now
            continue
        try:
            got = run_once(
                Runnable(session.host(), image, composed.candidate.plan, session.contract), case, data, 1, 20.0
            )
        except DeviceFault as fault:
            if fault.fault.kind in (FaultKind.HANG, FaultKind.MEMORY):  # so it may be with a right one
                continue
            return f"{case.size_map()} {case.family}: {fault.fault.kind}"
        found = compare(session.contract, case, got, expected, data.arrays)
        if found:
            return f"{case.size_map()} {case.family}: {found[0]}"
    return ""


def _triggering(session: Session, composed: Composed) -> list[Case]:
    contract, given = session.contract, dict(composed.sizes)
    families = ["normal", "uniform", *([composed.family] if composed.family else []), *families_of(contract)]
    wanted = [(given, family) for family in families[:WITNESSES]]
    large = [({s.name: min(s.maximum, 70_000)}, "normal") for s in contract.sizes if s.name not in given]
    found = cases_at(contract, "witness", 11, [*wanted, *large], HOST_ELEMENTS)
    return found + cases_at(contract, "large witness", 11, [(given, "normal"), *large], WITNESS_ELEMENTS)


# ---------------------------------------------------------------- the sweep


@dataclass(frozen=True, slots=True)
class Unit:
    """Candidates of one original: ``numbers`` of each kind, less those that are ``known`` (kind and number, or the
    digest of a candidate)."""

    original: str
    folders: tuple[Path, ...]
    numbers: tuple[tuple[str, int], ...]
    seed: int
    device: str
    known: frozenset[Any]


def unit_records(unit: Unit, until: float) -> Iterator[Record]:
    """The record of each candidate of a unit: 'taken', 'refused', 'unproven', 'not judged', or 'again'."""
    subject = next(s for s in originals(unit.folders) if s.name == unit.original)
    seen = set(unit.known)
    for kind, number in unit.numbers:
        if time.monotonic() > until:
            return
        chance = random.Random(f"{unit.seed}/{kind}/{unit.original}/{number}")
        composed = wrong(subject.candidate, subject.contract, chance) if kind == "wrong" else reshaped(subject, chance)
        name = "" if composed is None else digest([*composed.candidate.source.split(), str(composed.candidate.plan)])
        record = {"kind": kind, "number": number, "original": unit.original, "digest": name}
        if composed is None or name in seen:
            yield record | {"verdict": "again"}
            continue
        seen.add(name)
        started = time.monotonic()
        found = one(subject, composed, kind, unit)
        yield record | found | {"seconds": round(time.monotonic() - started, 2)}


def one(subject: Subject, composed: Composed, kind: str, unit: Unit) -> Record:
    """What became of one candidate."""
    host = SessionSpec(subject.contract, subject.candidate, "host", "sm_90", unit.seed, subject.folder)
    spec = host
    if unit.device != host.device:
        spec = replace(host, device=unit.device, target=fleet(unit.device).target, leased=True)
    record: Record = {"parts": composed.parts}
    try:
        passed, why = judged(spec, composed)
        if why.startswith("compile ") and not judged_itself(spec):
            return record | {"verdict": "not judged", "why": f"the original: {why}"}
        seen = witness(session_of(host), composed) if kind == "wrong" and passed else ""
    except (FsrError, DeviceFault) as fault:
        return record | {"verdict": "not judged", "why": str(fault)[:300]}
    if kind == "wrong" and ((passed and not seen) or why.startswith("compile ")):
        return record | {"verdict": "unproven", "why": why}
    record |= {"verdict": "taken" if passed else "refused", "why": why, "witness": seen}
    misjudged = passed == (kind == "wrong")
    plan = {"source": composed.candidate.source, "plan": str(composed.candidate.plan)}
    return record | (plan if misjudged else {})


@functools.cache
def originals(folders: tuple[Path, ...]) -> list[Subject]:
    """The examples, the honest candidates, and what the folders hold."""
    found = [*of_repository(), *(s for folder in folders for s in of_folder(folder))]
    return [s for s in found if len(s.candidate.source) < 8000]


class Sweep:
    """Which units are still to be judged, and the counts so far. ``wanted``: candidates of each kind."""

    def __init__(self, given: argparse.Namespace, records: list[Record]) -> None:
        self.given, self.wanted = given, {"wrong": given.wrong, "right": given.right}
        self.folders = tuple(given.kernels)
        self.counts: collections.Counter[tuple[str, str]] = collections.Counter()
        self.known: collections.defaultdict[str, set[Any]] = collections.defaultdict(set)
        self.unfit: collections.Counter[str] = collections.Counter()  # originals that cannot be judged here
        self.records: list[Record] = []
        for record in records:
            self.told(record)
        self.ahead = self._units()

    def told(self, record: Record) -> None:
        """Count a record."""
        self.records.append(record)
        self.counts[record["kind"], record["verdict"]] += 1
        self.known[record["original"]] |= {(record["kind"], record["number"]), record["digest"]}
        self.unfit[record["original"]] += record["verdict"] == "not judged"

    def missing(self, kind: str) -> bool:
        """Whether more of a kind are wanted."""
        return sum(self.counts[kind, verdict] for verdict in JUDGED) < self.wanted[kind]

    def next_unit(self) -> Unit | None:
        """The next unit; None where all is done."""
        for name, turn in self.ahead:
            if not any(map(self.missing, self.wanted)):
                return None
            kinds = [k for k in self.wanted if self.missing(k)]
            numbers = [(k, turn * TOGETHER[k] + i) for k in kinds for i in range(TOGETHER[k])]
            random.Random(f"{self.given.seed}/{turn}/{name}").shuffle(numbers)
            known = self.known[name]
            left = tuple(n for n in numbers if n not in known)
            if left and self.unfit[name] < 3:
                return Unit(name, self.folders, left, self.given.seed, self.given.device, frozenset(known))
        return None

    def _units(self) -> Iterator[tuple[str, int]]:
        names = [s.name for s in originals(self.folders)]
        for turn in itertools.count():
            random.Random(f"{self.given.seed}/{turn}").shuffle(names)
            yield from ((name, turn) for name in names)


def summary(records: list[Record]) -> str:
    """How many of each kind and verdict, and what a candidate took."""
    counts = collections.Counter(f"{r['kind']} {r['verdict']}" for r in records)
    judged_ = [r for r in records if r["verdict"] in JUDGED]
    lines = [f"{len({r['original'] for r in judged_})} originals; {dict(sorted(counts.items()))}"]
    for kind, bad in (("wrong", "taken"), ("right", "refused")):
        mine = [r for r in judged_ if r["kind"] == kind]
        share = sum(r["verdict"] == bad for r in mine) / max(len(mine), 1)
        mean_s = sum(r["seconds"] for r in mine) / max(len(mine), 1)
        lines.append(f"{kind}: {len(mine)} judged, {bad} {100 * share:.2f} %, {mean_s:.1f} s each")
    return "\n".join(lines)


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--wrong", type=int, default=5000)
    parser.add_argument("--right", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--kernels", type=Path, nargs="*", default=[])
    parser.add_argument("--device", default="host", help="where candidates are judged: host or cuda:N")
    given = parser.parse_args()
    sweep = Sweep(given, read(given.out))
    Spread(unit_records, sweep.next_unit, sweep.told, given.out, given.workers, given.seconds).run()
    print(summary(sweep.records))
    return int(bool(sweep.counts["wrong", "taken"] or sweep.counts["right", "refused"]))


if __name__ == "__main__":
    sys.exit(main())
