"""Whether the iterations of a loop may run in any order, or by different threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

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
    is_zero,
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
    factor = first.coefficient(loop.var)
    if first != second or factor is None or not (nonzero(factor) if factor.value is None else factor.value != 0):
        return False
    inner = first.names() & (private - {loop.var})
    return not inner or _is_digit(first, loop, known, inner, private)


def _is_digit(index: Poly, loop: For, known: Definitions, inner: frozenset[str], private: set[str]) -> bool:
    """Whether the loop's variable and those of loops in it are digits of a number, ``h * width + w``: whatever the
    others are, another turn is another place. Digits above have the loop's factor times its length in theirs, each
    digit has that of the one below."""
    length = _length(loop, known, private)
    factor, factors = index.coefficient(loop.var), {n: index.coefficient(n) for n in inner}
    if factor is None or any(f is None for f in factors.values()):
        return False
    above = {n for n, f in factors.items() if length is not None and f is not None and f.over(factor * length)}
    within = [s for s in walk_stmts(loop.body) if isinstance(s, For) and s.var in inner]
    below = {s.var: (factors[s.var], _length(s, known, private)) for s in within if s.var not in above}
    if not inner <= above | below.keys() or any(size is None for _, size in below.values()):
        return False
    if len({s.var for s in within}) < len(within):
        return False  # two loops of one variable
    spans = [f * size for f, size in below.values() if f is not None and size is not None]
    return any(_ascending([*order, factor], list(below.values())) for order in permutations(spans)) if spans else True


def _ascending(spans: Sequence[Poly], below: Sequence[tuple[Poly | None, Poly | None]]) -> bool:
    """Whether each of the spans (a digit's factor times how many it may be) is in the factor of the next digit."""
    factors = {f * size: f for f, size in below if f is not None and size is not None}
    return all(factors.get(after, after).over(span) for span, after in pairwise(spans))


def _length(loop: For, known: Definitions, private: set[str]) -> Poly | None:
    """How many values the variable of a loop from nought has; None where that may differ from turn to turn."""
    found = known.poly(loop.bound)
    plain = loop.type is not None and is_zero(loop.start) and loop.relation == "<"
    return found if plain and len(found.terms) == 1 and not found.depends_on(private | {loop.var}) else None
