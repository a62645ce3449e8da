"""Blocks that walk over more elements than they have threads, as blocks with a thread an element.

``for (j = threadIdx.x; j < n; j += blockDim.x)`` deals elements out; what a recurrence does for one of them does not
depend on who does it. The kernel that is made here is never launched as it is: there may be more elements than a block
can have threads.
"""

from __future__ import annotations

from dataclasses import replace

from fsr.source.form import Binary, Cast, Expr, For, If, Stmt
from fsr.source.mapping import substitute
from fsr.source.walk import (
    Block,
    contains_barrier,
    declared,
    integer,
    names_assigned,
    nodes,
    without_comments,
)  # fmt: skip
from fsr.transform.plan import with_launch
from fsr.transform.recurrence.shared_state import THREAD, THREADS_OF_BLOCK
from fsr.transform.target import Target


def thread_an_element(target: Target) -> Target | None:
    """The target with such loops as guarded statements of as many threads as the longest has turns; the target itself
    where there are none; None where threads do something else beside them."""
    found = _Found(target)
    body = found.block(without_comments(target.kernel.body))
    if not found.bounds:
        return target
    if found.fails or any(x in (THREAD, THREADS_OF_BLOCK) for x in nodes(found.rest(body))):
        return None
    bounds = sorted(found.bounds)
    threads = bounds[0] if len(bounds) == 1 else f"max({', '.join(bounds)})"
    plan = with_launch(target.candidate.plan, target.position, lambda one: replace(one, block=(threads, "1", "1")))
    return replace(
        target, kernel=replace(target.kernel, body=body), candidate=replace(target.candidate, plan=plan)
    )  # fmt: skip


class _Found:
    def __init__(self, target: Target) -> None:
        self.target, self.known = target, target.known
        self.bounds = set[str]()
        self.made: list[If] = []
        self.fails = False

    def block(self, body: Block) -> Block:
        """The statements, those of a loop with barriers too, with dealt-out loops guarded."""
        return tuple(self._statement(s) for s in body)

    def _statement(self, s: Stmt) -> Stmt:
        if not isinstance(s, For):
            return s
        if contains_barrier((s,)):
            return replace(s, body=self.block(without_comments(s.body)))
        if s.type not in ("int", "unsigned", "unsigned int") or not self._deals_out(s):
            return s
        bound = self.target.size_text(s.bound)
        outside = names_assigned(s.body) - set(declared(s.body)) - self.known.loops
        if bound is None or s.relation != "<" or s.var in names_assigned(s.body) or outside:
            self.fails = True
            return s
        self.bounds.add(bound)
        element: Expr = Cast(s.type, THREAD)
        made = If(Binary("<", element, s.bound), substitute(s.body, {s.var: element}))
        self.made.append(made)
        return made

    def _deals_out(self, s: For) -> bool:
        """Whether a loop starts at the thread's number and goes on by as many as there are threads."""
        step, threads = self.known.expand(s.step), self.target.launch.block[0]
        whole = step == THREADS_OF_BLOCK or (integer(step) is not None and str(integer(step)) == threads.strip())
        return self.target.poly(s.start) == self.target.poly(THREAD) and whole

    def rest(self, body: Block) -> Block:
        """The statements without what was guarded and the names of a thread's number, which nobody uses any more."""

        def left(s: Stmt) -> tuple[Stmt, ...]:
            if any(s is one for one in self.made) or getattr(s, "name", None) in self._numbers:
                return ()
            if isinstance(s, For) and contains_barrier((s,)):
                return (replace(s, body=tuple(x for inner in s.body for x in left(inner))),)
            return (s,)

        return tuple(x for s in body for x in left(s))

    @property
    def _numbers(self) -> frozenset[str]:
        """Locals that hold the thread's number or the number of threads."""
        return frozenset(name for name, value in self.known.values.items() if value in (THREAD, THREADS_OF_BLOCK))
