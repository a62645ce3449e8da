"""Memory that a process freed stays with it: evaluation fills and drops the same tens of megabytes again and again.

glibc gives a freed block of over 32 MiB back to the system at once, and smaller ones until it has learnt better; the
next array of that size is made of fresh pages, each of which costs a fault and is cleared. Of the processor time of
tests of judgement that was a third (83 s without this, 55 s with it, two cores).
"""

from __future__ import annotations

import ctypes

# mallopt(3); the numbers are those of glibc's malloc.h
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX, _ARENA_MAX = -1, -2, -4, -8
KEPT_BYTES = 1 << 30  # what is free above this goes back to the system
GROWTH_BYTES = 16 << 20  # asked of the system at a time


def keep_freed_memory() -> bool:
    """Have this process keep what it frees, up to ``KEPT_BYTES``; False where its C library has no such setting."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return all(
        mallopt(setting, value) == 1
        for setting, value in ((_ARENA_MAX, 1), (_MMAP_MAX, 0), (_TRIM_THRESHOLD, KEPT_BYTES), (_TOP_PAD, GROWTH_BYTES))
    )
