"""What a contract promises of its callers, as C conditions over a launcher's parameters: outside, the original runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Protocol

from fsr.expressions import names, to_c
from fsr.hardware.c_types import BY_DTYPE
from fsr.records import Role


class PromisedSize(Protocol):
    """The part of a contract's size that is promised."""

    @property
    def name(self) -> str: ...
    @property
    def minimum(self) -> int: ...
    @property
    def maximum(self) -> int: ...


class PromisedValues(Protocol):
    """The part of an argument's constraints that is promised of a scalar."""

    @property
    def low(self) -> str | None: ...
    @property
    def high(self) -> str | None: ...
    @property
    def nonnegative(self) -> bool: ...
    @property
    def positive(self) -> bool: ...
    @property
    def values(self) -> Sequence[float]: ...


class PromisedArgument(Protocol):
    """The part of a contract's argument that is promised."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def role(self) -> Role: ...
    @property
    def shape(self) -> Sequence[str]: ...
    @property
    def value(self) -> str | None: ...
    @property
    def alignment(self) -> int: ...
    @property
    def constraints(self) -> PromisedValues: ...
    @property
    def member(self) -> str: ...
    @property
    def layout(self) -> object | None: ...


class Promises(Protocol):
    """The part of a contract that is promised."""

    @property
    def sizes(self) -> Sequence[PromisedSize]: ...
    def passed(self) -> Sequence[PromisedArgument]: ...
    @property
    def aliasing(self) -> Sequence[Sequence[str]]: ...


def conditions(promises: Promises, known: Mapping[str, str]) -> list[str]:
    """The conditions under which a winner was proven, each a C expression over the arguments and ``NAME_size``.

    ``known``: the sizes that the launcher knows, each with the argument that holds it, if any; what depends on another
    cannot be checked and is left out, as is what lies in memory. Ranges of sizes and scalars, scalars that hold a size,
    pointers that are null, alignments, and buffers that may not overlap."""
    return [
        *(text for size in promises.sizes if size.name in known for text in _range(size)),
        *(text for a in promises.passed() if a.role is Role.SCALAR for text in _scalar(a, known)),
        *(f"{a.name} == nullptr" for a in promises.passed() if a.role is Role.NULL),
        *(f"(size_t){a.name} % {a.alignment} == 0" for a in _buffers(promises) if a.alignment > 1),
        *_apart(promises, known),
    ]


def in_c(text: str) -> str:
    """A size expression as C over the ``NAME_size`` variables."""
    found = to_c(text)
    for name in names(text):
        found = re.sub(rf"\b{name}\b", f"{name}_size", found)
    return found


def _range(size: PromisedSize) -> Iterator[str]:
    yield f"{size.name}_size >= {size.minimum}LL"
    yield f"{size.name}_size <= {size.maximum}LL"


def _scalar(argument: PromisedArgument, known: Mapping[str, str]) -> Iterator[str]:
    kind, rules = BY_DTYPE[argument.dtype].spelling, argument.constraints
    if argument.value is not None:
        held = known.get(argument.value) == argument.name
        if not held and argument.dtype not in HALVES and names(argument.value) <= set(known):
            yield f"{argument.name} == ({kind}){in_c(argument.value)}"
        return
    if rules.values and argument.dtype not in HALVES:
        yield "(" + " || ".join(f"{argument.name} == ({kind}){_literal(v)}" for v in rules.values) + ")"
        return
    if argument.dtype not in PLAIN:
        return
    for sign, bound in ((">=", rules.low), ("<=", rules.high)):
        if bound is not None and names(bound) <= set(known):
            yield f"{argument.name} {sign} {in_c(bound)}"
    if rules.positive or rules.nonnegative:
        yield f"{argument.name} {'>' if rules.positive else '>='} 0"


def _literal(value: float) -> str:
    """A number as C has it; of whole ones of at most 64 bits the least is no literal."""
    if isinstance(value, float):
        return repr(value)
    if value < -(2**63) + 1:
        return f"({value + 1}LL - 1)"
    return f"{value}{'LL' if value < 2**63 else 'ULL'}"


PLAIN = frozenset({"float32", "float64", "int8", "int16", "int32", "int64"})
HALVES = frozenset({"float16", "bfloat16"})
"""Host code compares PLAIN ones as they are, unsigned ones with what is not negative, and HALVES not everywhere."""


def _buffers(promises: Promises) -> list[PromisedArgument]:
    return [a for a in promises.passed() if a.role not in (Role.SCALAR, Role.NULL)]


def _apart(promises: Promises, known: Mapping[str, str]) -> Iterator[str]:
    """No buffer that is written overlaps another, unless the contract says that the two may."""
    for one, other in combinations(_buffers(promises), 2):
        if one.role is Role.IN and other.role is Role.IN:
            continue
        if any({one.name, other.name} <= set(group) for group in promises.aliasing):
            continue
        if all(names(text) <= set(known) for text in (*one.shape, *other.shape)):
            before, behind = _end(one), _end(other)
            yield f"({before} <= (const char *){other.name} || {behind} <= (const char *){one.name})"


def _end(buffer: PromisedArgument) -> str:
    """One past the last byte of a buffer."""
    count = " * ".join(in_c(text) for text in buffer.shape) or "1LL"
    return f"(const char *){buffer.name} + sizeof({BY_DTYPE[buffer.dtype].spelling}) * ({count})"
