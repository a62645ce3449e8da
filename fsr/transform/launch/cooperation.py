"""Whether the threads of a block have to do with one another, so that it matters which of them share one."""

from __future__ import annotations

from fsr.analysis.functions import thread_aware
from fsr.source.form import Declare
from fsr.source.walk import (
    BUILTINS,
    contains_barrier,
    contains_opaque,
    contains_warp_wide,
    identifiers,
    walk_exprs,
    walk_stmts,
)  # fmt: skip
from fsr.transform.target import Target


def cooperates(target: Target) -> bool:
    """Whether threads wait for others, share memory of their block, or hand their ids on as a whole, or anything is
    written in a way that does not tell."""
    body = target.kernel.body
    if contains_opaque(body) or contains_barrier(body) or contains_warp_wide(body) or target.launch.shared_bytes != "0":
        return True
    if any(isinstance(s, Declare) and {"__shared__", "static", "extern"} & set(s.qualifiers) for s in walk_stmts(body)):
        return True
    if not all(target.functions.stays_in_thread(e, target.type_names) for e in walk_exprs(body)):
        return True
    # An id as a whole, not by its parts, or what tells of a thread's place elsewhere.
    return bool(identifiers(body) & (BUILTINS | {"warpSize"} | thread_aware(target.source) - {target.kernel.name}))
