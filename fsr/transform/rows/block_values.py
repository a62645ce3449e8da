"""Values of which every thread of a block holds a part, and what makes one of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fsr.analysis.accumulators import accumulators
from fsr.analysis.collective import Combined, combined_value
from fsr.analysis.effects import Unclear
from fsr.analysis.macros import constants
from fsr.analysis.parallel import private_names
from fsr.analysis.types import FLOATING, INT, bare
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Declare,
    Expr,
    For,
    If,
    Index,
    KernelForm,
    Literal,
    Member,
    Name,
    Param,
    Return,
    Stmt,
    Unary,
)  # fmt: skip
from fsr.source.mapping import substitute
from fsr.source.parse import parse_device_functions
from fsr.source.walk import declared, integer, is_zero, names_changed, names_mentioned, walk_stmts, without_casts
from fsr.transform.target import Target

THREAD = Member(Name("threadIdx"), "x")
_SAME = {"+": ("sum",), "*": ("product",), "max": ("max", "greatest"), "min": ("min", "least"), "&": ("and",),
         "|": ("or",)}  # fmt: skip
_DECIMAL = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[fFlL]?")
_IDEMPOTENT = frozenset(["max", "min", "greatest", "least", "and", "or"])


@dataclass(frozen=True, slots=True)
class Partial:
    """Each thread holds its part of a value folded by ``operator``; ``leaders``: thread 0 alone holds the whole.
    ``start``: the number that every part began with, a float where the variable is one (None: not known)."""

    operator: str
    leaders: bool = False
    start: int | float | None = None


@dataclass(slots=True)
class Combiners:
    """Which functions of the file, called by a block of ``threads``, combine a value over the block."""

    threads: int
    functions: Mapping[str, KernelForm]
    constants: Mapping[str, int]
    _known: dict[str, Combined | None] = field(default_factory=dict)

    @classmethod
    def of(cls, found: Target, threads: int) -> Combiners:
        """Those of a launched kernel."""
        given = constants(found.source, found.kernel, found.launch.entry)
        return cls(threads, parse_device_functions(found.source), given)

    def combines(self, call: Call, part: Partial) -> bool | None:
        """Whether the result of a call that combines such parts is every thread's (or else thread 0's alone); None when
        it is no such call, or puts a number among the parts that none of them need exceed."""
        name = call.callee.text if isinstance(call.callee, Name) else ""
        found = self.combined(name) if self.for_block(call.template_args) else None
        if found is None or part.operator not in _SAME.get(found.operator, ()):
            return None
        return found.everywhere if _within(found, part.start) else None

    def combined(self, name: str) -> Combined | None:
        """What the function of that name makes of one value a thread; None when that cannot be shown."""
        if name in self.functions and name not in self._known:
            function = self.functions[name]
            whole = [n for kind, n in function.template_parameters if kind in ("int", "unsigned", "size_t")]
            known = {**self.constants, **dict.fromkeys(whole, self.threads)}
            self._known[name] = combined_value(function, self.threads, self.functions, known)
        return self._known.get(name)

    def tree_combines(self, run: Sequence[Stmt], array: str, type_: str, part: str, operator: str) -> bool:
        """Whether the statements, from ``array[threadIdx.x] = part`` on, leave the whole in ``array[0]``."""
        shared = Declare(type_, array, None, (Literal(str(self.threads)),), ("__shared__",))
        value = Param(type_, "fsr_part")
        body = (
            shared,
            *substitute(tuple(run), {part: Name(value.name)}),
            Return(Index(Name(array), Literal("0"))),
        )
        found = combined_value(KernelForm("fsr_tree", (value,), body), self.threads, self.functions, self.constants)
        fits = found is not None and found.everywhere and found.limit is None
        return fits and found is not None and operator in _SAME.get(found.operator, ())

    def for_block(self, templates: tuple[str, ...]) -> bool:
        """Whether integer template arguments of a call are the block's size."""
        values = [integer(Literal(t)) if t[:1].isdigit() else self.constants.get(t) for t in templates]
        return all(v is None or v == self.threads for v in values)


def _within(found: Combined, start: int | float | None) -> bool:
    """Whether parts that began with that number are no worse than what the function puts among them: ``-1e20f`` for
    warps that a block does not have, 0 for magnitudes."""
    if found.limit is None:
        return True
    if start is None or (isinstance(start, int) and not isinstance(found.limit, int)):
        return False  # as floats, whole numbers would be rounded
    return start >= found.limit if found.operator == "max" else start <= found.limit


def folds_of(loop: For, kernel: KernelForm) -> dict[str, str]:
    """Name to operator of what the loop folds into variables from outside. Raises Unclear where it changes one in any
    other way."""
    pointers = {p.name for p in kernel.params if p.is_pointer}
    pointers |= {name for name, s in declared(kernel.body).items() if "*" in s.type}
    targets = [s.target for s in walk_stmts(loop.body) if isinstance(s, Assign)]
    written = {target.text for target in targets if isinstance(target, Name)}
    if written & pointers:
        raise Unclear
    outer = frozenset(written - private_names(loop))
    found = accumulators(loop.body)
    if not outer <= found.keys():
        raise Unclear
    return found


def starts_neutral(name: str, operator: str, before: Sequence[Stmt]) -> bool:
    """Whether a variable's value before its loop may be counted once for every thread."""
    value = _start(name, before)
    return value is not None and _neutral(value, operator)


def start_number(name: str, before: Sequence[Stmt], types: Mapping[str, str]) -> int | float | None:
    """The number that a variable is set to last before its loop, a float where it is one; None for anything else, and
    for unsigned or narrow whole numbers. ``types``: of the variables."""
    value, type_ = _start(name, before), bare(types.get(name, ""))
    number = None if value is None else _number(value)
    if number is None or type_ not in (*FLOATING, INT):
        return None
    return number if type_ == INT and isinstance(number, int) else float(number) if type_ in FLOATING else None


def _start(name: str, before: Sequence[Stmt]) -> Expr | None:
    """What a variable is set to last, by a statement that always runs; None where it is something else."""
    for s in reversed(before):
        if name not in names_mentioned([s]) and name not in declared([s]) and name not in names_changed([s]):
            continue
        match s:
            case Declare(name=declared_name, init=init) if declared_name == name and not s.dims:
                return init
            case Assign(target=Name(text=target), op="=", value=value) if target == name:
                return value
        return None
    return None


def _number(e: Expr) -> int | float | None:
    """The value of a literal, with a sign or without; None for any other expression."""
    match without_casts(e):
        case Unary("-", operand):
            inner = _number(operand)
            return None if inner is None else -inner
        case Literal(text) as literal:
            whole = integer(literal)
            return float(found[1]) if whole is None and (found := _DECIMAL.fullmatch(text)) else whole
    return None


def _neutral(value: Expr, operator: str) -> bool:
    if operator in _IDEMPOTENT:
        return True
    if operator == "product":
        return isinstance(value, Literal) and value.text.rstrip("fF") in ("1", "1.0", "1.")
    return is_zero(value)


def leaders_branch(s: If) -> tuple[Stmt, ...] | None:
    """What thread 0 of the block does alone, for ``if (threadIdx.x == 0) { ... }``; None for any other branch."""
    match s:
        case If(test=Binary(op="==", left=left, right=right), then=then, orelse=()):
            if (left == THREAD and integer(right) == 0) or (right == THREAD and integer(left) == 0):
                return then
    return None
