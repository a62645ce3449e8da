"""Whether a kernel may do without what a tree leaves in shared memory beside its result, and comes to it as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise

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
from fsr.source.walk import (
    BARRIER,
    Block,
    base_name,
    blocks_of,
    exprs_of,
    names_in,
    names_mentioned,
    walk_expr,
    walk_exprs,
    walk_stmts,
)
from fsr.transform.trees.arrays import Shared
from fsr.transform.trees.fold import element, elements_in
from fsr.transform.trees.reading import Tree
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

    def __init__(self, threads: Threads, every: Mapping[str, Shared]) -> None:
        self.threads, self.every = threads, every
        self.shared = {n: s.declared for n, s in every.items()}
        self.body = threads.target.kernel.body
        self.places = places(self.body)
        self.variables = {p.stmt.name for p in self.places if isinstance(p.stmt, Declare)}
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
        return tree.waits_first or self._behind_barrier(first)

    def _asked(self, s: If | For | While) -> Expr:
        test = s.bound if isinstance(s, For) else s.test
        return self.threads.target.known.expand(test)

    def _behind_barrier(self, first: Place) -> bool:
        """Whether a barrier stands before a statement, and nothing between that has to do with memory."""
        around = (None, *first.around)
        for (block, n), outer in zip(reversed(first.lists), reversed(around), strict=True):
            for s in reversed(block[:n]):
                if s == BARRIER:
                    return True
                plain = isinstance(s, Comment | Declare) or (isinstance(s, Assign) and isinstance(s.target, Name))
                own = names_mentioned((s,)) & self.variables <= self.threads.variables
                if (
                    not plain
                    or not own
                    or any(isinstance(e, Index | Unary | OpaqueExpr | Call) for e in walk_exprs((s,)))
                ):
                    return False  # what it reads of memory, others might write behind the tree
            if not isinstance(outer, Scope):
                return False
        return False

    # ------------------------------------------------------------ what comes behind

    def needs_result_alone(self, tree: Tree) -> bool:
        """Whether what others than the results hold is set anew before it is read."""
        arrays = {a: self.shared[a] for a in tree.fold.arrays}
        inside, first = self._inside(tree), self._first(tree)
        if first.loops and not all(self._is_set(a, first, first, tree) for a in arrays):
            return False  # the next turn's tree would fold what this one left
        for place in self.places:
            if id(place.stmt) in inside or not self._mentions(place.stmt, arrays):
                continue
            for array, index in self._read(place.stmt, arrays):
                if array == "" or not (self._is_result(index, place, tree) or self._is_set(array, place, first, tree)):
                    return False
        return True

    def is_apart(self, tree: Tree, every: Iterable[Tree]) -> bool:
        """Whether no other name of the same memory leads to an element of the tree."""
        own = [self.every[a] for a in tree.fold.arrays]
        roots = {one.root for one in own}
        others = {n: s.declared for n, s in self.every.items() if s.root in roots and n not in tree.fold.arrays}
        taken = [(one.root, range(one.offset, one.offset + tree.reach * one.bytes)) for one in own]
        if any(a[0] == b[0] and _meet(a[1], b[1]) for a, b in combinations(taken, 2)):
            return False
        ranges = [(a, range(t.reach)) for t in every for a in t.fold.arrays if a in others]
        if any(self._meets(a, elements, taken) for a, elements in ranges):
            return False
        inside = {id(s) for t in every for s in walk_stmts(t.stmts)}
        for place in self.places:
            if id(place.stmt) in inside or not self._mentions(place.stmt, others):
                continue
            for array, index in _elements(exprs_of(place.stmt), others):
                values = self.threads.values(index, {}) if array else None
                if values is None:
                    return False
                here = values[self._mask(place)]
                if here.size and self._meets(array, range(int(here.min()), int(here.max()) + 1), taken):
                    return False
        return True

    def _meets(self, array: str, elements: range, taken: list[tuple[str, range]]) -> bool:
        one = self.every[array]
        bytes_ = range(one.offset + elements.start * one.bytes, one.offset + elements.stop * one.bytes)
        return any(root == one.root and _meet(bytes_, there) for root, there in taken)

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

    def _mentions(self, s: Stmt, arrays: Mapping[str, Declare]) -> bool:
        if isinstance(s, Declare) and s.name in self.every:
            return False  # where it lies is known
        return any(names_in(e) & set(arrays) for e in exprs_of(s))

    @staticmethod
    def _read(s: Stmt, arrays: Mapping[str, Declare]) -> list[tuple[str, Expr]]:
        """Which elements a statement reads; an empty name for what else it does with the arrays."""
        exprs = exprs_of(s)
        if isinstance(s, Declare) and "&" in s.type:
            return [("", Name(""))]
        if isinstance(s, Assign) and s.op == "=" and (set_ := element(s.target, arrays)) is not None:
            exprs = (set_[1], s.value)
        return _elements(exprs, arrays)

    def _mask(self, place: Place) -> Values:
        """The threads that may come to a statement."""
        mask = np.full(self.threads.count, True)
        for s, inner in pairwise((*place.around, place.stmt)):
            if isinstance(s, If) and (found := self.threads.values(s.test, {})) is not None:
                then = any(t is inner for t in s.then)
                mask = mask & ((found != 0) == then)
        return mask

    def _is_result(self, index: Expr, place: Place, tree: Tree) -> bool:
        found = self.threads.values(index, {})
        return found is not None and bool(np.all(found[self._mask(place)] < tree.results))

    def _is_set(self, array: str, place: Place, tree: Place, whole: Tree) -> bool:
        """Whether every thread sets its element after the tree and before the statement; or the tree comes later, once
        and for all."""
        if place.at < tree.at and not place.loops & tree.loops:
            return True
        for level, (block, n) in enumerate(place.lists):
            if not self._by_all(place.around[:level], tree):
                return False
            below = place.around[level:]
            shared_loops = {id(s) for s in below if isinstance(s, For | While)} & tree.loops
            for s in block[:n]:
                if self._sets_all(s, array, whole.count) and not shared_loops:
                    at = next(p.at for p in self.places if p.stmt is s)
                    if not at < tree.at < place.at:
                        return True
        return False

    def _by_all(self, around: tuple[Stmt, ...], tree: Place) -> bool:
        """Whether all threads of a block come to what stands in these statements, if they come to the tree."""
        return all(
            map(self.uniform, (e for s in around if not any(s is t for t in tree.around) for e in exprs_of(s)))
        )  # fmt: skip

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


def _elements(exprs: Iterable[Expr], arrays: Mapping[str, Declare]) -> list[tuple[str, Expr]]:
    """The elements that expressions mention; an empty name for what else they do with the arrays."""

    def hidden(e: Expr) -> Expr | None:
        at = element(e, arrays)
        return None if at is None else rewrite(at[1], hidden)

    exprs = tuple(exprs)
    found = elements_in(tuple(ExprStmt(e) for e in exprs), arrays)
    whole = any(names_in(rewrite(e, hidden)) & set(arrays) for e in exprs)
    whole |= any(isinstance(x, Unary) and x.op == "&" and base_name(x) in arrays for e in exprs for x in walk_expr(e))
    return [("", Name("")), *found] if whole else found


def _meet(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop
