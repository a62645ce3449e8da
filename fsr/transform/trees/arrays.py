"""Shared arrays of which trees are made, and a kernel in which they go by their own names."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from fsr.analysis.types import bare, resolved
from fsr.source.form import Binary, Cast, Declare, Expr, Index, KernelForm, Literal, Name, Unary
from fsr.source.mapping import map_exprs, map_stmts, substitute
from fsr.source.walk import is_only_one, names_assigned, walk_stmts, without_casts
from fsr.transform.scratch.inlined import with_functions_written_out
from fsr.transform.target import Target
from fsr.transform.trees.results import with_results_written_out

_SHUFFLED = frozenset(["int", "unsigned int", "float", "double", "long long", "unsigned long long", "long",
                       "unsigned long"])  # fmt: skip
_ROUNDS = 4  # of writing functions out, each of several calls


def shared_arrays(target: Target) -> dict[str, Declare]:
    """Shared arrays of one dimension whose elements can be shuffled, which nothing else lies over."""
    arrays = [s for s in walk_stmts(target.kernel.body) if isinstance(s, Declare) and "__shared__" in s.qualifiers]
    dynamic = Counter("extern" in s.qualifiers for s in arrays)[True]
    return {
        s.name: s
        for s in arrays
        if len(s.dims) == 1 and s.init is None and is_only_one(target.kernel, s)
        and (dynamic == 1 or "extern" not in s.qualifiers) and resolved(s.type, target.aliases) in _SHUFFLED
    }  # fmt: skip


def written_out(target: Target) -> KernelForm:
    """The kernel with functions written out that are given shared arrays, and elements of these as elements of an array
    of that name."""
    kernel, arrays = _by_own_names(target), frozenset(shared_arrays(target))
    kernel = with_results_written_out(kernel, target.source, arrays)
    for _ in range(_ROUNDS):
        kernel = with_functions_written_out(kernel, target.source, arrays)
    return kernel


def _by_own_names(target: Target) -> KernelForm:
    """The kernel without pointers that are but another name of a shared array, and without ``*(array + index)``."""
    shared, kernel = shared_arrays(target), target.kernel
    others: dict[str, Expr] = {}
    for s in walk_stmts(kernel.body):
        match s:
            case Declare(init=Name() | Cast() as init) if "*" in s.type and not s.dims and is_only_one(kernel, s):
                array = without_casts(init)
                own = shared.get(array.text) if isinstance(array, Name) else None
                if own is not None and bare(own.type) == bare(s.type) and s.name not in names_assigned(kernel.body):
                    others[s.name] = array
    kept = map_stmts(kernel.body, lambda s: () if isinstance(s, Declare) and s.name in others else s)

    def indexed(e: Expr) -> Expr:
        found = _pointed(e.operand, frozenset(shared)) if isinstance(e, Unary) and e.op == "*" else None
        return e if found is None else Index(*found)

    return replace(kernel, body=map_exprs(substitute(kept, others), indexed))


def _pointed(pointer: Expr, arrays: frozenset[str]) -> tuple[Name, Expr] | None:
    """The array into which an expression points, and what is added to it."""
    match pointer:
        case Name(text) if text in arrays:
            return pointer, Literal("0")
        case Binary("+", left, right):
            found = _pointed(left, arrays)
            if found is None:
                return None
            return found[0], right if isinstance(left, Name) else Binary("+", found[1], right)
    return None
