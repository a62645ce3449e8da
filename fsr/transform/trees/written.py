"""A kernel in which shared arrays go by their own names, and elements of them and barriers are written as such."""

from __future__ import annotations

from dataclasses import replace

from fsr.analysis.groups import is_block, waits_for_block
from fsr.source.form import (
    Binary,
    Declare,
    Expr,
    ExprStmt,
    Index,
    KernelForm,
    Literal,
    Name,
    Stmt,
    Unary,
)  # fmt: skip
from fsr.source.mapping import map_exprs, map_stmts, substitute
from fsr.source.walk import BARRIER, walk_stmts
from fsr.transform.scratch.inlined import with_functions_written_out
from fsr.transform.trees.arrays import Shared, same_array, shared_arrays
from fsr.transform.trees.carried import unchained, unchained_text, with_elements
from fsr.transform.trees.results import with_results_written_out
from fsr.transform.trees.threads import Threads

_ROUNDS = 4  # of writing functions out, each of several calls


def written_out(threads: Threads) -> KernelForm:
    """The kernel with functions written out that are given shared arrays, and without variables that are elements."""
    kernel = unchained(threads.target.kernel)
    threads = replace(threads, target=replace(threads.target, kernel=kernel))
    found = shared_arrays(threads)
    kernel = _by_own_names(kernel, found)
    source, arrays = unchained_text(threads.target.source), frozenset(found)
    kernel = with_results_written_out(kernel, source, arrays)
    for _ in range(_ROUNDS):
        kernel = with_functions_written_out(kernel, source, arrays)
    return with_elements(kernel, threads, found)


def _by_own_names(kernel: KernelForm, found: dict[str, Shared]) -> KernelForm:
    """The kernel without pointers that are but another name of a shared array, and without ``*(array + index)``."""
    others: dict[str, Expr] = {**same_array(found)}
    blocks = {s.name for s in walk_stmts(kernel.body) if isinstance(s, Declare) and is_block(s)}

    def kept(s: Stmt) -> Stmt | tuple[Stmt, ...]:
        if isinstance(s, Declare) and s.name in others:
            return ()
        return BARRIER if isinstance(s, ExprStmt) and waits_for_block(s.expr, blocks) else s

    def indexed(e: Expr) -> Expr:
        at = _pointed(e.operand, frozenset(found)) if isinstance(e, Unary) and e.op == "*" else None
        return e if at is None else Index(*at)

    return replace(kernel, body=map_exprs(substitute(map_stmts(kernel.body, kept), others), indexed))


def _pointed(pointer: Expr, arrays: frozenset[str]) -> tuple[Name, Expr] | None:
    """The array into which an expression points, and what is added to it."""
    match pointer:
        case Name(text) if text in arrays:
            return pointer, Literal("0")
        case Binary("+", left, right):
            at = _pointed(left, arrays)
            if at is None:
                return None
            return at[0], right if isinstance(left, Name) else Binary("+", at[1], right)
    return None
