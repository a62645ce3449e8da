"""What the simple actions work on: a kernel that the plan launches once, what is known of it, and the way back."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from fsr.analysis.aliasing import any_alias
from fsr.analysis.definitions import Definitions, definitions
from fsr.analysis.functions import Functions, functions_of
from fsr.analysis.macros import constants
from fsr.analysis.polynomial import Poly
from fsr.analysis.types import aliases
from fsr.contract.model import Contract
from fsr.errors import ContractError
from fsr.expressions import evaluate_int
from fsr.records import Candidate, Launch, Plan, Role, ScalarArgument
from fsr.source.form import Binary, Call, Cast, Expr, KernelForm, Literal, Name, Ternary
from fsr.source.rewrite import replace_kernel
from fsr.source.walk import integer, taken_names
from fsr.transform.launches import Launched, launched, with_launch
from fsr.transform.protocol import Move, Subject

INT_LIMIT = 2**31 - 1
SAMPLES = 64


@dataclass(frozen=True)
class Target:
    """One launch of the plan with its kernel, launched nowhere else. ``region``: 'kernel', or 'kernel:<name>' in a
    plan of several launches."""

    kernel: KernelForm
    place: Launched
    region: str
    source: str

    @property
    def launch(self) -> Launch:
        """How the plan launches it."""
        return self.place.launch

    @property
    def contract(self) -> Contract:
        """What it promises."""
        return self.place.contract

    @cached_property
    def known(self) -> Definitions:
        """Its names."""
        return definitions(self.kernel, self.functions)

    def poly(self, e: Expr) -> Poly:
        """The polynomial of an integer expression, locals and constants written out."""
        return self.known.poly(e, self.constants)

    @property
    def functions(self) -> Functions:
        """What the functions of its file do."""
        return functions_of(self.source)

    @cached_property
    def constants(self) -> Mapping[str, int]:
        """Macros, file-level constants and template arguments with an integer value."""
        return constants(self.source, self.kernel, self.launch.entry)

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name in use in the kernel, and the macros of the file."""
        return taken_names(self.kernel) | frozenset(self.constants)

    @cached_property
    def type_names(self) -> frozenset[str]:
        """Names that stand for types: template parameters, aliases, typedefs."""
        named = {name for kind, name in self.kernel.template_parameters if kind in ("typename", "class")}
        return frozenset(named | set(aliases(self.source)))

    @cached_property
    def block(self) -> tuple[int, int, int] | None:
        """The block when it is constant."""
        x, y, z = (int(t) if t.strip().isdigit() else 0 for t in self.launch.block)
        return (x, y, z) if x and y and z else None

    @property
    def threads(self) -> int | None:
        """Threads a block when that is constant."""
        return None if self.block is None else self.block[0] * self.block[1] * self.block[2]

    @cached_property
    def aliasing(self) -> bool:
        """Whether two pointer parameters may share memory."""
        passed = [a for p, a in zip(self.kernel.params, self.launch.args, strict=True) if p.is_pointer]
        return any_alias(map(str, passed), self.contract.aliasing)

    def size_text(self, e: Expr) -> str | None:
        """An integer expression as a size expression; None when it depends on more than sizes."""
        return _size_text(self.known.expand(e), self)

    def elements(self, parameter: str) -> str | None:
        """The number of elements of the buffer behind a pointer parameter, as a size expression."""
        name = self.place.passed.get(parameter)
        for argument in self.contract.buffers():
            if argument.name == name:
                return " * ".join(f"({s})" for s in argument.shape) or "1"
        return None

    def alignment(self, parameter: str) -> int:
        """The alignment in bytes that is promised for a pointer parameter; 1 when nothing is."""
        name = self.place.passed.get(parameter)
        found = [a.alignment for a in self.contract.buffers() if a.name == name]
        return found[0] if found and found[0] else 1

    @property
    def exact(self) -> bool:
        """Whether results must stay bit for bit."""
        return self.contract.tolerance.exact


def targets(subject: Subject) -> Iterator[Target]:
    """Every kernel that the plan launches exactly once, in the order of the launches."""
    several = len(subject.candidate.plan.launches) > 1
    for kernel in subject.kernels.values():
        place = launched(subject, kernel)
        if place is not None and kernel.span is not None:
            region = f"kernel:{kernel.name}" if several else "kernel"
            yield Target(kernel, place, region, subject.candidate.source)


def target_of(subject: Subject, move: Move) -> Target:
    """The target that a move was offered for; see :func:`region_in`."""
    for target in targets(subject):
        if move.region.startswith(target.region) and move.region[len(target.region) :][:1] in ("", "."):
            return target
        if target.region == "kernel" and not move.region.startswith("kernel"):
            return target
    raise KeyError(move.region)


def region_in(target: Target, part: str) -> str:
    """The region of a part of a kernel: ``loop:j``, or ``kernel:pass2.loop:j`` in a plan of several launches."""
    return part if target.region == "kernel" else f"{target.region}.{part}"


def part_of(move: Move) -> str:
    """The part of the kernel that a region made by :func:`region_in` names."""
    return move.region.rsplit(".", 1)[-1]


def rewritten(
    subject: Subject, target: Target, move: Move, kernel: KernelForm | None = None, *,
    launch: Callable[[Launch], Launch] | None = None, helpers: str = "", flags: Sequence[str] = (),
) -> Candidate:  # fmt: skip
    """The candidate with a new kernel, launch or flags, and the move in its history."""
    candidate, plan = subject.candidate, subject.candidate.plan
    source = candidate.source if kernel is None else replace_kernel(candidate.source, target.kernel, kernel, helpers)
    if launch is not None:
        plan = with_launch(plan, target.place.position, launch)
    plan = with_flags(plan, flags)
    return replace(candidate, source=source, plan=plan, actions=(*candidate.actions, move.name))


def with_flags(plan: Plan, flags: Sequence[str]) -> Plan:
    """The plan with compiler flags added, each in place of an earlier one for the same option."""
    kept = [f for f in plan.flags if f.split("=")[0] not in {g.split("=")[0] for g in flags}]
    return replace(plan, flags=(*kept, *flags))


def _size_text(e: Expr, target: Target) -> str | None:
    value = integer(e)
    if value is not None:
        return str(value)
    match e:
        case Name(text):
            return _named(text, target)
        case Cast(_, operand):
            return _size_text(operand, target)
        case Binary("+" | "-" | "*" | "/" | "%" | "<<" | ">>" as op, left, right):
            a, b = _size_text(left, target), _size_text(right, target)
            return None if a is None or b is None else f"({a} {'//' if op == '/' else op} {b})"
        case Call(Name("min" | "max" as function), (left, right)):
            a, b = _size_text(left, target), _size_text(right, target)
            return None if a is None or b is None else f"{function}({a}, {b})"
        case Ternary(Binary("<" | "<=" | ">" | ">=" as op, left, right), yes, no):
            parts = [_size_text(x, target) for x in (left, right, yes, no)]
            if None not in parts:
                return f"(({parts[2]}) if ({parts[0]}) {op} ({parts[1]}) else ({parts[3]}))"
    return None


def _named(text: str, target: Target) -> str | None:
    if text in target.constants:
        return str(target.constants[text])
    for param, arg in zip(target.kernel.params, target.launch.args, strict=True):
        if param.name != text or text in target.known.changed:
            continue
        if isinstance(arg, ScalarArgument):
            return arg.value
        found = [a for a in target.contract.args if a.name == arg and a.role is Role.SCALAR]
        return found[0].value if found else None
    return None


# ---------------------------------------------------------------- what holds for all sizes


@lru_cache(maxsize=64)
def sample_sizes(contract: Contract) -> tuple[dict[str, int], ...]:
    """Size assignments that cover the corners, the timed values and the space between: fixed for a contract."""
    chance = random.Random(20)
    found = [{s.name: v for s, v in zip(contract.sizes, row, strict=True)} for row in _corners(contract)]
    found += contract.timed_sizes()
    for _ in range(SAMPLES):
        found.append({s.name: _draw(chance, s.minimum, s.maximum) for s in contract.sizes})
    return tuple(found)


def _corners(contract: Contract) -> list[tuple[int, ...]]:
    rows: list[tuple[int, ...]] = [()]
    for size in contract.sizes[:4]:
        near = {size.minimum, min(size.minimum + 1, size.maximum), size.maximum}
        rows = [(*row, value) for row in rows for value in sorted(near)]
    rest = tuple(s.maximum for s in contract.sizes[4:])
    return [(*row, *rest) for row in rows]


def _draw(chance: random.Random, low: int, high: int) -> int:
    """Small values as often as large ones, so that remainders of small sizes are met too."""
    if high - low < 8 or chance.random() < 0.5:
        return chance.randint(low, min(high, low + 2048))
    return chance.randint(low, high)


def always(contract: Contract, condition: str) -> bool:
    """Whether a size expression is true for every sampled assignment. False when it does not evaluate."""
    try:
        return all(evaluate_int(condition, sizes) for sizes in sample_sizes(contract))
    except ContractError:
        return False


def largest(contract: Contract, text: str) -> int | None:
    """The largest value of a size expression over the samples, the maximum of every size among them."""
    try:
        return max(evaluate_int(text, sizes) for sizes in sample_sizes(contract))
    except (ContractError, ValueError):
        return None


def number(value: int) -> Expr:
    """An integer literal."""
    return Literal(str(value))
