"""The threads of a block of known extents, and what expressions are for each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fsr.analysis.index_values import Known, Values, index_values
from fsr.source.form import Declare, Expr, Member, Name
from fsr.source.walk import variables, walk_stmts
from fsr.transform.target import Target
from fsr.transform.thread_number import thread_number

WARP = 32
_X, _Y, _Z = (Member(Name("threadIdx"), axis) for axis in "xyz")


@dataclass(frozen=True)
class Threads:
    """Those of a launch of ``target``, in the order in which warps are made of them."""

    target: Target
    extents: tuple[int, int, int]
    ids: Known = field(repr=False)

    @classmethod
    def of(cls, target: Target) -> Threads | None:
        """Those of a block of constant extents that are whole warps; None for any other."""
        block, threads = target.block, target.threads
        if block is None or threads is None or threads % WARP or threads > 1024:
            return None
        (x, y, z), place = block, np.arange(threads)
        own = set(variables(target.kernel.body))
        ids: dict[str, Values | int] = {
            **{name: value for name, value in target.constants.items() if name not in own}, "threadIdx.x": place % x,
            "threadIdx.y": place // x % y, "threadIdx.z": place // x // y,
            "blockDim.x": x, "blockDim.y": y, "blockDim.z": z, "warpSize": WARP,
        }  # fmt: skip
        for param in target.kernel.params:
            text = None if param.is_pointer or param.name in own else target.size_text(Name(param.name))
            if text is not None and text.isdigit():
                ids[param.name] = int(text)
        return cls(target, block, ids)

    @property
    def count(self) -> int:
        """How many they are."""
        x, y, z = self.extents
        return x * y * z

    @property
    def all(self) -> Values:
        """Their numbers."""
        return np.arange(self.count)

    @cached_property
    def variables(self) -> frozenset[str]:
        """Names of numbers that each thread has for itself: not shared ones, and no other names of memory."""
        kernel = self.target.kernel
        stmts = [s for s in walk_stmts(kernel.body) if isinstance(s, Declare)]
        memory = {s.name for s in stmts if s.qualifiers or s.dims or "&" in s.type}
        params = {p.name for p in kernel.params if not p.is_pointer}
        return frozenset(params.union(variables(kernel.body))) - memory

    @property
    def place(self) -> Expr:
        """A thread's number in its block, as an expression."""
        return thread_number(self.extents)

    def values(self, e: Expr, variables: Mapping[str, Values]) -> Values | None:
        """What an expression is for each thread; None where it cannot be told, or is less than 0 for one."""
        plain = index_values(self.target.known.expand(e), {**self.ids, **variables})
        if plain is None or np.any(plain < 0):
            return None
        return np.broadcast_to(plain, (self.count,))
