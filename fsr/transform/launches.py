"""How the plan of a candidate launches one of its kernels, and what the contract tells about its scalars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fsr.analysis.aliasing import any_alias
from fsr.analysis.types import is_integer
from fsr.contract.model import Contract
from fsr.errors import ContractError
from fsr.expressions import evaluate_int
from fsr.records import Launch, Plan, Role, ScalarArgument
from fsr.source.entry import function_name
from fsr.source.form import Binary, Cast, Declare, Expr, KernelForm, Literal, Name
from fsr.source.walk import names_changed, names_in, walk_stmts
from fsr.transform.protocol import Subject

MAX_INT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Launched:
    """A kernel launched exactly once by the plan: ``position`` is the launch's place in it."""

    kernel: KernelForm
    launch: Launch
    position: int
    contract: Contract
    source: str

    @property
    def passed(self) -> dict[str, str]:
        """Parameter name to the contract argument or scratch buffer passed for it."""
        pairs = zip(self.kernel.params, self.launch.args, strict=False)
        return {p.name: a for p, a in pairs if isinstance(a, str)}

    def size_text(self, expr: Expr) -> str | None:
        """An integer expression over the kernel's parameters as a size expression; None when it is none."""
        match expr:
            case Literal():
                text = expr.text.rstrip("uUlL")
                return text if text.isdigit() else None
            case Cast(operand=inner):
                return self.size_text(inner)
            case Binary(op="+" | "-" | "*", left=left, right=right):
                a, b = self.size_text(left), self.size_text(right)
                return None if a is None or b is None else f"({a} {expr.op} {b})"
            case Binary(op="/", left=left, right=right):
                a, b = self.size_text(left), self.size_text(right)
                if a is None or b is None or "-" in a + b:
                    return None  # C rounds to zero, size expressions round down
                return f"({a} // {b})"
            case Name(text=text):
                return self._scalar_text(text) or self._local_text(text)
        return None

    def _local_text(self, name: str) -> str | None:
        """The value of a local integer that is set once, where it is declared."""
        found = [s for s in walk_stmts(self.kernel.body) if isinstance(s, Declare) and s.name == name]
        if len(found) != 1 or found[0].init is None or found[0].dims or name in names_changed(self.kernel.body):
            return None
        if not is_integer(found[0].type) or name in names_in(found[0].init):
            return None
        return self.size_text(found[0].init)

    def _scalar_text(self, parameter: str) -> str | None:
        for param, arg in zip(self.kernel.params, self.launch.args, strict=False):
            if param.name != parameter:
                continue
            if isinstance(arg, ScalarArgument):
                return arg.value
            try:
                argument = self.contract.argument(arg)
            except KeyError:
                return None
            return argument.value if argument.role is Role.SCALAR else None
        return None

    def largest(self, expr: Expr) -> int | None:
        """The largest value of an expression over the contract's sizes; None when it cannot be told.

        Right for expressions that grow with every size, which products and sums of sizes do.
        """
        text = self.size_text(expr)
        return None if text is None else largest_value(text, self.contract)

    def timed(self, expr: Expr) -> int | None:
        """The largest value of an expression over the timed configurations; None when it cannot be told."""
        text = self.size_text(expr)
        if text is None:
            return None
        try:
            return max(evaluate_int(text, sizes) for sizes in self.contract.timed_sizes())
        except ContractError:
            return None


def distinct(found: Launched) -> bool:
    """Whether the pointers that the launch passes never share memory, so that ``__restrict__`` holds."""
    buffers = [found.passed[p.name] for p in found.kernel.params if p.is_pointer and p.name in found.passed]
    return not any_alias(buffers, found.contract.aliasing)


def launched(subject: Subject, kernel: KernelForm) -> Launched | None:
    """How the plan launches the kernel; None when it does not, or more than once."""
    found = [
        (position, launch)
        for position, launch in enumerate(subject.candidate.plan.launches)
        if function_name(launch.entry) == kernel.name
    ]
    if len(found) != 1 or len(found[0][1].args) != len(kernel.params):
        return None
    position, launch = found[0]
    return Launched(kernel, launch, position, subject.contract, subject.candidate.source)


def one_thread_each(grid: str, count: str, threads: int) -> bool:
    """Whether a grid, as a size expression, is written as just the blocks of ``threads`` that ``count`` needs."""
    grid, count = grid.replace(" ", ""), count.replace(" ", "")
    return grid in (f"ceil_div({count},{threads})", f"({count}+{threads - 1})//{threads}")


def largest_value(text: str, contract: Contract) -> int | None:
    """The value of a size expression with every size at its maximum; None when it does not evaluate."""
    try:
        return evaluate_int(text, {s.name: s.maximum for s in contract.sizes})
    except ContractError:
        return None


def with_launch(plan: Plan, position: int, change: Callable[[Launch], Launch]) -> Plan:
    """The plan with one of its launches changed."""
    launches = list(plan.launches)
    launches[position] = change(launches[position])
    return replace(plan, launches=tuple(launches))


def threads_of(launch: Launch) -> int | None:
    """Threads a block of a one-dimensional block of constant size; None for any other."""
    x, y, z = launch.block
    if (y, z) != ("1", "1") or not x.isdigit():
        return None
    return int(x)
