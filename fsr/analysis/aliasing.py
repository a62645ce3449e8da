"""Which buffers may share memory, by the contract's word: ``aliasing = [["x", "y"], ["y", "z"]]``.

Two buffers may overlap when one group names both. Groups are not transitive: above, y may overlap x at its head and z
at its tail, and x never z.
"""

from __future__ import annotations

from collections.abc import Sequence

Groups = Sequence[Sequence[str]]


def may_alias(one: str, other: str, groups: Groups) -> bool:
    """Whether two buffers may share memory."""
    return one == other or any(one in group and other in group for group in groups)


def memories(groups: Groups) -> dict[str, str]:
    """One name for all memory that is reached from a buffer by way of others that may overlap, for each buffer of any
    group: coarser than :func:`may_alias`, never finer."""
    parts: list[set[str]] = []
    for group in groups:
        joined = set(group).union(*(p for p in parts if p & set(group)))
        parts = [p for p in parts if not p & joined] + [joined]
    return {name: "+".join(sorted(part)) for part in parts for name in part}
