"""Whether all blocks of a launch come to as many barriers, whatever their numbers and the data."""

from __future__ import annotations

from fsr.analysis.uniform import Uniformity
from fsr.source.form import For, If, Jump, Return, Scope, While
from fsr.source.mapping import with_blocks
from fsr.source.walk import BARRIER, Block, contains_barrier, walk_stmts
from fsr.transform.launch.cooperation import cooperate_in
from fsr.transform.target import Target

_IDS = frozenset({"threadIdx", "blockIdx"})


def met_alike(target: Target, body: Block) -> bool:
    """Whether threads of ``body`` meet at plain barriers alone, and what decides how often is the same for all blocks;
    those that leave before count no more. ``body``: the kernel's without what it shares."""
    if cooperate_in(target, _without_barriers(body)):
        return False
    return _alike(body, Uniformity(target.kernel, functions=target.functions, ids=_IDS))


def _alike(body: Block, same: Uniformity) -> bool:
    for s in body:
        if not contains_barrier((s,)) or s == BARRIER:
            continue
        match s:
            case If(test, then, orelse):
                alike = same(test) and _alike(then, same) and _alike(orelse, same)
            case For(start=start, bound=bound, step=step, body=inner):
                alike = all(map(same, (start, bound, step))) and _stays(inner) and _alike(inner, same)
            case While(test, inner):
                alike = same(test) and _stays(inner) and _alike(inner, same)
            case Scope(inner):
                alike = _alike(inner, same)
            case _:
                alike = False
        if not alike:
            return False
    return True


def _stays(body: Block) -> bool:
    """Whether all turns of a loop are gone through whole."""
    return not any(isinstance(s, Jump | Return) for s in walk_stmts(body))


def _without_barriers(body: Block) -> Block:
    return tuple(with_blocks(s, _without_barriers) for s in body if s != BARRIER)
