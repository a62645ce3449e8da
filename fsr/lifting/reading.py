"""From the nodes of a watched run to terms of a graph."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence

import numpy as np

from fsr.backends.host.tracer_calls import FIRST_NAMED
from fsr.backends.host.tracing import ASIDE, COVERED, KINDS, TYPES, Trace
from fsr.computation.expression import Order, beside
from fsr.lifting.allowance import unlimited
from fsr.lifting.casts import as_stored
from fsr.lifting.decided import COMPARED
from fsr.lifting.graph import LISTS, MOST_ORDERED, Graph
from fsr.lifting.numbers import whole_number
from fsr.lifting.refused import Refused, Unexplained
from fsr.lifting.signs import FLOATS, Range, Signs

_LISTS = {
    "fadd": "sum", "add": "sum", "fmul": "prod", "mul": "prod", "maxnum": "max", "fmax": "max", "smax": "max",
    "maximum": "max", "maximumnum": "max", "minnum": "min", "fmin": "min", "smin": "min", "minimum": "min",
    "minimumnum": "min",
}  # fmt: skip
_BITWISE = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
_PREDICATES = {f"{kind}{p}": p for kind in "ou" for p in ("gt", "ge", "lt", "le", "ne")} | {
    **{f"s{p}": p for p in ("gt", "ge", "lt", "le")}, "eq": "eq", "ne": "ne", "oeq": "eq", "ueq": "eq", "one": "ne",
}  # fmt: skip
_NAMES = {
    "fdiv": "div", "fneg": "neg", "frem": "fmod", "sdiv": "idiv", "udiv": "idiv", "srem": "irem", "urem": "irem",
    "umax": "max", "umin": "min",
}  # fmt: skip
_CASTS = (
    "fpext",
    "fptrunc",
    "sitofp",
    "uitofp",
    "fptosi",
    "fptoui",
    "sext",
    "trunc",
    "widen_bfloat16",
    "round_bfloat16",
)

_WIDENED = {"fpext": "float16", "widen_bfloat16": "bfloat16"}  # what they read, where that is a literal of 16 bits
_WIDER = ("int64", "zext_int64")

# What a view of a flat buffer is: its dimensions.
Shapes = Mapping[str, tuple[int, ...]]


class Reader:
    """One run's nodes. ``shapes``: of every buffer in this run."""

    def __init__(
        self, graph: Graph, trace: Trace, operations: Sequence[str], shapes: Shapes,
        signs: Signs,
    ) -> None:  # fmt: skip
        self.graph, self.trace, self.operations, self.shapes, self.signs = graph, trace, operations, shapes, signs
        self._made: dict[int, int] = {}
        self._pending: dict[int, tuple[str, list[int], Order]] = {}
        self._settlement: dict[int, int] = {}
        self._landed: dict[int, int] = {}
        self.rows = trace.columns()
        self.allowance = unlimited()
        self.fixed = dict[tuple[str, int], int]()  # terms of words of structures that sizes tell, by buffer and word
        self.told = dict[str, int]()  # terms of numbers that have a name in the trace and that sizes tell

    def read(self, wanted: Sequence[int]) -> list[int]:
        """The terms of nodes."""
        kinds, columns = self.rows[0], self.rows[2:5]
        uses: dict[int, int] = {}
        todo, needed = list(wanted), set[int]()
        while todo:
            n = todo.pop()
            if n in needed or n in self._made:
                continue
            needed.add(n)
            parts = self._parts(kinds[n], [c[n] for c in columns])
            for p in parts:
                uses[p] = uses.get(p, 0) + 1
            todo += parts
        for n in wanted:
            uses[n] = uses.get(n, 0) + 2
        for count, n in enumerate(sorted(needed)):
            if not count % 256 and self.allowance.left_s <= 0:
                raise Refused("reading what was watched took too long")
            if n not in self._made and n not in self._pending:
                self._node(n, uses)
        return [self._settled(self._term(n)) for n in wanted]

    def _settled(self, e: int) -> int:
        """A term with reads at addresses that data decides as reads with such indices."""
        g = self.graph
        for k in g.upward(e, self._settlement):
            parts = [self._settlement[part] for part in g.operands(k)]
            if g.terms[k][0] == "gathered":
                self._settlement[k] = self._gathered(parts[0], parts[1])
            else:
                self._settlement[k] = g.rebuilt(k, parts)
        return self._settlement[e]

    def _parts(self, kind: int, abc: Sequence[int]) -> list[int]:
        name = KINDS[kind] if kind < FIRST_NAMED else ""
        if name in ("const", "integer", "load"):
            return []
        return [abc[0], abc[2]] if name == "guard" else [p for p in abc if p]

    def _term(self, n: int) -> int:
        if n not in self._made:
            op, items, order = self._pending.pop(n)
            self._made[n] = self.graph.list_of(op, items, order)
        return self._made[n]

    def _node(self, n: int, uses: Mapping[int, int]) -> None:
        kind, type_, a, b, c, bits = (column[n] for column in self.rows)
        if kind >= FIRST_NAMED and self.operations[kind - FIRST_NAMED] in _LISTS:
            op, items = _LISTS[self.operations[kind - FIRST_NAMED]], list[int]()
            order: Order = ()
            joins = [n for n in (a, b) if n in self._pending and self._pending[n][0] == op and uses.get(n) == 1]
            turned = op == "sum" and joins == [b]  # by a compiler: people add to what is a sum already
            for part in (b, a) if turned else (a, b):
                first = len(items)
                if part not in joins:
                    order = (*order, first)
                    items.append(self._term(part))
                else:
                    _, more, inner = self._pending.pop(part)
                    order = beside(order, inner, first)
                    items = items + more if items else more
            self._pending[n] = (op, items, order if op == "prod" and len(items) <= MOST_ORDERED else ())
        else:
            self._made[n] = self._leaf_or_op((kind, type_, bits), a, b, c)

    def _leaf_or_op(self, what: tuple[int, int, int], a: int, b: int, c: int) -> int:
        kind, type_, bits = what
        g, dtype = self.graph, TYPES[type_]
        if kind >= FIRST_NAMED:
            return self._operation(self.operations[kind - FIRST_NAMED], dtype, [self._term(p) for p in (a, b, c) if p])
        match KINDS[kind]:
            case "const":
                return self._constant(dtype, bits)
            case "integer":
                return g.integer(bits - (bits >> 63 << 64), dtype)
            case "load":
                found = self._load(a, b)
                return g.make("int8", found) if dtype == "bool" else found  # memory holds it as a byte
            case "gathered":
                cell = self.signs.bare(self._term(a))
                found = g.make("gathered", cell, self._term(b))
                return found if g.terms[cell][0] != "load" else self.signs.element(g.terms[cell][1], found)
            case "chosen":
                self._landed.setdefault(self._term(b), self.rows[5][b])
                where = self._term(b)
                known = all(inner is None for inner, _ in self._linear(where))  # by numbers that sizes tell
                return self._term(a) if known else self._chosen(self._term(a), where)
            case "guard":
                condition, value = self._term(a), self._term(c)
                return value if self._decided(condition) == bool(b) else g.make("guard", condition, b, value)
            case "unknown":
                raise Refused(COVERED if COVERED in self.trace.lost else ASIDE)
            case "select":
                return self._selected(self._term(a), self._term(b), self._term(c))
        low, high = self._term(a), self._term(b)  # of eight bytes that were written by four
        return g.make("zext_int64", low) if g.terms[high][:2] == ("int", 0) else g.make("pair", low, high)

    def _decided(self, condition: int) -> bool | None:
        """What a comparison is for all data that the contract allows; None where that depends."""
        x = self.graph.terms[condition]
        if x[0] == "const":
            return bool(x[1])
        if x[0] in ("and", "or"):
            sides = [self._decided(int(x[1])), self._decided(int(x[2]))]
            strong = x[0] == "or"
            return strong if strong in sides else (not strong) if None not in sides else None
        if x[0] not in ("gt", "ge", "eq", "ne"):
            return None
        (low, high), (least, most) = self._range(int(x[1])), self._range(int(x[2]))
        if x[0] in ("eq", "ne"):
            if low == high == least == most and self.signs.kind(int(x[1])):  # whole numbers, each of one value
                return bool(x[0] == "eq")
            return (x[0] == "ne") if low > most or high < least else None
        if low > most or (x[0] == "ge" and low >= most):
            return True
        return False if high < least or (x[0] == "gt" and high <= least) else None

    def _whole(self, e: int) -> int | None:
        """A whole number that bits of literals make: a flag that says whether it is the first turn."""
        x = self.graph.terms[e]
        if x[0] == "int":
            return int(x[1])
        if x[0] not in _BITWISE:
            return None
        a, b = self._whole(int(x[1])), self._whole(int(x[2]))
        return None if a is None or b is None else _BITWISE[x[0]](a, b)

    def _open(self, condition: int) -> int:
        """What of a condition data decides."""
        x = self.graph.terms[condition]
        if x[0] in ("and", "or"):
            for side, other in ((int(x[1]), int(x[2])), (int(x[2]), int(x[1]))):
                if self._told(side) == (x[0] == "and"):
                    return self._open(other)
        return condition

    def _told(self, side: int) -> bool | None:
        """What one of two conditions is, where that is known: as decided, or by literals alone. A condition that stands
        alone may be one on the place that is looked at."""
        x = self.graph.terms[side]
        if x[0] in COMPARED:
            a, b = self._whole(int(x[1])), self._whole(int(x[2]))
            if a is not None and b is not None:
                return bool(COMPARED[x[0]](a, b))
        return self._decided(side)

    def _range(self, e: int) -> Range:
        return self.signs.range(e)

    def _selected(self, condition: int, a: int, b: int) -> int:
        g, condition = self.graph, self._open(condition)
        if g.terms[condition][0] == "const":
            return a if g.terms[condition][1] else b
        truths = [g.terms[x][1] if g.terms[x][0] == "const" and g.terms[x][2] == "bool" else None for x in (a, b)]
        if truths[1] == 0:
            return g.op("and", condition, a)
        if truths[0] == 1:
            return g.op("or", condition, b)
        return g.selected(condition, a, b)

    def _constant(self, dtype: str, bits: int) -> int:
        if dtype == "bool":
            return self.graph.const(bits & 1, "bool")
        if dtype == "bfloat16":
            return self.graph.const(float(np.uint32(bits << 16).view(np.float32)), dtype)
        width = np.dtype(dtype).itemsize
        value = np.array([bits & ((1 << 8 * width) - 1)], f"u{width}").view(dtype)[0]
        if dtype.startswith("int"):
            return self.graph.integer(int(value), dtype)
        return self.graph.const(float(value), dtype)

    def _load(self, region: int, element: int) -> int:
        name = self.trace.regions[region]
        if name in self.told:
            return self.told[name]
        shape = self.shapes.get(name, ())
        if self.fixed and (name, element % shape[-1]) in self.fixed:
            return self.fixed[name, element % shape[-1]]
        place = np.unravel_index(element, shape) if shape else ()
        return self.signs.element(
            name, self.graph.make("load", name, tuple(self.graph.integer(int(x), "int64") for x in place))
        )

    def _operation(self, name: str, dtype: str, args: Sequence[int]) -> int:
        g = self.graph
        if name in _WIDENED:
            args = [as_stored(g, a, _WIDENED[name]) for a in args]
            g.bfloats.update(args if name == "widen_bfloat16" else ())
        unsigned = self.signs.operation(name, dtype, tuple(args))
        if unsigned is not None:
            return unsigned
        if name in ("fsub", "sub"):
            return g.list_of("sum", [args[0], g.negated(args[1])])
        if name in ("fma", "fmuladd"):
            return g.list_of("sum", [g.list_of("prod", args[:2]), args[2]])
        if name == "shl" and g.terms[args[1]][0] == "int":
            return g.list_of("prod", [args[0], g.integer(1 << g.terms[args[1]][1], dtype)])
        if name in _PREDICATES or (name[0] == "u" and name[1:] in ("gt", "ge", "lt", "le")):
            return self._compared(g.compared(_PREDICATES.get(name, name[1:]), *args), args)
        if name == "zext":
            return (
                g.make(dtype, *args) if self.signs.is_condition(args[0]) else self.signs.zero_extended(dtype, args[0])
            )
        if name == "uitofp" and not self.signs.is_condition(args[0]):
            return g.op(dtype, self.signs.zero_extended("int64", args[0]))
        if name == "fptoui" and dtype == "int32" and self.signs.range(args[0])[1] >= 2.0**31:
            return g.op(dtype, g.op("int64", args[0]))
        if name in ("fptosi", "fptoui") and (number := whole_number(g, args[0])) is not None:
            return g.integer(number, dtype)
        if name in _CASTS:
            return g.op(dtype, *args)
        return g.op(_NAMES.get(name, name), *args)

    def _compared(self, condition: int, args: Sequence[int]) -> int:
        """A comparison; where no data is in it, what it is: as a condition on indices and sizes is not seen either."""
        if not self.told or not all(map(self._is_number, args)):
            return condition
        decided = self._decided(condition)
        return condition if decided is None else self.graph.const(float(decided), "bool")

    def _is_number(self, e: int) -> bool:
        x = self.graph.terms[e]
        return x[0] in ("const", "int") or (
            (x[0] in LISTS or x[0] in FLOATS) and all(map(self._is_number, self.graph.operands(e)))
        )

    # ------------------------------------------------------------ addresses that data decides

    def _chosen(self, value: int, address: int) -> int:
        """What is written where data decides: of an update in place only what it adds is marked."""
        g, x = self.graph, self.graph.terms[value]
        if x[0] in ("sum", "max", "min"):
            for k in x[1]:
                y = g.terms[self.signs.bare(k)]
                if y[0] == "gathered" and y[2] == address:
                    rest = g.list_of(x[0], [q for q in x[1] if q != k])
                    return g.list_of(x[0], [y[1], g.make("chosen", rest, address)])
        return g.make("chosen", value, address)

    def led_on(self, name: str, address: int, place: Sequence[int]) -> int:
        """The address in a buffer of what data placed elsewhere, in shared memory, and was brought to ``place`` from
        there: as far from it as the other is from where this run's data led."""
        start, width = self.trace.places[name][:2]
        shape = self.shapes[name]
        there = start + width * (int(np.ravel_multi_index(tuple(place), shape)) if shape else 0)
        apart = there - self._landed.get(address, there)
        return self.graph.list_of("sum", [address, self.graph.integer(apart, "int64")]) if apart else address

    def _gathered(self, cell: int, address: int) -> int:
        """A read whose address data decides: the element's indices as expressions."""
        g, found = self.graph, self.graph.terms[self.signs.bare(cell)]
        if found[0] != "load":
            raise Unexplained("what is read at an address that data decides is no element of a buffer")
        name = found[1]
        indices = self.indices(name, address, [int(g.terms[i][1]) for i in found[2]])
        return self._extreme(name, indices) or g.make("load", name, indices)

    def _extreme(self, name: str, indices: tuple[int, ...]) -> int | None:
        """What is read at the place of the largest or smallest of some elements, where it is one of these: the
        largest or smallest."""
        g = self.graph
        for d, k in enumerate(indices):
            while g.terms[k][0] in _WIDER:
                k = int(g.terms[k][1])
            x = g.terms[k]
            if x[0] not in ("argmax", "argmin"):
                continue
            values = [int(g.terms[p][1]) for p in x[1]]
            places = [g.terms[int(g.terms[p][2])] for p in x[1]]
            if any(at[0] != "int" for at in places):
                continue
            there = [(*indices[:d], g.integer(int(at[1]), "int64"), *indices[d + 1 :]) for at in places]
            if values == [g.make("load", name, at) for at in there]:
                return g.list_of(x[0][3:], values)
        return None

    def indices(self, name: str, address: int, place: Sequence[int] | None = None) -> tuple[int, ...]:
        """The indices of an address in a buffer: terms that data takes part in, by the strides that they are scaled
        with, and the rest as it is in this run: at ``place``, where that is known. Raises Refused."""
        g = self.graph
        shape, width = self.shapes[name], self.trace.places[name][1]
        strides = [int(np.prod(shape[d + 1 :])) * width for d in range(len(shape))]
        parts: list[list[int]] = [[] for _ in shape]
        flat = -self.trace.places[name][0]
        for inner, scale in self._linear(address):
            if inner is None:
                flat += scale
                continue
            fits = [d for d, stride in enumerate(strides) if scale % stride == 0 and scale // stride < max(shape[d], 2)]
            if not fits:
                raise Refused("an address is made of data in a way that fits no dimension")
            factor = scale // strides[fits[0]]
            many = [g.integer(factor, "int64")] if factor != 1 else []
            parts[fits[0]].append(g.list_of("prod", [inner, *many]) if many else inner)
        flat //= width
        if place is None:
            place = [flat // int(np.prod(shape[d + 1 :])) % max(n, 1) for d, n in enumerate(shape)]
        return self._placed(parts, flat, shape, place)

    def _placed(self, parts: list[list[int]], flat: int, shape: Sequence[int], place: Sequence[int]) -> tuple[int, ...]:
        """The remaining constant spread over the dimensions: those without data take their index of this run."""
        g, rest = self.graph, flat
        free = [d for d, p in enumerate(parts) if not p]
        for d in free:
            rest -= place[d] * int(np.prod(shape[d + 1 :]))
        result = []
        for d, p in enumerate(parts):
            stride = int(np.prod(shape[d + 1 :]))
            if not p:
                result.append(g.integer(place[d], "int64"))
                continue
            offset = rest // stride if rest % stride == 0 or d < len(parts) - 1 else rest
            rest -= offset * stride
            result.append(g.list_of("sum", [*p, g.integer(offset, "int64")]) if offset else g.list_of("sum", p))
        if rest:
            raise Refused("an address is made of data in a way that fits no dimension")
        return tuple(result)

    def _linear(self, t: int) -> list[tuple[int | None, int]]:
        """An integer term as a sum: terms that data takes part in and their whole factors; None beside a number. A
        wider type is taken within sums and products, which do not overflow in addresses."""
        g, x = self.graph, self.graph.terms[t]
        if x[0] == "int":
            return [(None, int(x[1]))]
        if x[0] == "sum":
            return [part for k in x[1] for part in self._linear(k)]
        if x[0] in ("int64", "zext_int64") and g.terms[x[1]][0] in ("sum", "prod", "int"):
            return [(k if k is None else g.op(x[0], k), scale) for k, scale in self._linear(int(x[1]))]
        if x[0] == "prod":
            numbers = [int(g.terms[k][1]) for k in x[1] if g.terms[k][0] == "int"]
            rest = [k for k in x[1] if g.terms[k][0] != "int"]
            factor = math.prod(numbers)
            inner = self._linear(rest[0]) if len(rest) == 1 else [(g.list_of("prod", rest), 1)]
            return [(k, scale * factor) for k, scale in inner]
        if x[0] in ("idiv", "irem") and all(g.terms[k][0] == "int" for k in x[1:]) and g.terms[x[2]][1]:
            a, b = (int(g.terms[k][1]) for k in x[1:])
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return [(None, quotient if x[0] == "idiv" else a - quotient * b)]
        return [(t, 1)]
