"""Pointers to rows of a thread's own arrays as these rows: ``double *row = a[2 * k]; row[1] = x;`` is
``a[2 * k][1] = x;``."""

from __future__ import annotations

from dataclasses import replace

from fsr.source.arrays import is_only_one
from fsr.source.form import Declare, Expr, Index, KernelForm, Name, Stmt
from fsr.source.mapping import map_expr, substitute, with_blocks
from fsr.source.walk import Block, exprs_of, names_assigned, names_in, variables, walk_stmts


def with_rows(form: KernelForm) -> KernelForm:
    """The kernel or function without such pointers."""
    arrays = {s.name for s in walk_stmts(form.body) if isinstance(s, Declare) and len(s.dims) == 2 and not s.qualifiers}
    own = frozenset(s.name for s in walk_stmts(form.body) if isinstance(s, Declare) and is_only_one(form, s))
    return replace(form, body=_block(form.body, frozenset(arrays) & own, own)) if arrays else form


def _block(body: Block, arrays: frozenset[str], own: frozenset[str]) -> Block:
    found, rest = list[Stmt](), body
    while rest:
        s, rest = rest[0], rest[1:]
        row = s.init if isinstance(s, Declare) and s.name in own and _is_row(s, arrays) else None
        if isinstance(s, Declare) and row is not None and _stands(s.name, row, rest):
            rest = substitute(rest, {s.name: row})
            continue
        found.append(with_blocks(s, lambda block: _block(block, arrays, own)))
    return tuple(found)


def _is_row(s: Declare, arrays: frozenset[str]) -> bool:
    """Whether a pointer is to the first element of a row."""
    row = isinstance(s.init, Index) and isinstance(s.init.base, Name) and s.init.base.text in arrays
    return row and s.type.count("*") == 1 and not s.dims and not s.qualifiers


def _stands(name: str, row: Expr, rest: Block) -> bool:
    """Whether a row may stand wherever the pointer does: it is only followed, and stays that row."""
    elements = all(_only_followed(e, name) for s in walk_stmts(rest) for e in exprs_of(s))
    return elements and not names_in(row) & (names_assigned(rest) | set(variables(rest)))


def _only_followed(e: Expr, name: str) -> bool:
    def hidden(x: Expr) -> Expr:
        return Name("0") if isinstance(x, Index) and x.base == Name(name) else x

    return name not in names_in(map_expr(e, hidden))
