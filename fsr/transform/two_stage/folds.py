"""What a block does behind the turns, cut in two: what makes a thread's state, and the fold with all that follows it.

``s_x[tid] = e`` in front of a tree, or a variable in front of shuffles, is a state: the first launch keeps it, and the
second has it back at the same place. All else that is made of what turns left belongs to the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from fsr.analysis.polynomial import constant, polynomial
from fsr.analysis.types import bare
from fsr.source.form import Assign, Comment, Declare, Expr, For, If, Index, Name, Scope, Stmt
from fsr.source.walk import (
    Block,
    contains_barrier,
    contains_return,
    contains_warp_wide,
    fresh,
    jumps,
    names_assigned,
    names_in,
    names_mentioned,
    walk_expr,
    walk_exprs,
    walk_stmts,
)  # fmt: skip
from fsr.transform.target import Target
from fsr.transform.thread_number import thread_number
from fsr.transform.trees.fold import MINE, OTHER
from fsr.transform.two_stage.merge import Merge, only_computes, shuffle_merge, shuffled, tree_merge
from fsr.transform.two_stage.turns import Turns

_NOTHING = Comment("")  # in the place of what the second launch has not


@dataclass(frozen=True)
class State:
    """A number that a block folds: ``key``, the shared array or the variable; ``value``: what a thread has of it behind
    its turns; ``own``: a variable for it, and ``kept``: memory for it."""

    key: str
    type: str
    value: Expr
    own: str
    kept: str


@dataclass(frozen=True)
class Fold:
    """States that are merged together; ``states``: in the merge's order."""

    merge: Merge
    states: tuple[State, ...]

    @property
    def sides(self) -> dict[str, tuple[str, bool]]:
        """By placeholder of the merge, whose state it is, by ``own``, and whether a thread's own side."""
        pairs = list(zip(self.merge.states, self.states, strict=True))
        return {MINE.format(n): (s.own, True) for n, s in pairs} | {OTHER.format(n): (s.own, False) for n, s in pairs}


@dataclass(frozen=True)
class Ends:
    """``folds``: of which states, and how they are merged. ``first``: behind the turns, in the first launch,
    where a statement that keeps a state is one that sets its ``kept``; ``second``: in the second, with ``own``."""

    folds: tuple[Fold, ...]
    first: Block
    second: Block

    @property
    def states(self) -> tuple[State, ...]:
        """All of them."""
        return tuple(s for fold in self.folds for s in fold.states)


def ends_of(target: Target, turns: Turns) -> Ends | None:
    """The end of a kernel in two; None where something else is made of what turns left."""
    scan = _Scan(target, turns)
    for s in turns.behind:
        if not scan.takes(s):
            return None
    return scan.ends()


@dataclass
class _Scan:
    """``made``: variables that turns made; ``open``: arrays that threads have set and nobody folded yet; ``late``:
    variables that are set only in the second launch."""

    target: Target
    turns: Turns
    made: set[str] = field(default_factory=set)
    open: dict[str, State] = field(default_factory=dict)
    folds: list[Fold] = field(default_factory=list)
    first: list[tuple[Stmt, bool]] = field(default_factory=list)  # with whether it is there for its own sake
    second: list[Stmt] = field(default_factory=list)
    dropped: dict[str, tuple[int, Declare]] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.made |= self.turns.handed
        self.taken = set(self.target.names)
        before = (s for s in self.turns.before if isinstance(s, Declare) and not s.dims)
        self.steady = frozenset(s.name for s in before) - names_assigned(self.target.kernel.body)
        kernel = self.target.kernel
        self.shared = {s.name: bare(s.type) for s in walk_stmts(kernel.body) if isinstance(s, Declare)
                       and ("__shared__" in s.qualifiers and len(s.dims) == 1)}  # fmt: skip
        for s in walk_stmts(kernel.body):  # pieces of shared memory
            pointing = isinstance(s, Declare) and s.type.count("*") == 1 and s.name not in names_assigned(kernel.body)
            if isinstance(s, Declare) and pointing and s.init is not None and names_in(s.init) & self.shared.keys():
                self.shared[s.name] = bare(s.type)

    def ends(self) -> Ends | None:
        """What was found."""
        if not self.folds or self.open:
            return None
        return Ends(tuple(self.folds), tuple(self._needed()), tuple(s for s in self.second if s != _NOTHING))

    def takes(self, s: Stmt) -> bool:
        """Go through one statement; says whether it may stand there."""
        named = names_mentioned((s,))
        if isinstance(s, Comment) or not named & self.made:
            if named & self.open.keys():
                return self._folds(s)
            if shuffled(s) & self.made:
                return False
            return self._stays(s)
        if named & self.open.keys() and not self._sets(s):
            return False
        if self._sets(s):
            return self._opens(s)
        if isinstance(s, Assign) and isinstance(s.target, Name) and s.op == "=" and not names_in(s.value) & self.made:
            self.made.discard(s.target.text)  # whatever turns left is gone
            return self._stays(s)
        if shuffled(s):
            return self._shuffles(s)
        return self._makes(s)

    # ------------------------------------------------------------ states

    def _sets(self, s: Stmt) -> bool:
        """Whether each thread sets an element of its own, from what it has."""
        if not isinstance(s, Assign) or not isinstance(s.target, Index) or s.op != "=":
            return False
        base, block = s.target.base, self.target.block
        if not isinstance(base, Name) or base.text not in self.shared or base.text in self.open or block is None:
            return False
        known = {name: constant(value) for name, value in self.target.numbers.items()}
        own = polynomial(thread_number(block), known)
        if self.target.known.poly(s.target.index, self.target.numbers) != own:
            return False
        return self._is_plain(s.value) and not names_in(s.value) & (self.late | self.shared.keys())

    def _opens(self, s: Stmt) -> bool:
        assert isinstance(s, Assign)
        assert isinstance(s.target, Index)
        assert isinstance(s.target.base, Name)
        array = s.target.base.text
        state = self._state(array, self.shared[array], s.value)
        self.open[array] = state
        self.first.append((Assign(Name(state.kept), "=", s.value), True))
        self.second.append(replace(s, value=Name(state.own)))
        return True

    def _state(self, key: str, type_: str, value: Expr) -> State:
        own = self._fresh(f"own_{key}")
        return State(key, type_, value, own, self._fresh(f"kept_{key}"))

    def _fresh(self, wanted: str) -> str:
        found = fresh(wanted, self.taken)
        self.taken.add(found)
        return found

    def _folds(self, s: Stmt) -> bool:
        """The first step of a tree over arrays that are open."""
        merge = tree_merge(s, frozenset(self.open), self.target, self.steady)
        if merge is None:
            return False
        self.folds.append(Fold(merge, tuple(self.open.pop(array) for array in merge.states)))
        return self._stays(s)

    def _shuffles(self, s: Stmt) -> bool:
        merge = shuffle_merge(s, self.target, self.steady)
        if merge is None or names_mentioned((s,)) & (self.made - set(merge.states)) or self.open:
            return False
        if not set(merge.states) <= self.made:
            return False
        states = []
        for name in merge.states:
            type_ = self.target.known.types.get(name)
            if type_ is None or set("*&") & set(type_):
                return False
            states.append(self._state(name, bare(type_), Name(name)))
        for state in states:
            self.first.append((Assign(Name(state.kept), "=", state.value), True))
            if state.key in self.dropped:
                at, own = self.dropped[state.key]
                self.second[at] = replace(own, type=bare(own.type), init=Name(state.own))
            else:
                self.second.append(Assign(Name(state.key), "=", Name(state.own)))
        self.folds.append(Fold(merge, tuple(states)))
        self.made -= set(merge.states)
        self.late |= set(merge.states)
        return self._stays(s)

    # ------------------------------------------------------------ all else

    def _stays(self, s: Stmt) -> bool:
        """A statement that has nothing to do with what turns left: it is in the second launch, and in the first if that
        needs what it sets."""
        if not self.folds and isinstance(s, Declare) and not s.qualifiers and not s.dims and self._is_local(s):
            self.first.append((s, False))
        else:
            self.late |= names_assigned((s,)) | {x.name for x in walk_stmts((s,)) if isinstance(x, Declare)}
        self.second.append(s)
        return True

    def _makes(self, s: Stmt) -> bool:
        """A statement that makes variables of what turns left."""
        if names_mentioned((s,)) & (self.late | self.shared.keys()) or not self._is_local(s):
            return False
        self.first.append((s, True))
        self.made |= names_assigned((s,))
        if isinstance(s, Declare):
            self.made.add(s.name)
            self.dropped[s.name] = len(self.second), s
            self.second.append(_NOTHING)
        return True

    def _is_local(self, s: Stmt) -> bool:
        """Whether a statement sets variables of the thread, from variables of the thread."""
        for x in walk_stmts((s,)):
            if not isinstance(x, Assign | Declare | If | For | Scope | Comment):
                return False
            if isinstance(x, Assign) and not isinstance(x.target, Name):
                return False
            if isinstance(x, Declare) and (x.dims or x.qualifiers or set("*&") & set(x.type)):
                return False
        whole = (s,)
        if contains_barrier(whole) or contains_warp_wide(whole) or contains_return(whole) or jumps(whole):
            return False
        return all(self._is_plain(e) for e in walk_exprs(whole))

    def _is_plain(self, e: Expr) -> bool:
        return all(only_computes(part, self.target) for part in walk_expr(e))

    def _needed(self) -> Iterator[Stmt]:
        """The first launch's statements, without those that nobody there needs."""
        needed, kept = set[str](), list[Stmt]()
        for s, own in reversed(self.first):
            if own or (isinstance(s, Declare) and s.name in needed):
                needed |= names_mentioned((s,))
                kept.append(s)
        return reversed(kept)
