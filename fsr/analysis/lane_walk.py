"""A kernel passed through as the warps of a block do: where all lanes of a warp come along together, and which elements
they touch between two barriers of the block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fsr.analysis.lane_accesses import ANYWHERE, Held, Place, Pointer, Reading, Unit, statements_of
from fsr.analysis.lane_values import WARP, Lanes, Threads, alike, number
from fsr.hardware.c_types import BY_SPELLING
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
    Jump,
    KernelForm,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Return,
    Scope,
    Stmt,
    Unary,
    While,
)  # fmt: skip
from fsr.source.macros import Macro
from fsr.source.types import plain_type
from fsr.source.walk import BARRIER, names_changed, opaque_names, walk_expr, walk_stmts

_PASSES = 4  # through a loop, until what its variables hold is steady
_TWICE = 2  # a loop's body is passed, so that its end meets its beginning
_LEAVES = frozenset(["return", "break", "continue", "goto"])


class Walk(Reading):
    """Passes through a kernel at one shape of a block. ``parts``: of each statement that could be written anew, what it
    is made of, in order; ``split``: those that were met where lanes of a warp do not come along together."""

    def __init__(
        self, functions: Mapping[str, KernelForm], macros: Mapping[str, Macro], shape: tuple[int, int, int],
        arrays: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        super().__init__(functions, macros, shape, arrays)
        self.parts: dict[Unit, tuple[Stmt, ...]] = {}
        self.split: set[Unit] = set()
        self._function = ""
        self._kernel = True
        self._together = True  # whether the lanes of a warp still come along, behind returns of some

    def kernel(self, form: KernelForm) -> None:
        """Pass through a kernel."""
        self._function = form.name
        self.names = {p.name: self._parameter(p.type, p.name) for p in form.params}
        self._block(form.body, Place(np.ones(self.threads, bool)))

    def _parameter(self, type_: str, name: str) -> Held:
        return Pointer(name, number(0, self.threads)) if "*" in type_ else self.unknown()

    def entered(self, form: KernelForm, args: list[Held], place: Place) -> Held:
        """Pass through a function that is called."""
        held = {p.name: a for p, a in zip(form.params, args, strict=False)}
        if len(held) != len(form.params) or any("&" in p.type for p in form.params):
            for pointer in (a for a in args if isinstance(a, Pointer)):
                self.touch(Pointer(pointer.memory, None), place.apart(), writes=True)
            return None
        outer = self._function, self._kernel, self._together
        self._function, self._kernel, self._together = form.name, False, True
        inside = replace(place, unit=None) if place.together and not place.some else place.apart()
        with self.within(held):
            self._block(form.body, inside)
        self._function, self._kernel, self._together = outer
        return None

    # ------------------------------------------------------------ statements

    def _block(self, stmts: Sequence[Stmt], place: Place) -> None:
        """Statements, whose variables are gone behind them."""
        own = {s.name for s in stmts if isinstance(s, Declare)}
        hidden = {name: self.names[name] for name in own & set(self.names)}
        self._in_order(stmts, place)
        self.names = {n: held for n, held in self.names.items() if n not in own} | hidden

    def _in_order(self, stmts: Sequence[Stmt], place: Place) -> None:
        at = 0
        while at < len(stmts):
            same = [s for s in stmts[at:] if s.span is not None and s.span == stmts[at].span] or [stmts[at]]
            here = place if self._together else place.apart()
            if (span := stmts[at].span) is not None and not isinstance(stmts[at], Scope | For | While):
                unit = Unit(self._function, span)
                self.parts.setdefault(unit, tuple(same))
                here = here.at(unit)
                if not here.together:
                    self.split.add(unit)
            for s in same:
                self._statement(s, here)
            at += len(same)

    def _statement(self, s: Stmt, place: Place) -> None:
        self.instance += 1
        match s:
            case Declare():
                self._declare(s, place)
            case Assign():
                self._assign(s, place)
            case ExprStmt(expr):
                self._effect(expr, place)
            case If():
                self._if(s, place)
            case For() | While():
                self._loop(s, place)
            case Scope(body):
                self._block(body, place)
            case Return(value):
                if value is not None:
                    self.value(value, place)
                if not place.together or (place.some and not self._kernel):  # others go on without it
                    self._together = False
            case OpaqueStmt(text):
                self.written_somehow(opaque_names(text), place)
                self._together = self._together and not _LEAVES & opaque_names(text)
            case Comment() | Jump():
                pass

    def _effect(self, e: Expr, place: Place) -> None:
        """An expression for its effect; a name alone is a macro, of nothing where its barrier is no more needed."""
        if e == BARRIER.expr:
            self.stretch += 1
        elif not isinstance(e, Name):
            self.value(e, place)
        elif (macro := self.macros.get(e.text)) is not None and macro.body:
            if statements_of(f"{macro.body};") == (BARRIER,):
                self.stretch += 1
            else:
                self.written_somehow(opaque_names(macro.body), place)

    def _declare(self, s: Declare, place: Place) -> None:
        if s.dims:
            memory = s.name if "extern" in s.qualifiers else f"{self._function}:{s.name}"
            self.names[s.name] = Pointer(memory, number(0, self.threads), tuple(self._extent(d) for d in s.dims[1:]))
            return
        if {"__shared__", "static"} & set(s.qualifiers):
            self.names[s.name] = Pointer(f"{self._function}:{s.name}", number(0, self.threads), itself=True)
            return
        held = None if s.init is None else self.value(s.init, place)
        if "&" in s.type and s.init is not None and (pointer := self.lvalue(s.init, place)) is not None:
            self.touch(Pointer(pointer.memory, None), place.apart(), writes=True)  # under another name
            held = None
        if held is None and "*" in s.type and isinstance(s.init, Call):  # memory that a function gives
            held = Pointer(f"{self._function}:{s.name}", number(0, self.threads))
        self.names[s.name] = self._as_declared(s.type, held)

    def _as_declared(self, type_: str, held: Held) -> Held:
        """What a variable of a type holds: only wide whole numbers and pointers keep what they are."""
        if not isinstance(held, Lanes):
            return held
        plain = plain_type(type_.replace("volatile", "").replace("const", "").strip(), {})
        known = BY_SPELLING.get(plain)
        wide = plain in ("auto", "size_t", "uint") or (known is not None and known.dtype in _WIDE)
        return held if wide else self.unknown() if held.shared() else None

    def _extent(self, e: Expr) -> int | None:
        held = self.value(e, Place(np.zeros(self.threads, bool), False))
        return int(held.values[0]) if isinstance(held, Lanes) and held.known and held.shared() else None

    def _assign(self, s: Assign, place: Place) -> None:
        for part in assignments(s):
            value = part.value if part.op == "=" else Binary(part.op[:-1], part.target, part.value)
            held = self.value(value, place)
            old = self.names.get(part.target.text) if isinstance(part.target, Name) else None
            if isinstance(old, Pointer) and old.itself:
                self.touch(old, place, writes=True)
            elif isinstance(part.target, Name):
                self._set(part.target.text, held, place)
            elif (pointer := self.lvalue(part.target, place)) is not None:
                self.touch(pointer, place, writes=True)

    def _set(self, name: str, held: Held, place: Place) -> None:
        """A variable gets a value in the lanes that are here."""
        if name not in self.names:
            return  # of the file
        whole = place.together and not place.some
        everywhere, old = whole and bool(place.lanes.all()), self.names[name]
        if everywhere or not isinstance(old, Pointer):
            self.names[name] = held if everywhere else self.one_of(old, held) if whole else None
        else:
            same = isinstance(held, Pointer) and held.memory == old.memory
            self.names[name] = Pointer(old.memory if same else ANYWHERE, None)

    # ------------------------------------------------------------ branches and loops

    def _if(self, s: If, place: Place) -> None:
        noted = len(self.accesses)
        test = self.value(s.test, place)
        reads = len(self.accesses) > noted
        lanes, others = self._taking(s.test, test, place)
        same = isinstance(test, Lanes) and _shared_where(test, place.lanes)
        own = place.unit is not None and place.unit.span == s.span
        if same:  # all lanes of a warp go the same way
            unit = None if own else place.unit
            inside, beside = (replace(place, lanes=one, unit=unit) for one in (lanes, others))
        else:
            inside, beside = replace(place, lanes=lanes, some=True), replace(place, lanes=others).apart()
        before = dict(self.names)
        if lanes.any():
            self._block(s.then, inside)
        after, self.names = self.names, before
        if others.any():
            self._block(s.orelse, beside)
        self.names = {n: self._either(after.get(n), held, same=same) for n, held in self.names.items()}
        leaves = any(isinstance(x, Return | Jump) for x in walk_stmts((*s.then, *s.orelse)))
        if leaves and not same and (reads or not self._kernel):
            self._together = False  # lanes that have exited are no lanes that wait; others are elsewhere

    def _either(self, a: Held, b: Held, *, same: bool) -> Held:
        """What a variable holds behind a branch. ``same``: all lanes of a warp have gone the same way."""
        if same or a is b:
            return self.one_of(a, b)
        if isinstance(a, Pointer) and isinstance(b, Pointer):
            return Pointer(a.memory if a.memory == b.memory else ANYWHERE, None)
        return None

    def _taking(self, e: Expr, test: Held, place: Place) -> tuple[Threads, Threads]:
        """The threads that may take a branch, and those that may not take it."""
        if isinstance(test, Lanes) and test.known:
            return place.lanes & (test.values != 0), place.lanes & (test.values == 0)
        lanes = place.lanes
        if isinstance(e, Binary) and e.op == "&&":
            for part in (e.left, e.right):
                self.silent += 1
                lanes = self._taking(part, self.value(part, place), replace(place, lanes=lanes))[0]
                self.silent -= 1
        return lanes, place.lanes

    def _loop(self, s: For | While, place: Place) -> None:
        """A loop: passed until what its variables hold is steady, and then until its end has met its beginning."""
        test: Expr = s.test if isinstance(s, While) else Binary(s.relation, Name(s.var), s.bound)
        body = s.body if isinstance(s, While) else (*s.body, Assign(Name(s.var), "+=", s.step))
        hidden = dict[str, Held]()
        if isinstance(s, For):
            first = self.value(s.start, place)
            if s.type is None:
                self._set(s.var, first, place)
            else:
                hidden = {s.var: self.names[s.var]} if s.var in self.names else {}
                self.names[s.var] = first
        around = place
        if place.together and not place.some and place.unit is None and self._together and s.span is not None:
            around = replace(place, loop=Unit(self._function, s.span))
        self._until_steady(test, body, around)
        for _ in range(_TWICE):
            kept = dict(self.names)
            self._pass(test, body, around)
            self.names = kept
        if isinstance(s, For) and s.type is not None:
            self.names.pop(s.var)
            self.names |= hidden

    def _until_steady(self, test: Expr, body: Sequence[Stmt], place: Place) -> None:
        changed = names_changed(body)
        self.silent += 1
        for _ in range(_PASSES):
            before = dict(self.names)
            self._pass(test, body, place)
            self.names = {n: self.one_of(h, self.names.get(n)) if n in changed else h for n, h in before.items()}
            if all(_alike(before[n], self.names[n]) for n in before):
                break
        else:
            self.names = {n: None if n in changed else held for n, held in self.names.items()}
        self.silent -= 1

    def _pass(self, test: Expr, body: Sequence[Stmt], place: Place) -> None:
        """Once through a loop."""
        going = self.value(test, place)
        leaves = any(isinstance(x, Return | Jump) for x in walk_stmts(body))
        same = isinstance(going, Lanes) and _shared_where(going, place.lanes) and not leaves
        lanes = self._taking(test, going, place)[0]
        here = replace(place, lanes=lanes)
        self._block(body, replace(here, loop=None) if same and place.together else here.apart())


_WIDE = frozenset(["int32", "uint32", "int64", "uint64"])


def _shared_where(held: Lanes, lanes: Threads) -> bool:
    """Whether the lanes of a warp that are here have the same number."""
    for warp in range(0, len(lanes), WARP):
        values = held.values[warp : warp + WARP][lanes[warp : warp + WARP]]
        if len(values) and bool((values != values[0]).any()):
            return False
    return True


def _alike(a: Held, b: Held) -> bool:
    if isinstance(a, Pointer) and isinstance(b, Pointer):
        return a.memory == b.memory and alike(a.at, b.at)
    if isinstance(a, Pointer) or isinstance(b, Pointer):
        return False
    return alike(a, b)


def assignments(s: Assign) -> tuple[Assign, ...]:
    """``a[t] = v = v + a[t + 1]`` as two; what else is no plain assignment as it is."""
    if s.op == "=" and isinstance(s.value, OpaqueExpr):
        match statements_of(f"{s.value.text};"):
            case (Assign(Name(), _, value) as first,) if not any(isinstance(x, OpaqueExpr) for x in walk_expr(value)):
                return first, replace(s, value=first.target)
    return (s,)


def is_element(e: Expr) -> bool:
    """Whether an expression is an element of memory."""
    return isinstance(e, Index) or (isinstance(e, Unary) and e.op == "*")
