"""Statements whose pointers into a thread's slice become pointers with a stride: the same code, another layout.

``float *x = work + tid * n`` becomes a value of a small class that steps over what other threads have in between, and
indices, arithmetic, comparisons and calls that take it stay as they stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fsr.analysis.accesses import element, pointed
from fsr.analysis.calls import is_atomic, is_load
from fsr.analysis.effects import element_type
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    Literal,
    Member,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Return,
    Scope,
    Stmt,
    Ternary,
    Unary,
    While,
)  # fmt: skip
from fsr.source.mapping import with_parts
from fsr.source.walk import Block, opaque_names, walk_stmts
from fsr.transform.scratch.buffers import Buffer, Unfit
from fsr.transform.scratch.slices import Place, Slicing
from fsr.transform.scratch.strided import STRIDED
from fsr.transform.scratch.verbatim import calls_with

_STEP = re.compile(r"(?:\+\+|--)\s*(\w+)|(\w+)\s*(?:\+\+|--)")
_COMPARED = frozenset(("<", "<=", ">", ">=", "==", "!=", "-"))


@dataclass
class Pointers:
    """``buffers``: by the name that leads to one's beginning; ``raw``: the element types of other pointers that may be
    stood in for; ``strided``: the element types of the variables that become pointers with a stride; ``origins``: to
    which buffer, and which index of it, those lead that are set once; ``calls``: the functions that are called, and in
    which places they are handed such pointers; ``wide``: whether strides need 64 bits; ``compared``:
    whether such pointers are compared with one another; ``numbers``: of the slices that they lead to."""

    slicing: Slicing | None = None
    buffers: dict[str, Buffer] = field(default_factory=dict)
    raw: Mapping[str, str] = field(default_factory=dict)
    strided: dict[str, str] = field(default_factory=dict)
    origins: dict[str, tuple[str, Expr]] = field(default_factory=dict)
    calls: set[tuple[str, frozenset[int]]] = field(default_factory=set)
    wide: bool = False
    compared: bool = False
    numbers: set[Expr] = field(default_factory=set)

    def rewritten(self, body: Block) -> Block:
        """The statements with strided pointers. Raises Unfit."""
        while True:
            before = len(self.strided), len(self.buffers)
            for s in walk_stmts(body):
                self._follow(s)
            if (len(self.strided), len(self.buffers)) == before:
                break
        self.calls.clear()
        return self._block(body)

    def type_of(self, kind: str) -> str:
        """The class, for elements of a type."""
        return f"{STRIDED}<{kind}, long long>" if self.wide else f"{STRIDED}<{kind}>"

    def offset(self, name: str, index: Expr) -> tuple[Expr, str] | None:
        """How far into its slice an element of a name lies, and the length of the slice; None where that does not
        show."""
        if self.slicing is None or name not in self.buffers.keys() | self.origins.keys():
            return None
        buffer = self.buffers[name if name in self.buffers else self.origins[name][0]]
        at = self._index(name, index)
        place = None if at is None else self.slicing.place(at, buffer.length)
        return None if place is None or place.offset is None else (place.offset, buffer.length)

    # ------------------------------------------------------------ which variables

    def _follow(self, s: Stmt) -> None:
        """Take up a variable that is set to a pointer into a slice, or to a buffer's beginning."""
        match s:
            case Declare(type=type_, name=name, init=init) if (
                init is not None and not s.dims and ("*" in type_ or "auto" in type_)
            ):
                value = init
            case For(type=str() as type_, var=name, start=value) if "*" in type_ or "auto" in type_:
                pass
            case Assign(target=Name(name), op="=", value=value):
                type_ = ""
            case _:
                return
        if name in self.strided or name in self.buffers:
            return
        kind, place = self._kind(value), pointed(value, frozenset(self.buffers))
        if kind is not None:
            self.strided[name] = kind
        once = isinstance(s, Declare) and self.slicing is not None and self.slicing.stays(Name(name))
        if not once or place is None:
            return
        index = self._index(*place)
        if kind is None and (index is None or (self.slicing is not None and self.slicing.stays(index))):
            self.buffers[name] = replace(self.buffers[place[0]], start=index)
        elif kind is not None and index is not None and self.slicing is not None and self.slicing.stays(index):
            self.origins[name] = (place[0], index)

    def _kind(self, e: Expr) -> str | None:
        """The type of the elements that a pointer with a stride leads to; None for what is none."""
        match e:
            case Name(text) if text in self.strided:
                return self.strided[text]
            case OpaqueExpr(text) if (found := _STEP.fullmatch(text)) is not None:
                return self.strided.get(found[1] or found[2])
            case Unary("&", Index(base)) | Unary("&", Unary("*", base)):
                inner = self._kind(base)
            case Binary("+", left, right):
                inner = self._kind(left) or self._kind(right)
            case Binary("-", left, right):
                inner = None if self._kind(right) else self._kind(left)
            case Ternary(_, yes, no):
                return self._kind(yes) or self._kind(no)
            case Cast(type_, operand) if "*" in type_:
                return self._kind(operand)
            case _:
                inner = None
        return inner or self._kind_from_buffer(e)

    def _kind_from_buffer(self, e: Expr) -> str | None:
        place = pointed(e, frozenset(self.buffers))
        index = None if place is None else self._index(*place)
        if place is None or index is None or self.slicing is None or not self.slicing.tells_lanes_apart(index):
            return None
        return self.buffers[place[0]].type

    def _index(self, name: str, offset: Expr | None) -> Expr | None:
        """The index in the whole buffer of an offset to one of its names."""
        start = self.origins[name][1] if name in self.origins else self.buffers[name].start
        return offset if start is None else start if offset is None else Binary("+", start, offset)

    # ------------------------------------------------------------ statements

    def _block(self, body: Block) -> Block:
        return tuple(new for s in body if (new := self._stmt(s)) is not None)

    def _stmt(self, s: Stmt) -> Stmt | None:
        match s:
            case Declare(name=name):
                return self._declare(s) if {name} & (self.strided.keys() | self.buffers.keys()) else self._plain(s)
            case For(var=name) if name in self.strided:
                type_ = (
                    None if s.type is None else "auto" if s.type.strip() == "auto" else self.type_of(self.strided[name])
                )
                self.compared = True
                parts = replace(s, type=type_, start=self._strided(s.start), body=self._block(s.body))
                return replace(parts, bound=self._strided(s.bound), step=self._value(s.step))
            case Assign(target=Name(name), op=op, value=value) if name in self.strided:
                if op not in ("=", "+=", "-="):
                    raise Unfit
                if op != "=" and not self._stays_inside(value):
                    raise Unfit
                return replace(s, value=self._strided(value) if op == "=" else self._value(value))
            case OpaqueStmt(text):
                self._check(text)
                return s
        return self._plain(s)

    def _plain(self, s: Stmt) -> Stmt:
        match s:
            case Declare():
                init = None if s.init is None else self._value(s.init)
                return replace(s, init=init, dims=tuple(map(self._value, s.dims)))
            case Assign():
                return replace(s, target=self._value(s.target), value=self._value(s.value))
            case ExprStmt():
                return replace(s, expr=self._dropped(s.expr))
            case If():
                return replace(s, test=self._value(s.test), then=self._block(s.then), orelse=self._block(s.orelse))
            case While():
                return replace(s, test=self._value(s.test), body=self._block(s.body))
            case For():
                ends = {k: self._value(v) for k, v in (("start", s.start), ("bound", s.bound), ("step", s.step))}
                return replace(s, body=self._block(s.body), start=ends["start"], bound=ends["bound"], step=ends["step"])
            case Scope():
                return replace(s, body=self._block(s.body))
            case Return(value=value) if value is not None:
                return replace(s, value=self._value(value))
        return s

    def _declare(self, s: Declare) -> Stmt | None:
        """The declaration of a pointer; none of a name for a buffer's beginning, which stands where that is used."""
        if s.name in self.buffers:
            return None
        if s.dims or s.qualifiers or s.type.count("*") > 1 or not _may_point(s.type) or "&" in s.type:
            raise Unfit
        if "*" in s.type and element_type(s.type) != self.strided[s.name]:
            raise Unfit
        return replace(
            s, type=self.type_of(self.strided[s.name]), init=None if s.init is None else self._strided(s.init)
        )

    # ------------------------------------------------------------ pointers

    def _strided(self, e: Expr) -> Expr:
        """A pointer expression as one with a stride; what leads to other memory has the stride 1."""
        if self._kind(e) is None:
            name = pointed(e, frozenset(self.raw))
            if name is None:
                raise Unfit
            self.numbers.add(e)
            return self._made(self.raw[name[0]], (self._value(e), Literal("1")))
        match e:
            case Name() | OpaqueExpr():
                return e
            case Cast(type_, operand) if element_type(type_) == self._kind(operand) and type_.count("*") == 1:
                return self._strided(operand)
            case Ternary(test, yes, no):
                return Ternary(self._value(test), self._strided(yes), self._strided(no))
            case Unary("&", Unary("*", base)):
                return self._strided(base)
        place = pointed(e, frozenset(self.buffers))
        if place is not None:
            return self._made_of(self.buffers[place[0]], self._index(*place))
        match e:
            case Binary("+" | "-" as op, left, right) if self._kind(left):
                base, offset = left, right
            case Unary("&", Index(left, right)) if self._kind(left):
                op, base, offset = "+", left, right
            case Binary("+" as op, left, right) if self._kind(right):
                base, offset = right, left
            case _:
                raise Unfit
        if self._stays_inside(offset):
            return Binary(op, self._strided(base), self._value(offset))
        return self._made_of(*self._from_origin(e))

    def _from_origin(self, e: Expr) -> tuple[Buffer, Expr | None]:
        """The buffer and index that a pointer expression leads to, through a variable that is set once."""
        place = pointed(e, frozenset(self.origins))
        if place is None:
            raise Unfit
        return self.buffers[self.origins[place[0]][0]], self._index(*place)

    def _stays_inside(self, offset: Expr) -> bool:
        """Whether nothing shows that an offset to a pointer into a slice leads out of it."""
        lengths = {b.length for b in self.buffers.values()}
        return self.slicing is None or all(self.slicing.is_offset(offset, length) for length in lengths)

    def _made_of(self, buffer: Buffer, index: Expr | None) -> Expr:
        place = self._place(buffer, index)
        self.numbers.add(place.number)
        address = Binary("+", Name(buffer.parameter), self._value(place.number))
        offset = () if place.offset is None else (self._value(place.offset),)
        return self._made(buffer.type, (address, buffer.slices, *offset))

    def _made(self, kind: str, parts: tuple[Expr, ...]) -> Expr:
        return Call(Name(self.type_of(kind)), parts)

    def _place(self, buffer: Buffer, index: Expr | None) -> Place:
        place = None if index is None or self.slicing is None else self.slicing.place(index, buffer.length)
        if place is None:
            raise Unfit
        return place

    def _new_index(self, buffer: Buffer, index: Expr | None) -> Expr:
        """Where an element of a buffer lies now."""
        place = self._place(buffer, index)
        number = self._value(place.number)
        if place.offset is None:
            return number
        return Binary("+", Binary("*", self._value(place.offset), buffer.slices), number)

    # ------------------------------------------------------------ everything else

    def _value(self, e: Expr) -> Expr:
        """An expression that is no pointer into a slice."""
        if self._kind(e) is not None:
            raise Unfit
        place = element(e, frozenset(self.buffers))
        if place is not None and len(place[1]) == 1:
            buffer = self.buffers[place[0]]
            at = self._index(place[0], place[1][0])
            return Index(Name(buffer.parameter), self._new_index(buffer, at))
        match e:
            case Name(text) if text in self.buffers:
                raise Unfit
            case OpaqueExpr(text):
                self._check(text)
                return e
            case Index(base, index) if self._kind(base):
                return self._element(e, base, index)
            case Unary("*", base) if self._kind(base):
                return Unary("*", self._strided(base))
            case Member(base, name, True) if self._kind(base):
                return Member(self._strided(base), name, True)
            case Binary(",", left, right):
                return Binary(",", self._dropped(left), self._dropped(right))
            case Binary(op, left, right) if op in _COMPARED and self._kind(left) and self._kind(right):
                self.compared = True
                return Binary(op, self._strided(left), self._strided(right))
            case Call():
                return self._call(e)
        return with_parts(e, self._value)

    def _element(self, e: Expr, base: Expr, index: Expr) -> Expr:
        if self._stays_inside(index):
            return Index(self._strided(base), self._value(index))
        buffer, at = self._from_origin(Unary("&", e))
        return Index(Name(buffer.parameter), self._new_index(buffer, at))

    def _dropped(self, e: Expr) -> Expr:
        """An expression whose value nobody asks for."""
        return e if isinstance(e, OpaqueExpr) and self._kind(e) else self._value(e)

    def _call(self, e: Call) -> Expr:
        """A call, of an atomic or a load with the address of one element, or of a function with pointers."""
        if e.args and (is_atomic(e) or is_load(e)):
            first, *others = e.args
            target = first.operand if isinstance(first, Unary) and first.op == "&" else Unary("*", first)
            if self._kind(first) is not None or pointed(first, frozenset(self.buffers)) is not None:
                return replace(e, args=(Unary("&", self._value(target)), *map(self._value, others)))
        places = frozenset(n for n, a in enumerate(e.args) if self._kind(a) is not None)
        if places and not isinstance(e.callee, Name):
            raise Unfit
        if isinstance(e.callee, Name):
            self.calls.add((e.callee.text, places))
        args = tuple(self._strided(a) if n in places else self._value(a) for n, a in enumerate(e.args))
        return replace(e, callee=e.callee if isinstance(e.callee, Name) else self._value(e.callee), args=args)

    def _check(self, text: str) -> None:
        """Verbatim text may reach elements and call functions, and do nothing else with a pointer."""
        if opaque_names(text) & self.buffers.keys():
            raise Unfit
        if opaque_names(text) & self.strided.keys():
            calls = calls_with(text, self.strided.keys())
            if calls is None:
                raise Unfit
            self.calls |= calls


def _may_point(type_: str) -> bool:
    return "*" in type_ or "auto" in type_
