"""``check`` and ``evaluate``: a candidate of the user's own against a kernel, by the same stages as the search."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fsr.contract.load import loaded
from fsr.contract.passing import plan_misfit
from fsr.contract.read import read_contract
from fsr.contract.stored import stored_plan
from fsr.errors import SourceError
from fsr.evaluation.faults import OriginalFails, outcome_of_fault
from fsr.evaluation.spec import Binaries, CompileRequest, EvaluateRequest, PromoteRequest, PromotionPart, SessionSpec
from fsr.evaluation.telling import told_in
from fsr.identity import to_json
from fsr.records import Candidate, DeviceInfo, Json, Outcome, Plan, Status
from fsr.report.words import duration_text
from fsr.runs.awaiting import completed
from fsr.runs.baseline import qualify, with_users_place
from fsr.runs.engine import COMPILE_TIMEOUT_S, EVALUATE_TIMEOUT_S
from fsr.runs.fleet import open_fleet
from fsr.runs.kernel import Kernel, kernel_of
from fsr.runs.meant import as_it_stands_or_was_meant, notes_on
from fsr.runs.options import RefineOptions
from fsr.runs.promoting import PROMOTE_TIMEOUT_S
from fsr.source.constants import as_constants
from fsr.source.entry import bare_name
from fsr.source.file import KernelFile
from fsr.testgen.candidate_file import fitting_plan, plan_notes, stated_plan
from fsr.testgen.cases import held_out_cases
from fsr.testgen.corner_cases import corner_cases
from fsr.testgen.dialled import dialled_cases
from fsr.testgen.meant import meant_plans
from fsr.workers.protocol import Pool, Task, WorkerFault, Workers

PROMOTION = "promotion"
LONG_S = 20.0  # that testing the original takes, before it is told at which sizes
FEW = 30  # tests; a kernel that is not slow has a hundred and more
_SAY_HOW = (
    "name the file that fsr wrote, with its .json beside it, or say the launch in lines at the top of the file: "
    "// grid:, // block:, // shared:, // scratch:, // args:"
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the stages say of a candidate file. status: 'passed' or 'failed'. outcome: the candidate's status. stage:
    the last it came to. evidence: of a failure, the case and what was wrong. verdict: of the paired final, if there was
    one: kind, speedup, ci95, basis. notes: what limits what was found, as cases that there was no time for. sizes:
    where it passed, the least and the largest of each at which it was compared in whole. timed_sizes: whether the timed
    ones are among them; timed_blocks: whether some blocks of these were compared, at least; timed_left: the timed sizes
    at which none were, and of each why."""

    status: str
    entry: str
    basis: str
    device: Mapping[str, Json]
    outcome: str
    stage: str
    tests: Mapping[str, int]
    evidence: Mapping[str, Json]
    seconds: float
    verdict: Json = None
    notes: tuple[str, ...] = ()
    sizes: Mapping[str, Json] = field(default_factory=dict)
    timed_sizes: bool = False
    timed_blocks: bool = False
    timed_left: Mapping[str, Json] = field(default_factory=dict)

    def to_json(self) -> dict[str, Json]:
        """The object that ``fsr evaluate --json`` prints."""
        told = to_json(self)
        assert isinstance(told, dict)
        return told


def load_candidate(path: Path, kernel: Kernel) -> Candidate:
    """A candidate file with its launch plan: from the evidence beside it (``name.json``), when that names a plan, or
    the lines at its top (:mod:`fsr.testgen.candidate_file`), or the launch in a contract of its own, else the plan of
    the kernel's contract. Raises SourceError when it lacks a kernel that the plan launches, and for evidence that is
    damaged or absurd: the candidate would be tested under a launch that is not its own."""
    return _read(path, kernel)[0]


def _read(path: Path, kernel: Kernel) -> tuple[Candidate, bool]:
    """The candidate, and whether it says its launch itself."""
    file = KernelFile.read(path, kernel.file.include_dirs, kernel.file.defines)
    file = replace(file, members=frozenset(m for k in kernel.contract.structures for m in k.taken))
    own = stored_plan(path, kernel.contract) or stated_plan(file.text, kernel.contract, str(path))
    own = own or _contracted_plan(path, file, kernel)
    plan = own or kernel.baseline.plan
    names = tuple(dict.fromkeys(bare_name(launch.entry) for launch in plan.launches))
    missing = [n for n in names if n not in {k.rpartition("::")[2] for k in file.kernels} | set(file.kernels)]
    if missing:
        raise SourceError(
            f"the candidate holds no kernel {missing[0]!r}", expected=f"the kernels {', '.join(names)}",
            where=str(path), fix=_SAY_HOW,
        )  # fmt: skip
    if why := plan_misfit(file, plan, kernel.contract.args):
        raise SourceError(
            f"the candidate does not fit its launch: {why}", expected="parameters as the plan passes them",
            where=str(path), fix=_SAY_HOW,
        )  # fmt: skip
    text = as_constants(file.cut(*plan.entries).text, [a.symbol for a in kernel.contract.symbols()])
    return Candidate(text, plan, ("given",)), own is not None


def _contracted_plan(path: Path, file: KernelFile, kernel: Kernel) -> Plan | None:
    """The launch of the contract that a candidate file itself has; None where it has none, or says the kernel's."""
    raw = read_contract(path, file.text)
    if raw is None or "launch" not in raw.data:
        return None
    plan = replace(loaded(file)[1].plan, flags=kernel.contract.plan.flags)
    return None if plan == kernel.contract.plan else fitting_plan(plan, kernel.contract, str(path))


Tell = Callable[[str], None]  # what is done just now
Tick = Callable[[], None]


def _silent(words: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a candidate. timed: the paired final too. untrusted: it comes from elsewhere. others: plans to
    test it under where it fails under its own. tell: is told what is done."""

    timed: bool
    untrusted: bool = False
    others: Sequence[Plan] = ()
    tell: Tell = _silent


def judge(path: Path, options: RefineOptions, *, timed: bool, tell: Tell = _silent) -> Judgement:
    """Run every search-time and held-out test of ``options.kernel``'s contract on a candidate file; ``timed``: then the
    paired final against the kernel, which adds the verdict. A candidate that fails under the kernel's own launch, says
    no other and was visibly written for one is tested under those that it may mean; ``evidence`` then names the launch.
    Raises FsrError."""
    kernel = kernel_of(options)
    candidate, stated = _read(path, kernel)
    others = () if stated else tuple(meant_plans(candidate.source, kernel.contract))
    return judge_candidate(kernel, candidate, options, Asked(timed, others=others, tell=tell)).judgement


def judge_own(options: RefineOptions, *, tell: Tell = _silent) -> Judgement:
    """The same of ``options.kernel`` itself: whether it compiles and passes all tests of its own contract. Raises
    FsrError, BaselineError for a kernel that fails them."""
    kernel = kernel_of(options)
    found = judge_candidate(kernel, None, options, Asked(timed=False, tell=tell)).judgement
    told = dict(found.evidence)
    if isinstance(line := told.pop("line", None), int):  # of the unit that was compiled
        told["where"] = kernel.unit.where(line)
        told["detail"] = with_users_place(str(told.get("detail", "")), kernel)
    return replace(found, evidence=told)


@dataclass(frozen=True, slots=True)
class Judged:
    """A judgement, and what it was made with and on."""

    judgement: Judgement
    spec: SessionSpec
    device: DeviceInfo


def judge_candidate(kernel: Kernel, candidate: Candidate | None, options: RefineOptions, asked: Asked) -> Judged:
    """The same for a candidate that is at hand, None for the kernel itself (as it was meant, where it is taken so).
    Raises FsrError."""
    started, own, name = time.monotonic(), candidate is None, _named(kernel.contract.plan)
    asked.tell(f"{name}: testing the original")
    with open_fleet(options, 1, single=True, modules=kernel.modules) as fleet:
        spec, workers = replace(fleet.spec(kernel, options), untrusted=asked.untrusted), fleet.workers
        kernel, spec, report = as_it_stands_or_was_meant(
            kernel, spec, lambda kernel, spec: qualify(workers, spec, kernel, _telling(spec, name, asked.tell))
        )
        candidate = candidate or kernel.baseline
        least = Status.CORRECT if asked.timed else Status.SLOW
        asked.tell(f"{name}: testing")
        outcome = judged_by(workers, spec, candidate, options.budget_s, asked)
        for plan in asked.others if outcome.status < least and outcome.stage not in ("guard", "compile") else ():
            again = judged_by(workers, spec, replace(candidate, plan=plan), options.budget_s, asked)
            if again.status >= least:
                outcome = replace(again, evidence={**again.evidence, "launch": plan_notes(plan).strip()})
                break
    said = ("untested",) if own else ("untested", "unrun")  # what no test runs of the kernel its own notes say
    told = [str(words) for name in said if (words := outcome.evidence.get(name))]
    right = outcome.status >= least and outcome.stage == PROMOTION  # what stopped before was not tested
    evidence = dict(outcome.evidence)
    sizes, at_timed = evidence.pop("reached", {}), evidence.pop("timed_sizes", False)
    in_blocks, left = evidence.pop("timed_blocks", False), evidence.pop("timed_left", {})
    judgement = Judgement(
        status="passed" if right else "failed",
        entry=kernel.contract.entry,
        basis=spec.backend.basis.value,
        device=to_json(report.device),  # type: ignore[arg-type]  # a record is an object
        outcome=outcome.status.name.lower(),
        stage=outcome.stage,
        tests={"cases": outcome.cases, "passed": outcome.passed},
        evidence=evidence,
        seconds=round(time.monotonic() - started, 2),
        verdict=outcome.evidence.get("verdict") if asked.timed and right else None,
        notes=(
            *fleet.notes,
            *report.notes,
            *notes_on(kernel),
            *told,
            *(_few(outcome.cases) if right and kernel.contract.sizes else ()),
        ),
        sizes=sizes if right else {},  # type: ignore[arg-type]  # an object
        timed_sizes=right and (bool(at_timed) or (asked.timed and not spec.predicted)),  # a final compares them
        timed_blocks=right and bool(in_blocks),
        timed_left=left if right else {},  # type: ignore[arg-type]  # an object
    )
    return Judged(judgement, spec, report.device)


def _telling(spec: SessionSpec, name: str, tell: Tell) -> Tick:
    """What is called while the original is tested: tells where its time goes once that is long."""
    started, said, timed = time.monotonic(), [""], spec.contract.timed_sizes()

    def tick() -> None:
        if not spec.told or time.monotonic() - started < LONG_S or (told := told_in(spec.told)) is None:
            return
        sizes, seconds = told
        words = f"{', '.join(f'{size} = {value}' for size, value in sizes)} took {duration_text(seconds)} so far"
        if words != said[-1]:
            said[:] = [words]
            which = "timed size" if dict(sizes) in timed else "max"
            tell(f"{name}: testing the original, of which {words} (a smaller {which} is quicker)")

    return tick


def _few(cases: int) -> tuple[str, ...]:
    """What is to be said where few tests had time."""
    if cases >= FEW:
        return ()
    return (
        f"only {cases} tests had time, since each launch of this kernel is long here: a grid that follows the sizes, "
        "or a smaller max, gives more",
    )


def _named(plan: Plan) -> str:
    """What is tested, in few words."""
    first, *others = plan.entries
    return f"{first} and {len(others)} more" if others else first


def _held_out(spec: SessionSpec) -> int:
    """About how many cases a promotion has: those around a candidate's own numbers are not known before."""
    contract, seed, most = spec.contract, spec.seed, spec.backend.limits.elements
    count = len(held_out_cases(contract, seed, max_elements=most))
    count += len(corner_cases(contract, seed, most)) + len(dialled_cases(contract, seed, most))
    return max(10, round(count, -1))


def judged_by(workers: Workers, spec: SessionSpec, candidate: Candidate, budget_s: float, asked: Asked) -> Outcome:
    """What the search's and the promotion's stages say of a candidate, and how many cases it passed in all."""
    compiled, outcome = evaluated(workers, spec, candidate)
    if compiled is None or outcome.status < Status.CORRECT:
        return outcome
    more = _held_out(spec)
    asked.tell(f"{_named(spec.contract.plan)}: testing, {outcome.passed} cases passed, now about {more} held-out ones")
    part = PromotionPart.WHOLE if asked.timed else PromotionPart.TESTS
    final = promoted(workers, PromoteRequest(spec, candidate, compiled, budget_s, part, own_tested=True))
    return replace(final, cases=outcome.cases + final.cases, passed=outcome.passed + final.passed)


def evaluated(
    workers: Workers, spec: SessionSpec, candidate: Candidate, *, untrusted: bool = False
) -> tuple[Binaries | None, Outcome]:
    """The stages of the search on one candidate: what it was compiled to (None when it was not), and its outcome."""
    request = CompileRequest(spec, candidate, untrusted)
    compiled = _run(workers, "compile", "jobs:compile_task", request, COMPILE_TIMEOUT_S, "compile")
    if isinstance(compiled, Outcome):
        return None, compiled
    assert isinstance(compiled, Binaries)
    outcome = _run(
        workers, "device", "jobs:evaluate_task", EvaluateRequest(spec, candidate, compiled), EVALUATE_TIMEOUT_S, "tests"
    )
    assert isinstance(outcome, Outcome)
    return compiled, outcome


def promoted(workers: Workers, request: PromoteRequest) -> Outcome:
    """Held-out tests, sanitizers and the paired final on one candidate, at sizes that the original itself survives."""
    try:
        final = _run(workers, "device", "promotion:promote_task", request, PROMOTE_TIMEOUT_S, PROMOTION)
    except OriginalFails as limit:
        below = promoted(workers, replace(request, below=limit.elements))
        return replace(below, evidence={"untested": str(limit), **below.evidence})
    assert isinstance(final, Outcome)
    return final


def _run(workers: Workers, pool: Pool, function: str, payload: Any, timeout_s: float, stage: str) -> Any:
    """The result of one task; a fault of the worker as its outcome. A promotion has a process of its own."""
    task = Task(f"fsr.evaluation.{function}", payload, timeout_s, fresh=stage == PROMOTION)
    completion = completed(workers, pool, task)
    result = completion.result
    if isinstance(result, WorkerFault):
        return outcome_of_fault(result.kind, result.detail, result.error, stage, completion.seconds)
    return result
