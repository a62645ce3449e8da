"""Whether the iterations of a loop may run in any order, or by different threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fsr.analysis.accesses import Access, accesses_in, declared_arrays
from fsr.analysis.accumulators import accumulators
from fsr.analysis.calls import is_atomic
from fsr.analysis.definitions import Definitions, definitions
from fsr.analysis.functions import NO_FUNCTIONS, Functions
from fsr.analysis.polynomial import Poly
from fsr.source.form import Call, Declare, ExprStmt, For, Jump, KernelForm, Name, Stmt
from fsr.source.walk import (
    contains_barrier,
    contains_opaque,
    contains_return,
    contains_warp_wide,
    names_written,
    walk_exprs,
    walk_stmts,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Parallel:
    """A loop whose iterations are independent but for ``folds``, accumulator name to operator name."""

    loop: For
    folds: dict[str, str]


def parallel(
    kernel: KernelForm,
    loop: For,
    *,
    aliasing: bool = True,
    known: Definitions | None = None,
    functions: Functions = NO_FUNCTIONS,
    nonzero: Callable[[Poly], bool] = lambda _: False,
) -> Parallel | None:
    """The loop as a parallel one, or None when that cannot be shown.

    ``functions``: those of the file. ``aliasing``: whether different pointer
    parameters may share memory (the contract says). A loop with an unknown call, a barrier, lane exchange, break,
    return, or opaque code is never parallel. ``nonzero``: whether what multiplies the loop variable in an index is
    never zero, where it is no number.
    """
    known = known or definitions(kernel, functions)
    body = loop.body
    if contains_barrier(body) or contains_warp_wide(body) or contains_opaque(body) or contains_return(body):
        return None
    if any(isinstance(s, Jump) and s.keyword == "break" for s in walk_stmts(body)):
        return None
    if not all(functions.stays_in_thread(e) for e in walk_exprs(body)) or results_of_atomics(body):
        return None
    folds = accumulators(body)
    arrays = frozenset(p.name for p in kernel.params if p.is_pointer) | declared_arrays(kernel.body)
    private = {s.name for s in walk_stmts(body) if isinstance(s, Declare)}
    private |= {s.var for s in walk_stmts(body) if isinstance(s, For) and s.type is not None}
    scalars = {n for n in names_written(body) if n not in arrays}
    if not scalars <= private | set(folds) or loop.var in names_written(body):
        return None
    used_arrays = private & arrays
    found = [a for a in accesses_in(body, arrays) if a.array not in used_arrays]
    if any(a.array is None or a.kind == "opaque" for a in found):
        return None
    return Parallel(loop, folds) if _independent(found, loop, known, aliasing, private, nonzero) else None


def results_of_atomics(body: tuple[Stmt, ...]) -> bool:
    """Whether the value of an atomic is used: then the order shows."""
    plain = {id(s.expr) for s in walk_stmts(body) if isinstance(s, ExprStmt)}
    return any(is_atomic(e) and id(e) not in plain for e in walk_exprs(body))


def _independent(
    found: list[Access], loop: For, known: Definitions, aliasing: bool, private: set[str],
    nonzero: Callable[[Poly], bool],
) -> bool:  # fmt: skip
    """Whether no iteration touches what another one writes."""
    for write in (a for a in found if a.writes):
        for other in found:
            if write.kind == other.kind == "atomic" and write.array == other.array:
                if _same_atomic(write, other):
                    continue
                return False
            if other.array != write.array:
                if aliasing and (write.array not in known.shared) and (other.array not in known.shared):
                    return False
                continue
            if not _one_place_an_iteration(write, other, loop, known, private, nonzero):
                return False
    return True


def _same_atomic(a: Access, b: Access) -> bool:
    match a.expr, b.expr:
        case Call(Name(first)), Call(Name(second)):
            return first == second and "Exch" not in first and "CAS" not in first
    return False


def _one_place_an_iteration(
    a: Access, b: Access, loop: For, known: Definitions, private: set[str], nonzero: Callable[[Poly], bool]
) -> bool:
    """Whether both are at one and the same index that differs in every iteration of the loop."""
    if a.index is None or b.index is None:
        return False
    first, second = known.poly(a.index), known.poly(b.index)
    if first != second or first.depends_on(private - {loop.var}):
        return False
    factor = first.coefficient(loop.var)
    return factor is not None and (nonzero(factor) if factor.value is None else factor.value != 0)
