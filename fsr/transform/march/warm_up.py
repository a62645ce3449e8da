"""The turns before a segment's first one: what of a turn fills the delay lines, and nothing that it stores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fsr.analysis.accesses import declared_arrays
from fsr.source.form import Assign, Call, Comment, Declare, Expr, ExprStmt, For, If, Name, Scope, Stmt, While
from fsr.source.walk import Block, base_name, exprs_of, names_in, names_mentioned, walk_expr, written_by
from fsr.transform.march.form import March, is_barrier


@dataclass(frozen=True)
class Phase:
    """``turns`` in which ``body`` is all that is needed of a turn; ``last``: how many turns come after them before the
    segment's own."""

    turns: int
    body: Block
    last: int


def phases(march: March) -> tuple[Phase, ...]:
    """The turns that fill the lines: those of which only what is handed on twice matters, and the last one."""
    needed = march.lines.needed
    if not needed:
        return ()
    last = _needed(march, needed[0])
    if len(needed) == 1:
        return (Phase(1, last, 0),)
    before = _needed(march, frozenset[str]().union(*needed[1:]))
    if before == last:
        return (Phase(len(needed), last, 0),)
    return Phase(len(needed) - 1, before, 1), Phase(1, last, 0)


def _needed(march: March, names: frozenset[str]) -> Block:
    """What of a turn makes the variables ``names``, and moves what the turn's number tells. With shared memory come all
    barriers of a turn."""
    wanted, barriers = names | {step.name for step in march.steps}, False
    while True:
        body = _Slice(march, set(wanted), barriers).kept(march.loop.body)
        shared = frozenset(march.scene.roots.get(n, n) for n in names_mentioned(body)) & march.scene.shared
        if shared <= wanted and barriers == bool(shared):
            return body
        wanted, barriers = wanted | shared, bool(shared)


class _Slice:
    """What of statements makes what is ``live`` behind them. All that may change a variable counts, whether it is sure
    to or not."""

    def __init__(self, march: March, live: set[str], barriers: bool) -> None:
        self.roots, self.shared = march.scene.roots, march.scene.shared
        self.by_reference = march.target.kernel.by_reference
        self.arrays = declared_arrays(march.target.kernel.body)
        self.live, self.barriers = live, barriers

    def kept(self, body: Block) -> Block:
        """The statements that are needed; ``live`` becomes what is so before them."""
        found = [kept for s in reversed(body) if (kept := self._statement(s)) is not None]
        return tuple(reversed(found))

    def _read(self, exprs: Iterable[Expr]) -> set[str]:
        names = {n for e in exprs for n in names_in(e)}
        return names | {root for n in names if (root := self.roots.get(n)) in self.shared and root is not None}

    def _sets(self, s: Stmt) -> bool:
        """Whether the expressions of a statement may set something live: by address, or as a call's argument."""
        for e in exprs_of(s):
            calls = (x for x in walk_expr(e) if isinstance(x, Call))
            if written_by(e) & self.live or any(self._given(x) & self.live for x in calls):
                return True
        return False

    def _given(self, call: Call) -> set[str]:
        """What a call gets by reference, and arrays."""
        callee = call.callee.text.split("<")[0].strip() if isinstance(call.callee, Name) else ""
        names = {n for at, a in enumerate(call.args) if f"{callee}({at}" in self.by_reference for n in names_in(a)}
        return names | {n for a in call.args for n in names_in(a) if n in self.arrays}

    def _statement(self, s: Stmt) -> Stmt | None:
        needed = self._sets(s)
        match s:
            case Comment():
                return None
            case Declare(name=name):
                needed |= name in self.live
                self.live.discard(name)
            case Assign(target):
                name = base_name(target) or ""
                stores = name in self.roots and not isinstance(target, Name)  # through a pointer, which stays
                needed |= self.roots[name] in self.live & self.shared if stores else name in self.live
            case ExprStmt():
                needed |= self.barriers and is_barrier(s)
            case Scope(body):
                inner = self.kept(body)
                return replace(s, body=inner) if inner else None
            case If():
                return self._either(s, needed)
            case For() | While():
                return self._loop(s, needed)
        if not needed:
            return None
        self.live |= self._read(exprs_of(s))
        return s

    def _either(self, s: If, needed: bool) -> If | None:
        behind = set(self.live)
        then = self.kept(s.then)
        after_then, self.live = self.live, set(behind)
        orelse = self.kept(s.orelse)
        self.live |= after_then | behind
        if not (then or orelse or needed):
            return None
        self.live |= self._read((s.test,))
        return replace(s, then=then, orelse=orelse)

    def _loop(self, s: For | While, needed: bool) -> Stmt | None:
        """A loop with what of its turns is needed by what is live behind it, or by other turns."""
        own = {s.var} if isinstance(s, For) else set[str]()
        needed |= isinstance(s, For) and s.type is None and s.var in self.live
        behind = set(self.live)
        if not self.kept(s.body) and not needed:
            self.live = behind
            return None
        live = behind | own | self._read(exprs_of(s))
        while True:
            self.live = set(live)
            body = self.kept(s.body)
            if self.live <= live:
                self.live = live
                return replace(s, body=body)
            live |= self.live
