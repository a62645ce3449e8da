"""Loops whose turns are known when a file is compiled, with what their functions are given where they are called."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping

from fsr.analysis.instances import Instance, value_of
from fsr.source.form import Declare, For, KernelForm
from fsr.source.walk import Block, base_name, blocks_of, names_assigned, walk_exprs, walk_stmts

MOST_TURNS = 128
MOST_STATEMENTS = 2000  # that unrolling makes of a loop and those within, so that compiling stays short
_RELATIONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "!=": operator.ne}


def constant_loops(instance: Instance) -> Iterator[For]:
    """The loops of an instance that may be unrolled whole, outermost first. Of a kernel's own only those that go
    through its arrays: the others are for another action."""
    arrays = None if "__device__" in instance.form.prefix else _arrays(instance.form)
    yield from _within(instance.form.body, dict(instance.known), arrays)


def _arrays(form: KernelForm) -> frozenset[str]:
    """What a kernel declares for each thread."""
    return frozenset(s.name for s in walk_stmts(form.body) if isinstance(s, Declare) and s.dims and not s.qualifiers)


def _within(body: Block, known: Mapping[str, int], arrays: frozenset[str] | None) -> Iterator[For]:
    for s in body:
        inner = known
        if isinstance(s, For):
            turns = turns_of(s, known) or []
            through = arrays is None or any(base_name(e) in arrays for e in walk_exprs(s.body))
            unrolled = through and bool(turns) and statements_of((s,), known) <= MOST_STATEMENTS
            if unrolled and len(turns) > 1:
                yield s
            # Where a loop stays one, what depends on its variable has no constant length; else the first turn stands
            # for all.
            inner = {k: v for k, v in known.items() if k != s.var} | ({s.var: turns[0]} if unrolled else {})
        for block in blocks_of(s):
            yield from _within(block, inner, arrays)


def turns_of(loop: For, known: Mapping[str, int]) -> list[int] | None:
    """The values of a loop's variable; None where they are not known, or too many."""
    start, bound, step = (value_of(e, known) for e in (loop.start, loop.bound, loop.step))
    if start is None or bound is None or not step or loop.var in names_assigned(loop.body):
        return None
    holds, found, at = _RELATIONS[loop.relation], list[int](), start
    while holds(at, bound):
        found.append(at)
        at += step
        if len(found) > MOST_TURNS:
            return None
    return found


def statements_of(body: Block, known: Mapping[str, int]) -> int:
    """How many statements unrolling makes of these, loops of other lengths as they are; MOST_STATEMENTS + 1 for all
    that are more."""
    made = 0
    for s in body:
        made += 1
        ways: list[Mapping[str, int]] = [known]
        if isinstance(s, For):
            turns, rest = turns_of(s, known), {k: v for k, v in known.items() if k != s.var}
            ways = [rest] if turns is None else [{**rest, s.var: turn} for turn in turns]
        for way in ways:
            made += sum(statements_of(block, way) for block in blocks_of(s))
            if made > MOST_STATEMENTS:
                return MOST_STATEMENTS + 1
    return made
