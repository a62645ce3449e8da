"""strided-turns: a loop in which only every s-th turn does anything goes from one such turn to the next.

Gathers of what was written in strides (transposed convolutions, col2im, gradients of pooling, sieves) ask in every turn
whether ``(x + pad - k) % stride`` is zero. The first turn where it is can be told, and all others stand a stride apart:
the loop begins there, steps by the stride, and asks no more. What turns do, and their order, stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from fsr.analysis.calls import is_load
from fsr.analysis.conditions import negation
from fsr.analysis.polynomial import constant, polynomial
from fsr.analysis.types import is_integer, resolved
from fsr.hardware.c_types import BY_SPELLING
from fsr.records import Candidate
from fsr.source.form import (
    Binary,
    Call,
    Cast,
    Comment,
    Declare,
    Expr,
    For,
    If,
    Index,
    Jump,
    Literal,
    Member,
    Name,
    Scope,
    Stmt,
    Ternary,
    Unary,
    While,
    number,
)
from fsr.source.mapping import map_expr, replace_stmt, substitute
from fsr.source.shadows import unshadowed
from fsr.source.walk import (
    BUILTINS,
    Block,
    contains_barrier,
    contains_opaque,
    contains_warp_wide,
    fresh,
    integer,
    loops,
    names_assigned,
    names_in,
    names_written,
    variables,
    walk_expr,
    walk_stmts,
)
from fsr.transform.details.limits import Limits, is_auto
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, target_of, targets

_GAIN, _MOST = 1.4, 3.0  # a loop, and all that are in one another
_LARGEST = 2**30  # a stride
_Told = Mapping[str, Expr]


@dataclass(frozen=True, slots=True)
class StridedTurns:
    """All such loops of a kernel at once."""

    name: str = "strided-turns"
    aims_at: frozenset[str] = frozenset(["instructions", "compute", "latency"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Kernels with a loop whose turns ask for a remainder."""
        for target in targets(subject):
            _, count = _strided(target)
            if count:
                yield Move(self.name, target.region, (), min(_MOST, _GAIN**count))

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose loops leave out the turns that do nothing."""
        target = target_of(subject, move)
        return rewritten(target, move, replace(target.kernel, body=_strided(target)[0]))


def _strided(target: Target) -> tuple[Block, int]:
    """The kernel's statements with loops that go in strides, and how many these are."""
    if contains_opaque(target.kernel.body):
        return target.kernel.body, 0
    body, count = unshadowed(target.kernel.body, (p.name for p in target.kernel.params)), 0
    while True:
        target = replace(target, kernel=replace(target.kernel, body=body))
        made = ((loop, _Turns(target, loop).strided()) for loop in loops(body))
        loop, found = next(((loop, new) for loop, new in made if new is not None), (None, None))
        if loop is None or found is None:
            return body, count
        lead, new = found
        if lead is not None and lead.init is not None:
            around = _outermost(body, loop, names_in(lead.init))
            body = replace_stmt(body, around, (lead, around))
        body, count = replace_stmt(body, loop, (new,)), count + 1


def _outermost(body: Block, loop: For, names: frozenset[str]) -> For | While:
    """The outermost loop around one, or itself, of which no turn changes what has these names."""
    for s in walk_stmts(body):
        if isinstance(s, For | While) and (s is loop or any(x is loop for x in walk_stmts(s.body))):
            own = {s.var} if isinstance(s, For) else set()
            if not names & (names_written(s.body) | set(variables(s.body)) | own):
                return s
    return loop


@dataclass(frozen=True)
class _Found:
    """A loop's ``body`` without the test whether ``value`` is a multiple of ``stride``."""

    body: Block
    value: Expr
    stride: Expr


@dataclass(frozen=True)
class _Turns:
    """A loop of a kernel, and what is asked of its turns. ``limit``: the largest number that it may count to."""

    target: Target
    loop: For

    @cached_property
    def kind(self) -> tuple[int, bool]:
        """Bytes of its variable, and whether that has a sign; none where it holds no index, or outlives the loop."""
        type_ = resolved(self.loop.type or "", self.target.aliases)
        return (_kind(type_) if is_integer(type_) else None) or (0, False)

    @property
    def limit(self) -> int:
        return int(2 ** (8 * self.kind[0] - 1)) - 1

    @cached_property
    def changing(self) -> frozenset[str]:
        """What a turn sets or declares."""
        return names_written(self.loop.body) | frozenset(variables(self.loop.body))

    def strided(self) -> tuple[Declare | None, Stmt] | None:
        """The loop in strides, and what stands before it; None where not every turn but the s-th can be left out."""
        loop = self.loop
        if integer(loop.step) not in (1, -1) or loop.relation == "!=" or loop.var in self.changing:
            return None
        if not self.kind[0] or not self._is_compared_as_written():
            return None
        if contains_barrier(loop.body) or contains_warp_wide(loop.body):
            return None  # lanes would meet others there
        if not all(map(self._stays, (loop.start, loop.bound))):
            return None
        found = self._found(loop.body, {})
        return None if found is None else self._written(found)

    def _is_compared_as_written(self) -> bool:
        """Whether the variable and the end are compared as the numbers that they are."""
        end = self._type(self.loop.bound)
        if self.kind[1] and end is not None and (end[1] or end[0] < self.kind[0]):
            return True
        return self._goes_up and all(map(self._is_natural, (self.loop.start, self.loop.bound)))

    # ------------------------------------------------------------ which turns do anything

    def _found(self, body: Block, told: _Told) -> _Found | None:
        """The first test for a multiple that all stands behind in these statements; ``told``: what variables of the
        turn are made of."""
        known = dict(told)
        for at, s in enumerate(body):
            rest = body[at + 1 :]
            match s:
                case Comment():
                    continue
                case Declare(dims=(), qualifiers=()) if s.init is None or self._computes(s.init):
                    known.pop(s.name, None)
                    if s.init is not None:
                        known |= self._value(s, s.init, known)
                    continue
                case If(test, then, ()) if self._computes(test):
                    if then and all(isinstance(x, Comment) or x == Jump("continue") for x in then):
                        found = self._asked(s, known, goes_on=False)
                    elif all(isinstance(x, Comment) for x in rest):
                        found = self._asked(s, known, goes_on=True) or self._inside(s, then, known)
                    else:
                        return None
                case Scope(inner) if all(isinstance(x, Comment) for x in rest):
                    found = self._inside(s, inner, known)
                case For(type=str()) if all(isinstance(x, Comment) for x in rest):
                    again = names_assigned(s.body)
                    ends = all(map(self._computes, (s.start, s.bound, s.step))) and not names_in(s.bound) & again
                    left = {name: e for name, e in known.items() if name not in again}
                    found = self._inside(s, s.body, left) if ends else None
                case _:
                    return None
            if found is not None:
                return replace(found, body=(*body[:at], *found.body, *rest))
            if not isinstance(s, If):
                return None
        return None

    def _inside(self, s: If | Scope | For, body: Block, told: _Told) -> _Found | None:
        """The same of a statement that is all that is left of the turn."""
        found = self._found(body, told)
        if found is None:
            return None
        return replace(found, body=(replace(s, then=found.body) if isinstance(s, If) else replace(s, body=found.body),))

    def _value(self, s: Declare, init: Expr, told: _Told) -> dict[str, Expr]:
        """What a variable of the turn holds, in its type."""
        value, type_ = substitute(init, told), resolved(s.type, self.target.aliases)
        if "&" in s.type or not (is_auto(s) or type_ == "bool" or is_integer(type_)):
            return {}
        kind = _kind(type_)
        return {s.name: value if is_auto(s) or (kind is not None and self._type(value) == kind) else Cast(type_, value)}

    def _computes(self, e: Expr) -> bool:
        """Whether an expression has no effect."""
        known = self.target.functions
        return all(
            is_load(x) or (isinstance(x.callee, Name) and known.only_computes(x.callee.text))
            for x in walk_expr(e) if isinstance(x, Call)
        )  # fmt: skip

    def _stays(self, e: Expr) -> bool:
        """Whether an expression has no effect, and one value in all turns."""
        memory = any(
            isinstance(x, Index) or is_load(x) or (isinstance(x, Unary) and x.op in "*&") for x in walk_expr(e)
        )
        return not memory and self._computes(e) and not names_in(e) & self.changing

    def _asked(self, s: If, told: _Told, goes_on: bool) -> _Found | None:
        """A test without the part that asks for a multiple; ``goes_on``: whether the turn does where it holds."""
        parts = list(_parts(s.test, goes_on))
        for part, holds in parts:
            match _multiple(substitute(part, told), holds):
                case (value, stride) if self._is_known(value, stride):
                    left: Expr | None = None
                    for other, so in parts:
                        if other is not part:
                            one = other if so == goes_on else negation(other)
                            left = one if left is None else Binary("&&" if goes_on else "||", left, one)
                    if left is not None:
                        return _Found((replace(s, test=left),), value, stride)
                    own = any(isinstance(x, Declare) for x in s.then)
                    return _Found(((Scope(s.then),) if own else s.then) if goes_on else (), value, stride)
        return None

    # ------------------------------------------------------------ what can be told of value and stride

    def _is_known(self, value: Expr, stride: Expr) -> bool:
        """Whether the value goes up or down by one a turn, with a stride that is known to be at least one, and no sum
        leaves its type."""
        target, loop = self.target, self.loop
        if loop.var in names_in(stride) or not all(self._stays(e) and self._is_number(e) for e in (value, stride)):
            return False
        by, kind = target.poly(stride).value, self._type(stride)
        if self.kind[0] > 4 and (kind is None or not kind[1]):
            return False  # what is added to the start would be wide before it wraps around
        if not (self._is_divided_exactly(value, stride) if by is None or by & (by - 1) else by > 1):
            return False
        most, timed = self._most(stride), target.timed(stride)
        if most is None or most > _LARGEST or timed == 1 or not target.at_least(stride, 1):
            return False
        change = self._change(value)
        bound = self._most(loop.bound) if self._goes_up else self._least(loop.bound)
        return change in (1, -1) and bound is not None and abs(bound) <= self.limit - most

    def _is_divided_exactly(self, value: Expr, stride: Expr) -> bool:
        """Whether a remainder is that of whole numbers with a sign, or of the loop's variable itself; one by a power of
        two is right whatever wraps around."""
        of, by = self._type(value), self._type(stride)
        if of is None or by is None or by[0] > self.kind[0]:
            return False
        positive = self._goes_up and self._is_natural(self.loop.start)
        return (of[1] and (by[1] or by[0] < of[0])) or (positive and value == Name(self.loop.var))

    def _is_number(self, e: Expr) -> bool:
        """Whether an expression is made of integers alone."""
        types = {**self.target.known.types, **dict.fromkeys((*self.target.constants, *BUILTINS), "int")}
        own = [types.get(name, "&") for name in names_in(e)]
        plain = not any(isinstance(x, Call | Ternary) or (isinstance(x, Member) and x.arrow) for x in walk_expr(e))
        return plain and all(
            is_integer(resolved(t, self.target.aliases)) and not re.search(r"[&*]|\bvolatile\b", t) for t in own
        )

    @property
    def _goes_up(self) -> bool:
        return integer(self.loop.step) == 1

    def _change(self, value: Expr) -> int | None:
        """By how much a value changes from one turn to the next."""
        known = {name: constant(n) for name, n in self.target.constants.items()}
        factor = polynomial(value, known).coefficient(self.loop.var)
        return None if factor is None or factor.value is None else factor.value * (integer(self.loop.step) or 0)

    def _most(self, e: Expr) -> int | None:
        """The largest value of an expression as far as sizes tell."""
        limits = Limits(self.target, self.limit).of(e)
        known = (self.target.poly(e).value, self.target.largest(e), None if limits is None else limits[1])
        return min((n for n in known if n is not None), default=None)

    def _least(self, e: Expr) -> int | None:
        """The value of a number; 0 of what is never negative."""
        value = self.target.poly(e).value
        return value if value is not None else 0 if Limits(self.target, self.limit).of(e) is not None else None

    def _is_natural(self, e: Expr) -> bool:
        least = self._least(e)
        return least is not None and least >= 0

    def _type(self, e: Expr) -> tuple[int, bool] | None:
        """Bytes of an integer as C computes it, and whether it has a sign; None where that is not told, and where
        something without a sign that may have wrapped around becomes wider."""
        match e:
            case Literal(text):
                return (4, True) if text.isdigit() and int(text) < 2**31 else None
            case Name(text) if text in self.target.known.types:
                return _kind(resolved(self.target.known.types[text], self.target.aliases))
            case Name(text):
                return (4, True) if self._is_int_constant(text) else None
            case Member(Name("threadIdx" | "blockIdx" | "blockDim" | "gridDim"), _):
                return 4, False
            case Cast(type_, operand):
                inner, kind = self._type(operand), _kind(resolved(type_, self.target.aliases))
                return kind if inner is not None and kind is not None and _keeps(inner, kind, operand) else None
            case Unary("-" | "+", operand):
                return self._type(operand)
            case Binary("+" | "-" | "*" | "/" | "%", left, right) | Ternary(_, left, right) | Call(_, (left, right)):
                one, two = self._type(left), self._type(right)
                if one is None or two is None:
                    return None
                wide = max(one, two) if one[0] != two[0] else (one[0], one[1] and two[1])
                return wide if _keeps(one, wide, left) and _keeps(two, wide, right) else None
        return None

    def _is_int_constant(self, name: str) -> bool:
        """Whether a constant of the file, or a template's parameter, is an int."""
        own = [kind for kind, parameter in self.target.kernel.template_parameters if parameter == name]
        if own or name not in self.target.constants:
            return own == ["int"]
        told = rf"#[ \t]*define[ \t]+{name}[ \t]+\(?-?\d+\)?[ \t]*$|(?:constexpr|const|static)\s+int\s+{name}\b"
        return re.search(told, self.target.source, re.MULTILINE) is not None

    # ------------------------------------------------------------ text

    def _written(self, found: _Found) -> tuple[Declare | None, Stmt]:
        """The loop from the first multiple on, in strides."""
        loop, stride, up = self.loop, found.stride, self._goes_up
        begin = loop.start if self._type(loop.start) == self.kind else Cast(loop.type or "", loop.start)
        first = map_expr(substitute(found.value, {loop.var: begin}), _without_zero)
        new = replace(loop, step=stride if up else Unary("-", stride), body=found.body)
        if self.target.poly(first).value == 0:
            return None, new
        name = fresh(f"{loop.var}_rest", self.target.names)
        rest, zero = Name(name), number(0)
        if self._change(found.value) == 1:
            ahead = Ternary(Binary(">", rest, zero), Binary("-", stride, rest), Unary("-", rest))
        else:
            ahead = Ternary(Binary("<", rest, zero), Binary("+", rest, stride), rest)
        start = ahead if up and integer(loop.start) == 0 else Binary("+" if up else "-", loop.start, ahead)
        type_ = "long long" if (self._type(stride) or (4, True))[0] > 4 else "int"
        lead, new = Declare(type_, name, Binary("%", first, stride)), replace(new, start=start)
        known = self._most(loop.start) if up else self._least(loop.start)
        if known is not None and abs(known) <= self.limit - _LARGEST:
            return lead, new
        return lead, If(Binary(loop.relation, loop.start, loop.bound), (new,))


def _without_zero(e: Expr) -> Expr:
    return e.left if isinstance(e, Binary) and e.op in ("+", "-") and integer(e.right) == 0 else e


def _kind(type_: str) -> tuple[int, bool] | None:
    """Bytes of an integer type in sums, and whether it has a sign there; None of any other type."""
    known = BY_SPELLING.get(type_)
    if known is None or "int" not in known.dtype:
        return None
    return max(known.bytes, 4), known.bytes < 4 or not known.dtype.startswith("u")


def _keeps(own: tuple[int, bool], wide: tuple[int, bool], e: Expr) -> bool:
    return own[1] or own[0] >= wide[0] or isinstance(e, Name | Member)


def _parts(test: Expr, holds: bool) -> Iterator[tuple[Expr, bool]]:
    """What must hold, each or its opposite, for a test to hold, or not to."""
    match test:
        case Unary("!" | "not", operand):
            yield from _parts(operand, not holds)
        case Binary(op, left, right) if op in (("&&", "and") if holds else ("||", "or")):
            yield from _parts(left, holds)
            yield from _parts(right, holds)
        case _:
            yield test, holds


def _multiple(e: Expr, holds: bool) -> tuple[Expr, Expr] | None:
    """Of what an expression says, where it holds or does not, that it is a multiple, and of what."""
    match _bare(e):
        case Unary("!" | "not", operand):
            return _multiple(operand, not holds)
        case Binary("==" | "!=" as op, left, right) if (op == "==") == holds:
            for one, other in ((left, right), (right, left)):
                if integer(other) == 0:
                    return _remainder(one)
                match other:
                    case Binary("*", a, b):
                        for quotient, by in ((a, b), (b, a)):
                            if quotient == Binary("/", one, by):
                                return one, by
        case rest if not holds:
            return _remainder(rest)
    return None


def _remainder(e: Expr) -> tuple[Expr, Expr] | None:
    """What an expression is the remainder of, by what."""
    match _bare(e):
        case Binary("%", value, by):
            return value, by
        case Binary("&", left, right):
            for value, mask in ((left, right), (right, left)):
                ones = integer(mask)
                if ones is not None and ones > 0 and ones & (ones + 1) == 0:
                    return value, number(ones + 1)
    return None


def _bare(e: Expr) -> Expr:
    """An expression without casts that keep what is asked of it."""
    while isinstance(e, Cast) and (is_integer(e.type) or e.type == "bool"):
        e = e.operand
    return e
