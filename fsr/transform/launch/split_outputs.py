"""split-outputs: what makes one output, and what makes another, in blocks of their own.

A kernel that makes several gradients, one sweep after the other or side by side in one loop, has as many registers and
steps as all of them take. Where blocks are few, each is better made by blocks that do nothing else: the kernel is
sliced by what it writes (:mod:`fsr.analysis.slicing`), and another axis of the grid tells which slice a block goes
through. What several slices need is done for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from fsr.analysis.effects import Unclear, pointers
from fsr.analysis.polynomial import symbol
from fsr.analysis.slicing import Named, NotSliced, Slice, sliced, written_buffers
from fsr.records import Candidate
from fsr.source.arrays import shared_on_top
from fsr.source.form import Binary, Comment, Declare, Expr, For, If, Literal, Member, Name, Stmt, While
from fsr.source.shadows import unshadowed
from fsr.source.walk import Block, blocks_of, contains_opaque, contains_return, walk_stmts
from fsr.transform.launch.cooperation import hands_on_ids
from fsr.transform.launch.told_ids import with_ids
from fsr.transform.plan import along, rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import largest_timed
from fsr.transform.target import Target, target_of, targets

_A_LOOP = 16.0  # turns that a loop is taken to have
_FREE = 1.1  # as much more than the dearer of two outputs, and both are made at once
_WORTH = 0.85  # of all work, what the dearest slice may be
_MOST_PARTS = 8
_MOST_GAIN = 4.0


@dataclass(frozen=True)
class _Split:
    """``slices``: the dearest first; ``free``: the axis of the grid that tells them apart; ``memory``: what blocks
    share; ``share``: of all work, what the dearest slice is."""

    slices: tuple[Slice, ...]
    free: str
    memory: Block
    share: float


class SplitOutputs:
    """Blocks for each output, or a few of them, in the place of blocks for all."""

    name = "split-outputs"
    aims_at = frozenset({"occupancy", "latency", "instructions"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move a kernel that leaves multiprocessors without work, or threads with few registers."""
        for target in () if subject.keep_launch else targets(subject):
            found = self._of(subject, target)
            if found is None:
                continue
            blocks, threads = (
                largest_timed(target.contract, " * ".join(f"({n})" for n in dims)) or 0
                for dims in (target.launch.grid, target.launch.block)
            )
            room = subject.gpu.sm_count * subject.gpu.max_threads_per_sm / (2 * max(blocks * threads, 1))
            if room > 1:
                gain = min(1 / found.share, room, _MOST_GAIN)
                yield Move(self.name, target.region, (("parts", len(found.slices)),), gain)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose blocks make an output, or a few, each."""
        target = target_of(subject, move)
        found = self._of(subject, target)
        assert found is not None
        told = {("blockIdx", found.free): Literal("0u"), ("gridDim", found.free): Literal("1u")}
        part: Expr = Member(Name("blockIdx"), found.free)
        rest: Block = ()
        for number, one in reversed(list(enumerate(found.slices))):
            body = (Comment(f"// makes {', '.join(sorted(one.buffers))}"), *with_ids(one.body, told))
            rest = body if not rest else (If(Binary("==", part, Literal(f"{number}u")), body, rest),)
        changed = replace(target.kernel, body=(*found.memory, *rest))
        count = str(len(found.slices))
        return rewritten(
            target, move, changed,
            launch=lambda one: replace(one, grid=along(one.grid, found.free, count)),
        )  # fmt: skip

    def _of(self, subject: Subject, target: Target) -> _Split | None:
        return subject.once((self.name, target.region), lambda: _split(target))


def _split(target: Target) -> _Split | None:
    """How a kernel's outputs are made apart; None where they are not, or no axis of the grid is left."""
    launch, params = target.launch, (p.name for p in target.kernel.params)
    kernel = replace(target.kernel, body=unshadowed(target.kernel.body, params))
    target = replace(target, kernel=kernel)
    free = next((a for a, extent in zip("yz", launch.grid[1:], strict=True) if extent == "1"), None)
    if free is None or contains_opaque(kernel.body) or hands_on_ids(target, kernel.body):
        return None
    try:
        named = _named(target)
        outputs = sorted(written_buffers(kernel.body, named))
        if len(outputs) < 2:
            return None
        known = {out: sliced(kernel.body, frozenset([out]), named) for out in outputs}
        slices = _joined(list(known.values()), kernel.body, named)
    except (Unclear, NotSliced):
        return None
    whole = _work(kernel.body)
    share = max(_work(one.body) for one in slices) / max(whole, 1.0)
    if not 2 <= len(slices) <= _MOST_PARTS or share > _WORTH:
        return None
    memory = shared_on_top(kernel.body)
    return None if memory is None else _Split(tuple(slices), free, memory, share)


def _joined(slices: Sequence[Slice], body: Block, named: Named) -> list[Slice]:
    """Slices that write the same memory, or make each other all but for nothing, put together; the dearest first."""
    left = list(slices)
    while True:
        pairs = combinations(left, 2)
        pair = next(((a, b, both) for a, b in pairs if (both := _both(a, b, body, named)) is not None), None)
        if pair is None:
            return sorted(left, key=lambda one: -_work(one.body))
        left = [one for one in left if one is not pair[0] and one is not pair[1]] + [pair[2]]


def _both(a: Slice, b: Slice, body: Block, named: Named) -> Slice | None:
    """Both in one, where that is the only way, or the better one; None where they stay apart."""
    both = sliced(body, a.buffers | b.buffers, named)
    must = bool(a.buffers & (b.buffers | b.read) or b.buffers & a.read)
    return both if must or _work(both.body) <= _FREE * max(_work(a.body), _work(b.body)) else None


def _named(target: Target) -> Named:
    kernel = target.kernel
    scene = pointers(kernel, target.passed, target.contract.aliasing, target.functions)
    arrays = [s for s in walk_stmts(kernel.body) if isinstance(s, Declare) and s.dims]
    names = [s.name for s in walk_stmts(kernel.body) if isinstance(s, Declare)]
    extents = {s.name: n for s in arrays if len(s.dims) == 1 and names.count(s.name) == 1
               and (n := _number(target, s.dims[0])) is not None}  # fmt: skip
    shared = frozenset(s.name for s in arrays if "__shared__" in s.qualifiers)
    block = target.block
    whole = block is not None and block[1:] == (1, 1) and not contains_return(kernel.body)
    alone = block[0] if whole and block is not None else None

    def threads(e: Expr) -> int | None:
        return alone if target.known.poly(e, target.numbers) == symbol("threadIdx.x") else None

    return Named(
        scene.roots, extents, shared, target.functions, target.type_names, lambda e: _number(target, e), threads
    )


def _number(target: Target, e: Expr) -> int | None:
    value: int | None = target.known.poly(e, target.numbers).value
    return value


def _work(body: Block, turns: float = 1.0) -> float:
    """Statements, those in loops as often as loops are taken to go round."""
    found = 0.0
    for s in body:
        inner = turns * (_A_LOOP if isinstance(s, For | While) else 1.0)
        found += turns if _is_plain(s) else 0.0
        found += sum(_work(block, inner) for block in blocks_of(s))
    return found


def _is_plain(s: Stmt) -> bool:
    return not isinstance(s, Comment | For | While | If)


__all__ = ["SplitOutputs"]
