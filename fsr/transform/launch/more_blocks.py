"""more-blocks: what a block's threads go through in strides is shared by several blocks.

``for (int j = threadIdx.x; j < m; j += blockDim.x)``, one block an image: threads share the turns already, so that
turns of different threads cannot get into each other's way, whatever they do. Where what a turn writes moves on with
it, in proportion, those of one thread cannot either, and other blocks may have some of them. They are counted along an
axis that the grid does not use; all ids stay what they were. Where nothing but the strides knows of threads, blocks may
be smaller, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.accesses import accesses_in, declared_arrays
from fsr.analysis.polynomial import Poly, symbol
from fsr.records import Candidate, Launch
from fsr.source.form import Binary, Comment, Declare, Expr, For, If, Jump, Literal, Member, Name, Scope, While
from fsr.source.mapping import replace_stmt
from fsr.source.walk import (
    Block,
    blocks_of,
    contains_return,
    exprs_of,
    identifiers,
    names_in,
    names_written,
    outermost_loops,
    walk_stmts,
)
from fsr.transform.launch.cooperation import cooperates
from fsr.transform.launch.told_ids import with_ids
from fsr.transform.plan import along, rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import largest_timed
from fsr.transform.target import Target, target_of, targets

SHAPES = ((0, 2), (0, 8), (0, 32), (64, 8), (64, 32), (128, 16), (32, 64))  # threads (0: as before), parts
_STRIDES = (  # the number that a thread has, and how many there are of them
    (symbol("threadIdx.x"), symbol("blockDim.x")),
    (symbol("threadIdx.y"), symbol("blockDim.y")),
    (symbol("threadIdx.x") + symbol("threadIdx.y") * symbol("blockDim.x"), symbol("blockDim.x") * symbol("blockDim.y")),
)
_MOST_GAIN, _GAIN = 6.0, 1.05
_FULL = 2  # blocks a multiprocessor, from which on more of them change little


@dataclass(frozen=True)
class _Shared:
    """``loops``: whose turns a block's threads share. ``free``: an axis of the grid, along which there is one block.
    ``length``: what all threads have to go through, at the timed sizes, if that is known. ``any_size``: whether blocks
    may have any number of threads along x."""

    loops: tuple[For, ...]
    free: str
    length: int | None
    any_size: bool


class MoreBlocks:
    """Several blocks for the turns that one goes through."""

    name = "more-blocks"
    aims_at = frozenset({"occupancy", "latency"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move a number of blocks, and a size of them, as long as multiprocessors are left without work."""
        for target in () if subject.keep_launch else targets(subject):
            blocks = largest_timed(target.contract, " * ".join(f"({g})" for g in target.launch.grid)) or 0
            before = largest_timed(target.contract, " * ".join(f"({b})" for b in target.launch.block)) or 1
            wanted = _FULL * subject.gpu.sm_count / max(blocks, 1)
            shared = _shared(target) if wanted > 1 else None
            if shared is None:
                continue
            for threads, parts in SHAPES:
                if threads and (not shared.any_size or threads >= before):
                    continue
                turns = parts if shared.length is None else -(-shared.length // (threads or before))
                gain = min(parts, wanted, turns, _MOST_GAIN)
                if gain > 1:
                    rank = abs(parts - wanted) / (parts + wanted) + (parts >= 2 * turns)
                    params = (("parts", parts), *([("threads", threads)] if threads else []))
                    yield Move(self.name, target.region, params, max(_GAIN, gain - 0.1 * rank))

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose blocks share turns."""
        target = target_of(subject, move)
        shared, kernel = _shared(target), target.kernel
        assert shared is not None
        part, parts = Member(Name("blockIdx"), shared.free), Member(Name("gridDim"), shared.free)
        told = {("blockIdx", shared.free): Literal("0u"), ("gridDim", shared.free): Literal("1u")}
        body = kernel.body
        for loop in shared.loops:
            step: Expr = loop.step
            one = replace(
                loop, start=Binary("+", loop.start, Binary("*", part, step)), step=Binary("*", step, parts), pragmas=()
            )
            inner = replace(one, body=with_ids(loop.body, told))
            body = replace_stmt(body, loop, (Comment(f"// a part of the turns each, along {shared.free}"), inner))
        threads = int(dict(move.params).get("threads", 0))
        bounds = (str(threads),) if threads and kernel.launch_bounds else kernel.launch_bounds
        changed = replace(kernel, body=body, launch_bounds=bounds)
        count = int(move.param("parts"))
        return rewritten(target, move, changed, launch=lambda one: _relaunched(one, shared.free, count, threads))


def _shared(target: Target) -> _Shared | None:
    """The loops of a kernel that writes nowhere else; None where there is one whose turns may not be shared."""
    launch, kernel = target.launch, target.kernel
    free = next((a for a, g in zip("zy", launch.grid[:0:-1], strict=True) if g == "1"), None)
    if free is None or cooperates(target) or free in _axes_named(kernel.body):
        return None
    arrays = frozenset(p.name for p in kernel.params if p.is_pointer) | declared_arrays(kernel.body)
    loops = [s for s in outermost_loops(kernel.body) if any(a.writes for a in accesses_in((s,), arrays - _private(s)))]
    if not loops or not all(isinstance(s, For) and _is_shared(s, target, arrays) for s in loops):
        return None
    rest = kernel.body
    for loop in loops:
        rest = replace_stmt(rest, loop, ())
    if any(a.writes for a in accesses_in(rest, arrays)):
        return None
    found = tuple(loop for loop in loops if isinstance(loop, For))
    bound = target.size_text(found[0].bound)
    length = None if bound is None else largest_timed(target.contract, bound)
    return _Shared(found, free, length, _any_size(found, target))


def _any_size(loops: tuple[For, ...], target: Target) -> bool:
    """Whether a block's threads are told apart, and counted, by the strides of these loops alone, along x."""
    if target.launch.block[1:] != ("1", "1"):
        return False
    strides = [replace(loop, start=Literal("0"), step=Literal("1")) for loop in loops]
    body = target.kernel.body
    for loop, plain in zip(loops, strides, strict=True):
        body = replace_stmt(body, loop, (plain,))
    ids = {"threadIdx", "blockDim"}
    own = _of_ids(target, ids)
    rest = [s for s in walk_stmts(body) if not (isinstance(s, Declare) and s.name in own)]
    used = frozenset[str]().union(*(names_in(e) for s in rest for e in exprs_of(s)))
    return not used & (own | ids)


def _private(s: For | While) -> frozenset[str]:
    return frozenset(inner.name for inner in walk_stmts(s.body) if isinstance(inner, Declare))


def _axes_named(body: Block) -> frozenset[str]:
    return frozenset(a for a in "yz" if any(f"{v}.{a}" in identifiers(body) for v in ("blockIdx", "gridDim")))


def _is_shared(loop: For, target: Target, arrays: frozenset[str]) -> bool:
    """Whether the threads of a block have every so many turns each, nothing is carried from one to the next, and what
    is written moves on in proportion."""
    known = target.known
    if loop.type is None or loop.relation not in ("<", "<=") or contains_return(loop.body):
        return False
    if (known.poly(loop.start), known.poly(loop.step)) not in _STRIDES:
        return False
    private = _private(loop) | {s.var for s in walk_stmts(loop.body) if isinstance(s, For) and s.type is not None}
    if names_written(loop.body) - arrays - private or loop.var in names_written(loop.body):
        return False
    if _breaks(loop.body) or _told_apart(loop, target):
        return False
    return all(_moves_on(known.poly(a.index), loop.var) if a.index is not None else False
               for a in accesses_in(loop.body, arrays - private) if a.writes)  # fmt: skip


def _breaks(body: Block) -> bool:
    """Whether a break ends the loop itself, not one within."""
    for s in body:
        if isinstance(s, Jump) and s.keyword == "break":
            return True
        if isinstance(s, If | Scope) and any(_breaks(block) for block in blocks_of(s)):
            return True
    return False


def _told_apart(loop: For, target: Target) -> bool:
    """Whether a turn knows which thread of a block it is of, otherwise than by its own number."""
    named = identifiers(loop.body)
    return bool(named & _of_ids(target, {"threadIdx"})) or any(name.startswith("threadIdx") for name in named)


def _of_ids(target: Target, ids: set[str]) -> set[str]:
    """Local variables that ids have a part in."""
    values = target.known.values
    return {name for name, value in values.items() if names_in(target.known.expand(value)) & ids}


def _moves_on(index: Poly, var: str) -> bool:
    """Whether an index is a multiple of the turn's number, and what does not depend on that."""
    by = index.coefficient(var)
    rest = index.without(var)
    return by is not None and by != Poly() and not rest.depends_on([var])


def _relaunched(launch: Launch, free: str, parts: int, threads: int) -> Launch:
    block = (str(threads), "1", "1") if threads else launch.block
    return replace(launch, grid=along(launch.grid, free, str(parts)), block=block)
