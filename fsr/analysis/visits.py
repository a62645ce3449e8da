"""Which elements of buffers threads go to: a kernel's statements gone through for many threads at once.

What decides an index is worked out exactly: integers of their widths, conditions, loops of few turns, local arrays,
pointers, functions of the file. What is read from buffers is not known: both sides of what it decides are gone through,
and what these set differently is not known either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fsr.analysis.followed import as_read, functions_to_follow, shadows
from fsr.analysis.functions import own_name
from fsr.analysis.thread_state import Pointer, State, UnsureError, Value, Visit, same
from fsr.analysis.types import aliases
from fsr.analysis.word_values import Kind, Lanes, Values, Word, binary, kind_of, truth, word
from fsr.errors import FsrError
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
    Jump,
    KernelForm,
    Name,
    Return,
    Scope,
    Stmt,
    While,
)  # fmt: skip
from fsr.source.walk import Block, base_name, contains_return, jumps, names_in, names_written, walk_exprs

_UNSET = object()
_TURNS = 256  # that a loop is followed
_DEPTH = 8  # of calls
_FLOATING = frozenset(["float", "double", "__half", "half", "__nv_bfloat16"])


class _JumpError(Exception):
    """A loop is left, or a turn of it, on what is not known."""


def visits(
    source: str, kernel: KernelForm, known: Mapping[str, Values | int], lanes: int, same: Mapping[str, str]
) -> list[Visit] | None:
    """What threads access of the buffers that a kernel is given, at most; None where that cannot be told. ``known``:
    parameters and constants by name, ids as ``threadIdx.x``, each one number or one a thread; ``same``: for
    parameters that point to what another does, that one's name."""
    walk = _Walk(lanes, aliases(source), functions=functions_to_follow(source))
    walk.known = {
        name: word(v, Kind(32, False) if "." in name else Kind() if abs(np.max(v)) < 1 << 31 else Kind(64))
        for name, v in known.items()
    }
    everyone = np.ones(lanes, bool)
    try:
        if shadows(kernel):
            return None
        for param in kernel.params:
            walk.given(param.type, param.name, same.get(param.name, param.name))
        walk.known = {name: v for name, v in walk.known.items() if (0, name) not in walk.types}  # functions see none
        walk.block(as_read(kernel, source).body, everyone)
    except (UnsureError, _JumpError, FsrError):
        return None
    return walk.visits


@dataclass
class _Left:
    """Who left a loop, and its turn. ``any_turn``: it is gone through once for all turns."""

    loop: Lanes
    turn: Lanes
    any_turn: bool = False


@dataclass
class _Walk(State):
    functions: Mapping[str, tuple[KernelForm, str]] = field(default_factory=dict)
    depth: int = 0
    frames: int = 0
    left: list[_Left] = field(default_factory=list)  # the loops around, of this function
    may_end: bool = False  # this function has ended for some of those that go on
    results: list[tuple[Value, Lanes]] = field(default_factory=list)  # of each function that is gone through

    def given(self, type_: str, name: str, buffer: str) -> None:
        """A parameter of the kernel."""
        key, spelt = (0, name), self.spelt(type_)
        self.types[key] = spelt
        if spelt.endswith("*"):
            if type_.count("*") > 1 or "&" in type_:
                raise UnsureError
            if self.types.setdefault((0, buffer), spelt) != spelt:
                raise UnsureError
            self.buffers.add((0, buffer))
            self.values[key] = Pointer((0, buffer), word(0, Kind(64, True)))
        elif kind_of(spelt) is None and spelt not in _FLOATING:
            self.types[key] = f"param {spelt}"
        else:
            self.values[key] = self.as_type(self.known.get(name), spelt)

    # ------------------------------------------------------------ statements

    def block(self, body: Block, lanes: Lanes) -> Lanes:
        """Go through statements; the threads that come to their end."""
        for s in body:
            if not lanes.any():
                break
            lanes = self._statement(s, lanes)
        return lanes

    def _statement(self, s: Stmt, lanes: Lanes) -> Lanes:
        match s:
            case Declare():
                self._declare(s, lanes)
            case Assign(target, op, value):
                self._assign(target, op, value, lanes)
            case ExprStmt(expr):
                self.value(expr, lanes)
            case If():
                return self._if(s, lanes)
            case For() | While():
                return self._loop(s, lanes)
            case Scope(body):
                return self.block(body, lanes)
            case Return(value):
                result = None if value is None else self.value(value, lanes)
                if self.results:
                    before, done = self.results[-1]
                    twice = bool((done & lanes).any())
                    first = not bool(done.any())
                    both = None if twice else result if first else self.chosen(lanes, result, before)
                    self.results[-1] = (both, done | lanes)
                return np.zeros_like(lanes)
            case Jump(keyword):
                if not self.left:
                    raise UnsureError
                if keyword == "break":
                    self.left[-1].loop = self.left[-1].loop | lanes
                else:
                    self.left[-1].turn = self.left[-1].turn | lanes
                return np.zeros_like(lanes)
            case Comment():
                pass
            case _:
                raise UnsureError
        return lanes

    def _declare(self, s: Declare, lanes: Lanes) -> None:
        key = (self.frame, s.name)
        if s.type.count("*") + bool(s.dims) > 1:
            raise UnsureError  # pointers behind pointers
        if {"__shared__", "static", "extern"} & set(s.qualifiers):
            raise UnsureError
        if "&" in s.type and s.init is not None:
            place = self.place(s.init, lanes)
            if place is None and "const" not in s.type.split():
                raise UnsureError
            if place is not None:
                self.references[key] = place
                return
        value = None if s.init is None else self.value(s.init, lanes)
        for own in [k for k in self.values if k == key or k[0] == key]:
            del self.values[own]
        self.types[key] = self.spelt(s.type)
        if s.dims:
            extent = self.value(s.dims[0], lanes) if len(s.dims) == 1 else None
            self.arrays[key] = int(extent.values.flat[0]) if isinstance(extent, Word) else None
            if isinstance(s.init, Call) and len(s.dims) == 1:
                for at, part in enumerate(s.init.args):
                    self.set((key, at), self.as_type(self.value(part, lanes), self.types[key]), lanes)
            elif s.init is not None:
                self.arrays[key] = None
        elif s.init is not None:
            self.set(key, self.as_type(value, self.types[key]), lanes)

    def _assign(self, target: Expr, op: str, value: Expr, lanes: Lanes) -> None:
        new, place = self.value(value, lanes), self.place(target, lanes)
        if op != "=":
            old = self.read(place, lanes)
            if isinstance(old, Pointer):
                new = self.moved(old, new, op[0])
            elif isinstance(old, Word) and isinstance(new, Word):
                new = binary(op[:-1], old, new, lanes)
            else:
                new = None
        self.write(place, new, lanes)

    # ------------------------------------------------------------ conditions

    def _if(self, s: If, lanes: Lanes) -> Lanes:
        test = self.value(s.test, lanes)
        if isinstance(test, Word):
            whether = np.broadcast_to(truth(test), (self.lanes,))
            then = self.block(s.then, lanes & whether)
            return then | self.block(s.orelse, lanes & ~whether)
        if (jumps(s.then) or jumps(s.orelse)) and not (self.left and self.left[-1].any_turn):
            raise _JumpError
        self.may_end = self.may_end or contains_return((*s.then, *s.orelse))
        before = self._kept()
        then = self.block(s.then, lanes)
        after = self._kept()
        self._restore(before)
        orelse = self.block(s.orelse, lanes)
        if not orelse.any():
            self._restore(after)
        elif then.any():
            self._merge(after)
        return then | orelse

    def _kept(self) -> tuple[Any, ...]:
        return dict(self.values), dict(self.types), dict(self.arrays), dict(self.references)

    def _restore(self, kept: tuple[Any, ...]) -> None:
        self.values, self.types, self.arrays, self.references = map(dict, kept)

    def _merge(self, other: tuple[Any, ...]) -> None:
        """Keep what both ways agree on."""
        values, types, arrays, references = other
        if any(self.references.get(k, p) != p for k, p in references.items()):
            raise UnsureError
        for key in {*values, *self.values}:
            mine, theirs = self.values.get(key), values.get(key)
            if mine is not theirs and not same(mine, theirs):
                self.values[key] = None
        self.types = types | self.types
        self.references = references | self.references
        self.arrays = {k: None if None in (arrays.get(k, 0), self.arrays.get(k, 0)) else e
                       for k, e in (arrays | self.arrays).items()}  # fmt: skip

    # ------------------------------------------------------------ loops

    def _loop(self, s: For | While, lanes: Lanes) -> Lanes:
        if isinstance(s, For):
            start = self.value(s.start, lanes)
            if s.type is not None:
                self.values.pop((self.frame, s.var), None)
                self.types[self.frame, s.var] = self.spelt(s.type)
            self.write(self.place(Name(s.var), lanes), start, lanes)
        before, results = self._kept(), list(self.results)
        frame, depth, loops, may_end = self.frame, self.depth, self.left, self.may_end
        self.left.append(_Left(np.zeros_like(lanes), np.zeros_like(lanes)))
        try:
            return self._turns(s, lanes)
        except _JumpError:
            self._restore(before)
            self.results, self.frame, self.depth, self.left = results, frame, depth, loops
            self.may_end = may_end
            return self._any_turn(s, lanes)
        finally:
            self.left.pop()

    def _turns(self, s: For | While, lanes: Lanes) -> Lanes:
        """All turns of a loop whose conditions are known."""
        ended = np.zeros_like(lanes)
        test = Binary(s.relation, Name(s.var), s.bound) if isinstance(s, For) else s.test
        for _ in range(_TURNS):
            found = self.value(test, lanes)
            if not isinstance(found, Word):
                raise _JumpError
            goes_on = np.broadcast_to(truth(found), (self.lanes,))
            ended |= lanes & ~goes_on
            lanes = lanes & goes_on
            if not lanes.any():
                return ended
            self.left[-1].turn = np.zeros_like(lanes)
            lanes = self.block(s.body, lanes)
            ended, lanes = ended | self.left[-1].loop, lanes | self.left[-1].turn
            if isinstance(s, For) and lanes.any():
                self._assign(Name(s.var), "+=", s.step, lanes)
        raise _JumpError

    def _any_turn(self, s: For | While, lanes: Lanes) -> Lanes:
        """Any turn of a loop: what it sets is not known before one, nor behind it."""
        self.left[-1].any_turn = True
        self.may_end = self.may_end or contains_return(s.body)
        test = Binary(s.relation, Name(s.var), s.bound) if isinstance(s, For) else s.test
        self._forget_changed(s, lanes)
        self.value(test, lanes)
        self.block(s.body, lanes)
        self._forget_changed(s, lanes)
        return lanes

    def _forget_changed(self, s: For | While, lanes: Lanes) -> None:
        changed = set(names_written((s,)))
        for e in walk_exprs((s,)):
            if isinstance(e, Call):  # by reference
                changed |= {base_name(a) or "" for a in e.args} | {n for a in e.args for n in names_in(a)}
        for name in changed:
            key = (self.frame, name)
            if key in self.references:
                raise UnsureError
            if key in self.types and key not in self.buffers:
                pointer = self.values.get(key)
                if isinstance(pointer, Pointer) and pointer.array not in self.buffers:
                    self.forget(pointer.array)
                self.values[key] = Pointer(pointer.array, None) if isinstance(pointer, Pointer) else None
                if key in self.arrays:
                    del self.values[key]
                    self.forget(key)

    # ------------------------------------------------------------ functions

    def is_own(self, name: str) -> bool:
        """See the class."""
        return own_name(name) in self.functions

    def entered(self, e: Call, name: str, lanes: Lanes) -> Value:
        """A call of a function of the file, gone through with what it is given."""
        form, type_ = self.functions[own_name(name)]
        if len(form.params) != len(e.args):
            raise UnsureError
        if self.depth >= _DEPTH:
            raise UnsureError
        self.frames += 1
        frame = self.frames
        for param, argument in zip(form.params, e.args, strict=True):
            self._bind((frame, param.name), param.type, argument, lanes)
        outside, around, may_end, before = self.frame, self.left, self.may_end, dict(self.values)
        self.frame, self.left, self.depth, self.may_end = frame, [], self.depth + 1, False
        self.results.append((None, np.zeros_like(lanes)))
        self.block(form.body, lanes)
        if self.may_end:  # before it set what others see
            for changed in [k for k, v in self.values.items() if before.get(k, _UNSET) is not v]:
                self.values[changed] = None
        self.frame, self.left, self.depth, self.may_end = outside, around, self.depth - 1, may_end
        result, _ = self.results.pop()
        return self.as_type(result, self.spelt(type_))

    def _bind(self, key: tuple[int, str], type_: str, argument: Expr, lanes: Lanes) -> None:
        if type_.count("*") > 1:
            raise UnsureError
        self.types[key] = self.spelt(type_)
        place = self.place(argument, lanes) if "&" in type_ else None
        if place is not None:
            del self.types[key]
            self.references[key] = place
        elif "&" in type_ and "const" not in type_.split():
            raise UnsureError
        else:
            self.values[key] = self.as_type(self.value(argument, lanes), self.types[key])
