"""Sums that each turn of a loop goes on with, and looks at: ``acc += h[i]; cdf[i] = acc;`` as lanes can have them.

Lanes take as many turns at once as they are: what each adds is summed up to it by shuffles (Hillis and Steele, "Data
parallel algorithms", CACM 29, 1986), and each does its turn with the sum before and behind its own. Where places are
counted (``if (keep) out[n++] = x``) each finds the place of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fsr.analysis.definitions import reads_memory
from fsr.source.form import Assign, Binary, Comment, Declare, Expr, ExprStmt, For, If, Literal, Name, Return, Stmt
from fsr.source.mapping import substitute
from fsr.source.walk import Block, fresh, jumps, names_assigned, names_in, names_mentioned, variables, walk_stmts


@dataclass(frozen=True)
class Run:
    """``name``: the variable; ``value``: what a turn adds to it, where ``tests`` hold, after ``needs``, which declare
    what these are made of; ``before``, ``after``: names for the sum without it and with it; ``body``: what else a turn
    does, with these names."""

    name: str
    value: Expr
    tests: tuple[Expr, ...]
    needs: Block
    before: str
    after: str
    body: Block

    def loop(self, loop: For, type_: str) -> For:
        """The loop as one whose turns hand on nothing: each has its sums from somewhere."""
        told = (Declare(type_, self.before, Literal("0")), Declare(type_, self.after, self.value))
        own = {s.name for s in self.needs if isinstance(s, Declare)}
        apart = {n: Name(f"{n}_added") for n in own}
        needs = (replace(s, name=f"{s.name}_added") for s in self.needs if isinstance(s, Declare))
        return replace(loop, body=(*(substitute(s, apart) for s in needs), *substitute(told, apart), *self.body))


def run_of(loop: For, taken: Iterable[str]) -> Run | None:
    """The sum that a loop's turns go on with; None where there is none, or several statements add to it."""
    if jumps(loop.body) or any(isinstance(s, Return) for s in walk_stmts(loop.body)):
        return None
    for at, s in enumerate(loop.body):
        inside = s.then if isinstance(s, If) and not s.orelse and not s.constexpr else ()
        for place, inner in [(None, s), *enumerate(inside)]:
            added = _added(inner)
            if added is not None and _mentions(loop.body, added[0]) > 1:
                return _run(loop, at, place, added, set(taken) | set(variables(loop.body)))
    return None


def _added(s: Stmt) -> tuple[str, Expr] | None:
    match s:
        case Assign(Name(name), "+=", value) if name not in names_in(value):
            return name, value
        case Assign(Name(name), "=", Binary("+", Name(left), value)) if left == name and name not in names_in(value):
            return name, value
        case Assign(Name(name), "=", Binary("+", value, Name(right))) if right == name and name not in names_in(value):
            return name, value
    return None


def _mentions(body: Block, name: str) -> int:
    """How many of the statements, those in others' blocks among them, mention a name by themselves."""
    return sum(name in names_mentioned((s,)) for s in walk_stmts(body) if not isinstance(s, If | For))


def _run(loop: For, at: int, place: int | None, added: tuple[str, Expr], taken: set[str]) -> Run | None:
    (name, value), s = added, loop.body[at]
    before, after = (fresh(f"{name}_{what}", taken) for what in ("before", "after"))
    early, late = {name: Name(before)}, {name: Name(after)}
    inner: Block = ()
    if place is not None:
        assert isinstance(s, If)
        inner = (replace(s, then=(*substitute(s.then[:place], early), *substitute(s.then[place + 1 :], late))),)
    tests = (s.test,) if isinstance(s, If) and place is not None else ()
    ahead = (*loop.body[:at], *(s.then[:place] if isinstance(s, If) and place is not None else ()))
    rest = (*substitute(loop.body[:at], early), *inner, *substitute(loop.body[at + 1 :], late))
    needs = _needed(ahead, [value, *tests])
    asks_itself = name in frozenset[str]().union(*map(names_in, (value, *tests, loop.start, loop.bound, loop.step)))
    set_again = names_assigned(rest) & {name, before, after}
    if needs is None or asks_itself or set_again or name in (loop.var, *names_mentioned(needs)):
        return None
    return Run(name, value, tests, needs, before, after, rest)


def _needed(ahead: Block, values: list[Expr]) -> Block | None:
    """The declarations before an addition that what is added is made of; None where that may have changed since."""
    wanted = set[str]().union(*map(names_in, values))
    found = list[Stmt]()
    for s in reversed(ahead):
        if isinstance(s, Declare) and s.name in wanted:
            if s.init is None or s.dims or s.qualifiers or "&" in s.type:
                return None
            wanted |= names_in(s.init)
            found.insert(0, s)
    plain = tuple(s for s in walk_stmts(ahead) if not isinstance(s, Declare | Comment))
    reads = any(map(reads_memory, [*values, *(s.init for s in found if isinstance(s, Declare) and s.init)]))
    stores = any(isinstance(s, ExprStmt) or not isinstance(getattr(s, "target", Name("")), Name) for s in plain)
    return None if names_assigned(plain) & wanted or (reads and stores) else tuple(found)
