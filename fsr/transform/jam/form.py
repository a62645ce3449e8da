"""Kernels whose threads have something in common that a loop of theirs loads or computes, apart from their block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from fsr.analysis.calls import is_atomic, is_load
from fsr.analysis.common_values import CommonValues
from fsr.analysis.functions import hiding_macros
from fsr.analysis.macros import expanded
from fsr.analysis.types import INT, type_of
from fsr.source.form import Assign, Binary, Call, Comment, Declare, Expr, For, If, KernelForm, Name, Stmt, While
from fsr.source.mapping import substitute
from fsr.source.narrowing import narrowed
from fsr.source.walk import Block, exprs_of, fresh, identifiers, names_assigned, walk_expr, walk_stmts
from fsr.transform.jam.exits import without_exits
from fsr.transform.jam.gain import Weigher, Work
from fsr.transform.jam.statements import assignable
from fsr.transform.launch.cooperation import cooperates
from fsr.transform.launch.told_ids import with_ids
from fsr.transform.sizes import largest_timed
from fsr.transform.target import Target

Chain = Sequence[tuple[Block, Expr]]


@dataclass(frozen=True)
class Alike:
    """A kernel whose threads along an axis do much alike. ``body``: without early exits; ``chain``: the tests around
    all that it does, with what is set before each; ``core``: what it does; ``blocks``: the name of their number,
    which the body reads where it read the grid; ``work``: of a thread."""

    target: Target
    body: Block
    chain: Chain
    core: Block
    blocks: str
    common: CommonValues
    weigher: Weigher
    work: Work

    def side(self, s: If) -> Block | None:
        """The statements under a condition of single threads that those who come there should do together."""
        return self.weigher.side(s) if _quiet(self.target, s.test) else None

    def rounds(self, s: For | While) -> bool:
        """Whether threads should go through a loop together for as long as all of them do."""
        return self.weigher.rounds(s) and all(_quiet(self.target, e) for e in exprs_of(s))


def alike(target: Target, axis: str) -> Alike | None:
    """What threads along an axis have in common; None where that is too little, where threads cooperate, or where
    statements leave a loop and the kernel at once."""
    kernel = _plain(target)
    if kernel is None:
        return None
    blocks = fresh("blocks", target.names)
    owned = with_ids(_owned(kernel, target.names), {("gridDim", axis): Name(blocks)})
    body = without_exits(owned, partial(_is_whole, target))
    if body is None:
        return None
    body = narrowed(body)
    chain, core = _guards(target, body)
    inside = (*(s for lead, _ in chain for s in lead), *core)
    top = [s.name for s in inside if isinstance(s, Declare)]
    # Within the tests all threads come to all statements.
    common = CommonValues(replace(kernel, body=inside), axis, target.functions, target.type_names, target.may_alias)
    own = {s.name for s in walk_stmts(body) if isinstance(s, Declare)}
    own |= {s.var for s in walk_stmts(body) if isinstance(s, For) and s.type is not None}
    if (common.apart | names_assigned(body)) - own or len(set(top)) < len(top):
        return None  # something of the file would be a thread's own, or one variable hides another
    weigher = Weigher(common, partial(_turns, target))
    work = weigher.work(inside)
    return Alike(target, body, chain, core, blocks, common, weigher, work) if work.worth else None


def _plain(target: Target) -> KernelForm | None:
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


def _owned(kernel: KernelForm, taken: frozenset[str]) -> Block:
    """The body with variables of its own in place of arguments that it changes."""
    changed = [p for p in kernel.params if p.name in names_assigned(kernel.body)]
    own = {p.name: Name(fresh(f"own_{p.name}", taken)) for p in changed}
    start = (Declare(assignable(p.type), own[p.name].text, Name(p.name)) for p in changed)
    return (*start, *substitute(kernel.body, own))


def _guards(target: Target, body: Block) -> tuple[Chain, Block]:
    chain: list[tuple[Block, Expr]] = []
    known = set[str]()
    while True:
        while body and isinstance(body[-1], Comment):
            body = body[:-1]
        lead, last = [s for s in body[:-1] if not isinstance(s, Comment)], body[-1] if body else None
        known |= {s.name for s in lead if isinstance(s, Declare)}
        if not isinstance(last, If) or last.orelse or not _quiet(target, last.test):
            return chain, body
        if not all(_prepares(s, known) and all(_quiet(target, e) for e in exprs_of(s)) for s in lead):
            return chain, body
        chain.append((tuple(lead), last.test))
        body = last.then


def _prepares(s: Stmt, known: set[str]) -> bool:
    """Whether a statement does no more than to set a variable that is declared with the others."""
    return isinstance(s, Declare) or (
        isinstance(s, Assign) and isinstance(s.target, Name) and s.target.text in known
    )  # fmt: skip


def _quiet(target: Target, e: Expr) -> bool:
    """Whether evaluating an expression changes nothing."""
    calls = [x.callee for x in walk_expr(e) if isinstance(x, Call) and not is_load(x)]
    computes, types = target.functions.only_computes, target.type_names
    return all(isinstance(callee, Name) and (computes(callee.text) or callee.text in types) for callee in calls)


def _is_whole(target: Target, e: Expr) -> bool:
    return type_of(e, target.known.types, target.aliases) == INT


def _turns(target: Target, loop: For) -> int | None:
    length = target.size_text(Binary("-", loop.bound, loop.start))
    return None if length is None else largest_timed(target.contract, f"max({length}, 1)")
