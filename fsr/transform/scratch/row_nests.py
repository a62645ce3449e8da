"""Loops that may be over the rows of scratch memory, where they stand, and the pointers that lead there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fsr.analysis.accesses import Access, accesses_in, pointed
from fsr.analysis.polynomial import Poly
from fsr.source.form import Assign, Binary, Declare, Expr, For, If, Index, Name, Scope, Unary, While
from fsr.source.walk import Block, blocks_of, integer, names_mentioned, nodes, variables, walk_stmts
from fsr.transform.scratch.buffers import Unfit
from fsr.transform.target import Target


@dataclass(frozen=True, slots=True)
class Nest:
    """The statements among which the loop over the rows stands. ``outer``: the loop around them, in each turn of which
    a thread has memory of its own; None: no loop is around."""

    before: Block
    loop: For
    after: Block
    outer: For | None = None

    @property
    def loops_variables(self) -> frozenset[str]:
        """What is declared in a loop, so that it may be another thing in each turn."""
        whole = (*self.before, self.loop, *self.after)
        inner = [s for s in walk_stmts(whole) if isinstance(s, For | While)]
        return frozenset(variables(inner))


def nests(body: Block, params: frozenset[str]) -> Iterator[Nest]:
    """The loops that may be over the rows of what is behind parameters: deepest where all uses stand together."""
    names = set(params)
    for s in walk_stmts(body):
        if isinstance(s, Declare) and s.init is not None and _pointed(s.init, frozenset(names)) is not None:
            names.add(s.name)
    yield from _nests(body, frozenset(names), None)


def _pointed(e: Expr, names: frozenset[str]) -> tuple[str, Expr | None] | None:
    """What a pointer is set to, places before another (``row - n``) among them."""
    match e:
        case Binary("-", base, offset):
            place = _pointed(base, names)
            return place and (place[0], Unary("-", offset) if place[1] is None else Binary("-", place[1], offset))
    return pointed(e, names)


def _nests(body: Block, names: frozenset[str], outer: For | None) -> Iterator[Nest]:
    using = [at for at, s in enumerate(body) if _uses((s,), names)]
    if len(using) == 1 and isinstance(body[using[0]], If | Scope):
        inner = [block for block in blocks_of(body[using[0]]) if _uses(block, names)]
        if len(inner) == 1:
            yield from _nests(inner[0], names, outer)
        return
    for at in reversed(using):
        s = body[at]
        if isinstance(s, For) and s.type is not None and ascends(s):
            yield Nest(body[:at], s, body[at + 1 :], outer)
    only = body[using[0]] if len(using) == 1 else None
    if isinstance(only, For) and only.type is not None and outer is None:
        yield from _nests(only.body, names, only)


def _uses(body: Block, names: frozenset[str]) -> bool:
    """Whether statements do more with the names than to declare pointers that begin at them."""
    own = [s for s in walk_stmts(body) if isinstance(s, Declare) and "*" in s.type]
    return bool(names & names_mentioned(s for s in body if not any(s is d for d in own)))


def ascends(loop: For) -> bool:
    """Whether a loop counts up by one."""
    return loop.relation in ("<", "<=") and integer(loop.step) == 1


class Pointers:
    """A parameter, and variables that begin at a place behind it and stay there."""

    def __init__(self, target: Target, param: str) -> None:
        self.offsets: dict[str, Expr | None] = {param: None}
        self._target, body = target, target.kernel.body
        declared = 0
        for s in walk_stmts(body):
            place = _pointed(s.init, self.names) if isinstance(s, Declare) and s.init is not None else None
            if isinstance(s, Declare) and place is not None and "*" in s.type and not s.dims:
                base, offset = self.offsets[place[0]], place[1]
                both = Binary("+", base, offset) if base is not None and offset is not None else base or offset
                self.offsets[s.name], declared = both, declared + 1
        own = [a for a in accesses_in(body, self.names) if a.array in self.names]
        uses = [a for a in own if a.index is not None and isinstance(a.expr, Index | Unary)]
        mentions = sum(isinstance(e, Name) and e.text in self.names for e in nodes(body))
        if any(a.kind not in ("read", "write", "update") for a in uses) or mentions != len(uses) + declared:
            raise Unfit
        if self.names & target.known.changed:
            raise Unfit

    @property
    def names(self) -> frozenset[str]:
        """Of all of them."""
        return frozenset(self.offsets)

    def place(self, a: Access) -> Poly:
        """The element of the parameter."""
        base, poly = self.offsets[a.pointer], self._target.poly
        return poly(a.offset) if base is None else poly(base) + poly(a.offset)


def always_written(body: Block, pointers: Pointers) -> set[Poly]:
    """The places that each run of statements writes."""
    found = set[Poly]()
    for s in body:
        match s:
            case Assign():
                found |= {pointers.place(a) for a in accesses_in((s,), pointers.names) if a.array and a.kind == "write"}
            case If(then=then, orelse=orelse):
                found |= always_written(then, pointers) & always_written(orelse, pointers)
            case For(body=inner) | Scope(body=inner):
                found |= always_written(inner, pointers)
    return found
