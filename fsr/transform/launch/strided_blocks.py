"""Kernels whose blocks go through something of their own in strides: a row a block, ``for (j = threadIdx.x; j < n;
j += THREADS)``. With another number of threads the blocks stay as many, and loops go round as often as it takes."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from fsr.analysis.functions import thread_aware
from fsr.analysis.macros import expanded
from fsr.source.form import Assign, Binary, Call, Declare, Expr, For, If, Index, Member, Name, Ternary, While
from fsr.source.parse import parse_device_functions
from fsr.source.walk import (
    base_name,
    contains_warp_wide,
    identifiers,
    integer,
    names_assigned,
    walk_expr,
    walk_exprs,
    walk_stmts,
)
from fsr.transform.target import Target

_THREAD = frozenset({"threadIdx.x"})
_FEW = 32  # threads that every block has
_ORDERED = frozenset({"<", "<=", ">", ">="})


def goes_in_strides(target: Target, constant: str) -> bool:
    """Whether threads reach buffers by loops in strides of the constant alone, or all alike, and nothing takes a thread
    for an element because there happen to be as many. Float sums come in another order."""
    if _is_one_warp(target):
        return False
    kernel = expanded(target.kernel, target.source)
    loops = [s for s in walk_stmts(kernel.body) if isinstance(s, For)]
    strided = [loop for loop in loops if _strides(loop, target, constant)]
    if target.exact or not strided or any(map(_keeps_places, strided)):
        return False
    pointers = {d.name for d in walk_stmts(kernel.body) if isinstance(d, Declare) and "*" in d.type and not d.dims}
    buffers = pointers | {p.name for p in kernel.params if p.is_pointer}
    aware = thread_aware(target.source)
    return not any(_by_thread(e, buffers, target, aware) for e in walk_exprs(kernel.body)) and all(
        _asks_few(test, target, constant) for test in _tests(target)
    )


def _is_one_warp(target: Target) -> bool:
    """Whether lanes of a warp tell each other something in a block that is one warp: that is what all its threads have,
    of which each of several warps would have a part."""
    threads = target.threads
    forms = (target.kernel, *parse_device_functions(target.source).values())
    return (threads is None or threads <= _FEW) and any(contains_warp_wide(form.body) for form in forms)


def _strides(loop: For, target: Target, constant: str) -> bool:
    step = target.known.expand(loop.step) in (Name(constant), Member(Name("blockDim"), "x"))
    start = target.known.poly(loop.start).coefficient("threadIdx.x")
    return step and start is not None and start.value == 1


def _keeps_places(loop: For) -> bool:
    """Whether a loop keeps what goes along with an extreme: among equals another thread would have the first."""
    for s in walk_stmts(loop.body):
        if isinstance(s, If) and any(isinstance(e, Binary) and e.op in _ORDERED for e in walk_expr(s.test)):
            kept = [t for t in s.then if isinstance(t, Assign) and isinstance(t.target, Name) and t.op == "="]
            if len(kept) > 1:
                return True
    return False


def _by_thread(e: Expr, buffers: Collection[str], target: Target, aware: Collection[str]) -> bool:
    """Whether an element of a buffer is a thread's by its number, or may be in a function that looks at it."""
    match e:
        case Index(base, place) | Binary("+" | "-", base, place):
            return base_name(base) in buffers and target.known.poly(place).depends_on(_THREAD)
        case Call(Name(name), args):
            return name in aware and any(base_name(arg) in buffers for arg in args)
    return False


def _tests(target: Target) -> Iterator[Expr]:
    for s in walk_stmts(target.kernel.body):
        if isinstance(s, If | While):
            yield s.test
    for e in walk_exprs(target.kernel.body):
        if isinstance(e, Ternary):
            yield e.test


def _asks_few(test: Expr, target: Target, constant: str) -> bool:
    """Whether a test of a thread's number holds it against few threads, or against what follows from the constant."""
    changed = names_assigned(target.kernel.body) | {s.var for s in walk_stmts(target.kernel.body) if isinstance(s, For)}
    for e in (e for e in walk_expr(test) if isinstance(e, Binary) and e.op in _ORDERED):
        sides = [x for x in (e.left, e.right) if target.known.poly(x).depends_on(_THREAD)]
        for other in (x for x in (e.left, e.right) if sides and x not in sides):
            few = (integer(other) or _FEW + 1) <= _FEW
            if not few and not identifiers(other) & {constant, *changed, "blockDim"}:
                return False
    return True
