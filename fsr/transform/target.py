"""Where a move takes place: a kernel that the plan launches once, and what is known of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations

from fsr.analysis.aliasing import may_alias
from fsr.analysis.definitions import Definitions, definitions
from fsr.analysis.domain import Domain, domain, flattened
from fsr.analysis.functions import Functions, functions_of, thread_aware
from fsr.analysis.macros import constants
from fsr.analysis.polynomial import Poly
from fsr.analysis.returned import written_out
from fsr.analysis.types import aliases
from fsr.contract.model import Argument, Contract
from fsr.records import Candidate, Launch, Role, ScalarArgument
from fsr.source.arrays import with_memory_of_file
from fsr.source.element_references import with_elements
from fsr.source.entry import function_name
from fsr.source.form import Binary, Call, Cast, Declare, Expr, Index, KernelForm, Name, Ternary
from fsr.source.moved_pointers import with_own_pointers
from fsr.source.narrowing import narrowed
from fsr.source.number_limits import with_short_limits
from fsr.source.walk import base_name, identifiers, integer, taken_names, walk_stmts
from fsr.transform.placement import Placed, placed
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import always, constant_of, largest, largest_timed


@dataclass(frozen=True)
class Target:
    """One launch of a candidate's plan, at ``position``, whose kernel is launched nowhere else. ``region``: 'kernel',
    or 'kernel:<name>' in a plan of several launches."""

    kernel: KernelForm
    position: int
    candidate: Candidate
    contract: Contract
    region: str

    @property
    def launch(self) -> Launch:
        """How the plan launches it."""
        return self.candidate.plan.launches[self.position]

    @property
    def source(self) -> str:
        """The candidate's text."""
        return self.candidate.source

    @cached_property
    def passed(self) -> dict[str, str]:
        """Parameter name to the contract argument or scratch buffer passed for it."""
        pairs = zip(self.kernel.params, self.launch.args, strict=True)
        return {p.name: a for p, a in pairs if isinstance(a, str)}

    @cached_property
    def known(self) -> Definitions:
        """Its names."""
        return definitions(self.kernel, self.functions)

    @property
    def functions(self) -> Functions:
        """What the functions of its file do."""
        return functions_of(self.source)

    @cached_property
    def constants(self) -> Mapping[str, int]:
        """Macros, file-level constants and template arguments with an integer value."""
        return constants(self.source, self.kernel, self.launch.entry)

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The constants, and the extents of a block of constant size as ``blockDim.x`` to ``z``, which kernels write as
        numbers, too."""
        extents = zip("xyz", self.block or (), strict=False)
        return {**{f"blockDim.{axis}": n for axis, n in extents}, **self.constants}

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name in use in the kernel, and the macros of the file."""
        return taken_names(self.kernel) | frozenset(self.constants)

    @cached_property
    def aliases(self) -> Mapping[str, str]:
        """The file's own names for plain types."""
        return aliases(self.source)

    @cached_property
    def type_names(self) -> frozenset[str]:
        """Names that stand for types: template parameters, aliases, typedefs."""
        named = {name for kind, name in self.kernel.template_parameters if kind in ("typename", "class")}
        return frozenset(named | set(self.aliases))

    @cached_property
    def block(self) -> tuple[int, int, int] | None:
        """The block when it is constant, whether written as a number or not (``min(n, 128)`` of an n from 128 on)."""
        x, y, z = (constant_of(self.contract, text) or 0 for text in self.launch.block)
        return (x, y, z) if x and y and z else None

    @property
    def threads(self) -> int | None:
        """Threads a block when that is constant."""
        return None if self.block is None else self.block[0] * self.block[1] * self.block[2]

    @property
    def row_threads(self) -> int | None:
        """Threads a block of a one-dimensional block of constant size; None for any other."""
        return self.threads if self.launch.block[1:] == ("1", "1") else None

    @property
    def exact(self) -> bool:
        """Whether results must stay bit for bit."""
        return self.contract.tolerance.exact

    # ------------------------------------------------------------ memory

    def may_alias(self, one: str, other: str) -> bool:
        """Whether two pointer parameters may share memory."""
        return one == other or may_alias(self.passed[one], self.passed[other], self.contract.aliasing)

    @cached_property
    def unaliased(self) -> frozenset[str]:
        """The pointer parameters that share memory with no other."""
        pointers = [p.name for p in self.kernel.params if p.name in self.passed and p.is_pointer]
        pairs = [pair for pair in combinations(pointers, 2) if self.may_alias(*pair)]
        return frozenset(pointers) - {name for pair in pairs for name in pair}

    @property
    def aliasing(self) -> bool:
        """Whether any two pointer parameters may share memory."""
        return any(p.is_pointer and p.name not in self.unaliased for p in self.kernel.params)

    def argument(self, parameter: str) -> Argument | None:
        """What the contract says of what is passed for a parameter; None for a scratch buffer, a null pointer or a
        scalar of fsr's."""
        own = (a for a in self.contract.args if a.role is not Role.NULL)
        return next((a for a in own if a.name == self.passed.get(parameter)), None)

    def elements(self, parameter: str) -> str | None:
        """The number of elements of the buffer behind a pointer parameter, as a size expression."""
        found = self.argument(parameter)
        return None if found is None else " * ".join(f"({s})" for s in found.shape) or "1"

    def alignment(self, parameter: str) -> int:
        """The alignment in bytes that is promised for a pointer parameter; 1 when nothing is."""
        found = self.argument(parameter)
        return (found.alignment if found is not None else None) or 1

    # ------------------------------------------------------------ values

    def poly(self, e: Expr) -> Poly:
        """The polynomial of an integer expression, locals and constants written out."""
        return self.known.poly(e, self.constants)

    def size_text(self, e: Expr) -> str | None:
        """An integer expression as a size expression; None when it depends on more than sizes."""
        e = self.known.expand(e)
        return _named(e.text, self) if isinstance(e, Name) else _size_text(e, self)

    def poly_text(self, value: Poly) -> str | None:
        """A polynomial of sizes as a size expression; None when it depends on more."""
        terms = []
        for names, count in value.terms:
            sizes = [self.size_text(Name(name)) for name in names]
            if None in sizes:
                return None
            terms.append(" * ".join([str(count), *(f"({size})" for size in sizes)]))
        return " + ".join(terms) or "0"

    def largest(self, e: Expr) -> int | None:
        """The largest value of an expression over the contract's sizes, or of what an input holds by the contract; None
        when it cannot be told."""
        text = self.limit(e, "high")
        return None if text is None else largest(self.contract, text)

    def at_least(self, e: Expr, least: int) -> bool:
        """Whether an expression's values, told as for :meth:`largest`, are never below a number."""
        text = self.limit(e, "low")
        return text is not None and always(self.contract, f"({text}) >= {least}")

    def declared_as(self, e: Expr) -> Expr:
        """What a variable that never changes was declared as, once; any other expression as it is."""
        if not isinstance(e, Name) or e.text in self.known.changed:
            return e
        own = [s for s in walk_stmts(self.kernel.body) if isinstance(s, Declare) and s.name == e.text]
        return own[0].init or e if len(own) == 1 else e

    def limit(self, e: Expr, side: str) -> str | None:
        """The size expression that the values of an expression reach at most ('high') or at least ('low'): of sizes, of
        what is read, and of sums and differences of these."""
        text = self.size_text(e)
        if text is not None:
            return text
        match e:
            case Name():
                value = self.declared_as(e)
                return None if value == e else self.limit(value, side)
            case Cast(operand=operand):
                return self.limit(operand, side)
            case Index():
                found = self.argument(base_name(e) or "")
                return getattr(found.constraints, side) if found is not None and found.role is Role.IN else None
            case Binary("+" | "-" as op, left, right):
                other = {"high": "low", "low": "high"}[side] if op == "-" else side
                a, b = self.limit(left, side), self.limit(right, other)
                return None if a is None or b is None else f"(({a}) {op} ({b}))"
        return None

    def timed(self, e: Expr) -> int | None:
        """The largest value of an expression over the timed configurations; None when it cannot be told."""
        text = self.size_text(e)
        return None if text is None else largest_timed(self.contract, text)

    # ------------------------------------------------------------ points

    @property
    def points(self) -> Placed | None:
        """The kernel as a map over points, every axis bounded; None when it is no such map."""
        return _placed(self.source, self.kernel, self.launch, self.contract)

    @property
    def placed(self) -> Placed:
        """The same where it is known to be one; see :func:`point_targets`."""
        found = self.points
        assert found is not None
        return found

    @property
    def domain(self) -> Domain:
        """The points and what is done for each."""
        return self.placed.domain


@lru_cache(maxsize=256)
def _placed(source: str, kernel: KernelForm, launch: Launch, contract: Contract) -> Placed | None:
    plain = written_out(kernel, source)
    if identifiers(plain.body) & (thread_aware(source) - {kernel.name}):
        return None
    found = domain(plain, launch, constants(source, kernel, launch.entry))
    if found is None:
        return None
    return placed(flattened(found) or found, contract)


def target_for(subject: Subject, kernel: KernelForm) -> Target | None:
    """The launch of a kernel; None when the plan does not launch it, or more than once: what a rewrite may take for
    granted of one launch need not hold where others of the same kernel read what it wrote."""
    return subject.once(("target", kernel.name), lambda: _target_for(subject, kernel))


def _target_for(subject: Subject, kernel: KernelForm) -> Target | None:
    launches = subject.candidate.plan.launches
    found = [i for i, launch in enumerate(launches) if function_name(launch.entry) == kernel.name]
    if (
        len(found) != 1
        or launches[found[0]].repeated
        or len(launches[found[0]].args) != len(kernel.params)
        or kernel.span is None
    ):
        return None
    region = f"kernel:{kernel.name}" if len(launches) > 1 else "kernel"
    # Where old habits declare all variables at the head, none would be a turn's own; and a parameter that is moved to
    # a block's or a thread's part (``x += row * n``), or a reference to an element, would be no place that is known.
    whole = with_own_pointers(replace(kernel, body=with_memory_of_file(kernel, subject.candidate.source)))
    whole = with_elements(whole)
    body = narrowed(with_short_limits(whole.body))
    return Target(replace(kernel, body=body), found[0], subject.candidate, subject.contract, region)


def targets(subject: Subject) -> Iterator[Target]:
    """Every kernel that the plan launches exactly once."""
    for kernel in subject.kernels.values():
        found = target_for(subject, kernel)
        if found is not None:
            yield found


def point_targets(subject: Subject) -> Iterator[Target]:
    """The targets whose kernel is a map over points."""
    return (target for target in targets(subject) if target.points is not None)


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


def _size_text(e: Expr, target: Target) -> str | None:
    value = integer(e)
    if value is not None:
        return str(value)
    match e:
        case Name(text):
            found = _named(text, target)  # what callers pass may be a sum
            return found if found is None or found.isidentifier() or found.isdigit() else f"({found})"
        case Cast(_, operand):
            return _size_text(operand, target)
        case Binary("+" | "-" | "*" | "/" | "%" | "<<" | ">>" as op, left, right):
            a, b = _size_text(left, target), _size_text(right, target)
            if a is None or b is None or (op in "/%" and not always(target.contract, f"min(({a}), ({b})) >= 0")):
                return None  # C rounds to zero, size expressions round down
            return f"({a} {'//' if op == '/' else op} {b})"
        case Call(Name("min" | "max" as function), (left, right)):
            a, b = _size_text(left, target), _size_text(right, target)
            return None if a is None or b is None else f"{function}({a}, {b})"
        case Ternary(test, yes, no):
            parts = [_test_text(test, target), _size_text(yes, target), _size_text(no, target)]
            if None not in parts:
                return f"(({parts[1]}) if {parts[0]} else ({parts[2]}))"
    return None


def _test_text(e: Expr, target: Target) -> str | None:
    """A comparison of sizes, or several that are joined, as a size expression that is 1 or 0."""
    match e:
        case Binary("<" | "<=" | ">" | ">=" | "==" | "!=" as op, left, right):
            parts = _size_text(left, target), _size_text(right, target)
            return None if None in parts else f"(({parts[0]}) {op} ({parts[1]}))"
        case Binary("&&" | "||" as op, left, right):
            parts = _test_text(left, target), _test_text(right, target)
            return None if None in parts else f"(({parts[0]} {'*' if op == '&&' else '+'} {parts[1]}) > 0)"
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
    return None if text in target.known.types else _of_symbol(text, target.contract)


def _of_symbol(text: str, contract: Contract) -> str | None:
    """What callers always put into a ``__constant__`` integer."""
    for argument in contract.symbols():
        limits = argument.constraints
        if argument.symbol == text and argument.shape == ("1",) and argument.dtype.lstrip("u").startswith("int"):
            return limits.low if limits.low == limits.high else None
    return None
