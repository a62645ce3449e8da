"""Whether a kernel may do without what a tree leaves in shared memory beside its result, and comes to it as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fsr.analysis.index_values import Values
from fsr.analysis.uniform import Uniformity
from fsr.source.form import (
    Assign,
    Call,
    Comment,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    Name,
    OpaqueExpr,
    Return,
    Scope,
    Stmt,
    Unary,
    While,
)  # fmt: skip
from fsr.source.mapping import rewrite
from fsr.source.walk import Block, blocks_of, exprs_of, names_in, walk_exprs, walk_stmts
from fsr.transform.trees.fold import element, elements_in
from fsr.transform.trees.reading import BARRIER, Tree
from fsr.transform.trees.threads import Threads


@dataclass(frozen=True)
class Place:
    """A statement of the kernel: where it stands in the text, the lists it is in, outermost first, with its number in
    each, and the statements around it."""

    stmt: Stmt
    at: int
    lists: tuple[tuple[Block, int], ...]
    around: tuple[Stmt, ...]

    @property
    def loops(self) -> frozenset[int]:
        """The loops around it, by identity."""
        return frozenset(id(s) for s in self.around if isinstance(s, For | While))


def places(body: Block) -> list[Place]:
    """All statements of a kernel in the order of the text."""

    def walk(block: Block, lists: tuple[tuple[Block, int], ...], around: tuple[Stmt, ...]) -> None:
        for n, s in enumerate(block):
            here = (*lists, (block, n))
            found.append(Place(s, len(found), here, around))
            for inner in blocks_of(s):
                walk(inner, here, (*around, s))

    found: list[Place] = []
    walk(body, (), ())
    return found


class Uses:
    """What a kernel does with its shared arrays outside a tree."""

    def __init__(self, threads: Threads, shared: Mapping[str, Declare]) -> None:
        self.threads, self.shared = threads, shared
        self.body = threads.target.kernel.body
        self.places = places(self.body)
        self.uniform = Uniformity(threads.target.kernel, functions=threads.target.functions)

    # ------------------------------------------------------------ what comes before

    def comes_whole(self, tree: Tree) -> bool:
        """Whether all threads of a block come to the tree, behind a barrier if the tree does not begin with one."""
        first = self._first(tree)
        if any(names_in(self._asked(s)) & {"threadIdx"} for s in first.around if isinstance(s, If | For | While)):
            return False
        for place in self.places:
            if isinstance(place.stmt, Return) and (place.at < first.at or place.loops & first.loops):
                tests = [s.test for s in place.around if isinstance(s, If | While)]
                bounds = [e for s in place.around if isinstance(s, For) for e in exprs_of(s)]
                if not all(map(self.uniform, (*tests, *bounds))):
                    return False
        return tree.waits_first or self._behind_barrier(tree)

    def _asked(self, s: If | For | While) -> Expr:
        test = s.bound if isinstance(s, For) else s.test
        return self.threads.target.known.expand(test)

    def _behind_barrier(self, tree: Tree) -> bool:
        for s in reversed(tree.within[: tree.start]):
            if s == BARRIER:
                return True
            plain = isinstance(s, Comment | Declare) or (isinstance(s, Assign) and isinstance(s.target, Name))
            if not plain or any(isinstance(e, Index | Unary | OpaqueExpr | Call) for e in walk_exprs((s,))):
                return False  # what it reads of memory, others might write behind the tree
        return False

    # ------------------------------------------------------------ what comes behind

    def needs_result_alone(self, tree: Tree) -> bool:
        """Whether what others than the first elements hold is set anew before it is read."""
        arrays = {a: self.shared[a] for a in tree.fold.arrays}
        inside, first = self._inside(tree), self._first(tree)
        for place in self.places:
            if id(place.stmt) in inside or not self._mentions(place.stmt, arrays):
                continue
            for array, index in self._read(place.stmt, arrays):
                if array == "" or not (self._is_first(index, place) or self._is_set(array, place, first, tree)):
                    return False
        return True

    def may_end_without_barrier(self, tree: Tree) -> bool:
        """Whether nobody but the first thread has to do with the arrays behind the tree."""
        arrays = {a: self.shared[a] for a in tree.fold.arrays}
        inside, first = self._inside(tree), self._first(tree)
        if tree.waits_last or first.loops:
            return False
        for place in self.places:
            if place.at < first.at or id(place.stmt) in inside:
                continue
            if isinstance(place.stmt, Assign) and element(place.stmt.target, arrays):
                return False
            if self._mentions(place.stmt, arrays) and not np.array_equal(np.flatnonzero(self._mask(place)), [0]):
                return False
        return True

    def _first(self, tree: Tree) -> Place:
        return next(p for p in self.places if p.stmt is tree.stmts[0])

    @staticmethod
    def _inside(tree: Tree) -> set[int]:
        return {id(s) for s in walk_stmts(tree.stmts)}

    @staticmethod
    def _mentions(s: Stmt, arrays: Mapping[str, Declare]) -> bool:
        if isinstance(s, Declare) and s.name in arrays:
            return False
        return any(names_in(e) & set(arrays) for e in exprs_of(s))

    @staticmethod
    def _read(s: Stmt, arrays: Mapping[str, Declare]) -> list[tuple[str, Expr]]:
        """Which elements a statement reads; an empty name for what else it does with the arrays."""
        exprs = exprs_of(s)
        if isinstance(s, Assign) and s.op == "=" and (set_ := element(s.target, arrays)) is not None:
            exprs = (set_[1], s.value)
        found = elements_in(tuple(ExprStmt(e) for e in exprs), arrays)

        def hidden(e: Expr) -> Expr | None:
            at = element(e, arrays)
            return None if at is None else rewrite(at[1], hidden)

        whole = any(names_in(rewrite(e, hidden)) & set(arrays) for e in exprs)
        return [("", Name("")), *found] if whole else found

    def _mask(self, place: Place) -> Values:
        """The threads that may come to a statement."""
        mask = np.full(self.threads.count, True)
        for s, inner in pairwise((*place.around, place.stmt)):
            if isinstance(s, If) and (found := self.threads.values(s.test, {})) is not None:
                then = any(t is inner for t in s.then)
                mask = mask & ((found != 0) == then)
        return mask

    def _is_first(self, index: Expr, place: Place) -> bool:
        found = self.threads.values(index, {})
        return found is not None and not np.any(found[self._mask(place)])

    def _is_set(self, array: str, place: Place, tree: Place, whole: Tree) -> bool:
        """Whether every thread sets its element after the tree and before the statement; or the tree comes later, once
        and for all."""
        if place.at < tree.at and not place.loops & tree.loops:
            return True
        for level, (block, n) in enumerate(place.lists):
            below = place.around[level:]
            shared_loops = {id(s) for s in below if isinstance(s, For | While)} & tree.loops
            for s in block[:n]:
                if self._sets_all(s, array, whole.count) and not shared_loops:
                    at = next(p.at for p in self.places if p.stmt is s)
                    if not at < tree.at < place.at:
                        return True
        return False

    def _sets_all(self, s: Stmt, array: str, count: int) -> bool:
        match s:
            case Assign(target, "="):
                found = element(target, {array: self.shared[array]})
                places_ = None if found is None else self.threads.values(found[1], {})
                return places_ is not None and count <= self.threads.count and np.array_equal(places_, self.threads.all)
            case If(_, then, orelse):
                return any(self._sets_all(t, array, count) for t in then) and any(
                    self._sets_all(t, array, count) for t in orelse
                )
            case Scope(body):
                return any(self._sets_all(t, array, count) for t in body)
        return False
