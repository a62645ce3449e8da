"""Whether the turns of loops may be dealt out to blocks anew, each block doing all else as before.

They may where no turn touches what another one writes, but for atomic operations that may come in any order, and for
what a thread, or its block, gathers in all of its turns: that is added to memory afterwards in a way that commutes
with gathering (as fewer-blocks asks of a block's fold), so that it does not matter which blocks had which turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.accesses import Access, accesses_in, declared_arrays
from fsr.analysis.calls import is_atomic, is_load
from fsr.analysis.definitions import shadowing
from fsr.analysis.dependence import results_of_atomics
from fsr.analysis.effects import Pointers, Unclear, pointers
from fsr.analysis.operators import BY_ATOMIC
from fsr.analysis.types import FLOATING, number_type
from fsr.records import Role
from fsr.source.form import Call, Declare, Expr, ExprStmt, For, If, Member, Name, Scope, Stmt
from fsr.source.mapping import replace_stmt
from fsr.source.walk import (
    Block,
    base_name,
    blocks_of,
    breaks,
    contains_barrier,
    contains_opaque,
    contains_return,
    contains_warp_wide,
    identifiers,
    names_assigned,
    names_in,
    walk_expr,
    walk_exprs,
    walk_stmts,
)
from fsr.transform.fewer.called import folds_of_atomics
from fsr.transform.fewer.commutes import Commutes, values_of
from fsr.transform.fewer.values import FOLDED, UNSET, Frame, UnknownError, Value, joined
from fsr.transform.target import Target
from fsr.transform.turns.gathering import gathered
from fsr.transform.turns.own_elements import own_elements

_SUMS = frozenset(["sum", "product"])


def may_be_dealt(target: Target, loops: tuple[For, ...], axis: str, *, apart: bool = False) -> bool:
    """Whether turns of the loops may be those of any blocks along the axis, which nothing else knows of. The loops are
    those of the target's kernel, none in another, and go on by a step that is the same for all turns. ``apart``: turns
    are known to write no element that another one touches."""
    try:
        scene = pointers(target.kernel, target.passed, target.contract.aliasing, target.functions)
    except Unclear:
        return False
    return _Dealt(target, loops, axis, scene, apart).may()


@dataclass
class _Dealt:
    target: Target
    loops: tuple[For, ...]
    axis: str
    scene: Pointers
    apart: bool

    def __post_init__(self) -> None:
        body = self.target.kernel.body
        self.body = body
        self.turns: Block = tuple(s for loop in self.loops for s in loop.body)
        self.shared = {s.name: s for s in walk_stmts(body) if isinstance(s, Declare) and "__shared__" in s.qualifiers}
        self.names = frozenset(self.scene.roots) | declared_arrays(body) | frozenset(self.shared)
        self.private = frozenset(s.name for s in walk_stmts(self.turns) if isinstance(s, Declare)) | {
            s.var for s in walk_stmts(self.turns) if isinstance(s, For) and s.type is not None
        }
        self.around = tuple(s for s in body if any(loop is t for loop in self.loops for t in walk_stmts((s,))))
        inside = [a for a in accesses_in(self.around, self.names) if any(x is y for x in a.loops for y in self.loops)]
        self.inside = [a for a in inside if a.array not in self.private or a.array in self.scene.roots]
        rest = body
        for loop in self.loops:
            rest = replace_stmt(rest, loop, (ExprStmt(loop.start), ExprStmt(loop.bound), ExprStmt(loop.step)))
        self.rest = rest
        self.outside = accesses_in(rest, self.names)

    def may(self) -> bool:
        """Whether the turns may be dealt out."""
        folds = self._folds()
        if folds is None or not self._is_plain() or not self._elements_apart():
            return False
        atomics = self._atomics()
        if atomics is None:
            return False
        quiet = not (any(a.writes for a in self.outside) or contains_barrier(self.rest) or self.shared)
        quiet = quiet and names_assigned(self.rest) <= self.target.known.types.keys()
        if not folds and quiet and not contains_warp_wide(self.rest):
            return all(self._only_computes(e) for e in walk_exprs(self.rest))
        return _Ends(self, folds, atomics).commutes()

    # ------------------------------------------------------------ the turns

    def _is_plain(self) -> bool:
        """Whether a turn is a thread's alone, and what it may change shows in its text."""
        turns, functions = self.turns, self.target.functions
        if contains_barrier(turns) or contains_warp_wide(turns) or contains_opaque(turns) or contains_return(turns):
            return False
        if any(breaks(loop.body) for loop in self.loops) or results_of_atomics(turns):
            return False
        if not all(functions.stays_in_thread(e, self.target.type_names) for e in walk_exprs(turns)):
            return False
        arrows = (e for e in walk_exprs(turns) if isinstance(e, Member) and e.arrow)
        if not all(self._only_read(e.base) for e in arrows) or self._refers(turns):
            return False
        hidden = shadowing(self.body, frozenset(p.name for p in self.target.kernel.params))
        moved = names_assigned(self.around) & frozenset(self.scene.roots)
        return not (hidden & self.private) and not moved

    def _refers(self, turns: Block) -> bool:
        """Whether something goes by another name, or keeps its value from turn to turn."""
        for s in walk_stmts(turns):
            if isinstance(s, Declare) and (
                set(s.qualifiers) - {"constexpr"} or ("&" in s.type and "const" not in s.type.split())
            ):
                return True
        known = self.target.kernel.by_reference
        calls = (
            (e.callee.text, e.args) for e in walk_exprs(turns) if isinstance(e, Call) and isinstance(e.callee, Name)
        )
        return any(
            f"{name}({n}" in known and base_name(arg) not in self.private
            for name, args in calls for n, arg in enumerate(args)
        )  # fmt: skip

    def _folds(self) -> dict[str, str] | None:
        """What threads gather over their turns: variables and arrays of their own, with the operator. None where they
        hand on anything else."""
        arrays = frozenset(
            s.name
            for s in walk_stmts(self.rest)
            if isinstance(s, Declare) and s.dims and "__shared__" not in s.qualifiers
        )
        found = gathered(self.turns, arrays, self.private, self.names)
        types = self.target.known.types
        for name, fold in (found or {}).items():
            type_ = number_type(types.get(name, ""), self.target.aliases)
            if type_ not in FOLDED or (self.target.exact and fold in _SUMS and type_ in FLOATING):
                return None
        heads = frozenset[str]().union(*(names_in(e) for loop in self.loops for e in (loop.bound, loop.step)))
        return None if found is not None and heads & (found.keys() | self.private) else found

    def root(self, a: Access) -> str:
        """The memory of an access, a shared array's name for that; '' where it is not told."""
        name = a.array or ""
        return f"shared:{name}" if name in self.shared else self.scene.roots.get(name, "")

    def _only_read(self, base: Expr) -> bool:
        """Whether a pointer is a buffer of structures that nobody writes."""
        argument = self.target.argument(base.text) if isinstance(base, Name) else None
        moved = names_assigned(self.body) | frozenset(s.name for s in walk_stmts(self.body) if isinstance(s, Declare))
        read = argument is not None and argument.role is Role.IN and not self.target.aliasing
        return read and isinstance(base, Name) and base.text not in moved

    def _elements_apart(self) -> bool:
        """Whether all that is written plainly are elements of each turn's own, and nobody else looks at them."""
        for s in walk_stmts(self.turns):
            for name in names_assigned((s,)) - self.private:
                if name not in self.target.known.types:
                    return False  # memory of the file's
        if any(a.array is None or a.kind == "opaque" or not self._known(a) for a in self.inside if a.writes):
            return False
        written = {self.root(a) for a in self.inside if a.kind in ("write", "update")} - {""}
        for root in written:
            mine = [a for a in self.inside if self.root(a) == root]
            if root.startswith("shared:") or any(self.root(a) == root for a in self.outside):
                return False
            placed = [(next(x for x in self.loops if any(x is y for y in a.loops)), a) for a in mine]
            heads = {(self.target.known.poly(x.start), self.target.known.poly(x.step)) for x, _ in placed}
            around = frozenset(s.var for s in walk_stmts(self.around) if isinstance(s, For)) | self._inside_around()
            around |= self.target.known.changed
            if len(heads) > 1 or any(part.depends_on(around) for head in heads for part in head):
                return False
            if not (self.apart or self._scattered(mine) or own_elements(self.target, placed)):
                return False
        # What may be any memory is written by none.
        unclear = [a for a in (*self.inside, *self.outside) if a.array is None and a.kind == "opaque"]
        return not (written and unclear)

    def _scattered(self, mine: list[Access]) -> bool:
        """Whether memory is written alone, at places that data say, and nothing of the thread's. Turns of different
        threads meet there in no order already; which turns a thread has, data do not know, so that none that meet can
        all be one thread's. (The tests have the last word.)"""
        told = self.private | {loop.var for loop in self.loops} | {p.name for p in self.target.kernel.params}
        for a in mine:
            names = frozenset[str]() if a.index is None else self._made_of(self.target.known.expand(a.index))
            if a.kind != "write" or not names <= told or not any(self._is_read(name, a) for name in names):
                return False
        return True

    def _made_of(self, e: Expr) -> frozenset[str]:
        """The names in an expression, and in those that variables of the turn's own begin with."""
        found, left = set[str](), list(names_in(e))
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                own = (s.init for s in walk_stmts(self.turns) if isinstance(s, Declare) and s.name == name)
                left += [n for init in own if init is not None for n in names_in(init)]
        return frozenset(found)

    def _is_read(self, name: str, a: Access) -> bool:
        """Whether a variable of the turn's own is made of elements of memory that no turn writes."""
        own = [s for s in walk_stmts(self.turns) if isinstance(s, Declare) and s.name == name]
        init = own[0].init if len(own) == 1 and name not in names_assigned(self.turns) else None
        if init is None:
            return False
        parts = list(walk_expr(init))
        read = [x for x in self.inside if x.kind == "read" and x.array and any(x.expr is e for e in parts)]
        if read:
            return all(self.root(x) not in ("", self.root(a)) for x in read)
        return any(self._is_read(e.text, a) for e in parts if isinstance(e, Name) and e.text != name)

    def _inside_around(self) -> frozenset[str]:
        return frozenset(s.name for x in self.around if isinstance(x, For) for s in walk_stmts(x.body)
                         if isinstance(s, Declare))  # fmt: skip

    def _known(self, a: Access) -> bool:
        """Whether an access is to memory that is known, or to an array of the thread's own."""
        name = a.array or ""
        return bool(self.root(a)) or name in declared_arrays(self.body)

    def _atomics(self) -> dict[str, str] | None:
        """The operator by memory of what turns add to atomically, in any order, and touch in no other way. None where
        the order shows."""
        found: dict[str, str] = {}
        for a in (a for a in self.inside if a.kind == "atomic"):
            operator = atomic_fold(a.expr, self.target)
            if operator is None or found.setdefault(self.root(a), operator) != operator or not self.root(a):
                return None
            type_ = self.scene.elements.get(a.array or "", "")
            type_ = type_ or (self.shared[a.array].type if a.array in self.shared else "")
            floating = number_type(type_, self.target.aliases) not in FOLDED - FLOATING
            if self.target.exact and operator in _SUMS and floating:
                return None
        gathered = (a for a in self.outside if not self.root(a).startswith("shared:"))  # what a block does with its own
        for a in (*self.inside, *gathered):
            root = self.root(a)
            if root in found and not (a.kind == "atomic" and atomic_fold(a.expr, self.target) == found[root]):
                return None
        return found

    def _only_computes(self, e: Expr) -> bool:
        if not isinstance(e, Call) or is_load(e):
            return True
        name = e.callee.text if isinstance(e.callee, Name) else ""
        return self.target.functions.only_computes(name) or name in self.target.type_names


@dataclass
class _Ends:
    """What is done before and behind the turns, gone through with what they gather."""

    dealt: _Dealt
    folds: Mapping[str, str]
    atomics: Mapping[str, str]

    def __post_init__(self) -> None:
        target, dealt = self.dealt.target, self.dealt
        written = {dealt.root(a) for a in (*dealt.inside, *dealt.outside) if a.writes}
        params = [p.name for p in target.kernel.params if p.is_pointer]
        read_only = frozenset(p for p in params if dealt.scene.roots[p] not in written)
        self.walk = Commutes(target, dealt.axis, read_only)
        self.env: Frame = values_of(target.kernel, target.aliases)

    def commutes(self) -> bool:
        """Whether all of it does the same, in any blocks that have some of the turns."""
        try:
            self._run(self.dealt.body)
        except UnknownError:
            return False
        dealt = self.dealt
        added = {dealt.scene.roots.get(p, "") for p in self.walk.added}
        read = (a for a in dealt.outside if not a.writes)  # in the heads of loops, as the end reads no such memory
        touched = {dealt.root(a) for a in (*dealt.inside, *read)} - self.atomics.keys()
        return not added & touched

    def _run(self, body: Block) -> None:
        for s in body:
            if any(s is loop for loop in self.dealt.loops):
                self._gather()
            elif not any(s is t for t in self._above()):
                self._pass(s)
            elif isinstance(s, Scope):
                self._run(s.body)
            elif isinstance(s, If) and not s.orelse:
                self.walk.fixed(s.test, self.env)
                self._run(s.then)
            else:
                raise UnknownError

    def _pass(self, s: Stmt) -> None:
        """One statement, dynamic shared memory as any other; none that tells heads of loops alone where a block is."""
        ids = {f"{name}.{self.dealt.axis}" for name in ("blockIdx", "gridDim")}
        if isinstance(s, Declare) and s.init is not None and identifiers(self.dealt.target.known.expand(s.init)) & ids:
            return
        self.walk.last = False
        if isinstance(s, Declare) and {"__shared__", "extern"} <= set(s.qualifiers):
            s = replace(s, qualifiers=("__shared__",))
        if not self.walk.passes((s,), self.env):
            raise UnknownError

    def _above(self) -> Iterator[Stmt]:
        for s in walk_stmts(self.dealt.around):
            if any(t is loop for block in blocks_of(s) for t in walk_stmts(block) for loop in self.dealt.loops):
                yield s

    def _gather(self) -> None:
        """What variables hold behind the turns."""
        for name, fold in self.folds.items():
            type_ = self.walk.plain(self.dealt.target.known.types[name])
            self.env[name] = joined(self.env.get(name, UNSET), Value("leaves", _EXTREME.get(fold, fold), type_))
        for root, fold in self.atomics.items():
            place = self.env.get(root.removeprefix("shared:"), UNSET)
            if root.startswith("shared:"):
                self.walk.store(replace(place, variable=False), Value("leaves", fold, place.type))


_EXTREME = {"greatest": "max", "least": "min"}


def atomic_fold(e: Expr, target: Target) -> str | None:
    """The operator of an atomic operation that may come in any order, as CUDA or the file defines it; None of any other
    call."""
    name = e.callee.text if isinstance(e, Call) and isinstance(e.callee, Name) and is_atomic(e) else ""
    if name not in target.functions.own:
        return BY_ATOMIC.get(name)
    return BY_ATOMIC.get(f"atomic{folds_of_atomics(target.source).get(name, '')}")
