"""Declarations by one name: those that hide others as ones of a name of their own, and those that are alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fsr.source.form import Declare, For, Name, Stmt
from fsr.source.mapping import substitute, with_blocks
from fsr.source.walk import Block, contains_opaque, fresh, identifiers, variables, walk_stmts


def unshadowed(body: Block, outside: Iterable[str]) -> Block:
    """The statements with every declaration renamed that hides a name which is visible already, ``outside`` among them;
    as they are where something is not read."""
    if contains_opaque(body):
        return body
    visible = set(outside)
    return _block(body, visible, visible | identifiers(body))


def declared_once(stmts: Block) -> dict[str, Declare]:
    """The declarations of variables that are the only ones of their name, loops' own among the others."""
    times = Counter(variables(stmts))
    return {s.name: s for s in walk_stmts(stmts) if isinstance(s, Declare) and times[s.name] == 1}


def _block(body: Block, visible: set[str], taken: set[str]) -> Block:
    found, left = list[Stmt](), list(body)
    while left:
        s = left[0]
        if isinstance(s, Declare):
            if s.name in visible:
                left = list(substitute(tuple(left), {s.name: Name(_new(s.name, taken))}))
                s = left[0]
                assert isinstance(s, Declare)
            visible = visible | {s.name}
        elif isinstance(s, For) and s.type is not None:
            if s.var in visible:
                s = substitute(s, {s.var: Name(_new(s.var, taken))})
            inner = visible | {s.var}
            s = with_blocks(s, lambda block, inner=inner: _block(block, inner, taken))  # type: ignore[misc]
            found, left = [*found, s], left[1:]
            continue
        now = visible
        found.append(with_blocks(s, lambda block, now=now: _block(block, now, taken)))  # type: ignore[misc]
        left = left[1:]
    return tuple(found)


def _new(name: str, taken: set[str]) -> str:
    found = fresh(name, taken)
    taken.add(found)
    return found
