"""Loops through a thread's arrays as ones of constant length, so that they can be unrolled whole.

A loop up to a bound that nobody knows, ``for (int j = 0; j < k; ++j)``, each turn of which is at element j of an array
for certain, makes no turn beyond the array: that would be undefined (C++17 [expr.add]). It is a loop over the array's
elements that does nothing from the bound on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fsr.analysis.instances import value_of
from fsr.analysis.types import integer_bytes, resolved
from fsr.source.arrays import indices_of
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
    Jump,
    KernelForm,
    Literal,
    Member,
    Name,
    OpaqueExpr,
    Stmt,
    Unary,
    While,
    number,
)  # fmt: skip
from fsr.source.mapping import map_jumps, with_blocks
from fsr.source.walk import (
    BUILTINS,
    Block,
    breaks,
    fresh,
    integer,
    names_in,
    subexprs,
    taken_names,
    variables,
    walk_expr,
    walk_exprs,
    walk_stmts,
)  # fmt: skip
from fsr.transform.details.constant_loops import MOST_STATEMENTS, statements_of, turns_of
from fsr.transform.selects.arrays import Place, SmallArray, goes_alone, own_names
from fsr.transform.selects.limits import FAR, access_limits, linear

_UNROLL = ("#pragma unroll",)
_ALWAYS = BUILTINS | {"min", "max"}
Ways = tuple[Mapping[str, int], ...]
_WAYS = 16
_TOWARDS = {True: ("<", "<="), False: (">", ">=")}


@dataclass
class UnrolledLoops:
    """A kernel's statements with the loops that lead through its arrays unrolled. ``unrolled``: these loops, in the
    statements that :meth:`body` gave, and the most turns that each has."""

    place: Place
    arrays: Sequence[SmallArray]
    unrolled: list[tuple[For, int]] = field(default_factory=list)
    _natural: frozenset[str] = frozenset()  # variables of the loops around that are never negative

    def __post_init__(self) -> None:
        form = self.place.form
        self._own, self._taken = own_names(form), set(taken_names(form)) | set(self.place.known)
        self._leads = _leading(form, self.arrays)
        self._declared = {s.name for s in walk_stmts(form.body) if isinstance(s, Declare)}

    def body(self) -> Block:
        """All statements."""
        return self._block(self.place.form.body, (self.place.known,))

    def _block(self, body: Block, ways: Ways) -> Block:
        found: list[Stmt] = []
        for s in body:
            found += self._loop(s, ways) if isinstance(s, For) else [with_blocks(s, lambda b: self._block(b, ways))]
        return tuple(found)

    def _loop(self, loop: For, ways: Ways) -> Sequence[Stmt]:
        """``ways``: what is known in the first turns and the last ones of the unrolled loops around."""
        outer, var = self._natural, loop.var
        ways = tuple({name: value for name, value in way.items() if name != var} for way in ways)
        heads, made = list[Stmt](), loop if var in self._leads else None
        if made is not None and turns_of(loop, ways[0]) is None:
            heads, made = self._to_the_end(loop) or ([], None)
        turns = [] if made is None else [turns_of(made, way) for way in ways]
        if made is not None and any(turns) and None not in turns:
            self._natural = (outer - {var}) | ({var} if self._is_never_negative(made) else set())
            inner = [{**way, var: at} for way, ats in zip(ways, turns, strict=True) for at in _ends(ats)]
            more, made = self._without_breaks(replace(made, body=self._block(made.body, tuple(inner[:_WAYS]))))
            made, self._natural = replace(made, pragmas=_UNROLL), outer
            if all(statements_of((made,), way) <= MOST_STATEMENTS for way in ways):
                self.unrolled.append((made, max(len(ats or ()) for ats in turns)))
                return [*heads, *more, made]
        self._natural = outer - {var}
        rolled = replace(loop, body=self._block(loop.body, ways))
        self._natural = outer
        return [rolled]

    def _moves_itself(self, loop: For) -> bool:
        """Whether the turns are numbers of the loop's own, one after the other, that its body does not change."""
        named = loop.var in self.place.changed(loop.body) or loop.var in variables(loop.body)
        return loop.type is not None and not named and integer(loop.step) in (1, -1)

    def _without_breaks(self, loop: For) -> tuple[list[Stmt], For]:
        """What stands before, and the loop with a variable that tells whether it is left, where it holds other loops:
        of such with ways out, compilers leave the loop as it is."""
        holds = any(isinstance(s, For | While) for s in walk_stmts(loop.body))
        if not holds or not breaks(loop.body) or loop.type is None:
            return [], loop
        self._taken.add(left := fresh("left", self._taken))
        leave = Assign(Name(left), "=", Literal("true")), Jump("continue")
        body = map_jumps(loop.body, lambda jump: leave if jump.keyword == "break" else (jump,))
        return [Declare("bool", left, Literal("false"))], replace(loop, body=(If(Unary("!", Name(left)), body),))

    # ------------------------------------------------------------ loops to a bound that nobody knows

    def _to_the_end(self, loop: For) -> tuple[list[Stmt], For] | None:
        """What stands before, and the loop up to the end of an array; None where it is not known to stay below."""
        step, var, changed = integer(loop.step), loop.var, self.place.changed(loop.body)
        if loop.type is None or not self._moves_itself(loop) or not goes_alone(loop.body, self.place.source):
            return None
        limits = access_limits(loop.body, var, self.arrays, self.place.known, self._natural)
        if not limits or not self._steady(loop.bound, changed | {var}):
            return None
        first, last = max(low for low, _ in limits), min(high for _, high in limits)
        # Where a turn is below zero, a bound without sign would be larger than that, and no later turn's.
        if step == 1 and loop.relation in _TOWARDS[True] and self._never_below_zero(loop.start):
            return [], self._up(loop, max(first, 0), last)
        positive = first >= 0 or (isinstance(loop.bound, Literal) and "u" not in loop.bound.text.lower())
        if step == -1 and loop.relation in _TOWARDS[False] and positive and self._signed(loop.type):
            self._taken.add(name := fresh(f"{var}_first", self._taken))
            type_ = loop.type if "const" in loop.type.split() else f"const {loop.type}"
            return [Declare(type_, name, loop.start)], self._down(loop, Name(name), first, last)
        return None

    def _up(self, loop: For, first: int, last: int) -> For:
        """From a number to a number, since no compiler unrolls a loop within another one's turns before these are
        told apart."""
        test: Expr = Binary(loop.relation, Name(loop.var), loop.bound)
        if value_of(loop.start, self.place.known) is None:
            test = Binary("&&", Binary(">=", Name(loop.var), loop.start), test)
            loop = replace(loop, start=number(first))
        return replace(loop, relation="<", bound=number(last + 1), body=(If(test, loop.body),))

    def _down(self, loop: For, start: Expr, first: int, last: int) -> For:
        test: Expr = Binary("<=", Name(loop.var), start)
        if value_of(loop.bound, self.place.known) is None and first > FAR:
            test = Binary("&&", Binary(loop.relation, Name(loop.var), loop.bound), test)
            loop = replace(loop, relation=">=", bound=number(first))
        return replace(loop, start=number(last), body=(If(test, loop.body),))

    def _never_below_zero(self, e: Expr) -> bool:
        found = linear(e, self.place.known)
        return found is not None and set(found) <= self._natural | {""} and all(n >= 0 for n in found.values())

    def _is_never_negative(self, loop: For) -> bool:
        """Whether a loop's variable is not."""
        step = value_of(loop.step, self.place.known)
        if step is None or loop.var in self.place.changed(loop.body) | self._declared:
            return False
        down = step < 0 and loop.relation in (">", ">=")
        return (step > 0 or down) and self._never_below_zero(loop.bound if down else loop.start)

    def _signed(self, type_: str) -> bool:
        plain = resolved(type_, self.place.types)
        return (integer_bytes(plain) or 0) >= 4 and "unsigned" not in plain

    def _steady(self, e: Expr, changed: Collection[str]) -> bool:
        """Whether an expression has one value all through a loop."""
        for x in walk_expr(e):
            match x:
                case Name(text):
                    own = text in self._own and text not in changed
                    if not own and text not in self.place.known and text not in _ALWAYS:
                        return False
                case Call(Name("min" | "max" as name)) if self.place.functions.builtin(name):
                    pass
                case Literal() | Binary() | Cast() | Unary("-" | "+"):
                    pass
                case Member(Name(text)) if text in BUILTINS:
                    pass
                case _:
                    return False
        return True


def _ends(turns: Sequence[int] | None) -> Sequence[int]:
    """The first turn and the last one."""
    return sorted({turns[0], turns[-1]}) if turns else ()


def _leading(form: KernelForm, arrays: Sequence[SmallArray]) -> frozenset[str]:
    """The variables that indices of the arrays are made of, but for those that data decides in any case."""
    data, leads = _of_data(form), set[str]()
    for e in walk_exprs(form.body):
        for array in arrays:
            for at in indices_of(e, array.declared) or ():
                leads |= set() if _reads(at, data) else names_in(at)
    known = -1
    while known != len(leads):
        known = len(leads)
        for s in walk_stmts(form.body):
            match s:
                case Declare(name=name, init=value) if name in leads and value is not None:
                    leads |= _made_of(value)
                case Assign(Name(name), _, value) if name in leads:
                    leads |= _made_of(value)
                case For(var=name) if name in leads:
                    leads |= _made_of(s.start) | _made_of(s.bound)
    return frozenset(leads)


def _of_data(form: KernelForm) -> frozenset[str]:
    """The variables that are given what is read, or called, or what a kernel is given."""
    found = set(BUILTINS)
    found |= set() if any("__device__" in word for word in form.prefix) else {p.name for p in form.params}
    known = -1
    while known != len(found):
        known = len(found)
        for s in walk_stmts(form.body):
            match s:
                case Declare(name=name, init=value) | Assign(Name(name), _, value):
                    found |= {name} if value is not None and _reads(value, found) else set()
    return frozenset(found)


def _reads(e: Expr, data: Collection[str]) -> bool:
    return any(
        isinstance(x, Index | Call | OpaqueExpr) or (isinstance(x, Name) and x.text in data) for x in walk_expr(e)
    )


def _made_of(e: Expr) -> set[str]:
    if isinstance(e, Index | Call):
        return set()
    if isinstance(e, Name | OpaqueExpr):
        return set(names_in(e))
    return {name for part in subexprs(e) for name in _made_of(part)}
