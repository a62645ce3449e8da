"""A scripted world for search tests: an action with two parameters and a made-up, exact cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from fsr.contract.model import Contract, Size
from fsr.features.schema import Features
from fsr.records import Basis, Candidate, Launch, Outcome, Plan, Status, Timing
from fsr.search.proposal import Rules, Space
from fsr.search.proposers.deterministic import Deterministic
from fsr.search.refinement import Refinement
from fsr.transform.protocol import Action, Move, Subject

BASELINE = Candidate(
    "__global__ void k(float *x) { x[0] = 1.0f; }\n", Plan((Launch("k", ("1",) * 3, ("1",) * 3, "0", ()),))
)
CONTRACT = Contract("k", (Size("n", 1, 10, (10,)),), (), BASELINE.plan)


class Knob:
    """Adds a comment ``// name=value``; applies while the source has none of that name yet."""

    def __init__(self, name: str, values: tuple[int, ...], gain: float = 1.1, aims: tuple[str, ...] = ()) -> None:
        self.name, self.values, self.gain, self.aims_at = name, values, gain, frozenset(aims)

    def moves(self, subject: Subject) -> Iterator[Move]:
        if f"// {self.name}=" not in subject.candidate.source:
            for value in self.values:
                yield Move(self.name, "kernel", (("v", value),), self.gain)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        source = subject.candidate.source + f"// {self.name}={move.param('v')}\n"
        return replace(subject.candidate, source=source, actions=(*subject.candidate.actions, move.name))


def settings(candidate: Candidate) -> dict[str, int]:
    """The knobs set in a candidate."""
    lines = [line[3:].split("=") for line in candidate.source.splitlines() if line.startswith("// ")]
    return {name: int(value) for name, value in lines}


def timed(time_ns: float, **features: float) -> Outcome:
    """A right candidate of that time."""
    return Outcome(
        Status.CORRECT,
        "tests",
        1,
        1,
        Timing(Basis.PREDICTED, time_ns, (time_ns,)),
        features=Features.from_json(features),
    )


def failed(status: Status = Status.WRONG) -> Outcome:
    """A candidate that failed."""
    return Outcome(status, "tests", 1, 0, evidence={"case": "smoke"})


def deterministic(
    actions: tuple[Action, ...], seed: int = 0, given: Iterable[Candidate] = (), known: Iterable[str] = ()
) -> Refinement:
    """The search with the deterministic proposer alone."""
    space = Space(Rules(CONTRACT), actions)
    return Refinement(BASELINE, space, [Deterministic(seed, given)], known=known)
