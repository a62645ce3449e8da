"""Parameters that a kernel moves once (``x += row * n``) as pointers of their own, so that each name is one address."""

from __future__ import annotations

from dataclasses import replace

from fsr.source.form import (
    Assign,
    Binary,
    Declare,
    Expr,
    If,
    KernelForm,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Param,
    Scope,
    Stmt,
)
from fsr.source.mapping import substitute, with_blocks
from fsr.source.walk import Block, fresh, nodes, opaque_names, taken_names, walk_stmts


def with_own_pointers(kernel: KernelForm) -> KernelForm:
    """The kernel in which such a parameter stays as it is, and ``x_own`` is where it was moved to."""
    taken, body = set(taken_names(kernel)), kernel.body
    assigned = {s.target.text for s in walk_stmts(body) if isinstance(s, Assign) and isinstance(s.target, Name)}
    for param in kernel.params:
        hidden = param.name in kernel.macro_words  # a macro may mean the parameter as it is by then
        if param.is_pointer and param.name in assigned and not hidden and _mentions(body, param.name):
            own = fresh(f"{param.name}_own", taken)
            changed = _moved(body, param, own, _mentions(body, param.name))
            if changed != body:
                taken.add(own)
                body = changed
    return replace(kernel, body=body)


def _mentions(stmts: Block, name: str) -> int:
    """How often a name is mentioned; 0 where text that the form does not model does so, or it is declared anew."""
    count = 0
    for node in nodes(stmts):
        if isinstance(node, OpaqueExpr | OpaqueStmt) and name in opaque_names(node.text):
            return 0
        if isinstance(node, Declare) and node.name == name:
            return 0
        count += isinstance(node, Name) and node.text == name
    return count


def _moved(body: Block, param: Param, own: str, uses: int) -> Block:
    """Statements of which one moves the parameter, before all else that names it."""
    for at, s in enumerate(body):
        if not _mentions((s,), param.name):
            continue
        place, rest = _step(s, param.name), body[at + 1 :]
        if place is None:
            inside = isinstance(s, If | Scope) and _mentions((s,), param.name) == uses
            new = with_blocks(s, lambda block: _moved(block, param, own, uses)) if inside else s
            return (*body[:at], new, *rest)
        again = any(isinstance(n, Assign) and n.target == Name(param.name) for n in nodes(rest))
        if again or _mentions((s,), param.name) + _mentions(rest, param.name) != uses:
            return body
        declared = Declare(param.type, own, place)
        return (*body[:at], declared, *substitute(rest, {param.name: Name(own)}))
    return body


def _step(s: Stmt, name: str) -> Expr | None:
    """Where a statement moves a pointer."""
    match s:
        case Assign(Name(target), "+=", by) if target == name:
            return Binary("+", Name(name), by)
        case Assign(Name(target), "=", Binary("+") as place) if target == name and _begins_with(place, name):
            return place
    return None


def _begins_with(e: Expr, name: str) -> bool:
    """Whether a sum is of a name and of what is added to it behind: ``x + a + b``."""
    while isinstance(e, Binary) and e.op == "+":
        e = e.left
    return e == Name(name)
