"""The part of a kernel that makes some of its outputs.

Weiser, "Program Slicing", ICSE 1981: backwards from what is wanted, a statement stays if it gives a value to something
that is live behind it, and makes live what it reads. Structured control flow alone; a value that is set anew as a whole
(a variable, an array that a loop fills, shared memory of which each thread sets its element) is not live before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from fsr.analysis.calls import is_atomic, is_load
from fsr.analysis.functions import Functions
from fsr.source.form import (
    Assign,
    Call,
    Comment,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    Jump,
    Literal,
    Name,
    Return,
    Scope,
    Stmt,
    Unary,
    While,
)  # fmt: skip
from fsr.source.walk import (
    BARRIER,
    Block,
    base_name,
    contains_return,
    exprs_of,
    jumps,
    names_in,
    walk_expr,
    walk_stmts,
    written_by,
)  # fmt: skip

_WAITS = re.compile(r"__sync(threads|warp)$")
_OF_LANES = re.compile(r"__(shfl|ballot|any|all|match|reduce)\w*$|__activemask$")
_MEMORY = "@"  # before the name of a buffer, in what is live


class NotSliced(Exception):  # noqa: N818  # not an error: there is no part to be told
    """Raised where statements do not tell what they read and change."""


@dataclass(frozen=True)
class Named:
    """What the names of a kernel are. ``roots``: of pointers, the buffer each points into; ``extents``: of arrays of
    one dimension, how many elements; ``shared``: those of them that a block shares; ``functions``: the file's;
    ``types``: names that a call converts to; ``number``: what an expression always is; ``threads``: how many
    threads of a block an expression numbers, None where it numbers none."""

    roots: Mapping[str, str]
    extents: Mapping[str, int]
    shared: frozenset[str]
    functions: Functions
    types: frozenset[str]
    number: Callable[[Expr], int | None]
    threads: Callable[[Expr], int | None]


@dataclass(frozen=True)
class Slice:
    """``body``: what stays, shared memory declared elsewhere. ``buffers``: those that it writes; ``read``: those that
    it reads, or may."""

    body: Block
    buffers: frozenset[str]
    read: frozenset[str]


def sliced(body: Block, wanted: frozenset[str], named: Named) -> Slice:
    """The statements that the buffers ``wanted`` are made by; of ``body``, in which no name hides another one. Raises
    NotSliced."""
    slicer = _Slicer(named)
    kept, _, _ = slicer.block(body, frozenset(_MEMORY + buffer for buffer in wanted), {})
    return Slice(kept, frozenset(slicer.written), _buffers_read(kept, named))


def written_buffers(body: Block, named: Named) -> frozenset[str]:
    """All buffers that statements write. Raises NotSliced."""
    found = frozenset[str]()
    for s in walk_stmts(body):
        changed, _ = _Effects(named, {}).of(s)
        found |= {name.removeprefix(_MEMORY) for name in changed if name.startswith(_MEMORY)}
    return found


def _buffers_read(body: Block, named: Named) -> frozenset[str]:
    effects, found = _Effects(named, {}), frozenset[str]()
    for s in walk_stmts(body):
        plain = not isinstance(s, If | For | While)
        found |= effects.of(s)[1] if plain else frozenset[str]().union(*map(effects.reads, exprs_of(s)))
    return frozenset(name.removeprefix(_MEMORY) for name in found if name.startswith(_MEMORY))


Live = frozenset[str]
Aliases = Mapping[str, str]


@dataclass
class _Slicer:
    named: Named
    written: set[str] = field(default_factory=set)
    mentioned: set[str] = field(default_factory=set)

    def block(self, body: Block, live: Live, aliases: Aliases) -> tuple[Block, Live, bool]:
        """What stays of statements, what is live before them, and whether any of it does more than wait or leave."""
        own = {s.name: base for s in body if isinstance(s, Declare) and "&" in s.type
               and s.init is not None and (base := base_name(s.init))}  # fmt: skip
        aliases = {**aliases, **{name: aliases.get(base, base) for name, base in own.items()}}
        kept, does, outside = list[Stmt](), False, self.mentioned
        self.mentioned = set()
        for s in reversed(body):
            stays, live, more = self._statement(s, live, aliases)
            if stays is not None and not (kept and stays == kept[-1] == BARRIER):
                kept.append(stays)
                for e in exprs_of(stays):
                    self.mentioned |= names_in(e)
            does |= more
        self.mentioned = outside | (self.mentioned - {s.name for s in body if isinstance(s, Declare)})
        return tuple(reversed(kept)), live, does

    def _statement(self, s: Stmt, live: Live, aliases: Aliases) -> tuple[Stmt | None, Live, bool]:
        effects = _Effects(self.named, aliases)
        match s:
            case Comment():
                return None, live, False
            case If(test):
                return self._branch(s, live, aliases, effects.reads(test))
            case For() | While():
                return self._loop(s, live, aliases)
            case Scope(body):
                inner, before, does = self.block(body, live, aliases)
                return (replace(s, body=inner), before, does) if inner else (None, live, False)
            case Return(None) | Jump():
                return s, live, False
            case ExprStmt(Call(Name(text))) if _WAITS.match(text):
                return s, live, False
            case Declare() if "__shared__" in s.qualifiers:
                return None, live, False
        changed, read = effects.of(s)
        if not (changed & live or (isinstance(s, Declare) and s.name in self.mentioned)):
            return None, live, False
        self.written |= {name.removeprefix(_MEMORY) for name in changed if name.startswith(_MEMORY)}
        return s, (live - self._set_anew(s, aliases)) | read, True

    def _branch(self, s: If, live: Live, aliases: Aliases, read: Live) -> tuple[Stmt | None, Live, bool]:
        then, before, one = self.block(s.then, live, aliases)
        orelse, beside, other = self.block(s.orelse, live, aliases)
        if not then and not orelse:
            return None, live, False
        return replace(s, then=then, orelse=orelse), before | beside | read | live, one or other

    def _loop(self, s: For | While, live: Live, aliases: Aliases) -> tuple[Stmt | None, Live, bool]:
        effects = _Effects(self.named, aliases)
        heads = (s.bound, s.step, Name(s.var)) if isinstance(s, For) else (s.test,)
        read = frozenset[str]().union(*map(effects.reads, heads))
        around = live
        while True:
            body, before, does = self.block(s.body, around, aliases)
            counted = isinstance(s, For) and s.type is None and s.var in live  # how far it went is asked behind it
            if not (does or counted or contains_return(s.body)):
                return _waited(s.body), live, False
            more = live | read | before
            if more <= around:
                break
            around |= more
        started = effects.reads(s.start) if isinstance(s, For) else frozenset[str]()
        before = (around - {s.var} if isinstance(s, For) else around) | started
        return replace(s, body=body), before - self._filled(s), True

    def _filled(self, s: For | While) -> Live:
        """Arrays of which a loop sets each element."""
        if not isinstance(s, For) or s.start != Literal("0") or s.step != Literal("1") or s.relation != "<":
            return frozenset()
        found, turns = set[str](), self.named.number(s.bound)
        for one in () if jumps(s.body) else s.body:
            match one:
                case Assign(Index(Name(array), Name(at)), "=", value) if at == s.var and array not in names_in(value):
                    found |= {array} if turns is not None and self.named.extents.get(array) == turns else set()
        return frozenset(found)

    def _set_anew(self, s: Stmt, aliases: Aliases) -> Live:
        match s:
            case Declare(name=name):
                return frozenset([name])
            case Assign(Name(text), "=", _) if text not in aliases:
                return frozenset([text])
            case Assign(Index(Name(array), at), "=", _) if array in self.named.shared:
                threads = self.named.threads(at)
                return frozenset([array] if threads is not None and self.named.extents.get(array) == threads else ())
        return frozenset()


def _waited(body: Block) -> Stmt | None:
    """The barrier that stands for those of a loop that goes: what lies before it and behind it stays apart. Raises
    NotSliced where warps wait by themselves, and do not all come there."""
    waits = {e.callee.text for s in walk_stmts(body) for e in exprs_of(s)
             if isinstance(e, Call) and isinstance(e.callee, Name) and _WAITS.match(e.callee.text)}  # fmt: skip
    if "__syncwarp" in waits:
        raise NotSliced
    return BARRIER if waits else None


@dataclass(frozen=True)
class _Effects:
    """What a statement by itself changes and reads; a buffer's memory has a mark before its name."""

    named: Named
    aliases: Aliases

    def of(self, s: Stmt) -> tuple[Live, Live]:
        """Names that may change, and names whose values are read. Raises NotSliced."""
        changed, read = set[str](), frozenset[str]()
        match s:
            case Assign(target, op, value):
                changed |= self._target(target)
                read |= self.reads(value) | self._reached_by(target)
                read |= frozenset(changed) if op != "=" else frozenset()
            case Declare(name=name, init=init, dims=dims):
                changed.add(name)
                for e in (*dims, *(() if init is None else (init,))):
                    read |= self.reads(e)
            case ExprStmt(expr):
                read |= self.reads(expr)
            case If() | For() | While() | Scope() | Comment() | Return(None) | Jump():
                return frozenset(), frozenset()
            case _:
                raise NotSliced
        for e in exprs_of(s):
            changed |= self._by_calls(e)
        return frozenset(changed), read

    def reads(self, e: Expr) -> Live:
        """Names whose values an expression reads, or may."""
        found = {self.aliases.get(name, name) for name in names_in(e)} | (names_in(e) & self.aliases.keys())
        return frozenset(found | {_MEMORY + self.named.roots[n] for n in found if n in self.named.roots})

    def _reached_by(self, target: Expr) -> Live:
        """What tells the place of an assignment."""
        if isinstance(target, Name):
            return frozenset()
        base = base_name(target)
        parts = frozenset(n for e in walk_expr(target) if isinstance(e, Index) for n in self.reads(e.index))
        pointer = frozenset([base] if base is not None and base in self.named.roots else [])
        return parts | pointer | self._unindexed(target)

    def _unindexed(self, target: Expr) -> Live:
        return self.reads(target.operand) if isinstance(target, Unary) else frozenset()

    def _target(self, target: Expr) -> set[str]:
        written = base_name(target)
        if written is None:
            raise NotSliced
        name = self.aliases.get(written, written)
        itself = isinstance(target, Name) and name == written
        return {name} if itself or name not in self.named.roots else {_MEMORY + self.named.roots[name]}

    def _by_calls(self, e: Expr) -> set[str]:
        found = set[str]()
        for x in walk_expr(e):
            if not isinstance(x, Call):
                continue
            name = x.callee.text if isinstance(x.callee, Name) else ""
            if is_atomic(x):
                found |= self._target(x.args[0].operand if isinstance(x.args[0], Unary) else x.args[0])
                base = base_name(x.args[0])
                if base is not None and base in self.named.roots:
                    found.add(_MEMORY + self.named.roots[base])
                continue
            known = self.named.functions
            plain = known.only_computes(name) or known.builtin(name) or name in self.named.types
            if not (plain or is_load(x) or _OF_LANES.match(name) or _WAITS.match(name)):
                raise NotSliced
            for one in written_by(x):
                found.add(_MEMORY + self.named.roots[one] if one in self.named.roots else self.aliases.get(one, one))
        return found
