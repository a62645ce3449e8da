"""The mutation score: how many faults planted in right kernels the tests find.

    python benchmarks/mutations.py OUT.jsonl [--kernels FOLDER ...] [--only] [--mutants N] [--seed 0] [--workers N]
                                   [--seconds S]

Plants up to N faults (default: all) in each example and each honest candidate of the corpus, and in every kernel with a
contract in the folders (``--only``: in those alone), on the host device. Parts of all kernels are mixed by the seed, so
that a sweep that is cut off is still a fair sample. One line a mutant; a sweep goes on where OUT ends. Prints the score
a kernel and in all, survivors, and how many are equivalent as far as seen; OUT names each. Only parts that are done
count there: those that tests kill are known first, those that live last.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.kernels.sources import Subject, of_folder, of_repository  # noqa: E402  # the checkout, installed or not
from benchmarks.spreading import Record, Spread, read  # noqa: E402
from fsr.backends.protocol import DeviceFault  # noqa: E402
from fsr.errors import FsrError  # noqa: E402
from fsr.evaluation.mutation import UNTRIED, Bench  # noqa: E402
from fsr.evaluation.session import session_of  # noqa: E402
from fsr.evaluation.spec import SessionSpec  # noqa: E402
from fsr.mutation.mutants import mutants, sampled  # noqa: E402

PART = 12  # mutants of one kernel in one compilation


@dataclass(frozen=True, slots=True)
class Part:
    """Some mutants of a kernel, by their number among the ``most`` that the seed draws."""

    subject: Subject
    most: int
    seed: int
    numbers: tuple[int, ...]


def part_records(part: Part, until: float) -> Iterator[Record]:
    """What became of each mutant of a part; of none where the kernel cannot be tested here."""
    subject = part.subject
    if time.monotonic() > until:
        return
    chosen = sampled(mutants(subject.candidate), part.most, part.seed)
    numbers = {id(chosen[number]): number for number in part.numbers}
    spec = SessionSpec(subject.contract, subject.candidate, "host", "sm_90", part.seed, subject.folder)
    try:
        bench = Bench(session_of(spec), subject.candidate, until)
        for fate in bench.fates([chosen[number] for number in part.numbers]):
            if fate.kind != UNTRIED:
                record = {"kernel": subject.name, "number": numbers[id(fate.mutant)], "part": part.numbers[0]}
                yield record | {"size": len(part.numbers)} | fate.to_json(subject.candidate)
    except (FsrError, DeviceFault) as fault:
        print(f"left out: {subject.name}: {str(fault).splitlines()[0]}", file=sys.stderr)


def parts(subjects: list[Subject], given: argparse.Namespace, done: set[tuple[str, int]]) -> list[Part]:
    """What is left to do, in a random order."""
    found = []
    for subject in subjects:
        count = min(len(mutants(subject.candidate)), given.mutants)
        numbers = random.Random(f"{given.seed}/{subject.name}").sample(range(count), count)
        for at in range(0, count, PART):
            left = [n for n in numbers[at : at + PART] if (subject.name, n) not in done]
            if left:
                found.append(Part(subject, given.mutants, given.seed, tuple(left)))
    random.Random(given.seed).shuffle(found)
    return found


def whole(records: list[Record]) -> list[Record]:
    """The records of parts of which nothing is missing, each once."""
    records = list({(r["kernel"], r["number"]): r for r in records}.values())
    count = collections.Counter((r["kernel"], r["part"]) for r in records)
    return [r for r in records if count[r["kernel"], r["part"]] == r["size"]]


def summary(records: list[Record]) -> str:
    """The score a kernel and in all; survivors by name."""
    lines = []
    kernels = sorted({r["kernel"] for r in records})
    for name in [*kernels, "all"]:
        kinds = collections.Counter(r["kind"] for r in records if name in (r["kernel"], "all"))
        judged = kinds["killed"] + kinds["survived"]
        lines.append(f"{name:<32} {100 * kinds['killed'] / max(judged, 1):6.2f} %  {dict(sorted(kinds.items()))}")
    survivors = [f"survived {r['kernel']} {r['name']}: {r['why']}" for r in records if r["kind"] == "survived"]
    return "\n".join([*survivors, *lines, f"{len({r['operator'] for r in records})} operators, {len(records)} mutants"])


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--kernels", type=Path, nargs="*", default=[])
    parser.add_argument("--only", action="store_true")
    parser.add_argument("--mutants", type=int, default=10**6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    given = parser.parse_args()
    subjects = [] if given.only else of_repository()
    subjects += [s for folder in given.kernels for s in of_folder(folder)]
    records = whole(read(given.out))
    done = {(r["kernel"], r["number"]) for r in records}
    ahead = iter(parts(subjects, given, done))
    Spread(part_records, lambda: next(ahead, None), lambda r: None, given.out, given.workers, given.seconds).run()
    records = whole(read(given.out))
    print(summary(records))
    left = sum(len(p.numbers) for p in parts(subjects, given, {(r["kernel"], r["number"]) for r in records}))
    print(f"{left} mutants left to do")
    return 0


if __name__ == "__main__":
    sys.exit(main())
