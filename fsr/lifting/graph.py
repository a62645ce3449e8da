"""Expressions of single elements, shared and in a normal form in which equal values are equal numbers.

Sums, products, maxima and minima are flat lists. A difference is a sum. With ``algebra`` 1 products of exponentials are
one exponential, and an exponential is spread over a sum of exponentials: a running maximum of an online softmax then
cancels out. With 2, quotients are products with inverses, factors that all terms of a sum share come out of it, and
exp(a - max) is split: accumulators that are rescaled tile by tile come together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from typing import Any

from fsr.computation.expression import ASSOCIATIVE, Order, beside, places_of
from fsr.lifting.casts import to_double, to_half, to_single
from fsr.lifting.decided import Decided
from fsr.lifting.logic import both, differs, either, unordered
from fsr.lifting.moments import collected
from fsr.lifting.places import HUGE, first_of_both, place
from fsr.lifting.running import added_to, clamped, joined, rescaled

Term = tuple[Any, ...]  # ("const", value, dtype), ("int", value, dtype), ("load", buffer, ids), (op, ...)
LISTS = (*ASSOCIATIVE, "argmax", "argmin")  # their second item is a tuple of operands
LEAVES = ("const", "int", "load")
MOST_ORDERED = 16  # factors whose order is noted


class Graph:
    """Terms by number."""

    def __init__(self, algebra: int = 1, *, apart: bool = False, annul: bool = False) -> None:
        self.algebra = algebra
        self.apart = apart  # whether an element less itself stays a difference
        self.vanished = False  # whether one was met that did not
        self.annul = annul  # whether what a whole nought, which may be a place, is multiplied with is nought
        self.annulled = False  # whether some were met that are not
        self.bfloats: set[int] = set()  # terms that were read as bfloat16, whatever else they are
        self.infinite: set[str] = set()  # buffers whose elements may be
        self.terms: list[Term] = []
        self._numbers: dict[Term, int] = {}
        self._depths: dict[int, int] = {}
        self._lengths: dict[int, int] = {}
        self._guarded: list[bool] = []  # by number
        self._orders: dict[int, Order] = {}  # of products: how their factors were multiplied when first met
        self._decided = Decided(self)

    def make(self, *term: object) -> int:
        """The number of a term as it is."""
        key = term
        if term[0] in LISTS and isinstance(term[1], tuple):
            key = (term[0], tuple(sorted(term[1])))
        found = self._numbers.setdefault(key, len(self.terms))
        if found == len(self.terms):
            self.terms.append(term)
        return found

    def order(self, e: int) -> Order:
        """How the factors of a product were multiplied, by their places; one after the other where nothing is known."""
        return self._orders.get(e, tuple(range(len(self.terms[e][1])))) if self.terms[e][0] == "prod" else (0,)

    def operands(self, e: int) -> tuple[int, ...]:
        """The numbers of a term's operands; of a read, its indices."""
        x = self.terms[e]
        if x[0] in LISTS:
            return x[1]  # type: ignore[no-any-return]
        if x[0] in ("const", "int"):
            return ()
        if x[0] == "load":
            return x[2]  # type: ignore[no-any-return]
        if x[0] == "guard":
            return (x[1], x[3])
        return x[1:]

    def depth(self, e: int) -> int:
        """The longest way down."""
        if e in self._depths:
            return self._depths[e]
        for k in self.upward(e, self._depths):
            self._depths[k] = 1 + max((self._depths[below] for below in self.operands(k)), default=0)
        return self._depths[e]

    def written_out(self, e: int) -> int:
        """How many terms an expression is where what stands in it several times is told each time."""
        for k in self.upward(e, self._lengths):
            self._lengths[k] = 1 + sum(self._lengths[below] for below in self.operands(k))
        return self._lengths[e]

    def guarded(self, e: int) -> bool:
        """Whether a side of a branch on data is still missing in a term."""
        known = self._guarded
        for k in range(len(known), e + 1):  # operands are made before what they stand in
            known.append(self.terms[k][0] == "guard" or any(known[below] for below in self.operands(k)))
        return known[e]

    def upward(self, e: int, known: Container[int]) -> Iterator[int]:
        """The term and those beneath it that are not known, each after its operands; the caller makes each known before
        it asks for the next."""
        todo = [e]
        while todo:
            top = todo[-1]
            missing = [k for k in self.operands(top) if k not in known]
            if missing:
                todo += missing
                continue
            todo.pop()
            if top not in known:
                yield top

    def rebuilt(self, e: int, parts: Sequence[int]) -> int:
        """The term with other operands, in normal form again; itself where they are its own."""
        x = self.terms[e]
        if list(parts) == list(self.operands(e)):
            return e
        if x[0] == "load":
            return self.make("load", x[1], tuple(parts))
        if x[0] == "guard":
            return self.guard(parts[0], bool(x[2]), parts[1])
        if x[0] not in LISTS:
            return self.op(x[0], *parts)
        return self.list_of(x[0], parts, self.order(e) if x[0] == "prod" else ())

    # ------------------------------------------------------------ leaves

    def const(self, value: float, dtype: str) -> int:
        """A literal; what is no number is one and the same of it."""
        return self.make("const", math.nan if value != value else value, dtype)

    def integer(self, value: int, dtype: str) -> int:
        """A whole number that may be a dimension or a size."""
        return self.make("int", value, dtype)

    def is_value(self, e: int, value: float) -> bool:
        """Whether a term is that literal."""
        return bool(self.terms[e][0] == "const" and self.terms[e][1] == value)

    def is_bound(self, e: int, sign: int = 0) -> bool:
        """Whether a term is a literal that no value lies beyond: what a minimum (1) or a maximum (-1) begins with, by
        default any of the two."""
        x = self.terms[e]
        return bool(x[0] == "const" and (x[1] * sign if sign else abs(x[1])) >= HUGE)

    # ------------------------------------------------------------ normal form

    def op(self, name: str, *args: int) -> int:
        """An operation on terms."""
        made = _MAKERS.get(name)
        return made(self, *args) if made else self.make(name, *args)

    def negated(self, a: int) -> int:
        """Minus a term."""
        x = self.terms[a]
        if x[0] in ("const", "int"):
            return self.make(x[0], -x[1], x[2])
        if x[0] == "neg":
            return int(x[1])
        if x[0] == "sum" and self.algebra:
            return self.list_of("sum", [self.negated(k) for k in x[1]])
        return self.make("neg", a)

    def inverse(self, a: int) -> int:
        """One divided by a term."""
        x = self.terms[a]
        if self.is_value(a, 1.0):
            return a
        if x[0] == "inv":
            return int(x[1])
        return self.list_of("prod", [self.inverse(k) for k in x[1]]) if x[0] == "prod" else self.make("inv", a)

    def divided(self, a: int, b: int) -> int:
        """A quotient of floating values."""
        nought = self.is_value(a, 0.0) and self.terms[b][0] == "const" and self.terms[b][1]
        if self.algebra == 2 and not nought:
            return self.list_of("prod", [a, self.inverse(b)])
        return a if nought or self.is_value(b, 1.0) or self.terms[b][:2] == ("int", 1) else self.make("div", a, b)

    def exponential(self, a: int) -> int:
        """e to a term."""
        x = self.terms[a]
        if x[0] == "const" and (x[1] == 0.0 or x[1] <= -HUGE):
            return self.const(0.0 if x[1] else 1.0, x[2])
        if self.algebra == 2 and x[0] == "sum":
            low = [k for k in x[1] if self._is_maximum(k)]
            if low:
                rest = self.list_of("sum", [k for k in x[1] if k not in low])
                return self.list_of("prod", [self.exponential(rest)] + [self.exponential(k) for k in low])
        if self.algebra == 2 and x[0] == "neg":
            return self.inverse(self.exponential(int(x[1])))
        return self.make("exp", a)

    def _is_maximum(self, e: int) -> bool:
        x = self.terms[e]
        return bool(x[0] == "max" or (x[0] == "neg" and self.terms[x[1]][0] == "max"))

    def list_of(self, op: str, parts: Sequence[int], order: Order = ()) -> int:
        """An associative operation: flat, without neutral elements. ``order``: of factors, as they are multiplied; by
        default one after the other."""
        if not parts:
            return self.const(0.0 if op == "sum" else 1.0, "float32")
        flat: list[int] = []
        if op == "sum":  # a compiler turns its two round; people add to what is a sum already
            parts = sorted(parts, key=lambda k: self.terms[k][0] != "sum")
        for k in parts:
            flat += self.terms[k][1] if self.terms[k][0] == op else [k]
        neutral = parts[0]
        if op == "sum":
            flat = self._sum(flat)
        elif op == "prod":
            found = self._product(flat)
            if isinstance(found, int):
                return found
            flat = found
        elif op in ("max", "min"):
            low = -1 if op == "max" else 1
            flat = list(dict.fromkeys(flat))
            real = [k for k in flat if not (self.terms[k][0] == "const" and self.terms[k][1] * low >= HUGE)]
            flat = real or flat[:1]
            lowest = [k for k in flat if self.terms[k][0] == "const" and self.terms[k][1] * low <= -HUGE]
            flat = lowest[:1] or flat
        if not flat:
            return self._neutral(op, neutral)
        if len(flat) == 1 and op not in ("argmax", "argmin"):
            two = collected(self, flat) if op == "sum" and self.algebra == 1 else None  # the first two's deviations
            return flat[0] if two is None else two
        if op == "sum" and self.algebra == 1:
            for rule in (joined, collected):
                if (one := rule(self, flat)) is not None:
                    return one
        if op == "sum" and self.algebra == 2:
            return self._pulled(flat)
        made = self.make(op, tuple(flat))
        if op == "prod" and 2 < len(flat) <= MOST_ORDERED:
            known = len(tuple(places_of(order))) == len(parts)
            self._note_order(made, parts, order if known else tuple(range(len(parts))))
        return made

    def _note_order(self, made: int, parts: Sequence[int], order: Order) -> None:
        """Note how a product was made of these, if nothing was left out of them."""
        factors = [self._factors(part) for part in parts]
        if self.terms[made][1] != tuple(itertools.chain.from_iterable(factors)):
            return
        starts = [0, *itertools.accumulate(map(len, factors))]

        def whole(order: Order) -> Order:
            found: Order = ()
            for n in order:
                own, first = (whole(n), 0) if isinstance(n, tuple) else (self.order(parts[n]), starts[n])
                found = beside(found, own, first)
            return found

        self._orders.setdefault(made, whole(order))

    def _neutral(self, op: str, like: int) -> int:
        x, value = self.terms[like], 0 if op == "sum" else 1
        return (
            self.make(x[0], type(x[1])(value), x[2])
            if x[0] in ("const", "int")
            else self.const(float(value), "float32")
        )

    def _whole(self, flat: list[int], join: Callable[[int, int], int], neutral: int) -> list[int]:
        """Whole numbers of an integer type come together."""
        whole = [k for k in flat if self.terms[k][0] == "int" and self.terms[k][2].startswith(("int", "uint"))]
        if not whole:
            return flat
        total = neutral
        for k in whole:
            total = join(total, self.terms[k][1])
        rest = [k for k in flat if k not in whole]
        return rest + ([self.integer(total, self.terms[whole[0]][2])] if total != neutral or not rest else [])

    def _sum(self, flat: list[int]) -> list[int]:
        flat = self._whole(flat, lambda a, b: a + b, 0)
        lowest = [k for k in flat if self.terms[k][0] == "const" and self.terms[k][1] <= -HUGE]
        if lowest and self.algebra:
            return lowest[:1]
        kept = [k for k in flat if not self.is_value(k, 0.0)]
        if self.algebra and len(kept) == 2 and self.negated(kept[0]) == kept[1]:
            if self.apart:
                return kept
            self.vanished = True
        if any(self.terms[k][0] == "neg" for k in kept) and self.algebra:
            left: list[int] = []
            for k in kept:
                opposite = self.negated(k)
                if opposite in left:
                    left.remove(opposite)
                else:
                    left.append(k)
            return left
        return kept or flat[:1]

    def _product(self, flat: list[int]) -> list[int] | int:
        zero = next((k for k in flat if self.is_value(k, 0.0)), None)
        if zero is not None:
            return zero
        flat = self._whole(flat, lambda a, b: a * b, 1)
        if len(flat) > 1 and (nought := next((k for k in flat if self.terms[k][:2] == ("int", 0)), None)) is not None:
            self.annulled = True
            if self.annul:
                return nought if "int" in self.terms[nought][2] else self.const(0.0, self.terms[nought][2])
        if self.algebra == 2:
            left: list[int] = []
            for k in flat:
                opposite = int(self.terms[k][1]) if self.terms[k][0] == "inv" else self.make("inv", k)
                if opposite in left:
                    left.remove(opposite)
                else:
                    left.append(k)
            flat = left or [self.const(1.0, "float32")]
        kept = [k for k in flat if not self.is_value(k, 1.0)]
        negative = [k for k in kept if self.terms[k][0] == "neg"]
        if negative and self.algebra:
            bare = [int(self.terms[k][1]) if k in negative else k for k in kept]
            return self.negated(self.list_of("prod", bare)) if len(negative) % 2 else self.list_of("prod", bare)
        if self.algebra == 1 and len(kept) > 1:
            powers = [k for k in kept if self.exponent(k) is not None]
            if len(powers) > 1:
                total = self.exponential(self.list_of("sum", [self.exponent(k) or 0 for k in powers]))
                wide = any(self.terms[k][0] == "float64" for k in powers)
                total = self.op("float64", total) if wide else total
                return self.list_of("prod", [total] + [k for k in kept if k not in powers])
            sums = [k for k in kept if self.terms[k][0] == "sum" and all(map(self._has_power, self.terms[k][1]))]
            if len(powers) == 1 and len(sums) == 1:
                rest = [k for k in kept if k != sums[0]]
                return self.list_of("sum", [self.list_of("prod", [k, *rest]) for k in self.terms[sums[0]][1]])
        return kept or flat[:1]

    def _has_power(self, e: int) -> bool:
        factors = self._factors(e)
        return self.is_value(e, 1.0) or any(self.exponent(k) is not None for k in factors)

    def exponent(self, e: int) -> int | None:
        """What e is raised to in a term that is a power of it, in whatever width; None for another."""
        x = self.terms[e]
        x = self.terms[x[1]] if x[0] == "float64" else x
        return int(x[1]) if x[0] == "exp" else None

    def _factors(self, e: int) -> list[int]:
        return list(self.terms[e][1]) if self.terms[e][0] == "prod" else [e]

    def _pulled(self, flat: list[int]) -> int:
        """A sum with the factors that all of its terms share in front of it."""

        def comes_out(f: int) -> bool:
            x = self.terms[f]
            return bool(x[0] == "inv" or (x[0] == "exp" and self.terms[x[1]][0] == "max"))

        first = dict.fromkeys(f for f in self._factors(flat[0]) if comes_out(f))
        shared = [f for f in first if all(f in self._factors(k) for k in flat[1:])]
        if not shared or len(flat) < 2:
            return self.make("sum", tuple(flat))
        rest = []
        for k in flat:
            left = self._factors(k)
            for f in shared:
                left.remove(f)
            rest.append(self.list_of("prod", left) if left else self.const(1.0, "float32"))
        return self.list_of("prod", [*shared, self.list_of("sum", rest)])

    # ------------------------------------------------------------ conditions

    def compared(self, name: str, a: int, b: int) -> int:
        """'gt', 'ge', 'eq', 'ne'; others by swapping."""
        if name in ("lt", "le"):
            name, a, b = {"lt": "gt", "le": "ge"}[name], b, a
        outcome = self._decided.outcome(name, a, b) if self.algebra else None
        return self.make(name, a, b) if outcome is None else self.const(float(outcome), "bool")

    def guard(self, c: int, holds: bool, value: int) -> int:
        """What a term is on the side of a branch that a run took; itself where every run takes it."""
        x = self.terms[c]
        return value if x[0] == "const" and bool(x[1]) == holds else self.make("guard", c, int(holds), value)

    def opposite(self, c: int) -> int:
        """A condition's negation."""
        x = self.terms[c]
        if x[0] == "const":
            return self.const(float(not x[1]), "bool")
        swapped = {"gt": "ge", "ge": "gt"}
        if x[0] in swapped:
            return self.make(swapped[x[0]], x[2], x[1])
        if x[0] in ("eq", "ne"):
            return self.make("ne" if x[0] == "eq" else "eq", x[1], x[2])
        return int(x[1]) if x[0] == "not" else self.make("not", c)

    def selected(self, c: int, a: int, b: int) -> int:
        """A select, or the maximum, the minimum or the place of one that it is."""
        if a == b:
            return a
        x = self.terms[c]
        if x[0] == "const":
            return a if x[1] else b
        if x[0] == "not":
            return self.selected(int(x[1]), b, a)
        if x[0] == "ne":
            return self.selected(self.opposite(c), b, a)
        if x[0] in ("gt", "ge") and {x[1], x[2]} == {a, b}:
            return self.list_of("max" if x[1] == a else "min", [a, b])
        if x[0] in ("gt", "ge") and self.is_bound(x[2], -1):
            return a  # against the bound that a maximum begins with
        if x[0] in ("gt", "ge") and self.is_bound(x[1], -1):
            return b
        known = (
            place(self, x, a, b) or first_of_both(self, x, a, b) or rescaled(self, x, a, b) or clamped(self, x, a, b)
        )
        return known or added_to(self, c, a, b) or self.make("select", c, a, b)


def _peeled_exp2(g: Graph, a: int) -> int:
    """2 to x * log2(e) is e to x, as the fast intrinsics have it."""
    x = g.terms[a]
    if g.is_value(a, 0.0):
        return g.const(1.0, x[2])
    if x[0] == "prod":
        for k in x[1]:
            y = g.terms[k]
            if y[0] == "const" and abs(y[1] - 1.4426950408889634) < 1e-6:
                return g.exponential(g.list_of("prod", [q for q in x[1] if q != k]))
    return g.make("exp2", a)


_MAKERS: dict[str, Callable[..., int]] = {
    **{op: (lambda g, *args, _op=op: g.list_of(_op, args)) for op in ASSOCIATIVE},
    **{op: (lambda g, a, b, _op=op: g.compared(_op, a, b)) for op in ("gt", "ge", "lt", "le", "eq", "ne")},
    "neg": Graph.negated, "div": Graph.divided, "exp": Graph.exponential, "exp2": _peeled_exp2, "inv": Graph.inverse,
    "select": Graph.selected, "not": Graph.opposite, "and": both, "or": either, "xor": differs,
    "float32": to_single, "float64": to_double,
    "float16": partial(to_half, dtype="float16"), "bfloat16": partial(to_half, dtype="bfloat16"),
    "uno": unordered, "ord": lambda g, a, b: g.opposite(unordered(g, a, b)),
}  # fmt: skip
