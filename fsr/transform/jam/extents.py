"""Threads that there are too many where several become one, and the registers that what they have takes."""

from __future__ import annotations

import re

from fsr.analysis.effects import Unclear
from fsr.analysis.threads import AXES
from fsr.analysis.types import bare
from fsr.source.form import Declare
from fsr.transform.details.thread_arrays import bytes_of
from fsr.transform.launch.pointwise import pointwise
from fsr.transform.sizes import INT_LIMIT, always, largest
from fsr.transform.target import Target

_SLACK = 1 << 20  # ids beyond the bound that the last blocks may have
_UNKNOWN_EXTENT = 160  # taken for one that is not told: more than threads have room for


def divides(target: Target, axis: str, factor: int) -> bool:
    """Whether there is no thread too many."""
    return always(target.contract, f"({target.launch.grid[AXES.index(axis)]}) % {factor} == 0")


def guarded_along(target: Target, axis: str) -> bool:
    """Whether what a thread too many would do is left out by the kernel's own tests."""
    point = pointwise(target)
    if point is None or axis not in point.bounds:
        return False
    most = largest(target.contract, point.bounds[axis][1])
    return most is not None and most <= INT_LIMIT - _SLACK


def has_constructor(target: Target, type_: str) -> bool:
    """Whether the file says how values of a type are made."""
    return re.search(rf"\b{re.escape(bare(type_))}\s*\([^;{{}}()]*\)\s*[:{{=]", target.source) is not None


def words_of(target: Target, s: Declare) -> int:
    """Registers of a variable of a thread. Raises Unclear where its type may not be had without a value."""
    if has_constructor(target, s.type):
        raise Unclear
    pointer = s.type.endswith(("*", "&"))
    words = max(1, (bytes_of(target, s.type.removeprefix("const ")) or (8 if pointer else 4)) // 4)
    for extent in s.dims:
        words *= target.poly(extent).value or _UNKNOWN_EXTENT
    return words
