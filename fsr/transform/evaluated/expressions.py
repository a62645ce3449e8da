"""Expressions worked out as far as they are known: a number, or what is left of it as text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from fsr.analysis.functions import Functions
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    OpaqueExpr,
    Stmt,
    Ternary,
    Unary,
    number,
)  # fmt: skip
from fsr.source.walk import fresh, names_in
from fsr.transform.evaluated.c_numbers import INT, Number, Unfit, binary, converted, expression, kind_of, literal, unary
from fsr.transform.evaluated.places import Array, Elsewhere, Place, Pointer, Record, Scalar, Scope

_LVALUE = r"(?P<name>\w+)(?:\s*(?P<by>->|\.)\s*(?P<member>\w+))?"
_STEPPED = re.compile(rf"(?P<before>\+\+|--)?\s*{_LVALUE}\s*(?P<after>\+\+|--)?")
_Step = tuple[Name | Member, str, bool]
MOST_MADE = 4000  # statements: of more, compiling takes long and the instruction cache is too small


@dataclass
class Evaluation:
    """The text that is made so far. ``names``: of types; ``numbers``: macros that are literals; ``taken``: names in
    use; ``free``: names that are no variable of a function worked out; ``positions``: how often an element of a
    thread's array was found by a variable that counts no loop."""

    functions: Functions
    names: Mapping[str, str]
    numbers: Mapping[str, str]
    taken: set[str]
    known: dict[str, Number] = field(default_factory=dict)
    out: list[Stmt] = field(default_factory=list)
    declared: list[Declare] = field(default_factory=list)
    free: set[str] = field(default_factory=set)
    counters: set[str] = field(default_factory=set)
    positions: int = 0
    guarded: int = 0  # how many unknown conditions there are around

    def emit(self, s: Stmt) -> None:
        """One more statement. Raises Unfit after too many."""
        self.out.append(s)
        if len(self.out) > MOST_MADE:
            raise Unfit

    def fresh_name(self, name: str) -> str:
        """A name that nothing has."""
        made = fresh(name, self.taken)
        self.taken.add(made)
        return made

    # ------------------------------------------------------------ values

    def text(self, e: Expr, scope: Scope) -> Expr:
        """What is left of an expression, a number as a literal. Raises Unfit."""
        found = self.value(e, scope)
        return expression(found) if isinstance(found, Number) else found

    def value(self, e: Expr, scope: Scope) -> Number | Expr:
        """What an expression is. Raises Unfit."""
        match e:
            case Literal(text):
                return literal(text) or e
            case Name(text) if text not in scope and text in self.numbers:
                return literal(self.numbers[text]) or e
            case Name() | Member() | Index() | Unary("*"):
                return self._read(self.place(e, scope))
            case OpaqueExpr(text):
                return self._stepped(text, scope)
            case Unary("-" | "+" | "~" | "!" as op, operand):
                inner = self.value(operand, scope)
                return unary(op, inner) if isinstance(inner, Number) else Unary(op, inner)
            case Binary(op, left, right):
                return self._binary(op, left, right, scope)
            case Cast(type_, operand, style):
                return self._cast(type_, self.value(operand, scope), style)
            case Ternary(test, yes, no):
                return self._chosen(test, yes, no, scope)
            case Call(Name(text) as callee, args, templates) if (
                text not in scope and not templates and self.functions.only_computes(text)
            ):
                self.free.add(text)
                return Call(callee, tuple(self.text(a, scope) for a in args))
        raise Unfit

    def _read(self, place: Place) -> Number | Expr:
        match place:
            case Scalar(expr=expr, key=key):
                return self.known.get(key, expr)
            case Elsewhere(expr=expr):
                return expr
        raise Unfit

    def _stepped(self, text: str, scope: Scope) -> Number | Expr:
        """``i++`` or ``--c->fill`` of a number that is known: what it was before, or is behind."""
        found = stepped(text)
        if found is None or self.guarded:
            raise Unfit
        lvalue, op, behind = found
        place = self.place(lvalue, scope)
        old = self.known.get(place.key) if isinstance(place, Scalar) else None
        if not isinstance(place, Scalar) or place.kind is None or old is None:
            raise Unfit
        new = self.known[place.key] = converted(binary(op, old, Number(1, INT)), place.kind)
        if place.kept:
            self.emit(Assign(place.expr, "=", expression(new)))
        return old if behind else new

    def _binary(self, op: str, left: Expr, right: Expr, scope: Scope) -> Number | Expr:
        a = self.value(left, scope)
        if op in ("&&", "||"):
            if isinstance(a, Number) and bool(a.value) == (op == "||"):
                return Number(int(op == "||"), INT)
            b = self._asked(right, scope)
        else:
            b = self.value(right, scope)
        if isinstance(a, Number) and isinstance(b, Number):
            return binary(op, a, b)
        first, second = (expression(x) if isinstance(x, Number) else x for x in (a, b))
        return Binary(op, first, second)

    def _asked(self, e: Expr, scope: Scope) -> Number | Expr:
        """What an expression is that may not be evaluated."""
        self.guarded += 1
        found = self.value(e, scope)
        self.guarded -= 1
        return found

    def _cast(self, type_: str, value: Number | Expr, style: str) -> Number | Expr:
        kind = kind_of(type_, self.names)
        if isinstance(value, Number):
            plain = style in ("c", "static_cast")
            return converted(value, kind) if kind is not None and plain else Cast(type_, expression(value), style)
        return Cast(type_, value, style)

    def _chosen(self, test: Expr, yes: Expr, no: Expr, scope: Scope) -> Number | Expr:
        """``?:``, whose type is that of both sides together: a number alone would have its own."""
        asked = self.value(test, scope)
        if not isinstance(asked, Number):
            sides = (self._asked(side, scope) for side in (yes, no))
            first, second = (expression(x) if isinstance(x, Number) else x for x in sides)
            return Ternary(asked, first, second)
        taken = self.value(yes if asked.value else no, scope)
        other = self._asked(no if asked.value else yes, scope)
        if isinstance(taken, Number) and isinstance(other, Number):
            return binary("+", taken, Number(0, other.kind))
        first, second = (expression(x) if isinstance(x, Number) else x for x in (taken, other))
        return Ternary(Literal("1"), first, second)

    # ------------------------------------------------------------ places

    def place(self, e: Expr, scope: Scope) -> Place:
        """What an lvalue, or an address by its name, stands for. Raises Unfit."""
        match e:
            case Name(text):
                if text not in scope:
                    self.free.add(text)
                    return Elsewhere(e)
                return scope[text]
            case Unary("*", operand):
                return self._pointed_to(self.place(operand, scope))
            case Unary("&", operand):
                return self._address(self.place(operand, scope))
            case Member(base, name, arrow):
                return self._member(self.place(base, scope), name, arrow)
            case Index(base, index):
                return self._element(self.place(base, scope), index, scope)
        found = self.text(e, scope)
        return Elsewhere(found)

    def _pointed_to(self, place: Place) -> Place:
        match place:
            case Pointer(to=to):
                return to
            case Elsewhere(expr=expr) | Scalar(expr=expr, kind=None):
                return Elsewhere(Unary("*", expr))
        raise Unfit

    def _address(self, place: Place) -> Place:
        match place:
            case Scalar() | Record():
                return Pointer(place)
            case Elsewhere(expr=expr):
                return Elsewhere(Unary("&", expr))
        raise Unfit

    def _member(self, place: Place, name: str, arrow: bool) -> Place:
        match place:
            case Pointer(to=Record() as record) if arrow:
                pass
            case Record() as record if not arrow:
                pass
            case Elsewhere(expr=expr) | Scalar(expr=expr, kind=None):
                return Elsewhere(Member(expr, name, arrow))
            case _:
                raise Unfit
        if name not in record.members:
            raise Unfit
        own, expr = record.members[name], Member(record.expr, name)
        if own.dims:
            return Array(expr, own.dims, own.type)
        return Scalar(expr, f"{record.key}.{name}", own.type, kind_of(own.type, self.names), kept=True)

    def _element(self, place: Place, index: Expr, scope: Scope) -> Place:
        at = self.value(index, scope)
        match place:
            case Array(expr=expr, dims=dims, type=type_):
                if not isinstance(at, Number) or not 0 <= at.value < dims[0]:
                    raise Unfit
                self.positions += isinstance(index, OpaqueExpr) or not self.counters.issuperset(names_in(index))
                element = Index(expr, number(at.value))
                return Array(element, dims[1:], type_) if dims[1:] else Elsewhere(element)
            case Elsewhere(expr=expr) | Scalar(expr=expr, kind=None):
                return Elsewhere(Index(expr, expression(at) if isinstance(at, Number) else at))
        raise Unfit


def stepped(text: str) -> _Step | None:
    """What ``i++`` or ``--c->fill`` steps, ``+`` or ``-``, and whether it is the value before; None of other text."""
    found = _STEPPED.fullmatch(text.strip())
    if found is None or (found["before"] is None) == (found["after"] is None):
        return None
    own = Name(found["name"])
    lvalue = own if found["member"] is None else Member(own, found["member"], found["by"] == "->")
    return lvalue, (found["before"] or found["after"])[0], found["before"] is None
