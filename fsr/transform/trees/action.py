"""shuffle-trees: what a block folds as a tree in shared memory, level by level, is folded by one warp with shuffles.

A tree of n levels waits n times for all threads of the block, most of which have nothing to do. One warp reads all
elements at once, each lane those that are a warp apart, and needs no barrier between levels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.types import bare, number_type
from fsr.records import Candidate
from fsr.source.form import Assign, Declare, Expr, For, KernelForm, Literal, Name, Stmt, While, number
from fsr.source.mapping import substitute, with_blocks
from fsr.source.walk import Block, contains_opaque, names_mentioned, walk_stmts
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, target_of, targets
from fsr.transform.trees.arrays import SHUFFLED, shared_arrays, vector_of
from fsr.transform.trees.quotients import with_blocks_quotients
from fsr.transform.trees.reading import Tree, trees_in
from fsr.transform.trees.text import Text
from fsr.transform.trees.threads import WARP, Threads
from fsr.transform.trees.uses import Uses
from fsr.transform.trees.written import written_out

_FEW = 8  # elements of a thread at a time, where all would be more
_REGISTERS = 32  # of a thread's elements, at most
_ONCE, _LOOPED, _MOST_GAIN = 0.015, 0.04, 1.6  # a barrier that goes, once or turn by turn


@dataclass(frozen=True, slots=True)
class ShuffleTrees:
    """All of a kernel's trees, at once."""

    name: str = "shuffle-trees"
    aims_at: frozenset[str] = frozenset(["latency", "instructions", "shared-conflicts"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """One for each number of elements that a thread has at a time."""
        for target in targets(subject):
            found = self._of(subject, target)
            if found is None:
                continue
            gain = _gain(found)
            for rank, most in enumerate(_choices(found)):
                yield Move(self.name, target.region, (("each", most),), gain - 0.01 * rank)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with one warp in the trees' place."""
        target = target_of(subject, move)
        found = self._of(subject, target)
        assert found is not None
        kernel = found.kernel
        body = _with_size(target, _changed(kernel.body, found, int(move.param("each"))))
        return rewritten(target, move, replace(kernel, body=body, span=target.kernel.span))

    def _of(self, subject: Subject, target: Target) -> _Found | None:
        return subject.once((self.name, target.region), lambda: _found(target))


@dataclass(frozen=True)
class _Found:
    """``kernel``: with functions written out, if it has trees only so."""

    kernel: KernelForm
    threads: Threads
    types: dict[str, str]
    vectors: dict[str, tuple[str, int]]
    trees: tuple[Tree, ...]
    open: frozenset[int]  # the first statements, by identity, of trees that may end without a barrier


def _found(target: Target) -> _Found | None:
    """The trees that may be changed."""
    if "__shared__" not in target.source:
        return None
    target = replace(target, kernel=with_blocks_quotients(target))
    threads = Threads.of(target)
    found = _trees(threads) if threads is not None else None
    if threads is None or found is not None:
        return found
    plain = replace(target, kernel=written_out(threads))
    threads = Threads.of(plain) if plain.kernel != target.kernel else None
    return _trees(threads) if threads is not None else None


def _trees(threads: Threads) -> _Found | None:
    target, every = threads.target, shared_arrays(threads)
    kinds = {n: bare(s.declared.type) for n, s in every.items()}
    vectors = {n: v for n, t in kinds.items() if (v := vector_of(t, target.aliases)) is not None}
    plain = {n for n, s in every.items() if number_type(s.declared.type, target.aliases) in SHUFFLED}
    shared = {n: s.declared for n, s in every.items() if n in plain or n in vectors}
    if not shared or contains_opaque(target.kernel.body):
        return None
    uses, found = Uses(threads, every), list(trees_in(target.kernel.body, threads, shared))
    legal = [t for t in found if uses.comes_whole(t) and uses.needs_result_alone(t) and uses.is_apart(t, found)]
    if not legal:
        return None
    types = {n: kinds[n] for n in shared}
    ends = frozenset(id(t.stmts[0]) for t in legal if uses.may_end_without_barrier(t))
    return _Found(target.kernel, threads, types, vectors, tuple(legal), ends)


def _choices(found: _Found) -> list[int]:
    """How many elements a thread may have at a time: all, and fewer, or fewer alone where all are too many."""
    each = max(1 if t.neighbours else t.count // max(WARP, t.results) for t in found.trees)
    arrays = max(len(t.fold.arrays) for t in found.trees)
    whole = [max(each, 2)] if each * arrays <= _REGISTERS else []
    room = found.threads.count * _FEW >= max(t.count for t in found.trees)
    return [*whole, *([_FEW] if each > _FEW and room else [])]


def _gain(found: _Found) -> float:
    """By how many barriers go."""
    looped = {id(s) for loop in walk_stmts(found.kernel.body) if isinstance(loop, For | While)
              for s in walk_stmts(loop.body)}  # fmt: skip
    gain = 1.0
    for tree in found.trees:
        gain += (_LOOPED if id(tree.stmts[0]) in looped else _ONCE) * max(tree.levels - 1, 1)
    return min(gain, _MOST_GAIN)


# ---------------------------------------------------------------- the rewrite


def _changed(body: Block, found: _Found, most: int) -> Block:
    text = Text(found.types, found.vectors, found.threads.place, most, found.threads.target.names)
    heads = {id(t.stmts[0]): t for t in found.trees}
    stmts: list[Stmt] = []
    at = 0
    while at < len(body):
        tree = heads.get(id(body[at]))
        if tree is None:
            stmts.append(with_blocks(body[at], lambda inner: _changed(inner, found, most)))
            at += 1
            continue
        stmts += text.of(tree, barrier=id(body[at]) not in found.open)
        stmts += _left(tree, found.kernel)
        at += len(tree.stmts)
    return tuple(stmts)


def _with_size(target: Target, body: Block) -> Block:
    """Statements with the number of threads where a template's parameter told it: they are for no other number now."""
    own = [name for _, name in target.kernel.template_parameters if target.constants.get(name) == target.threads]
    size: dict[str, Expr] = {name: number(target.threads or 0) for name in own}
    return substitute(body, size)


def _left(tree: Tree, kernel: KernelForm) -> Iterator[Stmt]:
    """What variables that the tree counted with are afterwards, of those that are in use elsewhere."""
    inside = {id(s) for s in walk_stmts(tree.stmts)}
    outside = [s for s in walk_stmts(kernel.body) if id(s) not in inside]
    for name, value in tree.left.items():
        own = next((s for s in tree.stmts if isinstance(s, Declare) and s.name == name), None)
        if own is None:
            yield Assign(Name(name), "=", number(value))
        elif any(name in names_mentioned((with_blocks(s, lambda _: ()),)) for s in outside):
            yield replace(own, init=Literal(str(value)), type=bare(own.type), span=None)
