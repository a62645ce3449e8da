"""References to elements (``Body &b = bodies[i];``) written out, so that each name of memory is one that is known."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from fsr.source.form import (
    Binary,
    Declare,
    Expr,
    Index,
    KernelForm,
    Literal,
    Member,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Stmt,
)
from fsr.source.mapping import substitute, with_blocks
from fsr.source.walk import (
    BUILTINS,
    Block,
    names_assigned,
    names_in,
    nodes,
    opaque_names,
    variables,
    walk_expr,
    walk_stmts,
)

_LONGEST = 9  # parts of an index that is written out


def with_elements(kernel: KernelForm) -> KernelForm:
    """The kernel in which what a reference stands for is the element itself, as long as neither the pointer nor what
    the index is made of changes."""
    if not any(map(_refers, walk_stmts(kernel.body))):
        return kernel
    counts = Counter([*(p.name for p in kernel.params), *variables(kernel.body)])
    once = {name for name, count in counts.items() if count == 1}
    return replace(kernel, body=_written_out(kernel.body, kernel, frozenset(once - names_assigned(kernel.body))))


def _refers(s: Stmt) -> bool:
    return isinstance(s, Declare) and s.type.rstrip().endswith("&") and not s.type.rstrip().endswith("&&")


def _written_out(body: Block, kernel: KernelForm, fixed: frozenset[str]) -> Block:
    """``fixed``: parameters and variables that stay what they are."""
    for at, s in enumerate(body):
        if isinstance(s, Declare) and _refers(s) and s.init is not None and not s.dims:
            rest = body[at + 1 :]
            if _stands(s.init, kernel, fixed) and _is_alone(s.name, kernel, rest):
                return _written_out((*body[:at], *substitute(rest, {s.name: s.init})), kernel, fixed)
    return tuple(with_blocks(s, lambda block: _written_out(block, kernel, fixed)) for s in body)


def _stands(init: Expr, kernel: KernelForm, fixed: frozenset[str]) -> bool:
    """Whether an element is the same one wherever it is written."""
    if not isinstance(init, Index) or not isinstance(init.base, Name):
        return False
    parts = list(walk_expr(init.index))
    plain = all(isinstance(x, Name | Literal | Binary | Member) for x in parts)
    return plain and len(parts) <= _LONGEST and names_in(init) <= fixed | BUILTINS


def _is_alone(name: str, kernel: KernelForm, rest: Block) -> bool:
    """Whether nothing else has the name, and no text that the form does not model."""
    if name in kernel.macro_words or variables(kernel.body).count(name) > 1:
        return False
    opaque = (n for n in nodes(rest) if isinstance(n, OpaqueExpr | OpaqueStmt))
    return not any(name in opaque_names(n.text) for n in opaque)
