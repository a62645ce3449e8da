"""The functions that a plan's kernels reach, and the integers that each is given where it is called.

What a function is given by name (a template's argument, ``sort(window, 5 * 5)``) is a constant there, once it is
inlined. Nothing here may carry a proof: of overloads the first is looked at, so that who relies on a value tests it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from fsr.analysis.macros import constants
from fsr.records import Candidate
from fsr.source.entry import function_name
from fsr.source.form import Binary, Call, Cast, Declare, Expr, KernelForm, Literal, Name, Ternary, Unary
from fsr.source.integers import integer_of, integers
from fsr.source.parse import parse_device_functions, parse_kernels
from fsr.source.walk import integer, names_assigned, variables, walk_exprs, walk_stmts

_MOST = 64  # instances of a file, beyond which nothing is said
_ARITHMETIC: Mapping[str, Callable[[int, int], int | None]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b, "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b, "<<": lambda a, b: a << b if 0 <= b < 32 else None,
    ">>": lambda a, b: a >> b if 0 <= b < 32 else None, "&": lambda a, b: a & b, "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b, "&&": lambda a, b: bool(a) and bool(b), "||": lambda a, b: bool(a) or bool(b),
    # C rounds to zero
    "/": lambda a, b: None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "%": lambda a, b: None if b == 0 else abs(a) % abs(b) * (1 if a >= 0 else -1),
}  # fmt: skip
_INTS = frozenset(["int", "unsigned", "unsigned int", "short", "long", "size_t", "auto"])


@dataclass(frozen=True, slots=True)
class Instance:
    """A function as one call has it. ``known``: the integers that its names stand for."""

    form: KernelForm
    known: Mapping[str, int]


@lru_cache(maxsize=64)
def instances(candidate: Candidate) -> tuple[Instance, ...]:
    """The kernels of a plan and what they call, once for each set of constants; () where these are too many."""
    source, found = candidate.source, dict[tuple[str, frozenset[tuple[str, int]]], Instance]()
    functions, kernels = parse_device_functions(source), parse_kernels(source)
    waiting = list[Instance]()
    for entry in candidate.plan.entries:
        kernel = kernels.get(function_name(entry))
        if kernel is not None:
            own = {p.name for p in kernel.params}
            waiting.append(
                Instance(kernel, {k: v for k, v in constants(source, kernel, entry).items() if k not in own})
            )
    while waiting:
        form, told = (one := waiting.pop()).form, one.known
        told = {name: value for name, value in told.items() if name not in variables(form.body)}
        one = Instance(form, {**told, **declared_values(form, told)})
        key = form.name, frozenset(one.known.items())
        if key in found:
            continue
        found[key] = one
        if len(found) > _MOST:
            return ()
        waiting += _called(one, functions, integers(source))
    return tuple(found.values())


def value_of(e: Expr, known: Mapping[str, int]) -> int | None:
    """The value of an expression of integers; None where it depends on anything else, or passes 32 bits."""
    found = integer(e)
    match e:
        case Name(text):
            found = known.get(text)
        case Literal("true" | "false" as text):
            found = int(text == "true")
        case Cast(type_, operand) if type_.replace("const ", "") in _INTS:
            found = value_of(operand, known)
        case Unary("-" | "+" | "!" as op, operand) if (inner := value_of(operand, known)) is not None:
            found = {"-": -inner, "+": inner, "!": int(not inner)}[op]
        case Ternary(test, yes, no) if (holds := value_of(test, known)) is not None:
            found = value_of(yes if holds else no, known)
        case Binary(op, left, right) if op in _ARITHMETIC:
            a, b = value_of(left, known), value_of(right, known)
            made = None if a is None or b is None else _ARITHMETIC[op](a, b)
            found = None if made is None else int(made)
    return found if found is not None and -(2**31) <= found < 2**31 else None


def declared_values(form: KernelForm, known: Mapping[str, int]) -> dict[str, int]:
    """The variables of a function that have one value, and a constant one."""
    names, changed, found = variables(form.body), names_assigned(form.body), dict[str, int]()
    for s in walk_stmts(form.body):
        if isinstance(s, Declare) and s.init is not None and not s.dims and names.count(s.name) == 1:
            plain = s.type.removeprefix("const ").removeprefix("constexpr ")
            value = value_of(s.init, {**known, **found}) if plain in _INTS else None
            if value is not None and s.name not in changed:
                found[s.name] = value
    return found


def _called(one: Instance, functions: Mapping[str, KernelForm], everywhere: Mapping[str, int]) -> Iterator[Instance]:
    form, known = one.form, one.known
    for e in walk_exprs(form.body):
        callee = functions.get(e.callee.text) if isinstance(e, Call) and isinstance(e.callee, Name) else None
        if not isinstance(e, Call) or callee is None or callee.name == form.name:
            continue
        told = {name: value for name, value in everywhere.items() if all(p.name != name for p in callee.params)}
        for (_, name), text in zip(callee.template_parameters, e.template_args, strict=False):
            if (value := integer_of(text, known)) is not None:
                told[name] = value
        changed = names_assigned(callee.body)
        plain = {p.name for p in callee.params if p.type.removeprefix("const ") in _INTS} - changed
        values = ((p.name, value_of(a, known)) for p, a in zip(callee.params, e.args, strict=False))
        told |= {name: value for name, value in values if name in plain and value is not None}
        yield Instance(callee, told)
