"""A kernel of a suite that a search can go through in seconds on a CPU: small sizes, few moves, all kept on disk.

The largest size is halved until the buffers fit LARGEST_BYTES. Of the moves on the original ROOT are offered, drawn
once and alike for whoever searches, of those on every other candidate DEEPER, up to DEPTH moves one after the other.
Times are predicted from one recording each and nothing is tested: what is compared is the order of proposals, and
deterministic actions are right. What was found out about a kernel stands in a file of its own, a JSON line each.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.spreading import read
from fsr.backends.protocol import DeviceFault
from fsr.computation.computation import Computation, from_record, to_record
from fsr.contract.model import Contract
from fsr.evaluation.capacity import buffer_bytes
from fsr.evaluation.clock import recorded_features
from fsr.evaluation.compiling import build
from fsr.evaluation.enriching import DESK
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.features.lifted import binary_features, launch_features
from fsr.features.schema import Features
from fsr.hardware.gpus import closest_target
from fsr.identity import candidate_from_json, candidate_hash, outcome_from_json, to_json
from fsr.lifting.lift import lift
from fsr.prediction.predict import predict
from fsr.records import Basis, Candidate, Outcome, Status, Timing
from fsr.runs.kernel import load_kernel
from fsr.search.proposal import Rules, Space
from fsr.testgen.placing import place
from fsr.transform.protocol import Action, Move
from fsr.transform.registry import all_actions

LARGEST_BYTES = 32 << 20
DEAR_S, HALVINGS = 0.7, 6  # of recording the original: more halves sizes again, so often at the most
ROOT, DEEPER, DEPTH = 32, 2, 3
ACCESSES = 300_000  # recorded of each candidate; ten times as many change predictions by less than a thousandth
TARGET = "sm_90"


def fitting(contract: Contract) -> dict[str, int]:
    """Timed sizes whose buffers fit."""
    timed = dict(contract.timed_sizes()[0])
    while buffer_bytes(contract, timed) > LARGEST_BYTES and _halve(contract, timed):
        pass
    return timed


def _halve(contract: Contract, timed: dict[str, int]) -> bool:
    """Halve the largest size; False where it cannot be."""
    name = max(timed, key=lambda n: timed[n])
    if timed[name] // 2 < max(next(s.minimum for s in contract.sizes if s.name == name), 16):
        return False
    timed[name] //= 2
    return True


def timed_at(contract: Contract, timed: Mapping[str, int]) -> Contract:
    """The contract with these timed sizes."""
    return replace(contract, sizes=tuple(replace(s, timed=(timed[s.name],)) for s in contract.sizes))


class Book:
    """What is known of one kernel: a line is added for everything that is found out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = {(line["kind"], line["of"]): line["is"] for line in read(path)}
        self.cost_s = 0.0

    def of(self, kind: str, name: str, find: Callable[[], Any]) -> Any:
        """What is known of a name, found out now where it is not."""
        if (kind, name) not in self._known:
            began = time.monotonic()
            self._known[kind, name] = json.loads(json.dumps(find()))
            self.cost_s += time.monotonic() - began
            line = {"kind": kind, "of": name, "is": self._known[kind, name]}
            with self._path.open("a") as file:
                file.write(json.dumps(line) + "\n")
        return self._known[kind, name]

    def count(self, kind: str) -> int:
        """How many of a kind are known."""
        return sum(k == kind for k, _ in self._known)


class Few(Space):
    """The space of moves, bounded, and remembered in a book."""

    __slots__ = ("_actions", "_book", "_moves")

    def __init__(self, rules: Rules, book: Book) -> None:
        super().__init__(rules, all_actions(), lambda name, fault: None)
        object.__setattr__(self, "_book", book)
        object.__setattr__(self, "_actions", {action.name: action for action in self.actions})
        object.__setattr__(self, "_moves", {})

    def moves(self, candidate: Candidate, starting: str = "") -> list[tuple[Action, Move]]:
        """Those of its moves that are offered here."""
        if len(candidate.actions) >= DEPTH:
            return []
        key = _path(candidate)
        if key not in self._moves:  # type: ignore[attr-defined]
            book: Book = self._book  # type: ignore[attr-defined]
            names = book.of("moves", key, lambda: self._drawn(candidate, key))
            self._moves[key] = [  # type: ignore[attr-defined]
                (self._actions[a], Move(a, region, tuple((k, v) for k, v in params), gain))  # type: ignore[attr-defined]
                for a, region, params, gain in names
            ]
        return [(a, m) for a, m in self._moves[key] if starting.startswith(a.name + "@") or not starting]  # type: ignore[attr-defined]

    def _drawn(self, candidate: Candidate, key: str) -> list[list[Any]]:
        found = super().moves(candidate)
        count = DEEPER if candidate.actions else ROOT
        kept = sorted(random.Random(key).sample(range(len(found)), min(count, len(found))))
        return [[m.action, m.region, m.params, m.gain] for _, m in (found[i] for i in kept)]

    def applied(self, candidate: Candidate, action: Action, move: Move) -> Candidate | None:
        """As of Space."""
        book: Book = self._book  # type: ignore[attr-defined]
        apply = super().applied
        key = f"{_path(candidate)} {move.name}"
        told = book.of("applied", key, lambda: None if (c := apply(candidate, action, move)) is None else to_json(c))
        return None if told is None else candidate_from_json(told)


def _path(candidate: Candidate) -> str:
    return " ".join(candidate.actions)


class World:
    """One kernel of a suite, ready to be searched. ``book``: where what is found out about it is kept."""

    def __init__(self, kernel: Path, folder: Path) -> None:
        loaded = load_kernel(kernel, None)
        self.name, self.baseline, self.contract = kernel.stem, loaded.baseline, loaded.contract
        self.book, self._folder = Book(folder / f"{self.name}.jsonl"), str(loaded.folder)
        told = self.book.of("sizes", self.name, self._cheap)
        self.contract, self.dear = timed_at(loaded.contract, told["timed"]), bool(told["dear"])
        self.spec = self._spec(self.contract)
        self.rules = Rules(self.contract, target=TARGET, computation=self._computation())
        self.space = Few(self.rules, self.book)

    def _spec(self, contract: Contract) -> SessionSpec:
        return SessionSpec(contract, self.baseline, "host", TARGET, 0, self._folder)

    def _cheap(self) -> Mapping[str, Any]:
        """Timed sizes at which the original is recorded in no time; ``dear``: there are none."""
        timed, dear = fitting(self.contract), True
        for _ in range(HALVINGS):
            began = time.monotonic()
            predicted(self._spec(timed_at(self.contract, timed)), self.baseline)
            dear = time.monotonic() - began > DEAR_S
            if not dear or not _halve(self.contract, timed):
                break
        return {"timed": timed, "dear": dear}

    def _computation(self) -> Computation | None:
        if self.dear:
            return None

        def lifted() -> Mapping[str, Any]:
            found = lift(self.contract, self.baseline)
            return {"why": found.why, "is": None if found.computation is None else to_record(found.computation)}

        told = self.book.of("computation", self.name, lifted)["is"]
        return None if told is None else from_record(told)

    def outcome(self, candidate: Candidate) -> Outcome:
        """Of a candidate, or of the original."""
        return outcome_from_json(
            self.book.of("outcome", candidate_hash(candidate), lambda: to_json(predicted(self.spec, candidate)))
        )


def predicted(spec: SessionSpec, candidate: Candidate) -> Outcome:
    """One recording at the timed sizes as an outcome."""
    built = build(spec, candidate)
    if not isinstance(built, Binaries):
        return Outcome(Status.COMPILE_FAILED, "compile")
    case, data = DESK.inputs(spec)
    try:
        launches, buffers = place(spec.contract, candidate.plan, case, data, some=True)
        profile = DESK.recorder().record(built.run, launches, buffers, access_budget=ACCESSES)
    except DeviceFault:
        return Outcome(Status.CRASHED, "screening")
    gpu = closest_target(spec.target)
    found = predict(profile, built.resources, gpu, float(sum(b.array.nbytes for b in buffers)))
    if found.time_ns == float("inf") or profile.faults:
        return Outcome(Status.WRONG, "screening")
    features = Features(launch_features(launches), binary_features(launches, built.resources, gpu))
    features = features.merged(recorded_features(found, profile, spec.target))
    timing = Timing(Basis.PREDICTED, found.time_ns, (found.time_ns,))
    return Outcome(Status.CORRECT, "tests", timing=timing, features=features)
