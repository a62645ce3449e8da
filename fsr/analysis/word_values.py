"""Integers of C as many threads hold them at once: their values, how wide they are, and what operators make of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsr.analysis.types import integer_bytes
from fsr.hardware.c_types import BY_SPELLING
from fsr.source.form import Literal
from fsr.source.types import plain_type
from fsr.source.walk import integer

Values = NDArray[np.int64]
Lanes = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Kind:
    """An integer type. One of a single bit is ``bool``."""

    bits: int = 32
    signed: bool = True


@dataclass(frozen=True, slots=True)
class Word:
    """An integer of each thread, or one that all have; unsigned ones of 64 bits by their bits."""

    values: Values
    kind: Kind = Kind()


def word(value: Any, kind: Kind | None = None) -> Word:
    """A number, or one for each thread, as a value of a type."""
    found = kind or Kind()
    return Word(_wrapped(np.asarray(value, np.int64), found), found)


def kind_of(type_: str) -> Kind | None:
    """The type that is spelt so, aliases followed before; None for what is no integer."""
    plain = plain_type(type_, {})
    if plain == "bool":
        return Kind(1, False)
    size = integer_bytes(plain)
    return None if size is None else Kind(8 * size, not BY_SPELLING[plain].dtype.startswith("u"))


def literal(e: Literal) -> Word | None:
    """What a literal says; None where it is no integer."""
    if e.text in ("true", "false"):
        return word(e.text == "true", Kind(1, False))
    value = integer(e)
    if value is None or not 0 <= value < 1 << 63:
        return None
    suffix = re.sub(r"^0[xX][0-9a-fA-F']+|^[0-9bB']+", "", e.text).lower()
    unsigned, hexadecimal = "u" in suffix, e.text[:1] == "0"
    if "l" in suffix or value >= 1 << 32 or (value >= 1 << 31 and not unsigned and not hexadecimal):
        return word(value, Kind(64, not unsigned))
    return word(value, Kind(32, not unsigned and value < 1 << 31))


def converted(value: Word, kind: Kind) -> Word:
    """The value in another type."""
    return value if value.kind == kind else Word(_wrapped(value.values, kind), kind)


def truth(value: Word) -> Lanes:
    """For which threads it is not 0."""
    return np.asarray(value.values != 0)


def unary(op: str, value: Word) -> Word | None:
    """``-a``, ``+a``, ``~a``, ``!a``; None for other operators."""
    if op == "!":
        return word(value.values == 0)
    found = _promoted(value)
    with np.errstate(all="ignore"):
        made = {"-": np.negative, "+": np.positive, "~": np.invert}.get(op)
        return None if made is None else word(made(found.values), found.kind)


def binary(op: str, a: Word, b: Word, lanes: Lanes) -> Word | None:
    """What an operator makes of two values; None where C does not define it for one of the ``lanes``, whose values
    alone count."""
    if op in ("<<", ">>"):
        return _shifted(op, _promoted(a), b, lanes)
    left, right = _alike(_promoted(a), _promoted(b))
    x, y, kind = left.values, right.values, left.kind
    if kind == Kind(64, False):
        x, y = x.view(np.uint64), y.view(np.uint64)
    with np.errstate(all="ignore"):
        if op in ("/", "%"):
            if np.any(np.broadcast_to(y == 0, np.broadcast_shapes(y.shape, lanes.shape)) & lanes):
                return None
            y = np.where(y == 0, np.asarray(1, y.dtype), y)
            quotient = x // y if not kind.signed else np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))
            return word(_signed(quotient if op == "/" else x - quotient * y), kind)
        if op in _COMPARED:
            return word(_COMPARED[op](x, y))
        made = _MADE.get(op)
        return None if made is None else word(_signed(made(x, y)), kind)


def function(name: str, args: list[Word]) -> Word | None:
    """What functions of CUDA's make of integers; None for those that are not known here."""
    if name in ("min", "max", "umin", "umax") and len(args) == 2:
        a, b = _alike(_promoted(args[0]), _promoted(args[1]))
        if a.kind != Kind(64, False):
            return word((np.minimum if name.endswith("min") else np.maximum)(a.values, b.values), a.kind)
    if name in ("abs", "labs", "llabs") and len(args) == 1 and args[0].kind.signed:
        return word(np.abs(args[0].values), _promoted(args[0]).kind)
    if name in ("__mul24", "__umul24") and len(args) == 2:
        return word(args[0].values * args[1].values, Kind(32, name == "__mul24"))
    if name in ("__brev", "__popc") and len(args) == 1:
        bits = [(converted(args[0], Kind(32, False)).values >> at) & 1 for at in range(32)]
        places = [31 - at if name == "__brev" else 0 for at in range(32)]
        total = np.asarray(sum(bit << at for bit, at in zip(bits, places, strict=True)), np.int64)
        return word(total, Kind(32, name == "__popc"))
    return None


def _wrapped(values: Values, kind: Kind) -> Values:
    if kind.bits == 64:
        return values
    if kind.bits == 1:
        return np.asarray(values != 0, np.int64)
    kept = values & ((1 << kind.bits) - 1)
    top = 1 << (kind.bits - 1)
    return (kept ^ top) - top if kind.signed else kept


def _signed(values: Any) -> Values:
    whole: Values = np.asarray(values)
    return whole.view(np.int64) if whole.dtype == np.uint64 else whole.astype(np.int64)


def _promoted(value: Word) -> Word:
    return converted(value, Kind()) if value.kind.bits < 32 else value


def _alike(a: Word, b: Word) -> tuple[Word, Word]:
    wide = max(a.kind.bits, b.kind.bits)
    signed = all(w.kind.signed for w in (a, b) if w.kind.bits == wide)
    return converted(a, Kind(wide, signed)), converted(b, Kind(wide, signed))


def _shifted(op: str, a: Word, by: Word, lanes: Lanes) -> Word | None:
    wrong = (by.values < 0) | (by.values >= a.kind.bits)
    if np.any(np.broadcast_to(wrong, np.broadcast_shapes(wrong.shape, lanes.shape)) & lanes):
        return None
    places = np.where(wrong, 0, by.values)
    if op == "<<":
        return word(a.values << places, a.kind)
    if a.kind == Kind(64, False):
        return word((a.values.view(np.uint64) >> places.astype(np.uint64)).view(np.int64), a.kind)
    return word(a.values >> places, a.kind)


_MADE: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
}  # fmt: skip
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
