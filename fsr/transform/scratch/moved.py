"""Kernels that move a scratch parameter to a thread's slice of it, with a variable that begins there instead."""

from __future__ import annotations

from dataclasses import replace

from fsr.source.form import Assign, Binary, Declare, Expr, If, Index, KernelForm, Name, Scope, Stmt, Unary
from fsr.source.mapping import replace_stmt
from fsr.source.walk import Block, contains_opaque, fresh, names_mentioned, nodes, walk_stmts
from fsr.transform.target import Target


def with_slices_as_variables(kernel: KernelForm, target: Target) -> KernelForm:
    """The kernel with ``float *work = all_work + tid * n`` for each scratch parameter with ``work += tid * n``, where
    that is its only change, runs once, and stands before all that the parameter is used for."""
    scratch = {s.name for s in target.candidate.plan.scratch}
    for param in kernel.params:
        setting = [s for s in walk_stmts(kernel.body) if isinstance(s, Assign) and s.target == Name(param.name)]
        value = _added(setting[0], param.name) if len(setting) == 1 else None
        if value is None or target.passed.get(param.name) not in scratch:
            continue
        name = fresh(f"all_{param.name}", target.names)
        start = Declare(param.type, param.name, Binary("+", Name(name), value))
        behind = _behind(kernel.body, setting[0])
        rest = replace_stmt(kernel.body, setting[0], ())
        if not _opaque(rest, param.name) and _mentions(behind, param.name) == _mentions(rest, param.name):
            params = tuple(replace(p, name=name) if p == param else p for p in kernel.params)
            kernel = replace(kernel, body=replace_stmt(kernel.body, setting[0], (start,)), params=params)
    return kernel


def _added(s: Stmt, name: str) -> Expr | None:
    """What a statement adds to a pointer."""
    match s:
        case Assign(_, "+=", value):
            return value
        case Assign(_, "=", Binary("+", Name(text), value)) | Assign(_, "=", Unary("&", Index(Name(text), value))):
            return value if text == name else None
    return None


def _behind(body: Block, statement: Stmt) -> Block:
    """The statements behind one, in its list; () where a loop goes through it."""
    for at, s in enumerate(body):
        if s is statement:
            return body[at + 1 :]
        blocks = (s.then, s.orelse) if isinstance(s, If) else (s.body,) if isinstance(s, Scope) else ()
        for block in blocks:
            if any(inner is statement for inner in walk_stmts(block)):
                return _behind(block, statement)
    return ()


def _mentions(body: Block, name: str) -> int:
    return sum(n == Name(name) for n in nodes(body))


def _opaque(body: Block, name: str) -> bool:
    return contains_opaque(body) and name in names_mentioned(body)
