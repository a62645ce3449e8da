"""Who knows of ids, beside the heads of loops that go by strides of them."""

from __future__ import annotations

from dataclasses import replace

from fsr.source.form import Declare, For, Literal
from fsr.source.mapping import replace_stmt
from fsr.source.walk import identifiers, walk_stmts
from fsr.transform.target import Target


def known_elsewhere(target: Target, loops: tuple[For, ...], ids: frozenset[str]) -> bool:
    """Whether anything but the heads of the loops mentions one of the ids (``blockIdx.x``; ``threadIdx`` for all of its
    parts), itself or by variables that are made of it and used nowhere else."""
    body = target.kernel.body
    for loop in loops:
        body = replace_stmt(body, loop, (replace(loop, start=Literal("0"), step=Literal("1")),))
    values = target.known.values
    own = {name for name, value in values.items() if _named(identifiers(target.known.expand(value)), ids)}
    kept = tuple(s for s in walk_stmts(body) if isinstance(s, Declare) and s.name in own)
    for s in kept:
        body = replace_stmt(body, s, ())
    return bool(identifiers(body) & own) or _named(identifiers(body), ids)


def _named(found: frozenset[str], ids: frozenset[str]) -> bool:
    return bool((found | {name.split(".")[0] for name in found if "." in name}) & ids)
