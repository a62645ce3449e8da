"""Statements worked out one after the other: loops turn by turn, calls by what their functions do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress

from fsr.analysis.records import members_of
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Comment,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    KernelForm,
    Member,
    Name,
    OpaqueExpr,
    Param,
    Return,
    Stmt,
    Unary,
    While,
    number,
)  # fmt: skip
from fsr.source.form import Scope as Braces
from fsr.source.walk import Block, exprs_of, nodes, opaque_names, walk_exprs, walk_stmts
from fsr.transform.evaluated.c_numbers import Number, Unfit, binary, converted, expression, kind_of
from fsr.transform.evaluated.expressions import Evaluation, stepped
from fsr.transform.evaluated.places import Array, Elsewhere, Place, Pointer, Record, Scalar, Scope

_MOST_TURNS = 4096
_DEEP = 8  # calls within calls


class _Returned(Exception):  # noqa: N818  # an event
    """A return statement is reached."""


class Interpreter:
    """Works statements out. ``functions``: those of the file, by name."""

    def __init__(self, made: Evaluation, source: str, functions: Mapping[str, KernelForm]) -> None:
        self.made, self.source, self.functions = made, source, functions
        self.evaluated = set[str]()
        self._depth, self._turns = 0, 0

    def run(self, body: Block, scope: Scope) -> None:
        """The statements, up to a return. Raises Unfit."""
        with suppress(_Returned):
            self.block(body, scope)

    def block(self, body: Block, scope: Scope) -> None:
        """The statements of a block of their own. Raises Unfit."""
        own = dict(scope)
        for s in body:
            self._statement(s, own)

    def _statement(self, s: Stmt, scope: Scope) -> None:
        _require_order(s)
        match s:
            case Comment():
                pass
            case Declare():
                self._declare(s, scope)
            case Assign(target, op, value):
                new = self.made.value(value, scope)  # before what is on the left (C++17)
                self._assign(self.made.place(target, scope), op, new)
            case ExprStmt(Call(Name("memset"), (target, byte, length), ())):
                self._memset(self.made.place(target, scope), byte, length, scope)
            case ExprStmt(Call(Name(text), args, ())) if text in self.functions and text not in scope:
                self._call(text, args, scope)
            case ExprStmt(OpaqueExpr() as stepped):
                self.made.value(stepped, scope)
            case If(test, then, orelse):
                self._if(test, then, orelse, scope)
            case For():
                self._for(s, scope)
            case While(test, body):
                self._repeat(test, body, scope)
            case Braces(body):
                self.block(body, scope)
            case Return(None):
                raise _Returned
            case _:
                raise Unfit

    # ------------------------------------------------------------ variables

    def _declare(self, s: Declare, scope: Scope) -> None:
        type_ = s.type.removeprefix("const ")
        if s.qualifiers or "&" in s.type or "volatile" in s.type or type_.split()[0] in ("auto", "static"):
            raise Unfit
        made, members = self.made, members_of(self.source, type_)
        if members is None and not s.dims:
            if "*" in type_ and s.init is not None:
                scope[s.name] = self._pointer(type_, s.name, made.place(s.init, scope))
                return
            new = None if s.init is None else made.value(s.init, scope)
            scope[s.name] = self._scalar(type_, s.name)
            if new is not None:
                self._assign(scope[s.name], "=", new)
            return
        dims = tuple(made.value(d, scope) for d in s.dims)
        if s.init is not None or self._turns or not all(isinstance(d, Number) for d in dims):
            raise Unfit
        name = made.fresh_name(s.name)
        lengths = tuple(d.value for d in dims if isinstance(d, Number))
        made.declared.append(Declare(type_, name, None, tuple(map(number, lengths))))
        if members is not None and not s.dims:
            scope[s.name] = Record(Name(name), name, members)
        elif members is None and "*" not in type_ and min(lengths) > 0:
            scope[s.name] = Array(Name(name), lengths, type_)
        else:
            raise Unfit

    def _scalar(self, type_: str, name: str) -> Scalar:
        own = self.made.fresh_name(name)
        self.made.declared.append(Declare(type_, own))
        return Scalar(Name(own), own, type_, kind_of(type_, self.made.names))

    def _pointer(self, type_: str, name: str, place: Place) -> Place:
        """What a pointer of that type stands for that is set to an address; memory's has a variable of its own."""
        match place:
            case Array() | Pointer():
                return place
            case Elsewhere(expr=expr) | Scalar(expr=expr, kind=None):
                own = self._scalar(type_, name)
                self.made.emit(Assign(own.expr, "=", expr))
                return own
        raise Unfit

    def _assign(self, place: Place, op: str, new: Number | Expr) -> None:
        made = self.made
        if isinstance(place, Scalar):
            old = made.known.get(place.key)
            if op != "=" and isinstance(new, Number) and old is not None:
                op, new = "=", binary(op[:-1], old, new)
            if op == "=" and isinstance(new, Number) and place.kind is not None:
                made.known[place.key] = told = converted(new, place.kind)
                if place.kept:
                    made.emit(Assign(place.expr, "=", expression(told)))
                return
            if op != "=" and old is not None and not place.kept:
                made.emit(Assign(place.expr, "=", expression(old)))
            made.known.pop(place.key, None)
        elif not isinstance(place, Elsewhere):
            raise Unfit
        made.emit(Assign(place.expr, op, expression(new) if isinstance(new, Number) else new))

    def _memset(self, place: Place, byte: Expr, length: Expr, scope: Scope) -> None:
        value, count = self.made.value(byte, scope), self.made.value(length, scope)
        if not (isinstance(place, Array) and isinstance(value, Number) and isinstance(count, Number)):
            raise Unfit
        kind = kind_of(place.type, self.made.names)
        if kind is None or len(place.dims) != 1 or (kind.bytes > 1 and value.value != 0) or count.value % kind.bytes:
            raise Unfit
        if not 0 <= count.value <= place.dims[0] * kind.bytes:
            raise Unfit
        for n in range(count.value // kind.bytes):
            self.made.emit(Assign(Index(place.expr, number(n)), "=", expression(converted(value, kind))))

    # ------------------------------------------------------------ control

    def _if(self, test: Expr, then: Block, orelse: Block, scope: Scope) -> None:
        asked = self.made.value(test, scope)
        if isinstance(asked, Number):
            return self.block(then if asked.value else orelse, scope)
        made, sides = self.made, list[Block]()
        before, kept = dict(made.known), made.out
        made.guarded += 1
        for side in (then, orelse):
            made.out = []
            try:
                self.block(side, scope)
            except _Returned:
                raise Unfit from None
            if any(made.known.get(key) != value for key, value in before.items()):
                raise Unfit
            made.known = dict(before)  # what a side alone knows is forgotten, and so has to be no one's
            sides.append(tuple(made.out))
        made.guarded -= 1
        made.out = kept
        if _sets_outer(then, orelse):
            raise Unfit
        made.emit(If(asked, sides[0], sides[1]))
        return None

    def _for(self, s: For, scope: Scope) -> None:
        own = dict(scope)
        if s.type is not None:
            own[s.var] = self._scalar(s.type.removeprefix("const "), s.var)
        place = self.made.place(Name(s.var), own)
        self._assign(place, "=", self.made.value(s.start, own))
        counts = s.var not in self.made.counters
        self.made.counters.add(s.var)
        step = Assign(Name(s.var), "+=", s.step)
        self._repeat(Binary(s.relation, Name(s.var), s.bound), (*s.body, step), own)
        if counts:
            self.made.counters.discard(s.var)

    def _repeat(self, test: Expr, body: Block, scope: Scope) -> None:
        self._turns += 1
        for _ in range(_MOST_TURNS):
            holds = self.made.value(test, scope)
            if not isinstance(holds, Number):
                raise Unfit
            if not holds.value:
                self._turns -= 1
                return
            self.block(body, scope)
        raise Unfit

    # ------------------------------------------------------------ calls

    def _call(self, name: str, args: tuple[Expr, ...], scope: Scope) -> None:
        form = self.functions[name]
        if form.template or len(args) != len(form.params) or self._depth >= _DEEP or not self._once(name):
            raise Unfit
        given = [self._given(p, a, scope) for p, a in zip(form.params, args, strict=True)]
        stays = self.made.functions.stays_in_thread(Call(Name(name), ()))
        if stays and (told := self._as_it_is(form, given)) is not None:
            self.made.free.add(name)
            self.made.emit(ExprStmt(Call(Name(name), told)))
            return
        self.evaluated.add(name)
        own, moved = Scope(), {s.target for s in walk_stmts(form.body) if isinstance(s, Assign)}
        for p, one in zip(form.params, given, strict=True):
            own[p.name] = self._parameter(p, one, moved=Name(p.name) in moved)
        turns, self._turns = self._turns, 0
        counters, self.made.counters = self.made.counters, set()
        self._depth += 1
        if turns and any(
            d.dims or members_of(self.source, d.type) for d in walk_stmts(form.body) if isinstance(d, Declare)
        ):
            raise Unfit  # the array of one call would be that of all
        self.run(form.body, own)
        self._depth -= 1
        self._turns, self.made.counters = turns, counters

    def _once(self, name: str) -> bool:
        """Whether a function is defined once: of several one does not know which is called."""
        return len(re.findall(rf"\b{re.escape(name)}\s*\([^;{{}}()]*\)\s*\{{", self.source)) == 1

    def _given(self, p: Param, arg: Expr, scope: Scope) -> Place | Number | Expr:
        """What a parameter gets: a place by its address or reference, or a value."""
        return self.made.place(arg, scope) if "*" in p.type or "&" in p.type else self.made.value(arg, scope)

    def _parameter(self, p: Param, given: Place | Number | Expr, *, moved: bool) -> Place:
        if "*" in p.type:
            if not isinstance(given, Array | Pointer | Elsewhere | Scalar) or (
                isinstance(given, Scalar) and given.kind
            ):
                raise Unfit
            found = self._pointer(p.type, p.name, given)
            if moved and not isinstance(found, Scalar):
                raise Unfit
            return found
        if "&" in p.type:
            if not isinstance(given, Array | Record | Scalar):
                raise Unfit
            return given
        if isinstance(given, Array | Record | Pointer | Elsewhere | Scalar) or members_of(self.source, p.type):
            raise Unfit
        own = self._scalar(p.type.removeprefix("const "), p.name)
        self._assign(own, "=", given)
        return own

    def _as_it_is(self, form: KernelForm, given: list[Place | Number | Expr]) -> tuple[Expr, ...] | None:
        """The arguments of a call that may stay: its function neither reads nor moves a position, nor gets a number
        that may say how often a loop of its turns. None of any other."""
        values = {p.name for p in form.params if "*" not in p.type and "&" not in p.type}
        numbers = any(isinstance(one, Number) for p, one in zip(form.params, given, strict=True) if p.name in values)
        if numbers and any(isinstance(s, For | While) for s in walk_stmts(form.body)):
            return None
        told = list[Expr]()
        for p, one in zip(form.params, given, strict=True):
            match one:
                case Pointer(to=Record() as record) if not numbered(form, p.name, record, self.functions):
                    told.append(Unary("&", record.expr))
                case Record() if "&" in p.type and not numbered(form, p.name, one, self.functions):
                    told.append(one.expr)
                case Array(expr=expr) | Elsewhere(expr=expr) | Scalar(expr=expr, kind=None) if "*" in p.type:
                    told.append(expr)
                case Number():
                    told.append(expression(one))
                case Scalar() | Array() | Record() | Pointer() | Elsewhere():
                    return None
                case _:
                    told.append(one)
        return tuple(told)


def numbered(form: KernelForm, name: str, record: Record, functions: Mapping[str, KernelForm], deep: int = 0) -> bool:
    """Whether a function that gets a structure by that name may read or change one of its numbers, arrays aside."""
    members, passed = 0, 0
    for e in walk_exprs(form.body):
        match e:
            case Member(Name(text), member) if text == name:
                members += 1
                if member not in record.members or not record.members[member].dims:
                    return True
            case OpaqueExpr(text) if name in opaque_names(text):
                return True
            case Call(Name(callee), args) if Name(name) in args:
                at = args.index(Name(name))
                inner = functions.get(callee)
                if inner is None or deep >= _DEEP or args.count(Name(name)) > 1 or len(inner.params) != len(args):
                    return True
                if numbered(inner, inner.params[at].name, record, functions, deep + 1):
                    return True
                passed += 1
    mentioned = sum(isinstance(n, Name) and n.text == name for n in nodes(form.body))
    return mentioned != members + passed


def _require_order(s: Stmt) -> None:
    """Raises Unfit where a statement steps a variable that it mentions elsewhere, or more than once."""
    if not isinstance(s, Declare | Assign | ExprStmt):
        if any(isinstance(x, OpaqueExpr) for e in exprs_of(s) for x in nodes(e)):
            raise Unfit
        return
    every = [x for e in exprs_of(s) for x in nodes(e)]
    steps = [stepped(x.text) for x in every if isinstance(x, OpaqueExpr)]
    for n, step in enumerate(steps):
        if step is None or any(_meet(step[0], other[0]) for other in steps[:n] if other is not None):
            raise Unfit
        if any(_meet(step[0], x) for x in every if isinstance(x, Name | Member)):
            raise Unfit


def _meet(own: Name | Member, other: Name | Member) -> bool:
    """Whether what is stepped may be what is mentioned: the same variable, or a member of that name anywhere."""
    if isinstance(own, Member):
        return isinstance(other, Member) and own.name == other.name
    return isinstance(other, Name) and own.text == other.text


def _sets_outer(*sides: Block) -> bool:
    """Whether sides of an unknown condition set variables, or structures' numbers."""
    for side in sides:
        for s in walk_stmts(side):
            if isinstance(s, Assign) and not isinstance(s.target, Index):
                return True
            if isinstance(s, Declare | For | While | ExprStmt):
                return True
    return False
