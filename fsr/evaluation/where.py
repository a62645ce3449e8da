"""Where a candidate is faster: a condition on the sizes, found by times at some of them.

The simplest condition that holds at all sizes where it is no slower and at none where it is slower: whole multiples,
then a least or a most, both, or the timed sizes alone. One of multiples is tried at odd multiples of its number, since
what is fast for multiples of 4 is fast for those of 64 as well.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fsr.contract.model import Contract
from fsr.evaluation.elsewhere import HELD_OUT_SLOWDOWN, held_out_sizes, slower_when_timed, speedup_at
from fsr.evaluation.session import Session, session_of
from fsr.evaluation.spec import WhereRequest
from fsr.expressions import evaluate
from fsr.records import Case, Json, Outcome, Sizes, Status
from fsr.testgen import cases as case_lists

MULTIPLES = (32, 2, 4, 8, 16)  # where one of the first is slower, none of the others tells
TURNS = 8  # conditions that are tried
MOST_BOUNDS = 12


@dataclass(frozen=True, slots=True)
class Condition:
    """``text``: an expression of the sizes. ``multiples``: the number of each size that it asks whole multiples of."""

    text: str
    multiples: tuple[tuple[str, int], ...] = ()
    rest: str = ""  # what else it asks

    def less_than(self, other: Condition) -> bool:
        """Whether it asks multiples of a smaller number, and all else is alike."""
        alike = self.rest == other.rest and [n for n, _ in self.multiples] == [n for n, _ in other.multiples]
        return alike and self.multiples < other.multiples


@dataclass(slots=True)
class Times:
    """What is known of a candidate at sizes: those where it is ``faster``, the timed ones among them, those where it is
    ``good``, which are no slower, and those where it is slower."""

    faster: list[Mapping[str, Any]] = field(default_factory=list)
    slower: list[Mapping[str, Any]] = field(default_factory=list)
    told: list[dict[str, Json]] = field(default_factory=list)
    good: list[Mapping[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.good = [*self.faster]

    def note(self, found: dict[str, Json]) -> None:
        """A speed-up at sizes, with the ends of its interval; one that is neither is left out."""
        sizes = found["sizes"]
        assert isinstance(sizes, dict)
        if float(str(found["high"])) < HELD_OUT_SLOWDOWN:
            self.slower.append(sizes)
        elif float(str(found["low"])) >= HELD_OUT_SLOWDOWN:
            self.good.append(sizes)
            self.faster += [sizes] if float(str(found["low"])) > 1.0 else []
        self.told.append(found)


def where_task(request: WhereRequest) -> Outcome:
    """CORRECT with the condition in its evidence (``where``, and ``at``: the times), SLOW where there is none that the
    times bear out. Fatal DeviceFaults escape."""
    session, started = session_of(request.spec), time.monotonic()
    times = timed(session.contract, request.timed)
    for found in request.held_out or held_out_sizes(session, request.candidate, request.binaries):
        times.note(found)
    condition = _borne_out(session, request, times, started + request.budget_s)
    evidence: dict[str, Json] = {"where": condition.text, "at": list(times.told)} if condition is not None else {}
    status = Status.SLOW if condition is None else Status.CORRECT
    return Outcome(status, "promotion", evidence=evidence, seconds=time.monotonic() - started)


def timed(contract: Contract, found: Sequence[dict[str, Json]]) -> Times:
    """What a final found at the timed sizes; where it was not asked they are good ones."""
    slower = [one["sizes"] for one in found if slower_when_timed(one)]
    own = contract.timed_sizes()
    return Times([sizes for sizes in own if sizes not in slower], [sizes for sizes in own if sizes in slower], [*found])


def _borne_out(session: Session, request: WhereRequest, times: Times, until: float) -> Condition | None:
    """The first condition that times at its probes do not speak against; of multiples that of the least number."""
    seed, tried = session.spec.seed, set[Sizes]()

    def stands(condition: Condition) -> bool:
        before, asked = len(times.slower), probes(session.contract, seed, condition)
        for case in asked:
            if case.sizes not in tried:
                tried.add(case.sizes)
                times.note(speedup_at(session, request.candidate, request.binaries, case))
        return len(times.slower) == before and bool(asked or not condition.multiples)

    refused = set[str]()
    for _ in range(TURNS):
        condition = next((c for c in conditions(session.contract, times) if c.text not in refused), None)
        if condition is None or time.monotonic() > until:
            return None
        refused.add(condition.text)
        if stands(condition):
            wider = (c for c in conditions(session.contract, times) if c.less_than(condition))
            return next((c for c in wider if time.monotonic() < until and stands(c)), condition)
    return None


def conditions(contract: Contract, times: Times) -> Iterator[Condition]:
    """Those that hold where it is no slower, or at least where it is faster, and nowhere where it is slower, the
    simplest first; at last the timed sizes alone."""
    for wanted in (times.good, times.faster) if times.good != times.faster else (times.good,):
        for condition in _forms(contract, wanted):
            held = all(bool(evaluate(condition.text, sizes)) for sizes in wanted)
            if held and not any(evaluate(condition.text, sizes) for sizes in times.slower):
                yield condition
    own = [sizes for sizes in contract.timed_sizes() if sizes not in times.slower]
    if own:
        yield Condition(contract.at_sizes(own))


def _forms(contract: Contract, wanted: Sequence[Mapping[str, Any]]) -> Iterator[Condition]:
    names = [s.name for s in contract.sizes if s.minimum < s.maximum]
    multiples = [Condition(f"{name} % {m} == 0", ((name, m),)) for name in names for m in MULTIPLES]
    yield from multiples
    bounds = list[Condition]()
    for some in itertools.chain.from_iterable(itertools.combinations(names, k) for k in range(1, len(names) + 1)):
        values = [math.prod(sizes[name] for name in some) for sizes in wanted]
        what = " * ".join(some)
        bounds += [Condition(f"{what} >= {min(values)}"), Condition(f"{what} <= {max(values)}")] if values else []
        if len(bounds) >= MOST_BOUNDS:
            break
    yield from bounds
    for one, other in itertools.product(multiples, bounds):
        yield Condition(f"({one.text}) * ({other.text})", one.multiples, other.text)


def probes(contract: Contract, seed: int, condition: Condition) -> list[Case]:
    """Cases at which a condition of multiples just holds: odd multiples near the held-out sizes."""
    found = list[dict[str, int]]()
    limits = {s.name: s for s in contract.sizes}
    for sizes in case_lists.held_out_timed_sizes(contract) if condition.multiples else []:
        for name, m in condition.multiples:
            sizes = {**sizes, name: (sizes[name] // m | 1) * m}
        within = all(limits[n].minimum <= sizes[n] <= limits[n].maximum for n, _ in condition.multiples)
        if within and sizes not in found and evaluate(condition.text, sizes):
            found.append(sizes)
    return [case_lists.timed_beside(contract, seed, sizes) for sizes in found]
