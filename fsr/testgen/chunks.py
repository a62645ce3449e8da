"""Work on large arrays by slices that stay in a cache, several at once: a case of 33 million elements is perturbed and
compared some ten times before a candidate of other roundings is known to be right."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

CACHED = 1 << 16  # elements that are worked on at a time
_MANY = 1 << 21  # elements from which on threads pay
_MOST_THREADS = 16


def in_chunks(count: int, work: Callable[[slice], None], width: int = 1) -> None:
    """``work`` on each slice of so many elements, or lines of ``width`` elements, in any order. NumPy lets go of the
    interpreter meanwhile. What it needs of numpy.errstate ``work`` sets itself: threads do not share it. Raises what it
    raises."""
    each = max(CACHED // max(width, 1), 1)
    slices = [slice(at, min(at + each, count)) for at in range(0, count, each)]
    threads = min(_MOST_THREADS, len(os.sched_getaffinity(0)))
    if count * width < _MANY or threads < 2:
        _each(work, slices)
        return
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(_each, work, slices[first::threads]) for first in range(threads)]:
            done.result()


def _each(work: Callable[[slice], None], slices: list[slice]) -> None:
    for part in slices:
        work(part)
