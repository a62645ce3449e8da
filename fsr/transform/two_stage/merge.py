"""The author's own merge: how a step of a block's fold puts another thread's state into a thread's own.

In a tree that is what stands between two barriers, in terms of ``s_x[tid]`` and ``s_x[tid + s]``; with shuffles, what
is done with what the other lane has.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from fsr.analysis.calls import is_atomic, is_load
from fsr.analysis.polynomial import Poly
from fsr.source.form import (
    Assign,
    Call,
    Comment,
    Declare,
    Expr,
    For,
    If,
    Index,
    Name,
    Scope,
    Stmt,
    Unary,
    While,
    conjunction,
    conjuncts,
)  # fmt: skip
from fsr.source.mapping import map_stmts, rewrite
from fsr.source.walk import (
    BUILTINS,
    Block,
    contains_opaque,
    declared,
    exprs_of,
    identifiers,
    names_in,
    names_mentioned,
    variables,
    walk_expr,
    walk_exprs,
    walk_stmts,
)  # fmt: skip
from fsr.transform.target import Target
from fsr.transform.trees.fold import MINE, OTHER

_SHUFFLE = re.compile(r"__shfl_(down|xor)_sync$")


@dataclass(frozen=True)
class Merge:
    """``body``: with ``Name(MINE of state)`` and ``Name(OTHER of state)`` for both sides of each of ``states``: shared
    arrays, or variables."""

    body: Block
    states: tuple[str, ...]

    @property
    def mine(self) -> frozenset[str]:
        """The names of a thread's own side."""
        return frozenset(map(MINE.format, self.states))

    @property
    def others(self) -> frozenset[str]:
        """Those of the other side."""
        return frozenset(map(OTHER.format, self.states))


def tree_merge(s: Stmt, arrays: frozenset[str], target: Target, before: frozenset[str]) -> Merge | None:
    """The merge of a statement that is a tree over elements of the shared arrays, or begins with one. ``before``:
    variables that stay as they were in front of the turns."""

    def mentions(e: Expr) -> bool:
        return bool(names_in(e) & arrays)

    stmts = _innermost((s,), mentions)
    elements = [e for e in walk_exprs(stmts) if isinstance(e, Index) and _array(e) in arrays]
    written = {target.known.poly(x.target.index) for x in walk_stmts(stmts)
               if isinstance(x, Assign) and isinstance(x.target, Index) and _array(x.target) in arrays}  # fmt: skip
    places = {target.known.poly(e.index) for e in elements}
    mentioned = sum(isinstance(e, Name) and e.text in arrays for e in walk_exprs(stmts))
    if len(written) != 1 or len(places) != 2 or mentioned != len(elements) or not written <= places:
        return None
    (mine,), (other,) = written, places - written
    if not _is_behind(other - mine):
        return None

    def change(e: Expr) -> Expr | None:
        if not isinstance(e, Index) or _array(e) not in arrays:
            return None
        return Name((MINE if target.known.poly(e.index) == mine else OTHER).format(_array(e)))

    states = tuple(dict.fromkeys(_array(e) for e in elements))
    return _pure(Merge(rewrite(stmts, change), states), target, before)


def shuffled(s: Stmt) -> frozenset[str]:
    """The variables that a statement shuffles."""
    return frozenset(v for e in walk_exprs((s,)) if (v := _shuffled(e)) is not None)


def shuffle_merge(s: Stmt, target: Target, before: frozenset[str]) -> Merge | None:
    """The merge of a statement that shuffles variables among the lanes of a warp."""
    states = shuffled(s)
    stmts = _innermost((s,), lambda e: bool(names_in(e) & states))
    offsets = {e.args[2:] for e in walk_exprs(stmts) if isinstance(e, Call) and _shuffled(e) is not None}
    if len(offsets) != 1 or _shuffles_late(stmts):
        return None

    def change(e: Expr) -> Expr | None:
        found = _shuffled(e)
        if found is not None:
            return Name(OTHER.format(found))
        return Name(MINE.format(e.text)) if isinstance(e, Name) and e.text in states else None

    return _pure(Merge(rewrite(stmts, change), tuple(sorted(states))), target, before)


def renamed(merge: Merge, names: dict[str, str]) -> Block:
    """The merge in terms of variables; ``names``: by placeholder."""
    return rewrite(merge.body, lambda e: Name(names[e.text]) if isinstance(e, Name) and e.text in names else None)


def _array(e: Index) -> str:
    return e.base.text if isinstance(e.base, Name) else ""


def _shuffled(e: Expr) -> str | None:
    match e:
        case Call(Name(text), (_, Name(name), _, *_)) if _SHUFFLE.match(text):
            return name
    return None


def _shuffles_late(stmts: Block) -> bool:
    """Whether a variable is shuffled behind where it was set: the other lane would have set its own, too."""
    set_ = set[str]()
    for s in walk_stmts(stmts):
        if any(_shuffled(x) in set_ for e in exprs_of(s) for x in walk_expr(e)):
            return True
        if isinstance(s, Assign) and isinstance(s.target, Name):
            set_.add(s.target.text)
    return False


def _is_behind(distance: Poly) -> bool:
    """Whether the other side is that of a later thread."""
    return bool(distance.terms) and all(count > 0 and all(x[0] != "{" for x in m) for m, count in distance.terms)


def _innermost(stmts: Block, mentions: Callable[[Expr], bool]) -> Block:
    """The statements with state, without what decides which threads go through them, and how often."""

    def concerned(s: Stmt) -> bool:
        return any(mentions(e) for e in walk_exprs((s,)))

    own = [n for n, s in enumerate(stmts) if concerned(s)]
    if not own:
        return ()
    one = stmts[own[0]]
    if len(own) == 1:
        match one:
            case If(test, then, ()):
                parts = conjuncts(test)
                first = next((n for n, p in enumerate(parts) if mentions(p)), len(parts))
                rest = conjunction(parts[first:])
                return _innermost(then, mentions) if rest is None else (If(rest, then),)
            case Scope(body):
                return _innermost(body, mentions)
            case For() | While() if not any(mentions(e) for e in exprs_of(one)):
                return _innermost(one.body, mentions)
    return stmts[own[0] : own[-1] + 1]


def _pure(merge: Merge, target: Target, before: frozenset[str]) -> Merge | None:
    """The merge, if it changes nothing but a thread's own state, and is told by nothing but both."""
    body = map_stmts(merge.body, lambda s: () if isinstance(s, Comment) else s)
    own = declared(body)
    if contains_opaque(body) or not body:
        return None
    for s in walk_stmts(body):
        if not isinstance(s, Assign | Declare | If):
            return None
        if isinstance(s, Declare) and (s.dims or s.qualifiers or "*" in s.type or "&" in s.type):
            return None
        if isinstance(s, Assign) and not (isinstance(s.target, Name) and s.target.text in merge.mine | set(own)):
            return None
    if not all(only_computes(e, target) for e in walk_exprs(body)):
        return None
    kernel = target.kernel
    told = identifiers(body)
    if any(n.split(".")[0] in BUILTINS for n in told):
        return None
    visible = {*variables(kernel.body), *(p.name for p in kernel.params)} - set(own)
    free = before | {p.name for p in kernel.params if not p.is_pointer and p.name not in target.known.changed}
    known = names_mentioned(body) & visible
    return Merge(body, merge.states) if known <= free and not _tells_thread(known, target) else None


def _tells_thread(names: frozenset[str], target: Target) -> bool:
    found = frozenset[str]().union(*(identifiers(target.known.expand(Name(n))) for n in names))
    return any(n.split(".")[0] in BUILTINS for n in found)


def only_computes(e: Expr, target: Target) -> bool:
    """Whether an expression, not its parts, reads no memory and calls nothing that does more than compute."""
    if isinstance(e, Index) or (isinstance(e, Unary) and e.op in "&*"):
        return False
    if not isinstance(e, Call):
        return True
    if not isinstance(e.callee, Name) or is_atomic(e) or is_load(e):
        return False
    return target.functions.only_computes(e.callee.text) or e.callee.text in target.type_names
