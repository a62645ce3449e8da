"""privatize-shared: slices of a shared array that are a thread's own become an array of the thread's (array
privatization): registers, once the loops over it are unrolled.

``own[i]`` with ``own = &memory[16 + threadIdx.x * 16]`` is the thread's where all else that is touched of the array
lies elsewhere. Both ways to deal an array out count: a run of elements each, or every so many.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import gcd, prod

from fsr.analysis.calls import is_atomic
from fsr.analysis.polynomial import Poly, constant, symbol
from fsr.analysis.types import bare
from fsr.records import Candidate
from fsr.source.form import (
    Binary,
    Call,
    Declare,
    Expr,
    For,
    If,
    Index,
    Literal,
    Name,
    OpaqueExpr,
    Scope,
    Stmt,
    Unary,
    number,
)  # fmt: skip
from fsr.source.macros import reached_by_macros
from fsr.source.mapping import map_stmts, rewrite, substitute
from fsr.source.parse import parse_device_functions
from fsr.source.walk import (
    Block,
    blocks_of,
    exprs_of,
    fresh,
    is_only_one,
    names_assigned,
    names_in,
    names_mentioned,
    walk_expr,
    walk_exprs,
    walk_stmts,
)
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, part_of, region_in, target_of, targets

MOST = 64  # elements of a thread, and turns of a loop that is unrolled for them
GAIN = 1.3
_UNROLL = ("#pragma unroll",)
_Span = tuple[int, int]  # the least and the largest value


@dataclass(frozen=True, slots=True)
class PrivatizeShared:
    """``memory[threadIdx.x * 16 + i]`` becomes ``memory_own[i]``."""

    name: str = "privatize-shared"
    aims_at: frozenset[str] = frozenset(["shared-conflicts", "instructions", "latency", "occupancy"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Shared arrays with such slices, at indices that constants and loops of constant length give."""
        for target in targets(subject):
            for found in _sliced(target):
                yield Move(self.name, region_in(target, f"shared:{found.array.name}"), (), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose threads have arrays of their own; of the shared array stays what all use."""
        target = target_of(subject, move)
        name = part_of(move).removeprefix("shared:")
        found = next(f for f in _sliced(target) if f.array.name == name)
        return rewritten(target, move, replace(target.kernel, body=found.privatized()))


def _sliced(target: Target) -> Iterator[_Slices]:
    for s in target.kernel.body if target.block is not None else ():
        shared = isinstance(s, Declare) and "__shared__" in s.qualifiers and "extern" not in s.qualifiers and s.dims
        if (
            shared
            and isinstance(s, Declare)
            and s.init is None
            and "volatile" not in s.type
            and is_only_one(target.kernel, s)
        ):
            found = _Array(target, s).slices()
            if found is not None:
                yield found


@dataclass(frozen=True)
class _Place:
    """An element that is touched through ``base``, at ``at`` of the whole array. ``reach``: the least and the largest
    value of what it depends on; ``counted``: the loops of constant length around it."""

    expr: Expr
    base: str
    at: Poly
    reach: Mapping[str, _Span]
    counted: frozenset[str]

    def span(self, at: Poly) -> _Span | None:
        """The least and the largest value of a sum; None where they are not known."""
        return _span(at, self.reach)


def _span(at: Poly, reach: Mapping[str, _Span]) -> _Span | None:
    if not at.symbols <= reach.keys():
        return None
    low = high = 0
    for symbols, count in at.terms:
        values = reduce(lambda some, name: [x * y for x in some for y in reach[name]], symbols, [count])
        low, high = low + min(values), high + max(values)
    return low, high


class _Array:
    """A shared array whose places are sorted into a thread's own and others'."""

    def __init__(self, target: Target, declared: Declare) -> None:
        self.target, self.declared = target, declared
        self.extents = dict(zip("xyz", target.block or (1, 1, 1), strict=True))
        self.known = {f"blockDim.{a}": n for a, n in self.extents.items()} | dict(target.constants)
        self.known |= {f"threadIdx.{a}": 0 for a, n in self.extents.items() if n == 1}
        self.dims = [self.poly(d).value or 0 for d in declared.dims]
        self.pointers: dict[str, Poly] = {}
        self.places: list[_Place] = []
        self.given = False  # whether functions are given a place

    def poly(self, e: Expr) -> Poly:
        """The polynomial of an index, in a block of this size."""
        return self.target.known.poly(e, self.known)

    def slices(self) -> _Slices | None:
        """The array with its slices; None where it has none, or is touched in another way."""
        body = self.target.kernel.body
        if not all(self.dims) or not self._follow(body, names_assigned(body)):
            return None
        threads = {f"threadIdx.{a}": (0, n - 1) for a, n in self.extents.items()}
        if self.names & reached_by_macros(self.target.source) or not self._collect(body, threads, frozenset()):
            return None
        steps = {c for p in self.places if (c := self._slot(p.at)) > 0}
        return next((found for c in sorted(steps) if (found := self._sorted(c)) is not None), None)

    # ------------------------------------------------------------ places

    @property
    def names(self) -> frozenset[str]:
        """The array and what is set to places in it."""
        return frozenset([self.declared.name, *self.pointers])

    def _follow(self, body: Block, assigned: frozenset[str]) -> bool:
        """Note the pointers that are set once, outside of loops, to a place in the array."""
        for s in body:
            if isinstance(s, If | Scope) and not all(self._follow(block, assigned) for block in blocks_of(s)):
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
                at = self.address(left)
                return None if at is None else at + self.poly(right)
            case Unary("&", operand):
                return self.place(operand)
            case Index():
                found = self._row(e)
                return found[0] if found is not None and found[1] == len(self.dims) - 1 else None
        return None

    def place(self, e: Expr) -> Poly | None:
        """Which element of the array an expression is."""
        match e:
            case Unary("*", operand):
                return self.address(operand)
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

    def _collect(self, body: Block, reach: Mapping[str, _Span], counted: frozenset[str]) -> bool:
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
            ways = [_narrowed(self, s, inside), inside] if isinstance(s, If) else [inside]
            if not all(self._collect(block, way, turns) for block, way in zip(blocks_of(s), ways, strict=False)):
                return False
        return True

    def _visit(self, s: Stmt, reach: Mapping[str, _Span], counted: frozenset[str]) -> bool:
        names, array = self.names, Name(self.declared.name)

        def change(e: Expr) -> Expr | None:
            if isinstance(e, Call) and names_in(e) & names:
                if not self._is_harmless(e):
                    return array
                if (inside := self._written_out(e)) is not None:
                    self.given = True
                    return Literal("0") if self._collect(inside, reach, counted) else array
            if isinstance(e, Unary) and e.op == "&" and self.place(e.operand) is not None:
                return array
            at, used = self.place(e), [x.text for x in walk_expr(e) if isinstance(x, Name) and x.text in names]
            if at is None or len(used) > 1:
                return None
            self.places.append(_Place(e, used[0], at, reach, counted))
            return Literal("0")

        left = frozenset[str]().union(*(names_in(rewrite(e, change)) for e in exprs_of(s)))
        if not exprs_of(s) and not blocks_of(s):
            left |= names_mentioned((s,))
        return not left & names

    def _is_harmless(self, call: Call) -> bool:
        """Whether a call does nothing with elements that memory of the thread's would not do: no atomics behind it."""
        if not self.target.functions.stays_in_thread(call, self.target.type_names):
            return False
        callee = call.callee.text if isinstance(call.callee, Name) else ""
        changes = any(f"{callee}({n}" in self.target.kernel.by_reference for n in range(len(call.args)))
        changes |= any(self.address(a) is not None for a in call.args)
        functions = parse_device_functions(self.target.source).values() if changes else ()
        return not any(is_atomic(e) for f in functions for e in walk_exprs(f.body))

    def _written_out(self, call: Call) -> Block | None:
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

    def _steps(self, loop: For, reach: Mapping[str, _Span]) -> _Span | None:
        """The least and the largest value of a loop's variable in its turns; None where that is not known."""
        again = {s.name for s in walk_stmts(loop.body) if isinstance(s, Declare)} | names_assigned(loop.body)
        start, bound = (_span(self.poly(e), reach) for e in (loop.start, loop.bound))
        step = self.poly(loop.step).value or 0
        if loop.var in again or start is None or bound is None:
            return None
        if step > 0 and loop.relation in ("<", "<="):
            return start[0], max(start[0], bound[1] - (loop.relation == "<"))
        if step < 0 and loop.relation in (">", ">="):
            return min(start[1], bound[0] + (loop.relation == ">")), start[1]
        return None

    def is_counted(self, loop: For) -> bool:
        """Whether a loop has a constant number of turns, few enough to be unrolled."""
        start, bound, step = (self.poly(e).value for e in (loop.start, loop.bound, loop.step))
        return start is not None and bound is not None and bool(step) and abs(bound - start) <= MOST * abs(step or 1)

    # ------------------------------------------------------------ whose they are

    @cached_property
    def _thread(self) -> Poly:
        """A thread's number in its block."""
        x, y, _ = self.extents.values()
        sizes = {"x": 1, "y": x, "z": x * y}
        parts = (symbol(f"threadIdx.{a}") * constant(sizes[a]) for a, n in self.extents.items() if n > 1)
        return reduce(Poly.__add__, parts, constant(0))

    def _slot(self, at: Poly) -> int:
        """How far apart the places of neighbouring threads are; 0 where that is not the same for all."""
        first = next((m[0] for m, n in self._thread.terms if n == min(n for _, n in self._thread.terms)), "")
        apart = at.coefficient(first)
        step = 0 if apart is None else apart.value or 0
        return 0 if (at - self._thread * constant(step)).depends_on(["threadIdx"]) else step

    def _sorted(self, step: int) -> _Slices | None:
        """The slices whose beginnings are so far apart."""
        own = [p for p in self.places if self._slot(p.at) == step]
        rests = [p.at - self._thread * constant(step) for p in own]
        spans = [p.span(r) for p, r in zip(own, rests, strict=True) if r.symbols <= p.counted]
        if len(spans) < len(own) or None in spans:
            return None
        low, high = min(s[0] for s in spans if s), max(s[1] for s in spans if s)
        threads = step * (prod(self.extents.values()) - 1)
        unit = 1 if high - low < step else gcd(*(n for r in rests for _, n in (r - constant(low)).terms))
        others = tuple(p for p in self.places if p not in own)
        apart = all((s := p.span(p.at)) is not None and (s[1] < low or s[0] > high + threads) for p in others)
        count = (high - low) // unit + 1 if unit else 0
        if not apart or not 1 < count <= MOST or (high - low >= step and unit <= threads):
            return None
        bases = {p.base for p in own}
        first = self._thread * constant(step) + constant(low)
        alone = next(iter(bases)) if len(bases) == 1 and unit == 1 else ""
        pointer = alone if self.pointers.get(alone) == first else None
        if self.given and pointer is None:  # a function would need the places to be as far apart as they were
            return None
        which = {p.expr: (r - constant(low)).over(constant(unit)) for p, r in zip(own, rests, strict=True)}
        return _Slices(self, {e: at for e, at in which.items() if at is not None}, pointer, others, low, count)


def _narrowed(array: _Array, s: If, reach: Mapping[str, _Span]) -> Mapping[str, _Span]:
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


@dataclass(frozen=True)
class _Slices:
    """The slices of an array. ``own``: which of a thread's ``count`` elements each place is; ``pointer``: what they are
    all touched through, if that points to the first; ``rest``: other places; ``low``: where the first slice begins."""

    of: _Array
    own: Mapping[Expr, Poly]
    pointer: str | None
    rest: tuple[_Place, ...]
    low: int
    count: int

    @property
    def array(self) -> Declare:
        """The shared array."""
        return self.of.declared

    def privatized(self) -> Block:
        """The kernel's statements."""
        name = self.pointer or fresh(f"{self.array.name}_own", self.of.target.names)
        own = Declare(bare(self.array.type), name, None, (number(self.count),))
        used = self._used()

        def change(e: Expr) -> Expr | None:
            at = self.own.get(e)
            if at is None or self.pointer:
                return None
            return Index(Name(name), OpaqueExpr(at.text()) if at.value is None else number(at.value))

        def settled(s: Stmt) -> Stmt | tuple[Stmt, ...]:
            match s:
                case Declare(name=self.array.name):
                    left = (replace(s, dims=self._left()),) if s.name in used else ()
                    return left if self.pointer else (*left, own)
                case Declare(name=self.pointer):
                    return own
                case Declare() if s.name in self.of.pointers and s.name not in used:
                    return ()
                case For() if not s.pragmas and self.of.is_counted(s) and self._is_index(s, name):
                    return replace(s, pragmas=_UNROLL)
            return s

        return map_stmts(rewrite(self.of.target.kernel.body, change), settled)

    def _used(self) -> frozenset[str]:
        """The array and the pointers that the rest is touched through."""
        found = {p.base for p in self.rest}
        pointers = [s for s in walk_stmts(self.of.target.kernel.body) if isinstance(s, Declare)]
        for s in reversed(pointers):  # what a pointer is made from stands before it
            if s.name in found and s.name in self.of.pointers and s.init is not None:
                found |= names_in(s.init) & self.of.names
        return frozenset(found)

    def _left(self) -> tuple[Expr, ...]:
        """The extents of what stays shared: what lies before the slices, where nothing behind them is used."""
        ends = [span[1] for p in self.rest if (span := p.span(p.at)) is not None]
        return (number(self.low),) if len(self.array.dims) == 1 and max(ends) < self.low else self.array.dims

    def _is_index(self, loop: For, name: str) -> bool:
        """Whether a loop's variable tells which of the thread's elements are touched."""
        indices = (e.index for e in walk_exprs(loop.body) if isinstance(e, Index) and e.base == Name(name))
        return any(loop.var in names_in(self.of.target.known.expand(e)) for e in indices)
