"""Which elements of memory the lanes of a warp touch, expression by expression.

The statements of :mod:`fsr.analysis.lane_walk`, which goes through a kernel and the functions that it calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from fsr.analysis.calls import CONSTANTS, is_pure_name
from fsr.analysis.functions import own_name
from fsr.analysis.lane_values import WARP, Lanes, Threads, Value, combined, joined, number, unknown
from fsr.analysis.word_values import literal
from fsr.source.emit import emit_expr
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Expr,
    Index,
    KernelForm,
    Literal,
    Member,
    Name,
    OpaqueExpr,
    Span,
    Stmt,
    Ternary,
    Unary,
)  # fmt: skip
from fsr.source.macros import Macro
from fsr.source.parse import parse_device_functions
from fsr.source.walk import BUILTINS, opaque_names

ANYWHERE = "?"  # the memory that a pointer of unknown origin leads to

_AXES = "xyz"
_DEEPEST = 12  # functions within functions, macros within macros


@dataclass(frozen=True, eq=False)
class Pointer:
    """An address: elements on from where some memory begins. ``inner``: extents of the arrays that its elements are.
    ``itself``: what a variable holds that is this memory, as one that the block shares."""

    memory: str
    at: Value
    inner: tuple[int | None, ...] = ()
    itself: bool = False


Held = Lanes | Pointer | None


@dataclass(frozen=True)
class Unit:
    """A statement that could be written anew as a whole: where it stands, in which function."""

    function: str
    span: Span


@dataclass(frozen=True, eq=False)
class Access:
    """What the lanes that pass a statement touch. ``stretch`` counts barriers of the block before it, ``instance`` the
    statements passed; ``unit``: what would be written anew, None where not all lanes of a warp come along together;
    ``loop``: then the loop around it that they all come to, and leave together, if any."""

    memory: str
    at: Value
    writes: bool
    lanes: Threads
    stretch: int
    instance: int
    unit: Unit | None
    loop: Unit | None = None


@dataclass(frozen=True, eq=False)
class Place:
    """Where the walk is. ``lanes``: threads that may be here; ``together``: all lanes of a warp are here that are not
    gone, or none, ``some`` of them at a part of a statement; ``unit``: the statement that is passed; ``loop``: the loop
    in which lanes are apart that come to it together."""

    lanes: Threads
    together: bool = True
    unit: Unit | None = None
    some: bool = False
    loop: Unit | None = None

    def at(self, unit: Unit) -> Place:
        """At a statement, where that is no part of one."""
        return self if self.unit is not None or not self.together else replace(self, unit=unit)

    def apart(self) -> Place:
        """The same threads, some of which may not come along."""
        return Place(self.lanes, False, loop=self.loop)


def statements_of(text: str) -> tuple[Stmt, ...]:
    """The statements that a text is."""
    found = parse_device_functions(f"__device__ void fsr_text()\n{{\n{text}\n}}\n").get("fsr_text")
    return () if found is None else found.body


@dataclass
class Reading:
    """Evaluates expressions. ``functions``: of the file, by bare name; ``shape``: of the block; ``arrays``: of the
    file; ``names``: what the variables of the function hold."""

    functions: Mapping[str, KernelForm]
    macros: Mapping[str, Macro]
    shape: tuple[int, int, int]
    arrays: frozenset[str] = frozenset()
    names: dict[str, Held] = field(default_factory=dict)
    accesses: list[Access] = field(default_factory=list)
    stretch: int = 0
    instance: int = 0
    depth: int = 0
    silent: int = 0

    def __post_init__(self) -> None:
        x, y, _ = self.shape
        self.threads = int(np.prod(self.shape))
        ids = np.arange(self.threads, dtype=np.int64)
        parts = (ids % x, ids // x % y, ids // (x * y))
        self._builtins: dict[str, Lanes] = {f"threadIdx.{a}": Lanes(v) for a, v in zip(_AXES, parts, strict=True)}
        self._builtins |= {
            f"blockDim.{a}": number(v, self.threads) for a, v in zip(_AXES, self.shape, strict=True)
        }  # fmt: skip
        self._builtins |= {
            f"{b}.{a}": unknown(self.threads, natural=True) for b in ("blockIdx", "gridDim") for a in _AXES
        }

    def unknown(self) -> Lanes:
        """A number that all lanes of a warp share."""
        return unknown(self.threads)

    # ------------------------------------------------------------ memory

    def touch(self, pointer: Pointer, place: Place, *, writes: bool) -> None:
        """Note an access."""
        if not self.silent:
            self.accesses.append(
                Access(pointer.memory, pointer.at, writes, place.lanes, self.stretch, self.instance, place.unit,
                       place.loop)
            )  # fmt: skip

    def written_somehow(self, names: frozenset[str], place: Place) -> None:
        """What pointers of these names lead to may be written by what cannot be read here."""
        for name in names:
            held = self.names.get(name)
            if isinstance(held, Pointer):
                self.touch(Pointer(held.memory, None), place.apart(), writes=True)
            elif name in self.names:
                self.names[name] = None

    def lvalue(self, e: Expr, place: Place) -> Pointer | None:
        """The element that an expression names; None for a variable."""
        match e:
            case Index(base, index):
                return self._moved(self.pointer(base, place), self.value(index, place), "+")
            case Unary("*", operand):
                return self.pointer(operand, place)
            case Member(base, _, True):
                return self.pointer(base, place)
            case Member(Name(base)) if base in BUILTINS:
                return None
            case Member(base):
                return self.lvalue(base, place)
            case Cast(_, operand):
                return self.lvalue(operand, place)
        return None

    def pointer(self, e: Expr, place: Place) -> Pointer:
        """Where an expression leads."""
        held = self.value(e, place)
        if isinstance(held, Pointer):
            return held
        return Pointer(ANYWHERE, None)

    def _moved(self, pointer: Pointer, by: Held, op: str) -> Pointer:
        """A pointer so many elements on; an index steps over whole inner arrays."""
        by = None if isinstance(by, Pointer) else by
        step: Value = number(1, self.threads)
        for extent in pointer.inner:
            step = None if extent is None else combined("*", step, number(extent, self.threads))
        if step is None and by is not None and by.shared():
            return Pointer(pointer.memory, self.unknown(), pointer.inner[1:])
        return Pointer(pointer.memory, combined(op, pointer.at, combined("*", by, step) if pointer.inner else by),
                       pointer.inner[1:])  # fmt: skip

    # ------------------------------------------------------------ values

    def value(self, e: Expr, place: Place) -> Held:
        """What an expression comes to; what it reads is noted."""
        match e:
            case Literal():
                found = literal(e)
                return self.unknown() if found is None else number(int(found.values.flat[0]), self.threads)
            case Name(text):
                return self._named(text, place)
            case Member(Name(base), axis) if base in BUILTINS:
                return self._builtins.get(f"{base}.{axis}")
            case Unary("&", operand):
                return self.lvalue(operand, place)
            case Index() | Member() | Unary("*", _):
                return self._read(e, place)
            case Unary(op, operand):
                return self._unary(op, self.value(operand, place))
            case Binary(op, left, right):
                return self._binary(op, left, right, place)
            case Ternary(test, yes, no):
                chosen = self.value(test, place)
                both = self.value(yes, place.apart()), self.value(no, place.apart())
                return self.one_of(*both) if isinstance(chosen, Lanes) and chosen.shared() else None
            case Cast(type_, operand):
                return self._cast(type_, self.value(operand, place))
            case Call():
                return self._call(e, place)
            case OpaqueExpr(text):
                self.written_somehow(opaque_names(text), place)
        return None

    def _named(self, text: str, place: Place) -> Held:
        if text in self.names:
            held = self.names[text]
            if isinstance(held, Pointer) and held.itself:
                self.touch(held, place, writes=False)
                return None
            return held
        if text in self.arrays:
            return Pointer(text, number(0, self.threads))
        if text == "warpSize":
            return number(WARP, self.threads)
        macro = self.macros.get(text)
        if macro is not None and macro.params is None:
            return self._expanded(macro.body, place)
        if text in CONSTANTS or macro is None:  # a constant of the file, a parameter of the template
            return self.unknown()
        return None

    def _expanded(self, body: str | None, place: Place) -> Held:
        """A macro's body as an expression."""
        if not body or self.depth > _DEEPEST:
            return None
        self.depth += 1
        try:
            match statements_of(f"fsr_text = {body};"):
                case (Assign(_, "=", value),) if not isinstance(value, OpaqueExpr):
                    return self.value(value, place)
        finally:
            self.depth -= 1
        self.written_somehow(opaque_names(body), place)
        return None

    def _read(self, e: Expr, place: Place) -> Held:
        found = self.lvalue(e, place)
        if found is None:
            return None
        if (found.inner and not isinstance(e, Member)) or (isinstance(e, Index) and self._has_rows(e.base)):
            return found  # a row of an array
        self.touch(found, place, writes=False)
        return None

    def _has_rows(self, base: Expr) -> bool:
        """Whether what an index goes into is an array of arrays."""
        self.silent += 1
        held = self.value(base, Place(np.zeros(self.threads, bool), False)) if isinstance(base, Name | Index) else None
        self.silent -= 1
        return isinstance(held, Pointer) and bool(held.inner)

    def _unary(self, op: str, held: Held) -> Held:
        if not isinstance(held, Lanes):
            return None
        if op == "-":
            return combined("-", number(0, self.threads), held)
        if op == "+":
            return held
        if op == "!" and held.known:
            return Lanes((held.values == 0).astype(np.int64))
        return self.unknown() if held.shared() else None

    def _binary(self, op: str, left: Expr, right: Expr, place: Place) -> Held:
        a = self.value(left, place)
        b = self.value(right, place.apart() if op in ("&&", "||") else place)
        if isinstance(a, Pointer) and op in ("+", "-") and not isinstance(b, Pointer):
            return Pointer(a.memory, self._moved(a, b, op).at, a.inner)
        if isinstance(b, Pointer) and op == "+" and not isinstance(a, Pointer):
            return Pointer(b.memory, self._moved(b, a, op).at, b.inner)
        if isinstance(a, Pointer) or isinstance(b, Pointer):
            return None
        return b if op == "," else combined(op, a, b)

    def one_of(self, a: Held, b: Held) -> Held:
        """What holds of either of two, the same one in all lanes of a warp."""
        if isinstance(a, Pointer) and isinstance(b, Pointer):
            if a.memory == b.memory and a.inner == b.inner and joined(a.at, b.at) is a.at is not None:
                return a
            memory = a.memory if a.memory == b.memory else ANYWHERE
            return Pointer(memory, joined(a.at, b.at), a.inner if a.inner == b.inner else ())
        if isinstance(a, Pointer) or isinstance(b, Pointer):
            return None
        return joined(a, b)

    def _cast(self, type_: str, held: Held) -> Held:
        if isinstance(held, Pointer):
            return held if "*" in type_ else None
        narrow = any(word in type_ for word in ("char", "short", "8", "16", "bool"))
        return None if held is None or (narrow and not held.shared()) else self.unknown() if narrow else held

    # ------------------------------------------------------------ calls

    def _call(self, e: Call, place: Place) -> Held:
        args = [self.value(a, place) for a in e.args]
        name = own_name(e.callee.text) if isinstance(e.callee, Name) else ""
        macro = self.macros.get(name)
        if macro is not None:
            return self._expanded(macro.applied([emit_expr(a) for a in e.args]), place)
        form = self.functions.get(name)
        if form is not None and self.depth <= _DEEPEST:
            found = self.entered(form, [*args, *self._defaults(form, len(args))], place)
            if any("&" in p.type for p in form.params):
                self._forget(e.args)
            return found
        if not is_pure_name(name):
            for held in (a for a in args if isinstance(a, Pointer)):
                self.touch(Pointer(held.memory, None), place.apart(), writes=True)
            self._forget(e.args)
        shared = all(isinstance(a, Lanes) and a.shared() for a in args)
        return self.unknown() if is_pure_name(name) and shared else None

    def _forget(self, args: Iterable[Expr]) -> None:
        """Variables that a function may have changed."""
        for arg in args:
            inner = arg.operand if isinstance(arg, Unary) and arg.op == "&" else arg
            if isinstance(inner, Name) and inner.text in self.names:
                held = self.names[inner.text]
                self.names[inner.text] = replace(held, at=None) if isinstance(held, Pointer) else None

    def _defaults(self, form: KernelForm, given: int) -> Iterator[Held]:
        for param in form.params[given:]:
            match statements_of(f"fsr_text = {param.default};") if param.default else ():
                case (Assign(_, "=", value),):
                    yield self.value(value, Place(np.zeros(self.threads, bool), False))
                case _:
                    yield None

    def entered(self, form: KernelForm, args: list[Held], place: Place) -> Held:
        """What a function of the file gives, with what it does."""
        raise NotImplementedError

    @contextmanager
    def within(self, names: dict[str, Held]) -> Iterator[None]:
        """The variables of a function while it is passed through."""
        outer, self.names = self.names, names
        self.depth += 1
        try:
            yield
        finally:
            self.names = outer
            self.depth -= 1
