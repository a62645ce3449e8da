"""Which elements of an array a kernel touches: through its name, through pointers that are set once to a place in it,
and in functions that are given one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod

from fsr.analysis.calls import is_atomic, is_load
from fsr.analysis.polynomial import Poly, constant, symbol
from fsr.analysis.types import bare
from fsr.source.arrays import is_only_one
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    For,
    If,
    Index,
    Literal,
    Member,
    Name,
    Scope,
    Stmt,
    Unary,
    While,
    conjuncts,
)
from fsr.source.macros import reached_by_macros
from fsr.source.mapping import replace_stmt, rewrite, substitute
from fsr.source.parse import parse_device_functions
from fsr.source.walk import (
    Block,
    blocks_of,
    exprs_of,
    names_assigned,
    names_in,
    names_mentioned,
    walk_expr,
    walk_exprs,
    walk_stmts,
)
from fsr.transform.target import Target

MOST_TURNS = 64  # of a loop that may be unrolled
Span = tuple[int, int]  # the least and the largest value


@dataclass(frozen=True)
class Place:
    """An element that is touched through ``base``, at ``at`` of the whole array. ``reach``: the least and the largest
    value of what it depends on; ``counted``: the loops of constant length around it."""

    expr: Expr
    base: str
    at: Poly
    reach: Mapping[str, Span]
    counted: frozenset[str]

    def span(self, at: Poly) -> Span | None:
        """The least and the largest value of a sum; None where they are not known."""
        return span_of(at, self.reach)


def span_of(at: Poly, reach: Mapping[str, Span]) -> Span | None:
    """The least and the largest value of a sum of what is in ``reach``; None where it depends on anything else."""
    if not at.symbols <= reach.keys():
        return None
    low = high = 0
    for symbols, count in at.terms:
        values = reduce(lambda some, name: [x * y for x in some for y in reach[name]], symbols, [count])
        low, high = low + min(values), high + max(values)
    return low, high


class Places:
    """The places of one array, in a block of constant size. ``declared``: the array; ``more``: names that stand for
    numbers, beside the file's constants."""

    followed: tuple[type[Stmt], ...] = (If, Scope)  # statements in which pointers are made

    def __init__(self, target: Target, declared: Declare, more: Mapping[str, int] | None = None) -> None:
        self.target, self.declared = target, declared
        self.extents = dict(zip("xyz", target.block or (1, 1, 1), strict=True))
        self.known = {f"blockDim.{a}": n for a, n in self.extents.items()} | dict(target.constants) | dict(more or {})
        self.known |= {f"threadIdx.{a}": 0 for a, n in self.extents.items() if n == 1}
        self.dims = [self.poly(d).value or 0 for d in declared.dims]
        self.pointers: dict[str, Poly] = {}
        self.places: list[Place] = []
        self.given = False  # whether functions are given a place
        self._open: list[Expr] = []  # functions whose bodies are being looked at

    def poly(self, e: Expr) -> Poly:
        """The polynomial of an index, in a block of this size."""
        return self.target.known.poly(e, self.known)

    # ------------------------------------------------------------ places

    @property
    def names(self) -> frozenset[str]:
        """The array and what is set to places in it."""
        return frozenset([self.declared.name, *self.pointers])

    def follow(self, body: Block, assigned: frozenset[str]) -> bool:
        """Note the pointers that are set once, outside of loops, to a place in the array."""
        for s in body:
            if isinstance(s, self.followed) and not all(self.follow(block, assigned) for block in blocks_of(s)):
                return False
            at = self.address(s.init) if isinstance(s, Declare) and s.init is not None and "*" in s.type else None
            if isinstance(s, Declare) and at is not None:
                same = bare(s.type) == bare(self.declared.type) and "volatile" not in s.type and s.type.count("*") == 1
                if not same or s.name in assigned or not is_only_one(self.target.kernel, s) or s.qualifiers or s.dims:
                    return False
                self.pointers[s.name] = at
        return True

    def address(self, e: Expr) -> Poly | None:
        """Where in the array an address points."""
        match e:
            case Name(text):
                flat = text == self.declared.name and len(self.dims) == 1
                return constant(0) if flat else self.pointers.get(text)
            case Binary("+", left, right):
                at, by = (self.address(left), right) if self.address(left) is not None else (self.address(right), left)
                return None if at is None else at + self.poly(by)
            case Binary("-", left, right):
                at = self.address(left)
                return None if at is None else at - self.poly(right)
            case Cast(type_, operand) if type_.count("*") == 1 and bare(type_) == bare(self.declared.type):
                return self.address(operand)
            case Unary("&", operand):
                return self.place(operand)
            case Index():
                found = self._row(e)
                return found[0] if found is not None and found[1] == len(self.dims) - 1 else None
        return None

    def place(self, e: Expr) -> Poly | None:
        """Which element of the array an expression is."""
        match e:
            case Unary("*", operand) | Member(operand, _, True):
                return self.address(operand)
            case Call(args=(pointer,)) if is_load(e):
                return self.address(pointer)
            case Index(base, index):
                found = self._row(e)
                if found is not None:
                    return found[0] if found[1] == len(self.dims) else None
                at = self.address(base)
                return None if at is None else at + self.poly(index)
        return None

    def _row(self, e: Expr) -> tuple[Poly, int] | None:
        """Where the part of the array begins that indices behind its name give, and how many they are."""
        indices = list[Expr]()
        while isinstance(e, Index):
            indices.insert(0, e.index)
            e = e.base
        if e != Name(self.declared.name) or len(indices) > len(self.dims):
            return None
        at = constant(0)
        for n, index in enumerate(indices):
            at = at + self.poly(index) * constant(prod(self.dims[n + 1 :]))
        return at, len(indices)

    def collect(self, body: Block, reach: Mapping[str, Span], counted: frozenset[str]) -> bool:
        """Note all places; False where statements do anything else with the array."""
        for s in body:
            if not (isinstance(s, Declare) and s.name in self.names) and not self._visit(s, reach, counted):
                return False
            inside, turns = dict(reach), counted
            if isinstance(s, For):
                inside.pop(s.var, None)
                turns -= {s.var}
                span = self._steps(s, reach)
                if span is not None:
                    inside[s.var] = span
                    turns |= {s.var} if self.is_counted(s) else set()
            if isinstance(s, While) and (counter := self._counter(s, reach)) is not None:
                inside[counter[0]] = counter[1]
            ways = [_narrowed(self, s, inside), inside] if isinstance(s, If) else [inside]
            if not all(self.collect(block, way, turns) for block, way in zip(blocks_of(s), ways, strict=False)):
                return False
        return True

    def _visit(self, s: Stmt, reach: Mapping[str, Span], counted: frozenset[str]) -> bool:
        names, array = self.names, Name(self.declared.name)

        def change(e: Expr) -> Expr | None:
            if isinstance(e, Call) and names_in(e) & names:
                if not self._is_harmless(e):
                    return array
                if (inside := self.written_out(e)) is not None:
                    self.given = True
                    return Literal("0") if self._within(e, inside, reach, counted) else array
            if isinstance(e, Unary) and e.op == "&" and self.place(e.operand) is not None:
                return array
            at, used = self.place(e), [x.text for x in walk_expr(e) if isinstance(x, Name) and x.text in names]
            if at is None or len(used) > 1:
                return None
            self.places.append(self._noted(Place(e, used[0], at, reach, counted)))
            return Literal("0")

        left = frozenset[str]().union(*(names_in(rewrite(e, change)) for e in exprs_of(s)))
        if not exprs_of(s) and not blocks_of(s):
            left |= names_mentioned((s,))
        return not left & names

    def _within(self, call: Call, body: Block, reach: Mapping[str, Span], counted: frozenset[str]) -> bool:
        """Note the places of a function's body; False for one that calls itself, however far down."""
        if call.callee in self._open:
            return False
        self._open.append(call.callee)
        try:
            return self.collect(body, reach, counted)
        finally:
            self._open.pop()

    def _noted(self, place: Place) -> Place:
        """A place as it is kept."""
        return place

    def _is_harmless(self, call: Call) -> bool:
        """Whether a call does nothing with elements that memory of the thread's would not do: no atomics behind it."""
        if not self.target.functions.stays_in_thread(call, self.target.type_names):
            return False
        if is_atomic(call) and any(self.place(e) is not None for e in walk_expr(call)):  # of a member too: `&x[i].y`
            return False
        callee = call.callee.text if isinstance(call.callee, Name) else ""
        changes = any(f"{callee}({n}" in self.target.kernel.by_reference for n in range(len(call.args)))
        changes |= any(self.address(a) is not None for a in call.args)
        functions = parse_device_functions(self.target.source).values() if changes else ()
        return not any(is_atomic(e) for f in functions for e in walk_exprs(f.body))

    def written_out(self, call: Call) -> Block | None:
        """What a function of the file does with the places that it is given; None where it is given none, or it has
        names that would mean something else here."""
        name = call.callee.text if isinstance(call.callee, Name) else ""
        function = parse_device_functions(self.target.source).get(name)
        if function is None or not any(self.address(a) is not None for a in call.args):
            return None
        params = [p.name for p in function.params]
        once = len(re.findall(rf"\b{name}\s*\([^;{{}}]*\)\s*{{", self.target.source)) == 1
        own = names_mentioned(function.body) - set(params)
        if not once or len(params) != len(call.args) or own & (self.names | self.target.known.values.keys()):
            return None
        if set(params) & (names_assigned(function.body) | reached_by_macros(self.target.source)):
            return None
        return substitute(function.body, dict(zip(params, call.args, strict=True)))

    # ------------------------------------------------------------ what indices reach

    def _steps(self, loop: For, reach: Mapping[str, Span]) -> Span | None:
        """The least and the largest value of a loop's variable in its turns; None where that is not known."""
        again = {s.name for s in walk_stmts(loop.body) if isinstance(s, Declare)} | names_assigned(loop.body)
        start, bound = (span_of(self.poly(e), reach) for e in (loop.start, loop.bound))
        step = self.poly(loop.step).value or 0
        if loop.var in again or start is None or bound is None:
            return None
        if step > 0 and loop.relation in ("<", "<="):
            return start[0], max(start[0], bound[1] - (loop.relation == "<"))
        if step < 0 and loop.relation in (">", ">="):
            return min(start[1], bound[0] + (loop.relation == ">")), start[1]
        return None

    def _counter(self, loop: While, reach: Mapping[str, Span]) -> tuple[str, Span] | None:
        """The variable that a loop counts up by its last statement, and its least and largest value before that."""
        match loop.body[-1:], conjuncts(loop.test)[0]:
            case (Assign(Name(name), "+=", step),), Binary("<" | "<=" as op, Name(tested), bound) if tested == name:
                declared = [s for s in walk_stmts(self.target.kernel.body) if isinstance(s, Declare) and s.name == name]
                start = declared[0].init if len(declared) == 1 else None
            case _:
                return None
        body = self.target.kernel.body
        others = replace_stmt(body, loop.body[-1], ())
        first, end = (None if e is None else span_of(self.poly(e), reach) for e in (start, bound))
        if name in names_assigned(others) or first is None or end is None or (self.poly(step).value or 0) <= 0:
            return None
        return name, (first[0], max(first[0], end[1] - (op == "<")))

    def is_counted(self, loop: For) -> bool:
        """Whether a loop has a constant number of turns, few enough to be unrolled."""
        start, bound, step = (self.poly(e).value for e in (loop.start, loop.bound, loop.step))
        return (
            start is not None and bound is not None and bool(step) and abs(bound - start) <= MOST_TURNS * abs(step or 1)
        )

    # ------------------------------------------------------------ whose they are

    @cached_property
    def thread(self) -> Poly:
        """A thread's number in its block."""
        x, y, _ = self.extents.values()
        sizes = {"x": 1, "y": x, "z": x * y}
        parts = (symbol(f"threadIdx.{a}") * constant(sizes[a]) for a, n in self.extents.items() if n > 1)
        return reduce(Poly.__add__, parts, constant(0))


def _narrowed(array: Places, s: If, reach: Mapping[str, Span]) -> Mapping[str, Span]:
    """What is known where an if's condition holds: ids below a constant."""
    found, tests = dict(reach), [s.test]
    while tests:
        match tests.pop():
            case Binary("&&", left, right):
                tests += [left, right]
            case Binary("<" | "<=" as op, left, right):
                name, most = array.poly(left).single or "", array.poly(right).value
                if name in found and name.startswith("threadIdx.") and most is not None and most > 0:
                    found[name] = found[name][0], min(found[name][1], most - (op == "<"))
    return found
