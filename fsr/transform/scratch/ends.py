"""Whether a loop takes an offset past the end of a slice, as far as its bounds tell."""

from __future__ import annotations

from collections.abc import Iterator

from fsr.analysis.accesses import Access, accesses
from fsr.source.form import Binary, Expr, For, Literal
from fsr.source.mapping import substitute
from fsr.source.walk import integer, names_in
from fsr.transform.scratch.pointers import Pointers
from fsr.transform.sizes import largest_timed
from fsr.transform.target import Target


def leaves_slices(target: Target, pointers: Pointers) -> bool:
    """Whether some access, of those that happen in every turn, is behind the end of its slice in the last turn of all
    loops around it, as timed."""
    for access in accesses(target.kernel):
        place = pointers.offset(access.array, access.index) if access.array and access.index else None
        if place is not None and _always(access):
            offset, length = place
            for loop in reversed(access.loops):
                last = _last(loop) if isinstance(loop, For) else None
                if isinstance(loop, For) and last is not None:
                    offset = substitute(offset, {loop.var: last})
            text = target.size_text(offset)
            if text is not None and (largest_timed(target.contract, f"({text}) - ({length})") or -1) >= 0:
                return True
    return False


def _always(access: Access) -> bool:
    """Whether no condition is on a variable of the loops around an access."""
    turns = frozenset(_variables(access))
    return not any(names_in(test) & turns for test in access.tests)


def _variables(access: Access) -> Iterator[str]:
    for loop in access.loops:
        if isinstance(loop, For):
            yield loop.var
        else:
            yield from names_in(loop.test)


def _last(loop: For) -> Expr | None:
    """The largest value of a loop's variable."""
    step = integer(loop.step)
    if step is None:
        return None
    if step < 0:
        return loop.start
    return Binary("-", loop.bound, Literal("1")) if loop.relation in ("<", "!=") else loop.bound
