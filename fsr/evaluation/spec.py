"""What evaluation works on: picklable specifications, binaries and reports that pass between processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from fsr.backends.backend import Backend
from fsr.backends.select import backend_named
from fsr.contract.model import Contract
from fsr.evaluation.timing import TimingPolicy
from fsr.features.roofline import Ceilings, MustMove
from fsr.features.schema import Features
from fsr.identity import digest, to_json
from fsr.records import Basis, Candidate, Case, DeviceInfo, Image, Json, Outcome, Resources
from fsr.testgen import cases as case_lists
from fsr.testgen.fitting import elements, room


@dataclass(frozen=True)
class SessionSpec:
    """All that a worker needs to judge candidates of one kernel.

    device: 'cuda:N' or 'host'. target: architecture compiled and predicted for. folder: where the kernel file
    lies (references are imported from there). untrusted: candidates written by a model; the host device
    refuses them where the kernel cannot contain them, unless a caller answers for them by leaving this False.
    budget_s: seconds that the whole run may take, verdict included; the sizes of tests are chosen to fit it.
    leased: the run itself keeps other processes away from the GPU, so that a session need not.
    told: the file in which a worker says at which sizes its time goes, "" for nowhere (evaluation.telling).
    """

    contract: Contract
    baseline: Candidate
    device: str
    target: str
    seed: int
    folder: str = ""
    policy: TimingPolicy = field(default_factory=TimingPolicy)
    untrusted: bool = False
    budget_s: float = 300.0
    leased: bool = False
    told: str = ""

    @property
    def backend(self) -> Backend:
        """The kind of its device."""
        return backend_named(self.device)

    @property
    def predicted(self) -> bool:
        """Whether times are predicted for the target rather than measured."""
        return self.backend.basis is Basis.PREDICTED

    def smoke_case(self) -> Case:
        """The first case of every candidate."""
        return self._smoke_case

    @cached_property
    def _smoke_case(self) -> Case:  # asked with each run
        return case_lists.smoke(self.contract, self.seed, self.backend.limits.elements)

    @property
    def fixed(self) -> bool:
        """Whether there are no sizes but one of each: all cases have them."""
        return all(size.minimum == size.maximum for size in self.contract.sizes)

    @cached_property
    def cramped(self) -> bool:
        """Whether there are no small cases: even the first, which is as small as the sizes allow, is large."""
        most = room(self.contract, self.backend.limits.elements)
        return self.fixed or elements(self.contract, self.smoke_case().size_map()) > most

    def digest(self) -> str:
        """Identity, under which a worker keeps its session."""
        return digest(to_json(self))


@dataclass(frozen=True, slots=True)
class Binaries:
    """What compiling a candidate gave. ``run`` executes on the session's device; on the host device it is the
    instrumented build, which also records; dear tests go on with another (see evaluation.quickened). ``resources`` are
    the target compiler's, by entry, where it is installed."""

    run: Image
    resources: Mapping[str, Resources] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """Payload of ``jobs.compile_task``. ``untrusted``: a model wrote the candidate."""

    spec: SessionSpec
    candidate: Candidate
    untrusted: bool = False


@dataclass(frozen=True, slots=True)
class EvaluateRequest:
    """Payload of ``jobs.evaluate_task``. ``incumbent_ns``: the best time so far; a candidate clearly slower is
    cut short, and so is one that is faster at the timed sizes only; one that is no faster is told as screened, without
    full tests. None: nothing is compared, so every test runs. ``owed``: it was screened before and is owed the full
    tests, all but those that aim at it: nothing else is done."""

    spec: SessionSpec
    candidate: Candidate
    binaries: Binaries
    incumbent_ns: float | None = None
    owed: bool = False


class PromotionPart(Enum):
    """What of a promotion is done. Where times are predicted, tests and times do not disturb one another and two
    workers share them."""

    WHOLE = "whole"
    TESTS = "tests"
    TIMES = "times"


@dataclass(frozen=True, slots=True)
class PromoteRequest:
    """Payload of ``promotion.promote_task``. ``budget_s``: seconds that this task may take, its final among them.
    ``untrusted``: a model wrote the candidate. ``own_tested``: its evaluation went through the cases that aim at what
    this candidate names, all but those that wait for promotion. ``below``: elements of all buffers; at so many the
    original itself is known to fail."""

    spec: SessionSpec
    candidate: Candidate
    binaries: Binaries
    budget_s: float = 20.0
    part: PromotionPart = PromotionPart.WHOLE
    untrusted: bool = False
    own_tested: bool = False
    below: int | None = None


@dataclass(frozen=True, slots=True)
class RefuteRequest:
    """Payload of ``refuting.refute_task``. ``seeds``: of cases at which others were wrong that this run has tried to
    promote."""

    spec: SessionSpec
    candidate: Candidate
    binaries: Binaries
    seeds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WhereRequest:
    """Payload of ``where.where_task``: of a candidate that is faster at timed sizes and slower at others.
    ``held_out``: its times at those, as promotion tells them; empty where they are not known. ``budget_s``: seconds
    after which no further condition is tried. ``timed``: what its final found at each timed configuration, if it had
    one."""

    spec: SessionSpec
    candidate: Candidate
    binaries: Binaries
    held_out: tuple[dict[str, Json], ...] = ()
    budget_s: float = 5.0
    timed: tuple[dict[str, Json], ...] = ()


@dataclass(frozen=True, slots=True)
class EnrichRequest:
    """Payload of ``enriching.record_task`` (on an idle core beside a GPU) and ``enriching.counters_task`` (on the
    device). Each answers an Enriched.
    ``untrusted``: a model wrote the candidate, which then runs on this machine's CPU only where it can be contained."""

    spec: SessionSpec
    candidate: Candidate
    binaries: Binaries
    untrusted: bool = False


@dataclass(frozen=True, slots=True)
class Enriched:
    """What was found of a candidate beyond its time. ``note``: why there is no more, where a user should know;
    ``never``: asking again is useless here."""

    features: Features = field(default_factory=Features)
    note: str = ""
    never: bool = False


@dataclass(frozen=True, slots=True)
class BaselineReport:
    """What is known of the user's kernel before the search: its outcome (status CORRECT, with its time), the
    device, the bytes a run must move at the timed sizes (None: unknown) and the device's measured ceilings (None on
    the host device)."""

    outcome: Outcome
    device: DeviceInfo
    must_move: MustMove | None = None
    ceilings: Ceilings | None = None
    notes: tuple[str, ...] = ()
