"""What may be done with the number of an address: nothing that tells one place from another.

A value is followed through the operators of C++. Of a place (a pointer, or an integer made of one) only its alignment
may be asked, and it may become a pointer again; a shared-memory address, 32 bits that assembly takes, may be computed
with, but decides nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

PAGE = 4096  # bytes: below it an address says how it is aligned, above it where it lies
FINE = 16  # bytes: the widest access, up to which kernels peel what is not aligned
NULL, NO_PLACE = "null", "a number"
COMPARISONS = frozenset(("==", "!=", "<", ">", "<=", ">=", "<=>"))
_MANY = 8  # values that a constant is known to have; a loop that doubles one must end
WORDS = {"and": "&&", "or": "||", "not": "!", "bitand": "&", "bitor": "|", "xor": "^", "compl": "~", "not_eq": "!=",
         "and_eq": "&=", "or_eq": "|=", "xor_eq": "^="}  # fmt: skip
_PLAIN: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip
Roots = frozenset[Hashable]


class Misuse(Exception):  # noqa: N818  # a reason to refuse, not an error of the program
    """Why a use of an address tells where it lies."""


@dataclass(frozen=True, slots=True)
class Value:
    """``kind``: "" (no address), "place", "shared" (an address as assembly takes it), "low" (what an address is modulo
    a small number), "record" (one with pointers inside). ``depth``: how often it can be followed; ``held``: the memory
    that it leads to holds addresses; ``array``: it is memory itself. ``roots``: the buffers that it may lie in.
    ``whole``: an integer. ``moved``: no longer as it came, but with
    other numbers in it. ``scale``: what it was
    divided by, of what is low the most that it can be (``held``: with a
    number taken off). ``constants``: all that a
    number can be, where these are known when it is compiled. ``type``: its bare type, or of what it leads to."""

    kind: str = ""
    depth: int = 0
    held: bool = False
    array: bool = False
    roots: Roots = frozenset()
    whole: bool = False
    moved: bool = False
    scale: int = 1
    constants: frozenset[int] | None = None
    type: str = ""

    @property
    def null(self) -> bool:
        return self.constants == frozenset([0]) or (self.kind == "place" and self.roots == {NULL} and not self.moved)


NUMBER = Value()
LOW = Value("low", whole=True, scale=PAGE)
_RANK = ("", "low", "record", "shared", "place")


def constant(*values: int) -> Value:
    return Value(constants=frozenset(values), whole=True)


def joined(a: Value, b: Value) -> Value:
    """A value that is one of two."""
    if a == b:
        return a
    both = [v.constants for v in (a, b) if not v.kind]
    known = frozenset[int]().union(*(c for c in both if c is not None)) if None not in both else None
    roots = a.roots | b.roots
    numbers = [v for v in (a, b) if not v.kind and v.constants not in (frozenset(), frozenset([0]))]
    if "place" in (a.kind, b.kind) and any(v.whole for v in numbers):
        roots |= {NO_PLACE}
    kinds = {a.kind, b.kind}
    whole = [v.whole for v in (a, b) if v.kind == "place" or "place" not in kinds or v in numbers]
    return Value(
        max(a.kind, b.kind, key=_RANK.index),
        max(a.depth, b.depth),
        a.held or b.held,
        a.array or b.array,
        roots - {NULL} or roots,
        any(whole),
        a.moved or b.moved or NO_PLACE in roots,
        max(a.scale, b.scale),
        known if known is not None and len(known) <= _MANY and not (a.kind or b.kind) else None,
        a.type or b.type,
    )


def followed(a: Value) -> Value:
    """What stands where an address leads."""
    if a.kind not in ("place", "record"):
        return NUMBER
    depth = max(a.depth - 1, 0)
    if depth == 0:
        return Value("record" if a.held else "", type=a.type, held=a.held)
    return Value("place", depth, a.held and depth > 1, not a.held, frozenset([("at", r) for r in a.roots])
                 if a.held else a.roots, type=a.type)  # fmt: skip


def binary(op: str, a: Value, b: Value, same: Callable[[Value, Value], bool]) -> Value:
    """``a op b``. ``same``: whether two places lie in one buffer. Raises Misuse."""
    op = WORDS.get(op, op)
    if op in ("&&", "||") or "record" in (a.kind, b.kind):
        return NUMBER
    if op in COMPARISONS:
        _compared(op, a, b, same)
        return Value(whole=True)
    kinds = {a.kind, b.kind}
    if "place" in kinds:
        return _of_places(op, a, b, same)
    if "shared" in kinds:
        scale = max(a.scale, b.scale)
        small = op in ("&", "%") and any(_small(op, v, scale) for v in (a, b))
        return LOW if small else Value("shared", whole=True, scale=PAGE if op in (">>", "/") else scale)
    if "low" in kinds:
        return _of_low(op, a, b)
    return Value(constants=_folded(op, a.constants, b.constants), whole=a.whole and b.whole)


def _of_low(op: str, a: Value, b: Value) -> Value:
    """What an address is modulo at most 16 may move an index, and what is done with that tells nothing. A constant that
    is no multiple of what it is modulo would make one of its values nothing, which could be asked (``held``)."""
    low, other = (a, b) if a.kind == "low" else (b, a)
    if other.kind == "low":
        return joined(a, b)
    if op == "<<" and other is a and other.constants:
        raise Misuse
    if op in ("<<", ">>") and other is a:
        return replace(low, moved=True)
    modulus, known = low.scale + 1, other.constants
    if known is None or not known:
        return replace(low, moved=low.moved or (op in ("+", "-") and known is None and low.scale < FINE))
    by = max(known)
    if op in ("+", "-", "^", "|") and not low.moved and any(c % modulus for c in known):
        return replace(low, held=True)
    if op in ("/", ">>") and low is a and by > 0:
        modulus = max(modulus // (by if op == "/" else 1 << min(by, 63)), 1)
    elif op in ("*", "<<") and 0 < by <= PAGE:
        modulus *= by if op == "*" else 1 << min(by, 63)
    elif op in ("&", "%") and by > 0:
        modulus = min(modulus, by + (op == "&"))
    return replace(low, scale=modulus - 1)


def unary(op: str, a: Value) -> Value:
    """``op a`` of - + ~ !."""
    if op == "!" or a.kind == "record":
        return NUMBER
    if a.kind:
        return replace(a, moved=True)
    if a.constants is None:
        return a
    return replace(a, constants=frozenset({"-": -c, "~": ~c}.get(op, c) for c in a.constants))


def _compared(op: str, a: Value, b: Value, same: Callable[[Value, Value], bool]) -> None:
    if "shared" in (a.kind, b.kind) and not (a.null or b.null):
        raise Misuse
    if "place" in (a.kind, b.kind):
        made = any(isinstance(r, tuple) and r[0] == "made" for r in a.roots | b.roots)
        as_they_came = op in ("==", "!=") and not (a.moved or b.moved or made) and a.kind == b.kind
        if a.scale != 1 or b.scale != 1 or not (a.null or b.null or as_they_came or _same(a, b, same)):
            raise Misuse
    elif "low" in (a.kind, b.kind):
        other = b if a.kind == "low" else a
        mixed, known = a.moved or b.moved, other.constants
        equality = op in ("==", "!=")
        tells = (known is None and equality and not mixed) or (bool(known and any(known)) and (equality or not mixed))
        if equality and (a.held or b.held) and not mixed:
            raise Misuse
        if other.kind != "low" and tells:
            raise Misuse


def _same(a: Value, b: Value, same: Callable[[Value, Value], bool]) -> bool:
    return a.kind == b.kind == "place" and same(a, b)


def _of_places(op: str, a: Value, b: Value, same: Callable[[Value, Value], bool]) -> Value:
    place, other = (a, b) if a.kind == "place" else (b, a)
    if op in ("&", "%") and other.kind != "place" and (place is a or op == "&"):
        return _masked(op, place, other)
    if op == "-" and b.kind == "place" and a.kind == "place":
        if a.scale != b.scale or not same(a, b):
            raise Misuse
        return Value(whole=True)
    if other.kind == "place":
        if op not in ("|", "^", "+", "&") or not (a.whole and b.whole) or a.scale != b.scale:
            raise Misuse
        return replace(joined(a, b), moved=True)
    if op in ("+", "-", "|", "^"):
        if place.roots == frozenset([NULL]) or other.kind == "shared":
            raise Misuse
        return place if other.constants == frozenset([0]) else replace(place, moved=True, array=False)
    return _scaled(op, a, other if place is a else b)


def _scaled(op: str, place: Value, by: Value) -> Value:
    if place.kind != "place" or by.constants is None or len(by.constants) != 1:
        raise Misuse
    (count,) = by.constants
    if not 0 < count <= PAGE:
        raise Misuse
    factor = 1 << min(count, 64) if op in (">>", "<<") else count
    if op in (">>", "/") and place.scale * factor <= PAGE:
        return replace(place, scale=place.scale * factor, moved=True)
    if op in ("<<", "*") and place.scale == factor:
        return replace(place, scale=1, moved=True)
    raise Misuse


def _masked(op: str, place: Value, by: Value) -> Value:
    if by.kind == "low" and op == "&":
        return LOW
    if _small(op, by, place.scale):
        return replace(LOW, scale=max(by.constants or (0,), default=0) * place.scale - (op == "%"))
    if op == "&" and place.scale == 1 and by.constants and all(_clears_low_bits(c) for c in by.constants):
        return replace(place, moved=True)
    raise Misuse


def _small(op: str, by: Value, scale: int) -> bool:
    most = PAGE if op == "%" else PAGE - 1
    return not by.kind and by.constants is not None and all(0 <= c * scale <= most for c in by.constants)


def _clears_low_bits(mask: int) -> bool:
    return any(0 < (1 << bits) - mask % (1 << bits) <= PAGE for bits in (32, 64))


def _folded(op: str, a: frozenset[int] | None, b: frozenset[int] | None) -> frozenset[int] | None:
    if a is None or b is None or len(a) * len(b) > _MANY:
        return None
    found = [_one(op, x, y) for x in a for y in b]
    return frozenset(f for f in found if f is not None) if None not in found else None


def _one(op: str, x: int, y: int) -> int | None:
    if op in _PLAIN:
        return int(_PLAIN[op](x, y))
    if op in ("<<", ">>"):
        return (x << y if op == "<<" else x >> y) if 0 <= y < 64 else None
    if x < 0 or y <= 0:
        return None
    return x // y if op == "/" else x % y if op == "%" else None
