"""What one launch of a plan is held to where it stands alone: the contract that is left of the whole plan's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fsr.computation.computation import Computation, Statement
from fsr.computation.expression import Load
from fsr.contract.model import Argument, Contract, Size
from fsr.errors import ContractError
from fsr.expressions import evaluate_int, fingerprint, names
from fsr.records import STEP, Candidate, Launch, Plan, Role, ScalarArgument, Scratch
from fsr.source.entry import function_name
from fsr.transform.alike import Told, told_apart, with_told
from fsr.transform.sizes import largest


@dataclass(frozen=True, slots=True)
class Alone:
    """A launch of a plan, for itself. ``launches``: it, and those that do the same with other buffers and numbers;
    ``contract``: of the first one, with names for these numbers, which may change whatever it does not only read;
    ``often``: whether its kernel is launched more than once, in turn or again and again; ``told``: how its launches
    are told apart; ``computation``: None where it is not known; ``text``: the kernel that does it."""

    launches: tuple[Launch, ...]
    contract: Contract
    often: bool = False
    told: Told = field(default_factory=Told)
    computation: Computation | None = None
    text: str = ""

    @property
    def kernel(self) -> str:
        """The function that is launched."""
        return function_name(self.launches[0].entry)

    def passed(self, launch: Launch, buffers: Mapping[str, Argument]) -> dict[str, str]:
        """For each argument of the first of its launches the one that another of them passes in its place. ``buffers``:
        see :func:`passable`."""
        found = mapping(self.told, self.launches[0], launch, buffers)
        assert found is not None
        return found


def launches_alone(contract: Contract, plan: Plan) -> tuple[Alone, ...]:
    """Every launch of a plan that can be taken for itself: of a kernel whose launches all do the same, to buffers that
    are as large and of one type. Of a plan that makes one launch once there is none."""
    if len(plan.launches) == 1 and not plan.launches[0].repeated:
        return ()
    try:
        passed = passable(contract, plan)
    except ContractError:
        return ()
    found = []
    for kernel in dict.fromkeys(function_name(x.entry) for x in plan.launches):
        every = tuple(dict.fromkeys(x for x in plan.launches if function_name(x.entry) == kernel))
        told = alike(every, contract, passed)
        if told is None:
            continue
        first = told.general(every[0])
        stepped = with_step(contract, first) if any(map(steps, every)) else contract
        wider = None if stepped is None else with_told(stepped, told, every)
        if wider is None:
            continue
        once = replace(plan, launches=(replace(first, repeat="1"),), scratch=())
        own = alone(wider, told.buffers(every[0], passed), once)
        often = sum(x in every for x in plan.launches) > 1 or first.repeated
        found.append(Alone(every, own, often, told))
    return tuple(found)


def buffers_of(contract: Contract, plan: Plan) -> dict[str, Argument]:
    """The buffers of a contract, and a plan's scratch memory as such. Raises ContractError."""
    return {a.name: a for a in contract.buffers()} | {s.name: scratch_argument(contract, s) for s in plan.scratch}


def passable(contract: Contract, plan: Plan) -> dict[str, Argument]:
    """What a launch may pass by name: buffers, and numbers that tests draw. Raises ContractError."""
    return buffers_of(contract, plan) | {a.name: a for a in contract.args if a.role is Role.SCALAR and a.value is None}


def alike(launches: Sequence[Launch], contract: Contract, buffers: Mapping[str, Argument]) -> Told | None:
    """How launches of one kernel are told apart that all do the same; None where one of them does not. ``buffers``:
    see :func:`passable`."""
    told = told_apart(launches, contract, buffers)
    same = told is not None and all(mapping(told, launches[0], x, buffers) is not None for x in launches[1:])
    return told if same else None


def mapping(told: Told, first: Launch, other: Launch, buffers: Mapping[str, Argument]) -> dict[str, str] | None:
    """For each argument of a launch the one that another one passes in its place, if they are told apart like that;
    None where it does something else. ``buffers``: what may be passed by name."""
    held, others = told.buffers(first, buffers), told.buffers(other, buffers)
    first, other = told.general(first), told.general(other)
    same = (first.entry, first.grid, first.block, first.shared_bytes, first.repeat)
    if same != (other.entry, other.grid, other.block, other.shared_bytes, other.repeat):
        return None
    found = dict[str, str]()
    for one, two in zip(first.args, other.args, strict=True):
        if isinstance(one, ScalarArgument) or isinstance(two, ScalarArgument) or one not in held:
            if one != two:
                return None
        elif two not in others or found.setdefault(one, two) != two or _kind(held[one]) != _kind(others[two]):
            return None
    return found if len(set(found.values())) == len(found) else None


def alone(contract: Contract, buffers: Mapping[str, Argument], plan: Plan) -> Contract:
    """The contract of some launches alone: they may change whatever they do not only read. What makes inputs of the
    plan knows nothing of what they find."""
    used = [a for launch in plan.launches for a in launch.args if isinstance(a, str)]
    own = [buffers.get(a.name, a) for a in contract.args if a.name in used or a.symbol or a.role is Role.SCALAR]
    own += [a for name, a in buffers.items() if name in used and a not in own]
    args = tuple(replace(a, role=Role.INOUT) if a.role is Role.OUT else a for a in own)
    return replace(contract, entry=plan.launches[0].entry, args=args, plan=plan, inputs=None)


def scratch_argument(contract: Contract, s: Scratch) -> Argument:
    """Scratch memory as an argument, of the shape of a buffer of as many elements. Raises ContractError."""
    alike = (a.shape for a in contract.buffers() if _counts(contract, " * ".join(f"({x})" for x in a.shape) or "1")
             == _counts(contract, s.count))  # fmt: skip
    return Argument(s.name, s.dtype, Role.INOUT, next(alike, (s.count,)))


def with_computation(one: Alone, computation: Computation, text: str) -> Alone:
    """The launch with what its kernel, of that text, computes, without what it leaves as it is."""
    told = tuple(s for s in computation.statements if not _stays(s))
    written = {s.target for s in told}
    args = tuple(
        replace(a, role=Role.IN) if a.role is Role.INOUT and a.name not in written else a for a in one.contract.args
    )
    told_alone = replace(computation, statements=told)
    return replace(one, contract=replace(one.contract, args=args), computation=told_alone, text=text)


def as_candidate(one: Alone, candidate: Candidate) -> Candidate:
    """The candidate with this launch only, to which nothing was done yet."""
    return Candidate(candidate.source, one.contract.plan, (), candidate.language)


def _stays(s: Statement) -> bool:
    return isinstance(s.value, Load) and (s.value.buffer, s.value.indices) == (s.target, s.place)


def steps(launch: Launch) -> bool:
    """Whether the repetitions of a launch are told apart."""
    return launch.reshaped or any(isinstance(a, ScalarArgument) and STEP in names(a.value) for a in launch.args)


def with_step(contract: Contract, launch: Launch) -> Contract | None:
    """The contract with the number of the repetition as a size; None where it has no end that is known."""
    most = largest(contract, launch.repeat)
    if most is None or most < 1:
        return None
    timed = tuple(max(0, evaluate_int(launch.repeat, sizes) // 2) for sizes in contract.timed_sizes())
    return replace(contract, sizes=(*contract.sizes, Size(STEP, 0, most - 1, timed)))


def _kind(a: Argument) -> tuple[object, ...]:
    return a.dtype, a.shape, a.alignment, a.symbol, a.role is Role.SCALAR and a.constraints


def _counts(contract: Contract, count: str) -> tuple[object, ...]:
    return fingerprint(count, (s.name for s in contract.sizes))
