"""Loops that go on until they meet their end, ``e != end``, as loops up to it: the same where they begin no later."""

from __future__ import annotations

from dataclasses import replace

from fsr.records import Role
from fsr.source.form import Expr, For, Index, Name, Stmt
from fsr.source.mapping import map_stmts
from fsr.source.walk import Block, integer, names_changed, names_in
from fsr.transform.sizes import always
from fsr.transform.target import Target


def up_to_ends(body: Block, target: Target) -> Block:
    """The statements with ``<`` for ``!=`` in loops that step by one from what is shown to be no more than their end:
    sizes, or neighbours in an input that is sorted by the contract."""

    def told(s: Stmt) -> Stmt:
        match s:
            case For(relation="!=", start=start, bound=bound, step=step) if integer(step) == 1:
                alone = s.var not in names_changed(s.body)
                return replace(s, relation="<") if alone and _ordered(start, bound, target) else s
        return s

    return map_stmts(body, told)


def _ordered(low: Expr, high: Expr, target: Target) -> bool:
    sizes = target.size_text(low), target.size_text(high)
    if None not in sizes:
        return always(target.contract, f"{sizes[0]} <= {sizes[1]}")
    match target.declared_as(low), target.declared_as(high):
        case Index(base=Name(text=one), index=first), Index(base=Name(text=other), index=second) if one == other:
            found = target.argument(one)
            apart = (target.poly(second) - target.poly(first)).value
            steady = not ({one} | names_in(first) | names_in(second)) & target.known.changed and one in target.unaliased
            known = found is not None and found.role is Role.IN and found.constraints.sorted and steady
            return known and apart is not None and apart >= 0
    return False
