"""The statements with which a thread folds one element of shared arrays into another, whatever elements these are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fsr.analysis.calls import is_atomic, is_load
from fsr.analysis.index_values import Values
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Comment,
    Declare,
    Expr,
    If,
    Index,
    Member,
    Name,
    Stmt,
    Unary,
)  # fmt: skip
from fsr.source.mapping import map_stmts, rewrite, substitute
from fsr.source.walk import Block, base_name, contains_opaque, declared, names_mentioned, walk_exprs, walk_stmts
from fsr.transform.target import Target

MINE, OTHER = "{}@mine", "{}@other"  # no names of C, so that they meet none


@dataclass(frozen=True)
class Fold:
    """``body``: with ``Name(MINE of array)`` and ``Name(OTHER of array)`` for the elements of ``arrays``."""

    body: Block
    arrays: tuple[str, ...]

    @cached_property
    def shape(self) -> Block:
        """What is equal of folds that differ in the names of their own variables alone."""
        own = {name: Name(f"@{n}") for n, name in enumerate(declared(self.body))}
        return substitute(self.body, own)


@dataclass(frozen=True)
class Step:
    """A fold, and by thread which element it changes and which it folds into that."""

    fold: Fold
    mine: Values
    other: Values


def element(e: Expr, shared: Mapping[str, Declare]) -> tuple[str, Expr] | None:
    """The array and the index where an expression is an element of a shared array of one dimension."""
    return (
        (e.base.text, e.index) if isinstance(e, Index) and isinstance(e.base, Name) and e.base.text in shared else None
    )


def elements_in(stmts: Sequence[Stmt], shared: Mapping[str, Declare]) -> list[tuple[str, Expr]]:
    """All elements that statements mention, in the order of the text."""
    return [found for e in walk_exprs(stmts) if (found := element(e, shared)) is not None]


def step_of(
    stmts: Sequence[Stmt], target: Target, shared: Mapping[str, Declare], values: Callable[[Expr], Values | None]
) -> Step | None:
    """The step that statements are; None where they are no fold of two elements. ``values``: of an index, of the
    threads that take part."""
    plain = map_stmts(tuple(s for s in stmts if not isinstance(s, Comment)), _plain)
    targets = (s.target for s in walk_stmts(plain) if isinstance(s, Assign))
    whole = (t.base if isinstance(t, Member) and not t.arrow else t for t in targets)
    written = [found for t in whole if (found := element(t, shared))]
    if not written or contains_opaque(plain):
        return None
    mine = values(written[0][1])
    others = [v for _, i in elements_in(plain, shared) if (v := values(i)) is None or not _equal(v, mine)]
    if mine is None or not others or others[0] is None or not all(_equal(o, others[0]) for o in others):
        return None

    def change(e: Expr) -> Expr | None:
        found = element(e, shared)
        if found is None:
            return None
        return Name((MINE if _equal(values(found[1]), mine) else OTHER).format(found[0]))

    fold = Fold(rewrite(plain, change), tuple(dict.fromkeys(a for a, _ in elements_in(plain, shared))))
    return Step(fold, mine, others[0]) if _is_pure(fold, target) else None


def _equal(one: Values | None, other: Values | None) -> bool:
    return one is not None and other is not None and np.array_equal(one, other)


def _plain(s: Stmt) -> Stmt:
    """``a += b`` as ``a = a + b``, without the place in the text."""
    if isinstance(s, Assign) and s.op != "=":
        return Assign(s.target, "=", Binary(s.op[:-1], s.target, s.value))
    return s


def _is_pure(fold: Fold, target: Target) -> bool:
    """Whether it changes the elements of one side and variables of its own, from the elements, constants and functions
    that only compute."""
    own = declared(fold.body)
    mine = {MINE.format(a) for a in fold.arrays}
    if any(not isinstance(s, Assign | Declare | If) or _keeps(s) for s in walk_stmts(fold.body)):
        return False
    changed = [s.target for s in walk_stmts(fold.body) if isinstance(s, Assign)]
    if not all(isinstance(t, Name | Member) and base_name(t) in mine | set(own) for t in changed):
        return False
    called = set[str]()
    for e in walk_exprs(fold.body):
        if isinstance(e, Unary) and e.op in "&*":
            return False
        if isinstance(e, Call):
            if not isinstance(e.callee, Name) or is_atomic(e) or is_load(e) or not _computes(e.callee.text, target):
                return False
            called |= {e.callee.text, *e.template_args}
    free = {p.name for p in target.kernel.params if not p.is_pointer and p.name not in target.known.changed}
    free |= set(target.constants) | {"INFINITY", "FLT_MAX", "true", "false"}
    both = mine | {OTHER.format(a) for a in fold.arrays}
    return names_mentioned(fold.body) <= both | set(own) | called | free


def _keeps(s: Stmt) -> bool:
    return isinstance(s, Declare) and (bool(s.dims or s.qualifiers) or "*" in s.type or "&" in s.type)


def _computes(name: str, target: Target) -> bool:
    return target.functions.only_computes(name) or name in target.type_names
