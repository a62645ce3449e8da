"""A kernel as what it does under the tests around all of it, without early exits, where threads do not cooperate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fsr.analysis.calls import is_atomic, is_load
from fsr.analysis.functions import hiding_macros
from fsr.analysis.macros import expanded
from fsr.analysis.types import INT, type_of
from fsr.source.form import Assign, Call, Comment, Declare, Expr, For, If, KernelForm, Name, Stmt, While
from fsr.source.mapping import substitute
from fsr.source.walk import Block, exprs_of, fresh, identifiers, names_assigned, walk_expr, walk_stmts
from fsr.transform.jam.statements import assignable
from fsr.transform.launch.cooperation import cooperates
from fsr.transform.target import Target

Chain = Sequence[tuple[Block, Expr]]
"""What stands before each of the tests around all that a kernel does, and the test, from the outside in."""


def plain_kernel(target: Target) -> KernelForm | None:
    """The kernel, with macros written out where these hide variables; None where threads cooperate."""
    for kernel in (target.kernel, expanded(target.kernel, target.source)):
        hidden = identifiers(kernel.body) & hiding_macros(target.source)
        if not (hidden or cooperates(replace(target, kernel=kernel)) or "volatile" in _types(kernel) or _waits(kernel)):
            return kernel
    return None


def _waits(kernel: KernelForm) -> bool:
    """Whether a thread may wait in a loop for what another does, who might then be in the same thread."""
    tests = (e for s in walk_stmts(kernel.body) if isinstance(s, For | While) for e in exprs_of(s))
    return any(is_atomic(x) for e in tests for x in walk_expr(e))


def _types(kernel: KernelForm) -> str:
    declared = [s for s in walk_stmts(kernel.body) if isinstance(s, Declare)]
    return " ".join([*(p.type for p in kernel.params), *(s.type for s in declared)])


def owned(kernel: KernelForm, taken: frozenset[str]) -> Block:
    """The body with variables of its own in place of arguments that it changes."""
    changed = [p for p in kernel.params if p.name in names_assigned(kernel.body)]
    own = {p.name: Name(fresh(f"own_{p.name}", taken)) for p in changed}
    start = (Declare(assignable(p.type), own[p.name].text, Name(p.name)) for p in changed)
    return (*start, *substitute(kernel.body, own))


def guards(target: Target, body: Block) -> tuple[Chain, Block]:
    """The tests around all that statements without early exits do, and what stands within them."""
    chain: list[tuple[Block, Expr]] = []
    known = set[str]()
    while True:
        while body and isinstance(body[-1], Comment):
            body = body[:-1]
        lead, last = [s for s in body[:-1] if not isinstance(s, Comment)], body[-1] if body else None
        known |= {s.name for s in lead if isinstance(s, Declare)}
        if not isinstance(last, If) or last.orelse or not is_quiet(target, last.test):
            return chain, body
        if not all(_prepares(s, known) and all(is_quiet(target, e) for e in exprs_of(s)) for s in lead):
            return chain, body
        chain.append((tuple(lead), last.test))
        body = last.then


def _prepares(s: Stmt, known: set[str]) -> bool:
    """Whether a statement does no more than to set a variable that is declared with the others."""
    return isinstance(s, Declare) or (
        isinstance(s, Assign) and isinstance(s.target, Name) and s.target.text in known
    )  # fmt: skip


def is_quiet(target: Target, e: Expr) -> bool:
    """Whether evaluating an expression changes nothing."""
    calls = [x.callee for x in walk_expr(e) if isinstance(x, Call) and not is_load(x)]
    computes, types = target.functions.only_computes, target.type_names
    return all(isinstance(callee, Name) and (computes(callee.text) or callee.text in types) for callee in calls)


def is_whole(target: Target, e: Expr) -> bool:
    """Whether an expression is a whole number."""
    return type_of(e, target.known.types, target.aliases) == INT
