"""Kernels that do one thing for every point below bounds, however their launch deals points out to threads."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fsr.analysis.functions import thread_aware
from fsr.analysis.macros import expanded
from fsr.source.form import Binary, Comment, Declare, Expr, For, If, Name, Return
from fsr.source.mapping import map_jumps
from fsr.source.walk import BUILTINS, Block, breaks, contains_return, names_mentioned
from fsr.transform.fuse.coordinates import Indices, launched
from fsr.transform.launch.pointwise import Pointwise, pointwise
from fsr.transform.target import Target


@dataclass(frozen=True)
class Points:
    """``ids``: by axis, what a point's coordinate is called, and its type; ``bounds``: of each, as written and as a
    size expression; ``body``: what is done for a point, its guard included, without the ids' declarations; ``loop``:
    the variable of the loop over the grid that went through them, '' where a thread had one."""

    ids: dict[str, tuple[str, str]]
    bounds: dict[str, tuple[Expr, str]]
    body: Block
    loop: str = ""


def points_of(target: Target) -> Points | None:
    """The kernel as one of points; None where that cannot be shown."""
    found = pointwise(target) or pointwise(replace(target, kernel=expanded(target.kernel, target.source)))
    return _strided(target) if found is None else _single(target, found)


def _single(target: Target, found: Pointwise) -> Points:
    names = {one.name for one in found.ids.values()}
    body = tuple(s for s in target.kernel.body if not (isinstance(s, Declare) and s.name in names))
    ids = {axis: (one.name, _spelt(found.type_of(axis))) for axis, one in found.ids.items()}
    return Points(ids, found.bounds, body)


def _spelt(type_: str) -> str:
    """The type of an id: what is made of ids alone is unsigned."""
    return "unsigned int" if type_ == "auto" else type_


def _strided(target: Target) -> Points | None:
    """A kernel that is a loop over the grid along x, ``for (i = id; i < n; i += threads)``."""
    kernel, launch = target.kernel, target.launch
    lead = [s for s in kernel.body if isinstance(s, Declare)]
    rest = [s for s in kernel.body if not isinstance(s, Declare | Comment)]
    loop, others = (rest[0] if rest else None), rest[1:]
    if target.block is None or {*launch.grid[1:], *launch.block[1:]} != {"1"}:
        return None
    if (
        not isinstance(loop, For)
        or any(not isinstance(s, Return) for s in others)
        or kernel.body.index(loop) < len(lead)
    ):
        return None
    own, indices = loop.body, Indices(target, launched(launch, target.block))
    whole = indices.poly(loop.start) == indices.id_along("x") and indices.poly(loop.step) == indices.extent("x")
    bound = target.known.expand(loop.bound)
    text = target.size_text(bound)
    if not whole or loop.type is None or loop.relation != "<" or text is None or loop.var in target.known.changed:
        return None
    used = names_mentioned((*own, If(bound, ())))
    kept = tuple(s for s in lead if s.name in used)
    told = map_jumps(own, lambda _: [Return()])
    of_threads = BUILTINS | (thread_aware(target.source) - {kernel.name})
    if breaks(own) or contains_return(own) or names_mentioned((*kept, *own)) & of_threads:
        return None
    if any(s.name not in target.known.values for s in kept):
        return None
    kind = _spelt(" ".join(w for w in loop.type.split() if w != "const"))
    body: Block = (*kept, If(Binary("<", Name(loop.var), bound), told))
    return Points({"x": (loop.var, kind)}, {"x": (bound, text)}, body, loop.var)
