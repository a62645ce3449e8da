"""The mutation score: how many faults planted in right kernels the tests find.

    python benchmarks/mutations.py OUT.jsonl [--kernels FOLDER ...] [--only] [--mutants N] [--seed 0] [--seconds S]

Plants up to N faults (default: all) in each example and each honest candidate of the corpus, and in every kernel with a
contract in the folders (``--only``: in those alone), on the host device. One line a mutant; a run goes on where OUT
ends. Prints the score a kernel and in all, survivors, and how many are equivalent as far as seen; OUT names each.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.kernels.sources import Subject, of_folder, of_repository  # noqa: E402  # the checkout, installed or not
from fsr.backends.protocol import DeviceFault  # noqa: E402
from fsr.errors import FsrError  # noqa: E402
from fsr.evaluation.mutation import TESTED, Bench  # noqa: E402
from fsr.evaluation.session import Session  # noqa: E402
from fsr.evaluation.spec import SessionSpec  # noqa: E402
from fsr.mutation.mutants import mutants, sampled  # noqa: E402


def measure(subject: Subject, given: argparse.Namespace, done: set[str], until: float, stream: Any) -> None:
    """Judge the mutants of one kernel that are not yet done, a compilation at a time."""
    chosen = sampled(mutants(subject.candidate), given.mutants, given.seed)
    left = [(n, m) for n, m in enumerate(chosen) if f"{subject.name} {n}" not in done]
    if not left or time.monotonic() > until:
        return
    session = Session(SessionSpec(subject.contract, subject.candidate, "host", "sm_90", given.seed, subject.folder))
    bench = Bench(session, subject.candidate)
    try:
        while left and time.monotonic() < until:
            part, left = left[:TESTED], left[TESTED:]
            numbers = {id(mutant): number for number, mutant in part}
            for fate in bench.fates([mutant for _, mutant in part]):
                record = {"kernel": subject.name, "number": numbers[id(fate.mutant)]}
                stream.write(json.dumps(record | fate.to_json(subject.candidate)) + "\n")
                stream.flush()
    finally:
        session.close()


def summary(records: list[dict[str, Any]]) -> str:
    """The score a kernel and in all; survivors by name."""
    lines = []
    kernels = list(dict.fromkeys(r["kernel"] for r in records))
    for name in [*kernels, "all"]:
        kinds = collections.Counter(r["kind"] for r in records if name in (r["kernel"], "all"))
        judged = kinds["killed"] + kinds["survived"]
        lines.append(f"{name:<32} {100 * kinds['killed'] / max(judged, 1):6.2f} %  {dict(sorted(kinds.items()))}")
    survivors = [f"survived {r['kernel']} {r['name']}: {r['why']}" for r in records if r["kind"] == "survived"]
    return "\n".join([*survivors, *lines, f"{len({r['operator'] for r in records})} operators"])


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--kernels", type=Path, nargs="*", default=[])
    parser.add_argument("--only", action="store_true")
    parser.add_argument("--mutants", type=int, default=10**6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9)
    given = parser.parse_args()
    until = time.monotonic() + given.seconds
    subjects = [] if given.only else of_repository()
    subjects += [s for folder in given.kernels for s in of_folder(folder)]
    known = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    done = {f"{r['kernel']} {r['number']}" for r in known}
    with given.out.open("a") as stream:
        for subject in subjects:
            try:
                measure(subject, given, done, until, stream)
            except (FsrError, DeviceFault) as fault:
                print(f"left out: {subject.name}: {str(fault).splitlines()[0]}", file=sys.stderr)
    print(summary([json.loads(line) for line in given.out.read_text().splitlines()]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
