"""Loops that do something as long as there is room or something left: ``for (...) if (count < most && ...) { ...;
count++; }``. Once the test of what they alone change there fails, no later turn does anything, and it fails for good.
"""

from __future__ import annotations

from fsr.analysis.calls import is_load
from fsr.source.form import Binary, Call, Declare, Expr, For, If, Jump, Literal, Name, Unary, conjunction, conjuncts
from fsr.source.references import by_reference, given_by_reference
from fsr.source.walk import (
    Block,
    blocks_of,
    contains_barrier,
    contains_opaque,
    contains_warp_wide,
    names_assigned,
    names_in,
    variables,
    walk_expr,
    walk_stmts,
    without_comments,
)
from fsr.transform.target import Target

_COMPARED = ("<", ">", "<=", ">=", "==", "!=")


def with_end(target: Target, loop: For) -> Block | None:
    """The loop's body with a test in front that ends it; None where nothing runs out, or other effects go on."""
    plain = without_comments(loop.body)
    if loop.type is None or contains_opaque(loop.body) or not plain or not _is_guarded(target, plain):
        return None
    branch = plain[-1]
    assert isinstance(branch, If)
    changed = names_assigned(branch.then) | given_by_reference(branch.then, by_reference(target.source))
    steady = _scalars(target, loop) - set(variables(loop.body)) - {loop.var}
    left = [t for t in conjuncts(branch.test) if _is_plain(t) and names_in(t) <= steady and names_in(t) & changed]
    test = conjunction(left)
    return None if test is None else (If(Unary("!", test), (Jump("break"),)), *loop.body)


def _is_guarded(target: Target, plain: Block) -> bool:
    """Whether a turn is what it looks at and one branch, all that it does."""
    *before, branch = plain
    looks = all(isinstance(s, Declare) and not s.qualifiers and only_looks(target, s.init) for s in before)
    alone = not (contains_barrier(plain) or contains_warp_wide(plain))
    return looks and alone and isinstance(branch, If) and not branch.orelse and only_looks(target, branch.test)


def only_looks(target: Target, e: Expr | None) -> bool:
    """Whether evaluating an expression changes nothing."""
    calls = (x for x in walk_expr(e) if isinstance(x, Call)) if e is not None else ()
    named = (c.callee.text if isinstance(c.callee, Name) else "" for c in calls if not is_load(c))
    return all(target.functions.only_computes(name) for name in named)


def _is_plain(e: Expr) -> bool:
    """Whether an expression compares variables and numbers, which may be done at any time."""
    parts = (isinstance(x, Name | Literal) or (isinstance(x, Binary) and x.op in (*_COMPARED, "+", "-", "*"))
             or (isinstance(x, Unary) and x.op in ("-", "!")) for x in walk_expr(e))  # fmt: skip
    return all(parts) and (not isinstance(e, Binary) or e.op in _COMPARED)


def _scalars(target: Target, loop: For) -> set[str]:
    """The variables that hold one value which no other thread changes in the loop: a thread's own, numbers that the
    kernel is given, and those of the block where one thread alone goes through the loop."""
    found = {p.name for p in target.kernel.params if not p.is_pointer and "&" not in p.type}
    alone = _by_one_thread(target, target.kernel.body, loop)
    for s in walk_stmts(target.kernel.body):
        if (
            isinstance(s, Declare)
            and not s.dims
            and "*" not in s.type
            and "&" not in s.type
            and "volatile" not in s.type
        ):
            plain = not s.qualifiers or (alone and set(s.qualifiers) == {"__shared__"})
            found |= {s.name} if plain and variables(target.kernel.body).count(s.name) == 1 else set()
    return found


def _by_one_thread(target: Target, body: Block, loop: For) -> bool:
    """Whether a loop stands in a branch of the block's one thread."""
    for s in body:
        if any(x is loop for x in walk_stmts((s,))):
            inner = next((b for b in blocks_of(s) if any(x is loop for x in walk_stmts(b))), ())
            own = isinstance(s, If) and inner == s.then and _is_one_thread(target, s.test)
            return own or _by_one_thread(target, inner, loop)
    return False


def _is_one_thread(target: Target, test: Expr) -> bool:
    match test:
        case Binary("==", left, Literal(text)) if text.isdigit():
            return target.known.poly(left).single == "threadIdx.x" and tuple(target.launch.block[1:]) == ("1", "1")
    return False
