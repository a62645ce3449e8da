"""What statements read and write of rows, in which order, and which elements they write for sure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from fsr.analysis.conditions import MIRRORED, NEGATED
from fsr.analysis.polynomial import Poly, constant, symbol
from fsr.analysis.types import integer_bytes, resolved
from fsr.analysis.uniform import Uniformity
from fsr.hardware.c_types import BY_SPELLING
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
    Member,
    Name,
    Scope,
    Stmt,
    Ternary,
    Unary,
    While,
)  # fmt: skip
from fsr.source.walk import (
    Block,
    base_name,
    breaks,
    contains_return,
    exprs_of,
    integer,
    jumps,
    names_assigned,
    names_in,
    subexprs,
    variables,
    walk_stmts,
)
from fsr.transform.swaps.bounds import Bound, Extreme, Interval, is_at_most, negative, plus, symbols
from fsr.transform.target import Target

_ONE = constant(1)
_HIGH, _LOW = ("<", "<="), (">", ">=")


@dataclass(frozen=True)
class Access:
    """``ends``: for each side, what no element that is meant lies beyond; ``cover``: of a write, the elements that are
    written for sure; ``loops``: around it; ``place``: of the statement of the turn."""

    row: str
    writes: bool
    at: Poly | None
    lows: tuple[Bound, ...]
    highs: tuple[Bound, ...]
    cover: Interval | None
    loops: tuple[For, ...]
    place: int


@dataclass
class Turn:
    """A walk over statements. ``changed``: variables that may have other values elsewhere; ``together``: whether the
    threads of a block do them together. ``accesses``: in order; ``clear``: whether rows are used as rows alone;
    ``values``: of variables now; ``made``: the quotients that symbols stand for; ``tests``: what variables say."""

    target: Target
    rows: frozenset[str]
    together: bool
    uniform: Uniformity
    changed: frozenset[str]
    accesses: list[Access] = field(default_factory=list)
    place: int = 0
    clear: bool = True
    values: dict[str, Bound] = field(default_factory=dict)
    made: dict[str, tuple[Bound, Bound]] = field(default_factory=dict)
    tests: dict[str, Expr] = field(default_factory=dict)
    _ranges: dict[str, tuple[Bound | None, Bound | None]] = field(default_factory=dict)
    _guards: tuple[tuple[Poly, str, Bound], ...] = ()
    _loops: tuple[For, ...] = ()
    _dealt: frozenset[str] = frozenset()
    _number: int = 0

    # ------------------------------------------------------------ values

    def value(self, e: Expr) -> Bound:
        """An expression's value: of what is not known, a symbol of its own."""
        number = integer(e)
        if number is not None:
            return constant(number)
        match e:
            case Name(text):
                return self._variable(text)
            case Member(Name("threadIdx"), "x") if self.together:
                return self._thread(self.target.numbers.get("blockDim.x"))
            case Member(Name("threadIdx"), _) if self.together:
                return self._unknown()
            case Member(Name("threadIdx" | "blockIdx" | "blockDim" | "gridDim" as base), axis):
                known = self.target.numbers.get(f"{base}.{axis}")
                return symbol(f"{base}.{axis}") if known is None else constant(known)
            case Binary("&" | "%" as op, Member(Name("threadIdx"), "x"), by) if self.together:
                lanes = (integer(by) or 0) + (op == "&")
                whole = (self.target.row_threads or 1) % lanes == 0 and lanes & (lanes - 1) == 0 if lanes > 1 else False
                return self._thread(lanes) if whole else self._unknown()
            case Cast(type_, operand):
                return self._as(type_, self.value(operand))
            case Unary("-", operand):
                return negative(self.value(operand))
            case Call(Name("min" | "max" as op), (left, right)):
                return Extreme(op, self.value(left), self.value(right))
            case Ternary(Binary(op, left, right), yes, no) if op in _HIGH + _LOW and {left, right} == {yes, no}:
                return Extreme("max" if (op in _LOW) == (left == yes) else "min", self.value(yes), self.value(no))
            case Binary("+" | "-" | "*" as op, left, right):
                return self._sum(op, self.value(left), self.value(right))
        return self._unknown()

    def _as(self, type_: str, value: Bound) -> Bound:
        """A value in a type, which may be none of whole numbers, or wrap around."""
        plain = BY_SPELLING.get(resolved(type_, self.target.aliases))
        if plain is None or "int" not in plain.dtype or plain.bytes < 4:
            return self._unknown()
        wraps = plain.dtype.startswith("u") and any(count < 0 for p in _leaves(value) for _, count in p.terms)
        return self._unknown() if wraps else value

    def _sum(self, op: str, one: Bound, other: Bound) -> Bound:
        if op == "-":
            op, other = "+", negative(other)
        if op == "+":
            if isinstance(one, Poly):
                one, other = other, one
            return plus(one, other) if isinstance(other, Poly) else self._unknown()
        return one * other if isinstance(one, Poly) and isinstance(other, Poly) else self._unknown()

    def _variable(self, name: str) -> Bound:
        if name in self.values:
            return self.values[name]
        if name in self.target.constants:
            return constant(self.target.constants[name])
        known = self.target.known
        if name in known.values:
            return self.value(known.values[name])
        if integer_bytes(resolved(known.types.get(name, ""), self.target.aliases)) is None:
            return self._unknown()
        if name in self.changed or (self.together and not self.uniform(Name(name))):
            return self._unknown()
        return symbol(name)

    def _unknown(self) -> Poly:
        self._number += 1
        return symbol(f"?{self._number}")

    def _thread(self, count: int | None) -> Poly:
        """The number of a thread among so many."""
        last = symbol("blockDim.x") - _ONE if count is None else constant(count - 1)
        name = f"@{count}"
        if all(extent == "1" for extent in self.target.launch.block[1:]):
            self._ranges.setdefault(name, (constant(0), last))
            return symbol(name)
        return self._unknown()

    # ------------------------------------------------------------ ranges

    def end(self, bound: Bound, high: bool) -> Bound | None:
        """What no value of an expression lies beyond, made of what the turn's threads and loops have in common."""
        if isinstance(bound, Extreme):
            left, right = self.end(bound.left, high), self.end(bound.right, high)
            return None if left is None or right is None else Extreme(bound.op, left, right)
        found: Bound = constant(0)
        rest = bound
        for name in bound.symbols & self._ranges.keys():
            factor = bound.coefficient(name)
            limit = None if factor is None else self._ranges[name][int(high == (factor == _ONE))]
            if limit is None or factor not in (_ONE, -_ONE):
                return None
            moved = limit if factor == _ONE else negative(limit)
            if isinstance(found, Extreme):
                moved, found = found, moved
            if isinstance(found, Extreme):
                return None
            found, rest = plus(moved, found), rest.without(name)
        found = plus(found, rest)
        return None if any(n.startswith("?") for n in symbols(found)) else found

    def _ends(self, bound: Bound, high: bool) -> tuple[Bound, ...]:
        own = self.end(bound, high)
        found = [] if own is None else [own]
        for what, side, limit in self._guards:
            apart = (bound - what).value if isinstance(bound, Poly) else None
            if (side == "high") == high and apart is not None:
                found.append(plus(limit, constant(apart)))
        return tuple(found)

    # ------------------------------------------------------------ statements

    def walk(self, body: Block, sure: bool = True) -> None:
        """Go through statements; ``sure``: whether they are done in any case."""
        for s in body:
            self._statement(s, sure)
            sure = sure and not jumps((s,)) and not contains_return((s,))

    def _statement(self, s: Stmt, sure: bool) -> None:
        match s:
            case Declare(name=name, init=init, dims=()) if init is not None:
                self._read(init)
                self._set(name, init, True)
            case Assign(Index(Name(row), index), op, value) if row in self.rows:
                self._read(index)
                self._read(value)
                if op != "=":
                    self._access(row, index, False, sure)
                self._access(row, index, True, sure)
            case Assign(Name(name), op, value):
                self._read(value)
                self._set(name, value if op == "=" else Binary(op[:-1], Name(name), value), False)
            case Assign(target=target) if base_name(target) in self.rows:
                self.clear = False
            case If():
                self._either(s, sure)
            case For():
                self._loop(s, sure)
            case While(test, inner):
                self._forget(s)
                self._read(test)
                self.walk(inner, False)
                self._forget(s)
            case Scope(inner):
                self.walk(inner, sure)
            case _:
                for e in exprs_of(s):
                    self._read(e)

    def _set(self, name: str, value: Expr, anew: bool) -> None:
        found = self._as(self.target.known.types.get(name, ""), self.value(value))
        self._drop(name)
        while isinstance(value, Cast):
            value = value.operand
        if isinstance(value, Binary) and value.op in NEGATED:
            self.tests[name] = value
        one = anew and not self._loops and variables(self.target.kernel.body).count(name) == 1
        if isinstance(value, Binary) and value.op == "/" and one and (not self.together or self.uniform(Name(name))):
            found = symbol(f"{name}'")
            self.made[f"{name}'"] = self.value(value.left), self.value(value.right)
        self.values[name] = found

    def _drop(self, name: str) -> None:
        self.tests = {n: e for n, e in self.tests.items() if n != name and name not in names_in(e)}

    def _forget(self, s: Stmt) -> None:
        """Values that a statement may change."""
        for name in names_assigned(s):
            self._drop(name)
            self.values[name] = self._unknown()

    def _either(self, s: If, sure: bool) -> None:
        self._read(s.test)
        clamped = self._clamped(s)
        before, guards, ranges = dict(self.values), self._guards, dict(self._ranges)
        other = list[tuple[str, Poly | None, Interval | None]]()
        for block, holds in ((s.then, True), (s.orelse, False)):
            told, at = self._assume(s.test, holds), len(self.accesses)
            self.walk(block, sure and (told or bool(s.orelse)))
            own = self.accesses[at:]
            if not told:  # what either way writes is written where both are done with
                own = [a if (a.row, a.at, a.cover) in other else replace(a, cover=None) for a in own]
            other = [(a.row, a.at, a.cover) for a in self.accesses[at:]]
            self.accesses[at:] = own
            self.values, self._guards, self._ranges = dict(before), guards, dict(ranges)
        self._forget(s)
        if clamped is not None:
            self.values[clamped[0]] = clamped[1]

    def _clamped(self, s: If) -> tuple[str, Bound] | None:
        """``if (v < x) v = x;``: the variable, and what it is then."""
        match s:
            case If(Binary(op, left, right), (Assign(Name(name), "=", value),), ()) if op in MIRRORED:
                op, other = (op, right) if left == Name(name) else (MIRRORED[op], left)
                if Name(name) in (left, right) and other == value and op in _HIGH + _LOW:
                    return name, Extreme("max" if op in _HIGH else "min", self.value(Name(name)), self.value(value))
        return None

    def _assume(self, test: Expr, holds: bool) -> bool:
        """Take in what a condition says; whether it is about threads' numbers alone, which then are fewer."""
        match test:
            case Binary("&&", left, right) if holds:
                return all([self._assume(left, True), self._assume(right, True)])
            case Binary("||", left, right) if not holds:
                return all([self._assume(left, False), self._assume(right, False)])
            case Unary("!", operand):
                return self._assume(operand, not holds)
            case Name(name) if name in self.tests:
                return self._assume(self.tests[name], holds)
            case Binary(op, left, right) if op in NEGATED:
                op = op if holds else NEGATED[op]
                one, two = self.value(left), self.value(right)
                sides = [self._limit(one, op, two), self._limit(two, MIRRORED[op], one)]
                return any(sides)
        return False

    def _limit(self, one: Bound, op: str, other: Bound) -> bool:
        """Note that an expression is limited; whether that leaves just the threads up to there."""
        if not isinstance(one, Poly):
            return False
        name = next((n for n in one.symbols & self._ranges.keys() if " " not in n), "")
        rest = one.without(name) if one.coefficient(name) == _ONE else None
        moving = self._ranges.keys() & (symbols(other) | (rest.symbols if rest is not None else {name}))
        # a difference could have no sign, and wrap around
        alone = rest is not None and not moving and all(count > 0 for _, count in rest.terms)
        sides = [high for high, ops in ((True, _HIGH), (False, _LOW)) if op in (*ops, "==")]
        for high in sides:
            limit = self.end(other, high)
            if limit is None:
                return False
            limit = plus(limit, constant({"<": -1, ">": 1}.get(op, 0)))
            self._guards = (*self._guards, (one, "high" if high else "low", limit))
            if alone and rest is not None:
                ends = list(self._ranges[name])
                old, new = ends[high], plus(limit, -rest)
                ends[high] = new if old is None else Extreme("min" if high else "max", old, new)
                self._ranges[name] = ends[0], ends[1]
        return alone and bool(sides)

    def _loop(self, s: For, sure: bool) -> None:
        for e in (s.start, s.bound, s.step):
            self._read(e)
        start = self.value(s.start)
        self._forget(s)
        bound, step = self.value(s.bound), self.value(s.step)
        self._number += 1
        name = f"@{s.var} {self._number}"
        up = step == symbol("blockDim.x") or (isinstance(step, Poly) and (step.value or 0) > 0)
        counts = (up or (isinstance(step, Poly) and (step.value or 0) < 0)) and s.relation in (_HIGH if up else _LOW)
        ends = self.end(start, not up), self.end(bound, up)
        last = None if ends[1] is None else plus(ends[1], constant(0 if "=" in s.relation else -1 if up else 1))
        before, guards, ranges = dict(self.values), self._guards, dict(self._ranges)
        plain = counts and s.var not in names_assigned(s.body)
        self._ranges[name] = (None, None) if not plain else (ends[0], last) if up else (last, ends[0])
        self.values[s.var] = symbol(name)
        self._loops = (*self._loops, s)
        whole = plain and self._is_whole(start, step) and not symbols(bound) & ranges.keys()
        dealt, self._dealt = self._dealt, self._dealt | (symbols(start) & ranges.keys())
        self.walk(s.body, sure and whole and not breaks(s.body) and not contains_return(s.body))
        self._loops, self._dealt = self._loops[:-1], dealt
        self.values, self._guards, self._ranges = before, guards, ranges
        self._forget(s)

    def _is_whole(self, start: Bound, step: Bound) -> bool:
        """Whether all turns of a loop, of all threads, go through all numbers from its start to its end."""
        moving = symbols(start) & self._ranges.keys()
        if not moving:
            return step in (_ONE, -_ONE)
        (name, *more) = moving
        if more or " " in name:
            return False
        return step == _count(name) and all(p.coefficient(name) == _ONE for p in _leaves(start))

    # ------------------------------------------------------------ elements

    def _read(self, e: Expr) -> None:
        """Note the elements that an expression reads, under the conditions in it."""
        match e:
            case Index(Name(row), index) if row in self.rows:
                self._read(index)
                self._access(row, index, False, False)
                return
            case Name(text) if text in self.rows:
                self.clear = False
            case Binary("&&" | "||" as op, left, right):
                self._read(left)
                self._under(left, op == "&&", right)
                return
            case Ternary(test, yes, no):
                self._read(test)
                self._under(test, True, yes)
                self._under(test, False, no)
                return
            case Unary("&", Index(Name(row), _)) if row in self.rows:
                self.clear = False
        for part in subexprs(e):
            self._read(part)

    def _under(self, test: Expr, holds: bool, e: Expr) -> None:
        guards, ranges = self._guards, dict(self._ranges)
        self._assume(test, holds)
        self._read(e)
        self._guards, self._ranges = guards, ranges

    def _access(self, row: str, index: Expr, writes: bool, sure: bool) -> None:
        at = self.value(index)
        lows, highs = self._ends(at, False), self._ends(at, True)
        size = self._sizes.get(row)
        if size is not None:  # what lies beyond an array is nothing
            lows, highs = (*lows, constant(0)), (*highs, *((plus(size, -_ONE),) if size.symbols or size.value else ()))
        cover = self._cover(at) if writes and sure and isinstance(at, Poly) else None
        self.accesses.append(
            Access(row, writes, at if isinstance(at, Poly) else None, lows, highs, cover, self._loops, self.place)
        )

    def _cover(self, at: Poly) -> Interval | None:
        """The elements that all threads and turns that come to a place have together; None where others may stay
        away."""
        moving = at.symbols & self._ranges.keys()
        first, last = self.end(at, False), self.end(at, True)
        threads = {n for n in self._ranges if " " not in n}
        few = {n for n in threads if self._ranges[n] != (constant(0), _count(n) - _ONE)}
        if len(moving) > 1 or sum(" " in n for n in moving) < len(self._loops) or few & self._dealt:
            return None
        if few - moving and (moving & threads or self._dealt or len(few) > 1):
            return None
        for low, high in (self._ranges[n] for n in few - moving):
            if low is None or high is None or not is_at_most(self.target, low, high):
                return None  # there may be no such thread
        return None if first is None or last is None else (first, last)

    @cached_property
    def _sizes(self) -> dict[str, Poly]:
        """Of rows that are arrays, how many elements they have."""
        found = {}
        for s in walk_stmts(self.target.kernel.body):
            match s:
                case Declare(name=name, dims=(size,)) if name in self.rows:
                    found[name] = self.target.poly(size)
        return found


def _count(thread: str) -> Poly:
    """How many threads a symbol numbers."""
    return symbol("blockDim.x") if thread == "@None" else constant(int(thread[1:]))


def _leaves(bound: Bound) -> Iterable[Poly]:
    if isinstance(bound, Extreme):
        yield from _leaves(bound.left)
        yield from _leaves(bound.right)
    else:
        yield bound
