"""Recognising a kernel in which one thread handles one element, or elements a whole grid apart: a global thread
number, a guard or a grid-stride loop, and work that depends on nothing else about the thread."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fsr.analysis.accesses import Access
from fsr.analysis.effects import Unclear, accesses
from fsr.analysis.parallel import Scene
from fsr.source.form import (
    Binary,
    Comment,
    Declare,
    Expr,
    For,
    If,
    Jump,
    KernelForm,
    Name,
    Return,
    Scope,
    Stmt,
    While,
)  # fmt: skip
from fsr.source.walk import blocks_of, identifiers, names_changed, names_in, walk_stmts
from fsr.transform.protocol import Subject
from fsr.transform.rows.row_kernel import scene_of
from fsr.transform.rows.thread_numbers import Split, grid_stride, is_row, uses_threads
from fsr.transform.sizes import always, one_thread_each
from fsr.transform.target import Target, target_for


@dataclass(frozen=True, slots=True)
class ElementKernel:
    """``body`` runs once for every ``var`` (of ``type``) from 0 below ``bound``, in no particular order.

    ``before``: statements in front that do not depend on the thread. A ``continue`` at the top of ``body`` ends
    one element's work. ``count``: the bound as a size expression, or the number of threads where it is none.
    """

    target: Target
    before: tuple[Stmt, ...]
    var: str
    type: str
    bound: Expr
    body: tuple[Stmt, ...]
    accesses: tuple[Access, ...]
    scene: Scene
    threads: int
    count: str


def element_kernel(subject: Subject, kernel: KernelForm) -> ElementKernel | None:
    """The kernel as work on single elements; None where that cannot be shown. Every action on atomics asks for it."""
    return subject.once(("element kernel", kernel.name), lambda: _element_kernel(subject, kernel))


def _element_kernel(subject: Subject, kernel: KernelForm) -> ElementKernel | None:
    found = target_for(subject, kernel)
    if found is None or _templated(kernel) or tuple(found.launch.grid[1:]) != ("1", "1"):
        return None
    threads = found.row_threads
    if threads is None:
        return None
    split = _one_each(kernel, threads)
    strided = split is None
    split = split or grid_stride(kernel, threads)
    if split is None:
        return None
    before, var, type_, bound, body = split
    if uses_threads((*before, *body)) or var in names_changed(body) or names_in(bound) & names_changed(kernel.body):
        return None
    try:
        scene = scene_of(found, exact=subject.contract.tolerance.exact)
        ahead = accesses(before, scene.pointers)
        done = tuple(accesses(body, scene.pointers))
        written = {a.root for a in done if a.kind != "read"}
        if any(not isinstance(s, Comment | Declare) for s in before) or any(a.root in written for a in ahead):
            return None
    except Unclear:
        return None
    finished = ended(body)
    if finished is None or not covered(found, bound, threads, strided):
        return None
    count = found.size_text(bound) or f"({found.launch.grid[0]}) * {threads}"
    return ElementKernel(found, before, var, type_, bound, finished, done, scene, threads, count)


def _templated(kernel: KernelForm) -> bool:
    """Whether the kernel's text means what its template's arguments say."""
    written = identifiers(kernel.body) | {w for p in kernel.params for w in re.findall(r"\w+", p.type)}
    return bool(written & {name for _, name in kernel.template_parameters})


def covered(found: Target, bound: Expr, threads: int, strided: bool) -> bool:
    """Whether the launch has a thread for every element below the bound (at least one thread when they stride)."""
    text = found.size_text(bound)
    if text is None:
        return False
    grid = found.launch.grid[0]
    if not strided and one_thread_each(grid, text, threads):
        return True
    wanted = f"min(1, ({text}))" if strided else f"({text})"
    return always(found.contract, f"({grid}) * {threads} >= {wanted}")


def _one_each(kernel: KernelForm, threads: int) -> Split | None:
    """``int i = <global id>; if (i < n) { body }`` or ``if (i >= n) return; body``."""
    at = next((k for k, s in enumerate(kernel.body) if isinstance(s, Declare) and is_row(s, threads)), None)
    if at is None:
        return None
    declare = kernel.body[at]
    assert isinstance(declare, Declare)
    var, type_ = declare.name, declare.type.removeprefix("const ")
    rest = [s for s in kernel.body[at + 1 :] if not isinstance(s, Comment)]
    middle = [s for s in rest if isinstance(s, Declare) and s.init is not None and var not in names_in(s.init)]
    while rest and rest[0] in middle:
        rest = rest[1:]
    between = kernel.body[at + 1 : len(kernel.body)]
    between = tuple(s for s in between if s in middle and s not in rest)
    match rest:
        case [If(test=test, then=then, orelse=())]:
            bound = _below(test, var)
            if bound is not None:
                return (*kernel.body[:at], *between), var, type_, bound, then
    match rest:
        case [
            If(test=Binary(op=">=", left=Name(text=left), right=bound), then=(Return(value=None),), orelse=()),
            *body,
        ]:
            if left == var:
                return (*kernel.body[:at], *between), var, type_, bound, tuple(body)
    return None


def _below(test: Expr, var: str) -> Expr | None:
    match test:
        case Binary(op="<", left=Name(text=left), right=bound) if left == var:
            return bound
        case Binary(op=">", left=bound, right=Name(text=right)) if right == var:
            return bound
    return None


def ended(body: Sequence[Stmt]) -> tuple[Stmt, ...] | None:
    """The statements with every ``return`` as ``continue``; None when one stands in an inner loop."""
    for stmt in walk_stmts(body):
        if isinstance(stmt, For | While):
            inner = [s for block in blocks_of(stmt) for s in walk_stmts(block)]
            if any(isinstance(s, Return) for s in inner):
                return None
    return tuple(continuing(s) for s in body)


def continuing(stmt: Stmt) -> Stmt:
    """A statement with ``return`` outside loops meaning: on to the next one."""
    match stmt:
        case Return():
            return Jump("continue")
        case If(then=then, orelse=orelse):
            return replace(stmt, then=tuple(map(continuing, then)), orelse=tuple(map(continuing, orelse)))
        case Scope(body=body):
            return replace(stmt, body=tuple(map(continuing, body)))
    return stmt
