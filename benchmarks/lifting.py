"""What can be lifted, and whether a wrong lifting is refused.

    python benchmarks/lifting.py sweep OUT.jsonl [--generated 66] [--seed 0] [--kernels FOLDER ...]
    python benchmarks/lifting.py mutants OUT.jsonl [--count 300] [--seed 0]

``sweep`` lifts the examples, generated kernels (benchmarks/kernels/) and every kernel with a contract in the folders
given, and tells for each what it computes or why that is not known. ``mutants`` plants one seeded fault in each lifting
of the examples, over and over, and counts those that the check against the original refuses; those that pass are shown,
and it ends with 1. (Equal in the contract's tolerance: a softmax less any large value, a sum that begins with a zero.)
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.kernels.sources import Subject, of_folder, of_repository  # noqa: E402
from benchmarks.kernels.writer import of_generator  # noqa: E402
from fsr.backends.host.compiler import HostToolchain  # noqa: E402
from fsr.backends.host.device import open_host_device  # noqa: E402
from fsr.computation.computation import Computation  # noqa: E402
from fsr.computation.expression import (  # noqa: E402
    Affine,
    Const,
    Expr,
    Fold,
    Load,
    Number,
    Op,
    children,
    rebuilt,
)  # fmt: skip
from fsr.computation.printing import lines  # noqa: E402
from fsr.lifting.check import Checker  # noqa: E402
from fsr.lifting.lift import lift  # noqa: E402
from fsr.records import Case, Image  # noqa: E402

_FAMILIES = ("normal", "uniform")  # of values, at which a fault must show
_SWAPS = {"sum": "prod", "prod": "sum", "max": "min", "min": "max", "gt": "ge", "div": "prod", "exp": "exp2",
          "sqrt": "rsqrt", "rsqrt": "sqrt"}  # fmt: skip


def sweep(subjects: list[Subject], out: Path) -> int:
    """Lift each; one line of JSON a kernel."""
    counts: Counter[str] = Counter()
    with out.open("w") as file:
        for subject in subjects:
            found = lift(subject.contract, subject.candidate)
            told = found.computation is not None
            counts["lifted" if told else "not"] += 1
            row = {"name": subject.name, "lifted": told, "why": found.why, "seconds": round(found.seconds, 2),
                   "lines": lines(found.computation) if found.computation else []}  # fmt: skip
            print(json.dumps(row), file=file, flush=True)
            print(f"{'yes' if told else 'no ':4}{subject.name:45}{found.seconds:6.1f} s  {found.why[:100]}", flush=True)
    print(dict(counts))
    return 0


# ---------------------------------------------------------------- faults


def faults(e: Expr) -> Iterator[Expr]:
    """The expression with one fault in its top."""
    match e:
        case Op(name, args):
            if name in _SWAPS:
                yield replace(e, name=_SWAPS[name])
            if name in ("sum", "prod") and len(args) > 1:
                yield from (replace(e, args=args[:n] + args[n + 1 :]) for n in range(len(args)))
        case Const(value, dtype) if dtype.startswith("float") and value:
            yield replace(e, value=value * 1.01)
        case Number(Affine() as index, _):
            yield replace(e, index=replace(index, constant=index.constant + 1))
        case Fold():
            if e.op in _SWAPS:
                yield replace(e, op=_SWAPS[e.op])
            for n, (name, extent) in enumerate(e.dims):
                shorter = (name, replace(extent, constant=extent.constant - 1))
                yield replace(e, dims=(*e.dims[:n], shorter, *e.dims[n + 1 :]))
        case Load() if len(e.indices) > 1 and e.indices[0] != e.indices[1]:
            yield replace(e, indices=tuple(reversed(e.indices)))


def planted(e: Expr) -> Iterator[Expr]:
    """Every expression with one fault somewhere."""
    yield from faults(e)
    parts = children(e)
    for n, part in enumerate(parts):
        yield from (rebuilt(e, (*parts[:n], wrong, *parts[n + 1 :])) for wrong in planted(part))


def mutants(c: Computation) -> list[Computation]:
    """Every computation with one fault in one statement."""
    found = []
    for n, s in enumerate(c.statements):
        for wrong in planted(s.value) if s.value is not None else ():
            found += [replace(c, statements=(*c.statements[:n], replace(s, value=wrong), *c.statements[n + 1 :]))]
    return found


def refused(subjects: list[Subject], count: int, seed: int, out: Path) -> int:
    """Check ``count`` mutants, spread over the liftings; answers how many passed."""
    chance, passed, tried = random.Random(seed), 0, 0
    device, held = open_host_device(), list[tuple[Subject, Checker, list[Case], list[Computation]]]()
    for subject in subjects:
        found = lift(subject.contract, subject.candidate)
        image = HostToolchain().compile(subject.candidate)
        if found.computation is None or not isinstance(image, Image):
            continue
        sizes = [*found.checked[:1], *found.watched[:1]]
        cases = [Case("mutant", tuple(s.items()), f, 7 + n) for n, s in enumerate(sizes) for f in _FAMILIES]
        check = Checker(subject.contract, subject.candidate, image, device)
        assert check.disagreement(found.computation, cases) == "", subject.name
        held.append((subject, check, cases, mutants(found.computation)))
    with out.open("w") as file:
        while tried < count:
            subject, check, cases, choices = held[tried % len(held)]
            wrong = choices[chance.randrange(len(choices))]
            why = check.disagreement(wrong, cases)
            tried, passed = tried + 1, passed + (not why)
            row: dict[str, Any] = {"name": subject.name, "refused": bool(why), "why": why, "lines": lines(wrong)}
            print(json.dumps(row), file=file)
            if not why:
                print("PASSED", subject.name, *lines(wrong), sep="\n    ")
    device.close()
    print(f"{tried - passed} of {tried} mutants refused, over {len(held)} liftings")
    return passed


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["sweep", "mutants"])
    parser.add_argument("out", type=Path)
    parser.add_argument("--generated", type=int, default=66)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kernels", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    subjects = [s for s in of_repository() if s.name.startswith("examples/")]
    if options.what == "mutants":
        return int(refused(subjects, options.count, options.seed, options.out) > 0)
    subjects += of_generator(options.generated, options.seed)
    for folder in options.kernels:
        subjects += of_folder(folder)
    return sweep(subjects, options.out)


if __name__ == "__main__":
    sys.exit(main())
