"""Whether the threads of a block have to do with one another, so that it matters which of them share one."""

from __future__ import annotations

import re
from collections.abc import Callable

from fsr.analysis.functions import names_defined, own_name, plain_name, record_of, thread_aware
from fsr.source.form import Call, Declare, Expr, Name
from fsr.source.walk import (
    BUILTINS,
    Block,
    contains_barrier,
    contains_opaque,
    contains_warp_wide,
    identifiers,
    variables,
    walk_exprs,
    walk_stmts,
)  # fmt: skip
from fsr.transform.target import Target

_FOREIGN = re.compile(r'#[ \t]*include[ \t]*(?:"|<[^>\n]*/)')  # no header of the toolkit's runtime, nor of C


def cooperates(target: Target) -> bool:
    """Whether threads wait for others, share memory of their block, or hand their ids on as a whole, or anything is
    written in a way that does not tell."""
    return target.launch.shared_bytes != "0" or cooperate_in(target, target.kernel.body)


def cooperate_in(target: Target, body: Block) -> bool:
    """The same of some of the kernel's statements, which mention no memory of the block that others declare."""
    if contains_opaque(body) or contains_barrier(body) or contains_warp_wide(body) or remembers(body):
        return True
    aware = thread_aware(target.source) - {target.kernel.name}
    return not known_calls(target, body, aware) or hands_on_ids(target, body)


def remembers(body: Block) -> bool:
    """Whether statements declare what a block shares, or what is the same for all."""
    return any(
        isinstance(s, Declare) and {"__shared__", "static", "extern"} & set(s.qualifiers) for s in walk_stmts(body)
    )


def known_calls(
    target: Target,
    body: Block,
    aware: frozenset[str],
    *,
    foreign: re.Pattern[str] = _FOREIGN,
    others: Callable[[Expr], bool] = lambda _: False,
) -> bool:
    """Whether all calls of some statements are of functions of the file that are not among ``aware``, or do what a
    thread does alone, or are among ``others``. ``foreign``: finds headers of which nothing is known."""
    # Whatever else they do, unless they call what stands elsewhere.
    own = frozenset[str]() if foreign.search(target.source) else names_defined(target.source) - aware
    records = own & names_defined(target.source, "record")

    def known(e: Expr) -> bool:
        name = plain_name(e.callee.text) if isinstance(e, Call) and isinstance(e.callee, Name) else ""
        called = own_name(name) in own or record_of(name) in records
        return called or target.functions.stays_in_thread(e, target.type_names) or others(e)

    return all(map(known, walk_exprs(body)))


def hands_on_ids(target: Target, body: Block) -> bool:
    """Whether statements mention an id as a whole, not by its parts, or what tells of a thread's place elsewhere."""
    aware = thread_aware(target.source) - {target.kernel.name}
    return place_aware(target, body, aware | BUILTINS | {"warpSize"})


def place_aware(target: Target, body: Block, words: frozenset[str]) -> bool:
    """Whether statements mention one of the names, or a built-in among them as a whole; a variable may have its
    name."""
    own = {*variables(body), *(p.name for p in target.kernel.params)}
    return bool(identifiers(body) & (words - (own - BUILTINS)))
