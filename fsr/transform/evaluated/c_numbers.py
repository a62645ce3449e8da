"""Whole numbers of C and what its operators make of them (ISO C++17, sections 7 and 8: conversions, expressions)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from fsr.analysis.types import resolved
from fsr.hardware.c_types import BY_SPELLING
from fsr.source.form import Expr, Literal, Unary


class Unfit(Exception):  # noqa: N818  # not an error: nothing is offered
    """Raised where it is not known what happens."""


class Kind(NamedTuple):
    """A whole number's type: its bytes, and whether it has a sign."""

    bytes: int
    signed: bool

    @property
    def range(self) -> tuple[int, int]:
        """The least and the greatest number of the type."""
        bits = 8 * self.bytes
        return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if self.signed else (0, (1 << bits) - 1)


class Number(NamedTuple):
    """A value of a type."""

    value: int
    kind: Kind


INT, UNSIGNED, LONG, UNSIGNED_LONG = Kind(4, True), Kind(4, False), Kind(8, True), Kind(8, False)
_ELSEWHERE = frozenset(["char", "long", "unsigned long"])  # their sign or size is not the same on every host
_LITERAL = re.compile(r"(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)([uUlL]*)")
_SUFFIX = {INT: "", UNSIGNED: "u", LONG: "ll", UNSIGNED_LONG: "ull"}


def kind_of(type_: str, names: Mapping[str, str]) -> Kind | None:
    """The kind of a type as spelt in a file with these aliases; None for any that is no such number."""
    if re.search(r"[*&]|\bvolatile\b", type_) or resolved(type_, {}) in _ELSEWHERE:
        return None
    plain = resolved(type_, names)
    known = BY_SPELLING.get(plain)
    if known is None or plain in _ELSEWHERE or not re.fullmatch(r"u?int\d+", known.dtype):
        return None
    return Kind(known.bytes, not known.dtype.startswith("u"))


def literal(text: str) -> Number | None:
    """The value of a literal; None for what is none of a whole number."""
    found = _LITERAL.fullmatch(text)
    if found is None:
        return None
    digits, suffix = found[1], found[2].lower()
    decimal = digits == "0" or digits[0] != "0"
    value = int(digits, 10 if decimal else 16 if digits[1:2] in "xX" else 8)
    kinds = (INT, UNSIGNED, LONG, UNSIGNED_LONG)
    fits = [k for k in kinds if k.range[0] <= value <= k.range[1] and (k.bytes == 8 or "l" not in suffix)]
    fits = [k for k in fits if k.signed is False or "u" not in suffix]
    fits = [k for k in fits if k.signed or "u" in suffix or not decimal]
    return Number(value, fits[0]) if fits else None


def expression(n: Number) -> Expr:
    """A number as C has it. Raises Unfit for one that no literal spells."""
    n = promoted(n)
    if n.value == n.kind.range[0] and n.kind.signed:
        raise Unfit
    spelt = Literal(f"{abs(n.value)}{_SUFFIX[n.kind]}")
    return spelt if n.value >= 0 else Unary("-", spelt)


def converted(n: Number, kind: Kind) -> Number:
    """The number as another type has it, modulo its size."""
    value = n.value & ((1 << (8 * kind.bytes)) - 1)
    if kind.signed and value > kind.range[1]:
        value -= 1 << (8 * kind.bytes)
    return Number(value, kind)


def promoted(n: Number) -> Number:
    """The number as operators take it."""
    return Number(n.value, INT) if n.kind.bytes < INT.bytes else n


def unary(op: str, n: Number) -> Number:
    """``-n``, ``+n``, ``~n`` or ``!n``. Raises Unfit."""
    n = promoted(n)
    match op:
        case "!":
            return Number(int(not n.value), INT)
        case "-":
            return _made(-n.value, n.kind)
        case "~":
            return converted(Number(~n.value, n.kind), n.kind)
        case "+":
            return n
    raise Unfit


def binary(op: str, a: Number, b: Number) -> Number:
    """``a op b``. Raises Unfit where C leaves it undefined, or the operator is none of numbers."""
    a, b = promoted(a), promoted(b)
    if op in ("<<", ">>"):
        if not 0 <= b.value < 8 * a.kind.bytes or (op == "<<" and a.value < 0):
            raise Unfit
        return _made(a.value << b.value if op == "<<" else a.value >> b.value, a.kind)
    kind = _common(a.kind, b.kind)
    x, y = converted(a, kind).value, converted(b, kind).value
    if op in _COMPARED:
        return Number(int(_COMPARED[op](x, y)), INT)
    if op in ("&&", "||"):
        return Number(int(bool(a.value and b.value) if op == "&&" else bool(a.value or b.value)), INT)
    if op in _MADE:
        return _made(_MADE[op](x, y), kind)
    if op in ("/", "%") and y:
        whole = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return _made(whole if op == "/" else x - y * whole, kind)
    raise Unfit


_COMPARED = {
    "<": lambda x, y: x < y, "<=": lambda x, y: x <= y, ">": lambda x, y: x > y, ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y, "!=": lambda x, y: x != y,
}  # fmt: skip
_MADE = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "&": lambda x, y: x & y,
    "|": lambda x, y: x | y, "^": lambda x, y: x ^ y,
}  # fmt: skip


def _common(a: Kind, b: Kind) -> Kind:
    """The type that two are brought to (usual arithmetic conversions)."""
    most = max(a.bytes, b.bytes)
    return Kind(most, all(k.signed for k in (a, b) if k.bytes == most))


def _made(value: int, kind: Kind) -> Number:
    low, high = kind.range
    if kind.signed and not low <= value <= high:
        raise Unfit
    return converted(Number(value, kind), kind)
