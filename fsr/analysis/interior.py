"""Which tests of ids are decided away from the edges: ``x - 2 >= 0`` two and more from the left one, ``min(x + 1, n -
1)`` one from the right one, whatever else the kernel does there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fsr.analysis.definitions import Definitions, definitions
from fsr.analysis.functions import Functions
from fsr.analysis.polynomial import Poly, constant, polynomial, symbol
from fsr.analysis.types import bare, integer_bytes, is_integer
from fsr.source.form import Binary, Call, Declare, Expr, For, KernelForm, Literal, Name, Ternary, number
from fsr.source.mapping import map_expr
from fsr.source.types import plain_type
from fsr.source.walk import BUILTINS, Block, names_changed, names_in, walk_expr, walk_exprs, walk_stmts

REACH = 32  # further from an edge than that is no edge
_RELATIONS = ("<", "<=", ">", ">=", "==", "!=")
_CLAMPS = ("min", "max")

Span = tuple[int | None, int | None]  # the least and the greatest value; None: not known


@dataclass(frozen=True)
class Edges:
    """How far from its edges an id is: ``low`` at least, and more than ``high`` below ``extent`` ('' for no bound)."""

    low: int = 0
    high: int = 0
    extent: str = ""


@dataclass
class Interior:
    """A kernel's ids that are at some distance from their edges, and what is known there. ``edges``: by id."""

    kernel: KernelForm
    known: Definitions
    constants: Mapping[str, int]
    functions: Functions
    edges: dict[str, Edges] = field(default_factory=dict)

    def __post_init__(self) -> None:
        every = [s for s in walk_stmts(self.kernel.body) if isinstance(s, For)]
        self.counters: dict[str, tuple[int, int]] = {}
        for s in every:
            first, end, step = self._number(s.start), self._number(s.bound), self._number(s.step)
            alone = [o.var for o in every].count(s.var) == 1 and s.var not in names_changed(s.body)
            if s.type and alone and first is not None and end is not None and (step or 0) > 0 and s.relation in "<=":
                self.counters[s.var] = first, end - (s.relation == "<")

    def with_body(self, body: Block) -> Interior:
        """The same of other statements."""
        kernel = replace(self.kernel, body=body)
        return replace(self, kernel=kernel, known=definitions(kernel, self.functions))

    def _number(self, e: Expr) -> int | None:
        return self.poly(e).value

    # ------------------------------------------------------------ values

    def poly(self, e: Expr) -> Poly:
        """The polynomial of an integer expression, locals that stay as they are written out, ids not."""
        return polynomial(e, self._meaning)

    def _meaning(self, name: str) -> Poly | None:
        if name in self.edges:
            return symbol(name)
        if name in self.constants:
            return constant(self.constants[name])
        return self.poly(self.known.values[name]) if name in self.known.values else None

    def asked(self, e: Expr) -> Poly:
        """As poly, with a clamp taken for what it leaves as it is: which edge it is for tells how far that is true."""
        return self.poly(map_expr(e, self._unclamped))

    def _unclamped(self, e: Expr) -> Expr:
        match e:
            case Name(text) if text in self.known.values and text not in self.edges:
                return map_expr(self.known.values[text], self._unclamped)
            case Call(Name(text), (a, b)) if text in _CLAMPS:
                return a if self._moves(a) else b
            case Ternary(test, yes, no):
                sides = [x for t in walk_expr(test) if isinstance(t, Binary) and t.op in _RELATIONS
                         for x in (t.left, t.right) if self._moves(x)]  # fmt: skip
                return no if no in sides else yes if yes in sides or self._moves(yes) else no
        return e

    def _moves(self, e: Expr) -> bool:
        return not self.edges.keys().isdisjoint(self.poly(e).names())

    def span(self, value: Poly) -> Span:
        """Between which numbers a value lies."""
        low, high, left = 0, 0, dict[str, int]()
        for monomial, count in value.terms:
            if len(monomial) > 1:
                return None, None
            if not monomial:
                low, high = low + count, high + count
            elif monomial[0] in self.counters:
                ends = [count * end for end in self.counters[monomial[0]]]
                low, high = low + min(ends), high + max(ends)
            else:
                left[monomial[0]] = count
        if not left:
            return low, high
        more = self._least(left)
        less = self._least({name: -count for name, count in left.items()})
        return None if more is None else low + more, None if less is None else high - less

    def _least(self, terms: Mapping[str, int]) -> int | None:
        """The least value of an id, an extent, or how far an id is below its extent."""
        for name, e in self.edges.items():
            if terms == {name: 1}:
                return e.low
            if e.extent and terms == {e.extent: 1}:
                return e.low + e.high + 1
            if e.extent and terms == {e.extent: 1, name: -1}:
                return e.high + 1
        return None

    def is_exact(self, e: Expr, *, unsigned: bool = False) -> bool:
        """Whether an expression of C has the value of its polynomial: unsigned ones where none of it is below zero."""
        types = [self.known.types.get(n, "") for n in names_in(e)]
        if not all(map(is_integer, types)) or names_in(e) & self.known.changed - set(self.counters):
            return False
        if unsigned or self.is_unsigned(e):
            low = self.span(self.poly(e))[0]
            return low is not None and low >= 0 and len({integer_bytes(t) for t in types}) < 2
        return all(self.is_exact(self.known.values[n]) for n in names_in(e) - set(self.edges) if n in self.known.values)

    def is_unsigned(self, e: Expr) -> bool:
        """Whether a name or a number in an expression is unsigned."""
        spelled = [plain_type(bare(self.known.types.get(n, "")), {}) for n in names_in(e)]
        numbers = [x.text.lower() for x in walk_expr(e) if isinstance(x, Literal)]
        return any(t.startswith("u") for t in spelled) or any("u" in n for n in numbers)

    # ------------------------------------------------------------ tests

    def decided(self, test: Expr) -> bool | None:
        """The outcome of a comparison; None where it may be either."""
        if not isinstance(test, Binary) or test.op not in _RELATIONS or not self._comparable(test.left, test.right):
            return None
        low, high = self.span(self.poly(test.left) - self.poly(test.right))
        below, above = high is not None and high < 0, low is not None and low > 0
        at_most, at_least = high is not None and high <= 0, low is not None and low >= 0
        yes, no = {
            "<": (below, at_least), "<=": (at_most, above), ">": (above, at_most), ">=": (at_least, below),
            "==": (at_most and at_least, below or above), "!=": (below or above, at_most and at_least),
        }[test.op]  # fmt: skip
        return True if yes else False if no else None

    def _comparable(self, left: Expr, right: Expr) -> bool:
        unsigned = self.is_unsigned(left) or self.is_unsigned(right)
        return all(self.is_exact(e, unsigned=unsigned) for e in (left, right))

    def clamped(self, call: Call) -> Expr | None:
        """The operand that ``min`` or ``max`` gives; None where it may be either."""
        match call:
            case Call(callee=Name(text=text), args=(a, b)) if text in _CLAMPS:
                less = self.decided(Binary("<=", a, b))
                more = self.decided(Binary(">=", a, b))
                chosen, other = (a, b) if bool(less) == (text == "min") else (b, a)
                if (less or more) and self.keeps_sign(chosen, other):
                    return chosen
        return None

    def keeps_sign(self, chosen: Expr, other: Expr) -> bool:
        """Whether one of two whole numbers is not made unsigned by the other."""
        return self.is_unsigned(chosen) or not self.is_unsigned(other)

    def wrapped(self, e: Binary) -> Expr | None:
        """``(x + n - 1) % n`` without its remainder; None where there may be one."""
        if e.op != "%" or not self._comparable(e.left, e.right):
            return None
        extent = self.poly(e.right)
        value, turns = _without_turns(self.poly(e.left), extent)
        low, below = self.span(value)[0], self.span(value - extent)[1]
        if turns < 0 or low is None or below is None or low < 0 or below >= 0:
            return None
        return next((_plus(Name(v), at) for v in self.edges if (at := (value - symbol(v)).value) is not None), None)


def _plus(e: Expr, by: int) -> Expr:
    return e if not by else Binary("+" if by > 0 else "-", e, number(abs(by)))


def interior(kernel: KernelForm, functions: Functions, constants: Mapping[str, int]) -> Interior:
    """How far from their edges ids must be so that the tests near them are decided. ``kernel``: with macros written
    out."""
    known = definitions(kernel, functions)
    found = Interior(kernel, known, constants, functions, dict.fromkeys(_ids(kernel, known), Edges()))
    extents = [p.name for p in kernel.params if is_integer(p.type) and p.name not in known.changed]
    for e in walk_exprs(kernel.body):
        for value, strict in _asked(e, found, extents):
            _move(found, value, strict, extents)
    kept = {v: e for v, e in found.edges.items() if e.low or e.high}
    return replace(found, edges=kept)


def _ids(kernel: KernelForm, known: Definitions) -> Iterator[str]:
    """Top-level whole numbers that say which thread it is, or its row and column where one number is taken apart, and
    stay."""
    for s in kernel.body:
        match s:
            case Declare(type=type_, name=name) if name in known.values and is_integer(type_):
                value = known.values[name]
                taken_apart = isinstance(value, Binary) and value.op in "/%"
                if names_in(known.expand(value) if taken_apart else value) & BUILTINS:
                    yield name


def _asked(e: Expr, found: Interior, extents: Sequence[str]) -> Iterator[tuple[Poly, int]]:
    """The differences of which an expression asks whether they are below zero, with 1 or equal to it, with -1 whether
    they are at least or at most zero, whichever is known sooner."""
    match e:
        case Binary(op=op, left=left, right=right) if op in _RELATIONS:
            difference = found.asked(left) - found.asked(right)
            if op in ("<", ">="):
                yield difference, 0
            elif op in ("<=", ">"):
                yield -difference, 0
            else:
                yield difference, 1
        case Call(callee=Name(text=text), args=(left, right)) if text in _CLAMPS:
            yield found.asked(left) - found.asked(right), -1
        case Binary(op="%", left=left, right=right) if (extent := found.asked(right)).single in extents:
            value = _without_turns(found.asked(left), extent)[0]
            yield value, 0
            yield value - extent, 0


def _without_turns(value: Poly, extent: Poly) -> tuple[Poly, int]:
    """A value less all whole turns of an extent that stand in it, and how many."""
    count = next((k for m, k in value.terms if m == (extent.single,)), 0)
    return value - constant(count) * extent, count


def _move(found: Interior, value: Poly, strict: int, extents: Sequence[str]) -> None:
    """Move an id's edges so far that what is asked of a value is decided, if they need not go far."""
    fixed, left = constant(0), dict[str, int]()
    for monomial, count in value.terms:
        if not monomial or monomial[0] in found.counters:
            fixed = fixed + Poly(((monomial, count),))
        elif len(monomial) > 1:
            return
        else:
            left[monomial[0]] = count
    name = next((n for n in left if n in found.edges), None)
    low, high = found.span(fixed)
    if name is None or low is None or high is None or abs(left[name]) != 1:
        return
    own = found.edges[name]
    other = next((n for n in left if n != name), "")
    grows, more = left[name] == 1, max(strict, 0)  # the value grows with the id
    if not other:
        need = more - low if grows else high + (strict >= 0)
        if 0 < need <= REACH:
            found.edges[name] = replace(own, low=max(own.low, need))
    elif len(left) == 2 and left[other] == -left[name] and other in extents and own.extent in ("", other):
        need = high - (strict < 0) if grows else more - 1 - low
        if need <= REACH:
            found.edges[name] = replace(own, high=max(own.high, need), extent=other)


__all__ = ["Edges", "Interior", "interior"]
