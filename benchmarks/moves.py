"""Every action on every kernel, and a seeded sample of pairs of moves: what raises, does not compile, or is wrong.

    python benchmarks/moves.py OUT_DIR [--pairs 2000] [--seed 0] [--level one|two] [--check [--most N]]
                               [--kernels FOLDER ...] [--workers N] [--seconds S] [--no-lift]

Kernels: the examples, the honest candidates of the corpus, those that tests are made of, 66 generated ones
(benchmarks/kernels/), and the folders given. Each is lifted first, for the actions that begin at what a kernel
computes. Each result passes the guard and is compiled with NVRTC down to a
binary; with --check it is compiled for the host device too and judged there by the generated tests and the recorder
against the original. Writes OUT_DIR/moves.jsonl as it goes, from which an interrupted run goes on, and then
OUT_DIR/results.json; prints a table by action. Ends with 1 when anything is not right, and with 2 when the time that
``--seconds`` gives was over before the work: the same command once more goes on.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.batches import QuickToolchain, SyntaxToolchain, failures  # noqa: E402  # the checkout
from benchmarks.judging import Attempt, Judge  # noqa: E402
from benchmarks.kernels.sources import Subject, of_folder, of_repository, of_tests, unique  # noqa: E402
from benchmarks.tasks import Lost, each  # noqa: E402
from fsr.guard.check import guard  # noqa: E402
from fsr.lifting.lift import lift  # noqa: E402
from fsr.records import Candidate, CompileFailure  # noqa: E402
from fsr.search.proposal import Rules, applied, moves_of  # noqa: E402
from fsr.transform import protocol  # noqa: E402
from fsr.transform.registry import all_actions  # noqa: E402

TARGET = "sm_90"
COLUMNS = ("raised", "refused", "not compiled", "wrong", "not judged", "compiled", "right")
FINE = ("right", "compiled", "not judged")
PART = 6  # pairs in a task: small, so that many cores end together and little is lost when the time is over
SHOWN = ("suite", "kernels/plans")  # kernels of the repository that have a contract, beside examples and tests
LIMIT_S = 480.0
Record = dict[str, Any]
T = TypeVar("T")


def first_level(subject: Subject, most: int = 0) -> list[Attempt]:
    """Every move of every action, once; ``most``: at most so many of each action, drawn alike each time."""
    attempts: list[Attempt] = []
    view = _view(subject, subject.candidate, (), attempts)
    options = _options(view, (), attempts) if view else []
    drawn = _some(options, most, lambda pair: pair[0].name)
    return [*attempts, *(_step(view, (), *pair) for pair in drawn if view)]


def pairs(subject: Subject, count: int, seed: int) -> list[Attempt]:
    """``count`` ways of two moves; each time the action is drawn first and then one of its moves, so that actions with
    many parameters do not crowd out the others."""
    chance = random.Random(f"{seed}:{subject.name}")
    attempts: list[Attempt] = []
    view = _view(subject, subject.candidate, (), attempts)
    options = _options(view, (), attempts) if view else []
    found: dict[tuple[str, ...], Attempt] = {}
    for _ in range(20 * count if options else 0):
        if len(found) == count:
            break
        assert view is not None
        first = _step(view, (), *_drawn(options, chance))
        after = first.candidate and _view(subject, first.candidate, first.moves, attempts)
        seconds = _options(after, first.moves, attempts) if after else []
        if after and seconds:
            second = _step(after, first.moves, *_drawn(seconds, chance))
            found.setdefault(second.moves, second)
    return [*attempts, *found.values()]


def _view(
    subject: Subject, candidate: Candidate, before: tuple[str, ...], attempts: list[Attempt]
) -> protocol.Subject | None:
    """A candidate as actions see it; None when it cannot be read, which is added to the attempts."""
    try:
        return Rules(subject.contract, target=TARGET, computation=subject.computation).subject(candidate)
    except Exception as fault:
        attempts.append(Attempt(before, None, "raised", f"unreadable: {fault!r}"))
        return None


def _options(
    view: protocol.Subject, before: tuple[str, ...], attempts: list[Attempt]
) -> list[tuple[protocol.Action, protocol.Move]]:
    """The moves on a candidate; actions that raise are added to the attempts."""

    def raised(action: str, fault: Exception) -> None:
        attempts.append(Attempt((*before, f"{action}@"), None, "raised", f"moves: {fault!r}"))

    return moves_of(view, all_actions(), raised)


def _drawn(
    options: Sequence[tuple[protocol.Action, protocol.Move]], chance: random.Random
) -> tuple[protocol.Action, protocol.Move]:
    name = chance.choice(sorted({action.name for action, _ in options}))
    return chance.choice([pair for pair in options if pair[0].name == name])


def _step(view: protocol.Subject, before: tuple[str, ...], action: protocol.Action, move: protocol.Move) -> Attempt:
    attempt = Attempt((*before, move.name), None)

    def raised(_action: str, fault: Exception) -> None:
        attempt.status, attempt.detail = "raised", f"apply: {fault!r}"

    attempt.candidate = applied(action, view, move, raised)
    return attempt


# ---------------------------------------------------------------- verdicts


def decide(subject: Subject, attempts: list[Attempt], *, check: bool, most: int = 0) -> None:
    """Give every attempt its status: guard, front end, binary, and with ``check`` the tests."""
    for attempt in attempts:
        if attempt.candidate is None:
            continue
        refused = refusal(subject, attempt.candidate)
        if refused:
            attempt.status, attempt.detail = "refused", refused
    for toolchain in (SyntaxToolchain(TARGET), QuickToolchain(TARGET)):
        open_ = [a for a in attempts if not a.status]
        alike = _by_code(open_)
        for index, failure in failures(toolchain, [same[0].candidate for same in alike]).items():  # type: ignore[misc]
            for attempt in alike[index]:
                attempt.status, attempt.detail = "not compiled", first_error(failure.log)
    for attempt in attempts:
        attempt.status = attempt.status or "compiled"
    if check:
        compiled = [a for a in attempts if a.status == "compiled"]
        Judge(subject, TARGET).decide(list(_some(compiled, most, lambda a: a.moves[-1].partition("@")[0])))


def _some(found: Sequence[T], most: int, action: Callable[[T], str]) -> Sequence[T]:
    """At most so many of each action, drawn alike each time; 0: all."""
    if not most:
        return found
    count: Counter[str] = Counter()
    kept = []
    for one in random.Random(most).sample(found, len(found)):
        count[action(one)] += 1
        kept += [one] if count[action(one)] <= most else []
    return kept


def refusal(subject: Subject, candidate: Candidate) -> str:
    """What the static guard has against a candidate; '' for nothing."""
    fault = guard(candidate, subject.candidate)
    return f"{fault.detail} (line {fault.line})" if fault is not None else ""


def _by_code(attempts: Iterable[Attempt]) -> list[list[Attempt]]:
    """Attempts whose candidates differ at most in launches, together: they compile alike."""
    alike: defaultdict[Any, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        assert attempt.candidate is not None
        plan = attempt.candidate.plan
        alike[attempt.candidate.source, plan.flags, frozenset(x.entry for x in plan.launches)].append(attempt)
    return list(alike.values())


def first_error(log: str) -> str:
    """The line of a compiler's log that says what is wrong."""
    lines = log.splitlines() or [""]
    return next((line for line in lines if "error" in line), lines[0])[:300]


@dataclass(frozen=True)
class Piece:
    """What one process works on: the moves on a kernel, or every ``parts``-th of its ``count`` pairs from ``part``."""

    subject: Subject
    level: str
    count: int
    part: int
    parts: int
    options: argparse.Namespace

    @property
    def key(self) -> tuple[str, str, int, int]:
        """What it is called in the book."""
        return self.subject.name, self.level, self.part, self.parts

    def records(self) -> list[Record]:
        """What became of its attempts; none for a kernel that does not compile as it is."""
        subject, wanted = self.subject, self.options
        if isinstance(QuickToolchain(TARGET).compile(subject.candidate), CompileFailure):
            return []
        if wanted.lift:
            subject = replace(subject, computation=lift(subject.contract, subject.candidate).computation)
        attempts = first_level(subject) if self.level == "one" else pairs(subject, self.count, wanted.seed)
        attempts = [a for a in attempts[self.part :: self.parts] if re.search(wanted.actions, (a.moves or ("",))[-1])]
        decide(subject, attempts, check=wanted.check, most=wanted.most)
        return [self.record(a.moves, a.status, a.detail) for a in attempts]

    def record(self, moves: Sequence[str], status: str, detail: str) -> Record:
        """One attempt as it is kept."""
        return {
            "kernel": self.subject.name, "level": self.level, "moves": moves, "status": status, "detail": detail
        }  # fmt: skip


# ---------------------------------------------------------------- the run


class Book:
    """Records on disk, a line for each piece done; reading it again is how a run goes on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: list[Record] = []
        self.done: set[tuple[str, str, int, int]] = set()
        for line in path.read_text().splitlines() if path.exists() else []:
            entry = json.loads(line)
            self.done.add(tuple(entry["piece"]))
            self.records += entry["records"]

    def add(self, piece: Piece, records: list[Record]) -> None:
        """Keep what a piece gave."""
        with self.path.open("a") as file:
            file.write(json.dumps({"piece": piece.key, "records": records}) + "\n")
        self.done.add(piece.key)
        self.records += records


def table(records: Iterable[Record]) -> list[str]:
    """Lines of counts by last action."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        name = (record["moves"] or ("unreadable",))[-1].partition("@")[0]
        counts[name][record["status"]] += 1
        counts["all"][record["status"]] += 1
    columns = [c for c in COLUMNS if counts["all"][c]]
    lines = [f"{'action':20}" + "".join(f"{c:>14}" for c in ("moves", *columns))]
    for name in sorted(counts, key=lambda n: (n == "all", n)):
        row = [sum(counts[name].values()), *(counts[name][c] for c in columns)]
        lines.append(f"{name:20}" + "".join(f"{value:14}" for value in row))
    return lines


def shares(subjects: Sequence[Subject], count: int, seed: int) -> Counter[str]:
    """How many pairs each kernel gets, drawn alike for all."""
    chance = random.Random(seed)
    return Counter(chance.choice(subjects).name for _ in range(count))


def collected(options: argparse.Namespace) -> list[Subject]:
    """All kernels of a run."""
    from benchmarks.kernels.writer import of_generator

    found = [*of_repository(), *of_generator(options.generated, options.seed)]
    for folder in SHOWN:
        found += of_folder(ROOT / "benchmarks" / folder, folder.rpartition("/")[2])
    if not options.only:
        tests = options.out / "tests"
        if not tests.exists():
            part = tests.with_suffix(".part")
            of_tests(part)
            part.rename(tests)
        found += of_folder(tests, "tests")
    for folder in options.kernels:
        found += of_folder(folder)
    chosen = [s for s in unique(found) if options.only in s.name]
    if not chosen:
        raise SystemExit(f"--only {options.only}: none of {len(found)} kernels has this in its name")
    return chosen


def pieces(subjects: Sequence[Subject], options: argparse.Namespace) -> list[Piece]:
    """All there is to do, the dearest first."""
    counts = shares(subjects, options.pairs, options.seed)
    found = []
    for subject in sorted(subjects, key=lambda s: -counts[s.name]):
        parts = math.ceil(counts[subject.name] / PART)
        found += [Piece(subject, "two", counts[subject.name], part, parts, options) for part in range(parts)]
    singles = [Piece(subject, "one", 0, 0, 1, options) for subject in subjects]
    return [piece for piece in (*found, *singles) if options.level in (piece.level, "both")]


def run(options: argparse.Namespace) -> tuple[list[Record], int]:
    """Work through what OUT_DIR does not hold yet, as far as the time goes: (all records, pieces left)."""
    book = Book(options.out / "moves.jsonl")
    subjects = collected(options)
    tasks = [piece for piece in pieces(subjects, options) if piece.key not in book.done]
    ended = each(Piece.records, tasks, options.workers, seconds=options.seconds, limit_s=LIMIT_S)
    done = 0
    for done, (piece, result) in enumerate(ended, 1):
        records = [piece.record((), "not judged", result.why)] if isinstance(result, Lost) else result
        book.add(piece, records)
        bad = sum(r["status"] not in FINE for r in records)
        print(f"{done}/{len(tasks)} {piece.subject.name} {piece.level}: {len(records)} moves, {bad} bad",
              file=sys.stderr, flush=True)  # fmt: skip
    kept = {s.name for s in subjects}
    return [r for r in book.records if r["kernel"] in kept], len(tasks) - done


def main(arguments: Sequence[str] | None = None) -> int:
    """Ends with 0 when every result compiles and, if judged, is right; 1 when one is not; 2 when pieces are left."""
    parser = argparse.ArgumentParser(description="All actions on all kernels, and pairs of moves.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--level", choices=("one", "two", "both"), default="both", help="single moves, pairs, or both")
    parser.add_argument("--generated", type=int, default=66, help="how many generated kernels")
    parser.add_argument("--check", action="store_true", help="judge results on the host device")
    parser.add_argument("--no-lift", dest="lift", action="store_false", help="without what kernels compute")
    parser.add_argument("--most", type=int, default=0, help="judge at most so many moves an action and kernel; 0: all")
    parser.add_argument("--kernels", type=Path, nargs="*", default=[], help="folders of kernels with contracts")
    parser.add_argument("--actions", default="", help="only moves whose name this regular expression is found in")
    parser.add_argument("--only", default="", help="only kernels whose name holds this")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so long; another call goes on")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    records, left = run(options)
    bad = [r for r in records if r["status"] not in FINE]
    for level, title in (("one", "Every move"), ("two", "Pairs of moves")):
        print(f"\n{title}, {len({r['kernel'] for r in records})} kernels")
        print("\n".join(table(r for r in records if r["level"] == level)))
    (options.out / "results.json").write_text(
        json.dumps({"bad": bad, "records": len(records), "left": left}, indent=1) + "\n"
    )
    for record in bad[:200]:
        print(record["kernel"], " ".join(record["moves"]), "::", record["status"], "::", record["detail"])
    if left:
        print(f"{left} pieces left: the same command once more goes on", file=sys.stderr)
        return 2
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
