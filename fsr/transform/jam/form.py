"""Kernels whose threads have something in common that a loop of theirs loads or computes, apart from their block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from fsr.analysis.common_values import CommonValues
from fsr.source.form import Binary, Declare, For, If, Name, While
from fsr.source.narrowing import narrowed
from fsr.source.walk import Block, exprs_of, fresh, names_assigned, walk_stmts
from fsr.transform.jam.exits import without_exits
from fsr.transform.jam.gain import Weigher, Work
from fsr.transform.jam.guarded import Chain, guards, is_quiet, is_whole, owned, plain_kernel
from fsr.transform.launch.told_ids import with_ids
from fsr.transform.sizes import largest_timed
from fsr.transform.target import Target


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
        return self.weigher.side(s) if is_quiet(self.target, s.test) else None

    def rounds(self, s: For | While) -> bool:
        """Whether threads should go through a loop together for as long as all of them do."""
        return self.weigher.rounds(s) and all(is_quiet(self.target, e) for e in exprs_of(s))


def alike(target: Target, axis: str) -> Alike | None:
    """What threads along an axis have in common; None where that is too little, where threads cooperate, or where
    statements leave a loop and the kernel at once."""
    kernel = plain_kernel(target)
    if kernel is None:
        return None
    blocks = fresh("blocks", target.names)
    alone = with_ids(owned(kernel, target.names), {("gridDim", axis): Name(blocks)})
    body = without_exits(alone, partial(is_whole, target))
    if body is None:
        return None
    body = narrowed(body)
    chain, core = guards(target, body)
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


def _turns(target: Target, loop: For) -> int | None:
    length = target.size_text(Binary("-", loop.bound, loop.start))
    return None if length is None else largest_timed(target.contract, f"max({length}, 1)")
