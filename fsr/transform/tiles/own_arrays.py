"""Arrays that are declared before a loop, and are each turn's own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fsr.source.form import Assign, Comment, Declare, For, Index, Literal, Name, Scope, Stmt, number
from fsr.source.walk import Block, names_in, names_mentioned


def with_own_arrays(before: Block, loop: For, after: Block) -> tuple[Block, For]:
    """Arrays declared before the loop of which each turn sets all elements first are its own."""
    moved: list[Stmt] = []
    for s in before:
        others = names_mentioned((*(x for x in before if x is not s), *after))
        if not isinstance(s, Declare) or s.init is not None or s.qualifiers or s.name in others:
            continue
        if _sets_first(loop.body, s):
            moved.append(s)
    left = tuple(s for s in before if not any(s is one for one in moved))
    return left, replace(loop, body=(*moved, *loop.body)) if moved else loop


def _sets_first(body: Iterable[Stmt], array: Declare) -> bool:
    """Whether statements set all elements of an array of one extent before they do anything else with it."""
    if len(array.dims) != 1 or not isinstance(array.dims[0], Literal):
        return False
    missing = {number(n) for n in range(int(array.dims[0].text))} if array.dims[0].text.isdigit() else set()
    if not missing:
        return False
    todo = list(body)
    while todo:
        s = todo.pop(0)
        if isinstance(s, Comment) or array.name not in names_mentioned((s,)):
            continue
        match s:
            case Scope(inside):
                todo = [*inside, *todo]
            case Assign(Index(Name(name), at), "=", value) if name == array.name and name not in names_in(value):
                missing.discard(at)
            case For(start=Literal("0"), relation="<", bound=bound, step=Literal("1"), body=(inner,)) if (
                bound == array.dims[0]
                and isinstance(inner, Assign)
                and inner.target == Index(Name(array.name), Name(s.var))
                and inner.op == "="
                and array.name not in names_in(inner.value)
            ):
                missing.clear()
            case _:
                return False
        if not missing:
            return True
    return False
