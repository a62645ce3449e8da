"""What a value of a block's fold is, for the question whether several blocks' points may be folded before it.

A fold takes what its threads bring (leaves) to what it adds to memory. It may be given several blocks' leaves at once,
folded thread by thread, where it commutes with that: sums where it is linear and without a constant, minima and maxima
where it is monotone. That is told of each value by itself, whichever threads have which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

IDEMPOTENT = frozenset(["max", "min", "and", "or"])
_FLOATS = frozenset(["float", "double"])
_INTEGERS = {"int": 4, "unsigned int": 4, "long long": 8, "unsigned long long": 8}
FOLDED = _FLOATS | frozenset(_INTEGERS)
"""Types that are folded, in their usual spelling."""
_RISING = {
    "float": {"double"}, "int": {"long long", "double", "float"}, "long long": {"double", "float"},
    "unsigned int": {"unsigned long long", "long long", "double", "float"},
}  # fmt: skip
_BITS = {"__float_as_int": "int", "__float_as_uint": "unsigned int", "__double_as_longlong": "long long"}


class UnknownError(Exception):
    """Raised where it cannot be told: nothing is offered, then."""


@dataclass(frozen=True)
class Value:
    """``kind``: 'fixed' is the same whichever blocks of before the block stands for; 'leaves' is made of leaves by
    ``fold``, of type ``type``; 'shared' and 'global' are addresses in ``memory``, of elements of ``type``; 'unset' is
    not known yet. ``zero``: the literal 0. ``positive``: never less than 0; ``variable``: an address that goes by the
    name of what lies there."""

    kind: str
    fold: str = ""
    type: str = ""
    memory: str = ""
    zero: bool = False
    positive: bool = False
    variable: bool = False

    @property
    def is_address(self) -> bool:
        """Whether it is a place in memory."""
        return self.kind in ("shared", "global")


class Frame(dict[str, Value]):
    """Values by name, and the types that the names were declared with."""

    def __init__(self, values: Mapping[str, Value] | None = None, types: Mapping[str, str] | None = None) -> None:
        super().__init__(values or {})
        self.types = dict(types or {})

    def copied(self) -> Frame:
        """Another one with the same."""
        return Frame(self, self.types)

    def become(self, other: Frame) -> None:
        """Take what another one has."""
        self.clear()
        self |= other
        self.types = other.types


FIXED = Value("fixed")
ZERO = Value("fixed", zero=True, positive=True)
UNSET = Value("unset")


def joined(one: Value, other: Value) -> Value:
    """What is one or the other. Raises UnknownError."""
    if one == other or other.kind == "unset":
        return one
    if one.kind == "unset":
        return other
    positive = one.positive and other.positive
    match one.kind, other.kind:
        case "fixed", "fixed":
            return Value("fixed", positive=positive)
        case "leaves", "leaves" if (one.fold, one.type) == (other.fold, other.type):
            return replace(one, positive=positive)
        case "leaves", "fixed" if one.fold in IDEMPOTENT or other.zero:
            return replace(one, positive=positive)
        case "fixed", "leaves":
            return joined(other, one)
    raise UnknownError


def folded(one: Value, other: Value, fold: str) -> Value:
    """What an operation makes of two values. Raises UnknownError."""
    if "unset" in (one.kind, other.kind):
        return UNSET
    kinds = [v for v in (one, other) if v.kind == "leaves"]
    if any(v.fold != fold for v in kinds) or one.is_address or other.is_address:
        raise UnknownError
    if len({v.type for v in kinds}) > 1:
        wide = next(v for v in kinds if v.type == "double")
        return joined(*(converted(v, wide.type) for v in kinds)) if {v.type for v in kinds} <= _FLOATS else unknown()
    either = fold == "max" and (one.positive or other.positive)
    found = joined(one, other)
    return replace(found, positive=True, zero=False) if either else found


def unknown() -> Value:
    """Raises UnknownError, where a value is wanted."""
    raise UnknownError


def converted(value: Value, type_: str) -> Value:
    """A value as another type; the type's name may be that of a template's parameter. Raises UnknownError."""
    if value.kind != "leaves" or type_ in ("", "auto", value.type) or type_ not in (FOLDED | {"bool"} | _SMALL):
        return value
    if value.fold == "sum":
        # A narrow sum that is widened afterwards has fewer terms to overflow with, before.
        same = _INTEGERS.get(type_, 0) == _INTEGERS.get(value.type, -1)
        if not (same or {type_, value.type} <= _FLOATS):
            raise UnknownError
    elif value.fold in ("max", "min"):
        if type_ not in _RISING.get(value.type, set()):
            raise UnknownError
    elif _INTEGERS.get(type_, 0) != _INTEGERS.get(value.type, -1):
        raise UnknownError
    return replace(value, type=type_)


_SMALL = frozenset(["char", "signed char", "unsigned char", "short", "unsigned short", "__half", "__nv_bfloat16"])


def scaled(value: Value, by: Value) -> Value:
    """A sum's leaves multiplied, or divided, by what is fixed. Raises UnknownError."""
    if "unset" in (value.kind, by.kind):
        return UNSET
    if value.kind != "leaves" or value.fold != "sum" or by.kind != "fixed" or value.type not in _FLOATS:
        raise UnknownError
    return replace(value, positive=value.positive and by.positive)


def as_bits(value: Value, function: str) -> Value | None:
    """What a function gives that takes a number's bits for an integer: of numbers from 0 on, in the same order."""
    type_ = _BITS.get(function)
    if type_ is None or value.kind != "leaves":
        return None
    wanted = "double" if type_ == "long long" else "float"
    if value.fold not in ("max", "min") or not value.positive or value.type != wanted:
        raise UnknownError
    return replace(value, type=type_)
