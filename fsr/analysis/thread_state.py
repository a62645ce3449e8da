"""What many threads hold in their variables at once, as far as it is known, and where expressions lead in memory.

The expressions of :mod:`fsr.analysis.visits`, which goes through statements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fsr.analysis.calls import is_atomic, is_load, is_pure_name
from fsr.analysis.types import bare
from fsr.analysis.word_values import (
    Kind,
    Lanes,
    Values,
    Word,
    binary,
    converted,
    function,
    kind_of,
    literal,
    truth,
    unary,
    word,
)  # fmt: skip
from fsr.source.form import Binary, Call, Cast, Expr, Index, Literal, Member, Name, Ternary, Unary
from fsr.source.types import plain_type
from fsr.source.walk import BUILTINS, subexprs

Key = tuple[int, str]  # the function that was entered so many-th, and a variable of it


class UnsureError(Exception):
    """It cannot be told what threads go to."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address: of an element of a buffer or a local array; ``offset``: None where that is not known."""

    array: Key
    offset: Word | None


@dataclass(frozen=True, slots=True)
class Variable:
    """A place that is a variable, or (``part``) a member of one."""

    key: Key
    part: bool = False


Value = Word | Pointer | None
Place = Variable | Pointer | None


@dataclass(frozen=True, slots=True, eq=False)
class Visit:
    """What threads access of a buffer. ``offsets``: of all threads, None where not known; ``kind``: read, write, or
    'other' for what is neither alone."""

    array: str
    offsets: Values | None
    lanes: Lanes
    kind: str


@dataclass
class State:
    """Variables of threads. ``types``: as declared, aliases followed; ``arrays``: extents of local arrays, None where
    elements are not followed."""

    lanes: int
    names: Mapping[str, str] = field(default_factory=dict)  # aliases of types
    known: Mapping[str, Word] = field(default_factory=dict)  # constants by name, ids as ``threadIdx.x``
    values: dict[Key | tuple[Key, int], Value] = field(default_factory=dict)
    types: dict[Key, str] = field(default_factory=dict)
    arrays: dict[Key, int | None] = field(default_factory=dict)
    references: dict[Key, Place] = field(default_factory=dict)
    buffers: set[Key] = field(default_factory=set)
    visits: list[Visit] = field(default_factory=list)
    frame: int = 0

    # ------------------------------------------------------------ places

    def place(self, e: Expr, lanes: Lanes) -> Place:
        """Where an expression is kept; None for what is no variable of the threads, nor an element behind a pointer."""
        match e:
            case Name(text):
                key = (self.frame, text)
                return self.references[key] if key in self.references else Variable(key) if key in self.types else None
            case Index(base, index):
                return self._element(base, self.value(index, lanes), lanes)
            case Unary("*", operand):
                return self._behind(self.value(operand, lanes), operand, word(0))
            case Member(base, _, True):
                return self._behind(self.value(base, lanes), base, word(0))
            case Member(base, _, False):
                found = self.place(base, lanes)
                return Variable(found.key, True) if isinstance(found, Variable) else found
        for part in subexprs(e):
            self.value(part, lanes)
        return None

    def _element(self, base: Expr, index: Value, lanes: Lanes) -> Place:
        if isinstance(base, Index | Member) or (isinstance(base, Unary) and base.op == "*"):
            inside = self.place(base, lanes)  # a row of an array, an array in a record: part of that
            if isinstance(inside, Variable) and self.types[inside.key].startswith("param "):
                raise UnsureError  # what a record that is passed points to
            return inside
        return self._behind(self.value(base, lanes), base, index)

    def _behind(self, value: Value, base: Expr, index: Value) -> Place:
        if isinstance(value, Pointer):
            return self.moved(value, index, "+")
        if isinstance(base, Name) and (self.frame, base.text) not in self.types:
            return None  # a table of the file
        raise UnsureError

    def moved(self, pointer: Pointer, by: Value, op: str) -> Pointer:
        """A pointer so many elements on."""
        if not isinstance(by, Word) or pointer.offset is None:
            return Pointer(pointer.array, None)
        wide = converted(by, Kind(64, True))
        return Pointer(pointer.array, binary(op, pointer.offset, wide, np.ones(self.lanes, bool)))

    def read(self, place: Place, lanes: Lanes, kind: str = "read") -> Value:
        """The value at a place."""
        match place:
            case Variable(key, part):
                return None if part else self.values.get(key, Pointer(key, word(0)) if key in self.arrays else None)
            case Pointer(array) if array in self.buffers:
                self._visit(place, lanes, kind)
            case Pointer(array) if array in self.arrays:
                at = self._constant(place, lanes)
                return None if at is None else self.values.get((array, at))
            case Pointer(array) if self._constant(place, lanes) == 0:
                return self.values.get(array)
        return None

    def write(self, place: Place, value: Value, lanes: Lanes) -> None:
        """Set what is at a place for some threads."""
        match place:
            case _ if not lanes.any():
                return
            case None:
                raise UnsureError
            case Variable(key, part):
                if isinstance(value, Pointer) and (part or not self.types[key].endswith(("*", "auto"))):
                    raise UnsureError  # a record that points somewhere
                self.set(key, None if part else self.as_type(value, self.types[key]), lanes)
            case Pointer(array) if array in self.buffers:
                self._visit(place, lanes, "write")
            case Pointer(array) if array in self.arrays:
                at = self._constant(place, lanes)
                if at is None or self.arrays[array] is None:
                    self.forget(array)
                else:
                    self.set((array, at), self.as_type(value, self.types[array]), lanes)
            case Pointer() if isinstance(value, Pointer):
                raise UnsureError
            case Pointer(array):
                known = self._constant(place, lanes) == 0
                self.set(array, self.as_type(value, self.types[array]) if known else None, lanes)

    def set(self, key: Key | tuple[Key, int], value: Value, lanes: Lanes) -> None:
        """Set a variable for some threads; what was never set before is as for these."""
        old = self.values.get(key)
        if key not in self.values or bool(lanes.all()):
            self.values[key] = value
        else:
            self.values[key] = self.chosen(lanes, value, old)

    def chosen(self, lanes: Lanes, yes: Value, no: Value) -> Value:
        """One value for these threads, the other for all others."""
        if isinstance(yes, Word) and isinstance(no, Word) and yes.kind == no.kind:
            return Word(np.where(lanes, yes.values, no.values), yes.kind)
        if isinstance(yes, Pointer) and isinstance(no, Pointer) and yes.array == no.array:
            if yes.offset is None or no.offset is None:
                return Pointer(yes.array, None)
            return Pointer(yes.array, Word(np.where(lanes, yes.offset.values, no.offset.values), Kind(64, True)))
        return None

    def forget(self, key: Key) -> None:
        """No longer know a variable, or any element of an array."""
        for own in [k for k in self.values if k == key or k[0] == key]:
            self.values[own] = None
        if key in self.arrays:
            self.arrays[key] = None

    def _constant(self, place: Pointer, lanes: Lanes) -> int | None:
        """The offset that all of these threads have."""
        if place.offset is None or not lanes.any():
            return None
        own = np.broadcast_to(place.offset.values, (self.lanes,))[lanes]
        return int(own[0]) if bool((own == own[0]).all()) else None

    def _visit(self, place: Pointer, lanes: Lanes, kind: str) -> None:
        offsets = None if place.offset is None else np.broadcast_to(place.offset.values, (self.lanes,))
        self.visits.append(Visit(place.array[1], offsets, lanes, kind))

    def as_type(self, value: Value, type_: str) -> Value:
        """The value as a variable of the type holds it."""
        if type_ == "auto" or isinstance(value, Pointer):
            return value
        kind = kind_of(type_)
        return None if kind is None or value is None else converted(value, kind)

    def spelt(self, type_: str) -> str:
        """A type with aliases followed; pointers as such."""
        return plain_type(bare(type_), self.names) + ("*" if "*" in type_ else "")

    # ------------------------------------------------------------ values

    def value(self, e: Expr, lanes: Lanes) -> Value:
        """An expression's value; what it reads is noted."""
        match e:
            case Literal():
                return literal(e)
            case Name(text) if (self.frame, text) not in self.types and (self.frame, text) not in self.references:
                return self.known.get(text)
            case Member(Name(base), axis) if base in BUILTINS:
                return self.known.get(f"{base}.{axis}")
            case Unary("&", operand):
                return self._address(operand, lanes)
            case Name() | Index() | Member() | Unary("*", _):
                return self.read(self.place(e, lanes), lanes)
            case Unary(op, operand):
                found = self.value(operand, lanes)
                return unary(op, found) if isinstance(found, Word) else None
            case Binary():
                return self._binary(e, lanes)
            case Ternary():
                return self._choice(e, lanes)
            case Cast(type_, operand):
                return self._cast(type_, self.value(operand, lanes))
            case Call():
                return self._call(e, lanes)
        raise UnsureError

    def _address(self, operand: Expr, lanes: Lanes) -> Value:
        match self.place(operand, lanes):
            case Variable(key, False) if key not in self.arrays:
                return Pointer(key, word(0, Kind(64, True)))
            case Pointer() as found if not isinstance(operand, Member):
                return found
            case None:
                return None
        raise UnsureError

    def _binary(self, e: Binary, lanes: Lanes) -> Value:
        left = self.value(e.left, lanes)
        if e.op in ("&&", "||"):
            inner = lanes & (truth(left) == (e.op == "&&")) if isinstance(left, Word) else lanes
            right = self.value(e.right, inner)
            if isinstance(left, Word) and not inner.any():
                return word(left.values != 0)
            if not isinstance(left, Word) or not isinstance(right, Word):
                return None
            return word(truth(left) & truth(right) if e.op == "&&" else truth(left) | truth(right))
        right = self.value(e.right, lanes)
        if e.op == ",":
            return right
        if isinstance(left, Pointer) and e.op in ("+", "-"):
            return None if isinstance(right, Pointer) else self.moved(left, right, e.op)
        if isinstance(right, Pointer) and e.op == "+":
            return self.moved(right, left, "+")
        return binary(e.op, left, right, lanes) if isinstance(left, Word) and isinstance(right, Word) else None

    def _choice(self, e: Ternary, lanes: Lanes) -> Value:
        test = self.value(e.test, lanes)
        if not isinstance(test, Word):
            yes, no = self.value(e.yes, lanes), self.value(e.no, lanes)
            return yes if same(yes, no) else None
        whether = np.broadcast_to(truth(test), (self.lanes,))
        yes, no = self.value(e.yes, lanes & whether), self.value(e.no, lanes & ~whether)
        if isinstance(yes, Word) and isinstance(no, Word):
            zero = word(0)
            alike = binary("+", yes, zero, lanes), binary("+", no, zero, lanes)
            wide = binary("+", yes, no, lanes)
            assert wide is not None
            yes, no = (converted(w, wide.kind) for w in alike if w is not None)
        return self.chosen(whether, yes, no)

    def _cast(self, type_: str, value: Value) -> Value:
        if isinstance(value, Pointer):
            if "*" not in type_ or self.spelt(type_).rstrip("*") != self.types[value.array].removesuffix("*"):
                raise UnsureError  # other elements are counted
            return value
        return self.as_type(value, self.spelt(type_)) if isinstance(value, Word) and "*" not in type_ else None

    def _call(self, e: Call, lanes: Lanes) -> Value:
        if isinstance(e.callee, Name) and self.is_own(e.callee.text):
            return self.entered(e, e.callee.text, lanes)
        args = [self.value(a, lanes) for a in e.args]
        for pointer in (a for a in args if isinstance(a, Pointer)):
            if pointer.array in self.buffers:
                self._visit(pointer if is_atomic(e) or is_load(e) else Pointer(pointer.array, None), lanes, "other")
            else:
                self.forget(pointer.array)
        if not isinstance(e.callee, Name) or not is_pure_name(e.callee.text):
            for place in (self.place(a, lanes & False) for a in e.args if isinstance(a, Name | Member)):
                if isinstance(place, Variable) and place.key not in self.buffers:
                    self.forget(place.key)  # it may be taken by reference
        if not isinstance(e.callee, Name):
            return None
        if len(args) == 1 and isinstance(args[0], Word) and kind_of(self.spelt(e.callee.text)) is not None:
            return self.as_type(args[0], self.spelt(e.callee.text))
        words = [a for a in args if isinstance(a, Word)]
        return function(e.callee.text, words) if len(words) == len(args) else None

    def is_own(self, name: str) -> bool:
        """Whether a name is that of a function of the file."""
        raise NotImplementedError

    def entered(self, e: Call, name: str, lanes: Lanes) -> Value:
        """What a function of the file gives, with what it does."""
        raise NotImplementedError


def same(a: Value, b: Value) -> bool:
    """Whether two values are known to be the same for all threads."""
    if isinstance(a, Pointer) and isinstance(b, Pointer):
        return a.array == b.array and a.offset is not None and same(a.offset, b.offset)
    return isinstance(a, Word) and isinstance(b, Word) and a.kind == b.kind and np.array_equal(a.values, b.values)
