"""Unsigned integers: what is watched has bits, and operations that take them with a sign or without. In a computation
integers have a sign, so that elements without one are cast, and operations without one are those of a wider type."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from fsr.computation.types import CONDITIONS
from fsr.lifting.graph import Graph

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_WIDER = {"int8": "int32", "int16": "int32", "int32": "int64"}
_ANY = (-math.inf, math.inf)
FLOATS = {"float16": 2.0**11, "bfloat16": 2.0**8, "float32": 2.0**24, "float64": 2.0**53}  # whole numbers they hold
_ROUNDING = 0.01  # of a sum of many terms, or of 16 bits
_COMPARED = {"ugt": "gt", "uge": "ge", "ult": "lt", "ule": "le"}
_LISTED = {"umax": "max", "umin": "min"}
_TO_WHOLE: Mapping[str, Callable[[float], int]] = {
    "ceil": math.ceil, "floor": math.floor, "trunc": math.trunc, "rint": round,
}  # fmt: skip

Range = tuple[float, float]


class Signs:
    """``dtypes``: of buffers; ``ranges``: of elements of buffers that have one."""

    def __init__(self, graph: Graph, dtypes: Mapping[str, str], ranges: Mapping[str, Range]) -> None:
        self.graph, self.dtypes, self.ranges = graph, dtypes, ranges
        self._known: dict[int, Range] = {}

    # ------------------------------------------------------------ elements

    def element(self, name: str, e: int) -> int:
        """An element of a buffer as operations have it: one without a sign as the signed number of its bits."""
        dtype = self.dtypes.get(name, "")
        return self.graph.make(dtype[1:], e) if dtype.startswith("uint") else e

    def bare(self, e: int) -> int:
        """The read beneath what :meth:`element` makes."""
        x = self.graph.terms[e]
        below = self.graph.terms[x[1]] if x[0] in BITS else ("",)
        name = self.graph.terms[below[1]][1] if below[0] == "gathered" else below[1] if below[0] == "load" else ""
        return int(x[1]) if self.dtypes.get(name, "") == f"u{x[0]}" else e

    # ------------------------------------------------------------ values

    def kind(self, e: int) -> str:
        """The type of an integer; '' for what is none, or not known."""
        while True:
            x = self.graph.terms[e]
            if x[0] == "int":
                return str(x[2]) if x[2] in BITS else ""
            if x[0] in BITS:
                return str(x[0])
            if x[0].startswith("zext_"):
                return str(x[0][5:])
            if x[0] == "load":
                found = self.dtypes.get(x[1], "").removeprefix("u")
                return found if found in BITS else ""
            if x[0] in ("sum", "prod", "max", "min"):
                e = x[1][0]
            elif x[0] in _OF_THE_FIRST:
                e = int(x[2] if x[0] == "select" else x[1])
            else:
                return ""

    def range(self, e: int) -> Range:
        """The least and the largest value for all data that the contract allows."""
        for k in self.graph.upward(e, self._known):
            self._known[k] = self._range_of(k)
        return self._known[e]

    def _range_of(self, e: int) -> Range:
        x = self.graph.terms[e]
        if x[0] == "int" or (x[0] == "const" and x[2] != "bool"):
            return float(x[1]), float(x[1])
        if x[0] in FLOATS:
            found = self._known[x[1]]
            exact = self.kind(int(x[1])) and max(map(abs, found)) <= FLOATS[x[0]]
            return found if exact else _rounded(found)
        if x[0] == "neg":
            low, high = self._known[x[1]]
            return -high, -low
        if x[0] == "div":
            return self._quotient(int(x[1]), int(x[2]))
        if x[0] in _TO_WHOLE:
            low, high = (_TO_WHOLE[x[0]](end) if abs(end) < math.inf else end for end in self._known[x[1]])
            return low, high
        if x[0] in BITS:
            return _within(self._known[x[1]], -(2.0 ** (BITS[x[0]] - 1)), 2.0 ** (BITS[x[0]] - 1) - 1)
        if x[0].startswith("zext_"):
            bits = BITS.get(self.kind(int(x[1])), 64)
            return _within(self._known[x[1]], 0.0, 2.0**bits - 1)
        if x[0] in ("sum", "prod", "max", "min"):
            found = self._of_list(x[0], [self._known[k] for k in x[1]])
            return found if self.kind(e) else _rounded(found)
        if x[0] != "load":
            return _ANY
        dtype = self.dtypes.get(x[1], "")
        whole = (0.0, 2.0 ** BITS[dtype[1:]] - 1) if dtype.startswith("uint") else _ANY
        return self.ranges.get(x[1], whole)

    def _of_list(self, op: str, ends: Sequence[Range]) -> Range:
        lows, highs = [low for low, _ in ends], [high for _, high in ends]
        if op == "sum":
            return sum(lows), sum(highs)
        if op == "prod":
            return (math.prod(lows), math.prod(highs)) if min(lows) >= 0 and max(highs) < math.inf else _ANY
        return (max(lows), max(highs)) if op == "max" else (min(lows), min(highs))

    def _quotient(self, a: int, b: int) -> Range:
        """Of floating values by a positive number."""
        (low, high), (least, most) = self._known[a], self._known[b]
        return _rounded((low / least, high / least)) if least == most > 0 else _ANY

    def _alike(self, e: int) -> bool:
        """Whether a value is the same with a sign and without."""
        low, high = self.range(e)
        return low >= 0 and high < 2.0 ** (BITS.get(self.kind(e), 64) - 1)

    # ------------------------------------------------------------ operations

    def zero_extended(self, dtype: str, e: int) -> int:
        """A value without a sign in a wider type."""
        g, x = self.graph, self.graph.terms[e]
        if x[0] == "int" and x[2] in BITS:
            return g.integer(int(x[1]) % (1 << BITS[x[2]]), dtype)
        if x[0] in BITS:
            below, (low, high) = self.bare(e), self.range(int(x[1]))
            if below != e:
                return g.make(f"zext_{dtype}", below)
            if low >= 0 and high < 2.0 ** BITS[x[0]]:  # it was narrowed, and nothing was lost
                return int(x[1]) if self.kind(int(x[1])) == dtype else g.op(dtype, int(x[1]))
        return g.make(f"zext_{dtype}", e)

    def operation(self, name: str, dtype: str, args: tuple[int, ...]) -> int | None:
        """An operation that takes integers without a sign, by one with; None for any other."""
        g, kinds = self.graph, [self.kind(a) for a in args]
        kind = next(filter(None, kinds), "")
        if name == "sext" and kind == "" and dtype in BITS and self.is_condition(args[0]):
            return g.selected(args[0], g.integer(-1, dtype), g.integer(0, dtype))
        if kind not in _WIDER or name not in _UNSIGNED:
            return None
        alike = all(map(self._alike, args[: 1 if name == "lshr" else 2]))
        if alike and name == "lshr":
            return g.make("ashr", *args)
        if alike and name not in ("uadd.sat", "usub.sat"):
            return None
        wide = kind if alike and name == "usub.sat" else _WIDER[kind]
        a, b = args[:2] if wide == kind else (self.zero_extended(wide, x) for x in args[:2])
        if name in _COMPARED:
            return g.compared(_COMPARED[name], a, b)
        if name in _LISTED:
            return g.make(kind, g.list_of(_LISTED[name], [a, b]))
        if name == "uadd.sat":
            return g.make(kind, g.list_of("min", [g.list_of("sum", [a, b]), g.integer((1 << BITS[kind]) - 1, wide)]))
        if name == "usub.sat":
            left = g.list_of("max", [g.list_of("sum", [a, g.negated(b)]), g.integer(0, wide)])
            return left if wide == kind else g.make(kind, left)
        return g.make(kind, g.make({"udiv": "idiv", "urem": "irem", "lshr": "ashr"}[name], a, b))

    def is_condition(self, e: int) -> bool:
        """Whether a value is true or false."""
        x = self.graph.terms[e]
        if x[0] in _OF_BITS:  # of numbers too
            return self.kind(e) == "" and any(self.is_condition(int(k)) for k in x[1:])
        return x[0] in CONDITIONS


_OF_THE_FIRST = ("neg", "abs", "and", "or", "xor", "shl", "ashr", "lshr", "idiv", "irem", "select", "gathered")
_OF_BITS = ("and", "or", "xor")
_UNSIGNED = (*_COMPARED, *_LISTED, "uadd.sat", "usub.sat", "udiv", "urem", "lshr")


def _rounded(found: Range) -> Range:
    """With room for what rounding adds to either end."""
    more = _ROUNDING * max(map(abs, found))
    return (found[0] - more, found[1] + more) if more < math.inf else found


def _within(found: Range, least: float, most: float) -> Range:
    return found if least <= found[0] and found[1] <= most else (least, most)
