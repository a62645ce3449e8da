"""Composed candidates against the checker: how many wrong ones it takes, how many right ones it refuses.

    python benchmarks/adversary.py OUT.jsonl [--wrong 5000] [--right 2000] [--seed 0] [--kernels FOLDER ...]

Originals: the examples, the honest candidates of the corpus, and every kernel with a contract in the folders. A wrong
candidate counts only where a witness proves it: a case that its trigger names, on which its outputs are beyond what
the tests allow. Each is judged by the tasks of ``fsr check`` on the host device. One line a candidate; a run goes on
where OUT ends (``--seconds`` ends one early), and prints the counts so far. Exit code 1 where anything is misjudged.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.composing import Composed, right, wrong  # noqa: E402  # the checkout, installed or not
from benchmarks.kernels.sources import Subject, of_folder, of_repository  # noqa: E402
from fsr.backends.protocol import DeviceFault  # noqa: E402
from fsr.backends.select import recording_backend  # noqa: E402
from fsr.errors import FsrError  # noqa: E402
from fsr.evaluation.jobs import compile_task, evaluate_task  # noqa: E402
from fsr.evaluation.promotion import promote_task  # noqa: E402
from fsr.evaluation.session import Session, session_of  # noqa: E402
from fsr.evaluation.spec import CompileRequest, EvaluateRequest, PromoteRequest, PromotionPart, SessionSpec  # noqa: E402
from fsr.evaluation.testing import Runnable, run_once  # noqa: E402
from fsr.records import Case, Image, Outcome, Status  # noqa: E402
from fsr.testgen.cases import HOST_ELEMENTS, cases_at, elements, families_of  # noqa: E402
from fsr.testgen.compare import compare  # noqa: E402
from fsr.testgen.values import build  # noqa: E402

WITNESSES = 10
WITNESS_ELEMENTS = 1 << 21
TOGETHER = 4  # candidates of one original in a row: its session is opened once for them


def judged(spec: SessionSpec, composed: Composed) -> tuple[bool, str]:
    """Whether a candidate passes all tests, as ``fsr check`` runs them; and where it failed."""
    built = compile_task(CompileRequest(spec, composed.candidate))
    if isinstance(built, Outcome):
        return False, told(built)
    try:
        outcome = evaluate_task(EvaluateRequest(spec, composed.candidate, built))
        if outcome.status >= Status.CORRECT:
            final = PromoteRequest(spec, composed.candidate, built, part=PromotionPart.TESTS, own_tested=True)
            outcome = promote_task(final)
    except DeviceFault as fault:
        return False, f"{fault.fault.kind}: {fault.fault.detail}"
    return outcome.status >= Status.SLOW, told(outcome)


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
        if not session.counts(case) or elements(session.contract, case.size_map()) > WITNESS_ELEMENTS:
            continue
        data = build(session.contract, case, 1)
        try:
            got = run_once(
                Runnable(session.host(), image, composed.candidate.plan, session.contract), case, data, 1, 20.0
            )
        except DeviceFault as fault:
            return f"{case.size_map()} {case.family}: {fault.fault.kind}"
        found = compare(session.contract, case, got, session.expected(case), data.arrays)
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


def attempts(subjects: list[Subject], seed: int, kind: str) -> Iterator[tuple[int, Subject, Composed]]:
    """Candidates without end, a few of each original in a row."""
    number = 0
    while True:
        subject = subjects[(number // TOGETHER) % len(subjects)]
        chance = random.Random(f"{seed}/{kind}/{number}")
        if kind == "wrong":
            composed = wrong(subject.candidate, subject.contract, chance)
        else:
            composed = right(subject.candidate, chance)
        if composed is not None:
            yield number, subject, composed
        number += 1


def one(subject: Subject, composed: Composed, kind: str, seed: int) -> dict[str, Any]:
    """The record of one candidate: 'taken', 'refused', or 'unproven' for a wrong one without witness."""
    spec = SessionSpec(subject.contract, subject.candidate, "host", "sm_90", seed, subject.folder)
    record: dict[str, Any] = {"kind": kind, "original": subject.name, "parts": composed.parts}
    try:
        seen = witness(session_of(spec), composed) if kind == "wrong" else ""
        if kind == "wrong" and not seen:
            return record | {"verdict": "unproven"}
        passed, why = judged(spec, composed)
    except (FsrError, DeviceFault) as fault:
        return record | {"verdict": "not judged", "why": str(fault)[:300]}
    record |= {"verdict": "taken" if passed else "refused", "why": why, "witness": seen}
    return record | ({"source": composed.candidate.source} if passed == (kind == "wrong") else {})


def originals(folders: list[Path]) -> list[Subject]:
    """The examples, the honest candidates, and what the folders hold."""
    found = [*of_repository(), *(s for folder in folders for s in of_folder(folder))]
    return [s for s in found if len(s.candidate.source) < 8000]


def counts(records: list[dict[str, Any]]) -> dict[str, int]:
    """How many of each kind and verdict."""
    return dict(sorted(collections.Counter(f"{r['kind']} {r['verdict']}" for r in records).items()))


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--wrong", type=int, default=5000)
    parser.add_argument("--right", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--kernels", type=Path, nargs="*", default=[])
    given = parser.parse_args()
    records = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    subjects, until = originals(given.kernels), time.monotonic() + given.seconds
    random.Random(given.seed).shuffle(subjects)
    with given.out.open("a") as stream:
        for kind, most in (("wrong", given.wrong), ("right", given.right)):
            last = max((r["number"] for r in records if r["kind"] == kind), default=-1)
            judged_ = sum(r["kind"] == kind and r["verdict"] in ("taken", "refused") for r in records)
            for number, subject, composed in attempts(subjects, given.seed, kind):
                if judged_ >= most or time.monotonic() > until:
                    break
                if number <= last:
                    continue
                record = one(subject, composed, kind, given.seed) | {"number": number}
                judged_ += record["verdict"] in ("taken", "refused")
                records.append(record)
                stream.write(json.dumps(record) + "\n")
                stream.flush()
            until += 0.4 * given.seconds if kind == "wrong" else 0.0
    found = counts(records)
    print(f"{len({r['original'] for r in records})} originals; {found}")
    return int(bool(found.get("wrong taken") or found.get("right refused")))


if __name__ == "__main__":
    sys.exit(main())
