"""Launches that a candidate without a plan of its own may have been written for, told from its source.

A file that never asks how it is launched (no blockDim, no gridDim) holds its block as a number, and one that uses
dynamic shared memory where the original's launch gives none cannot be meant for that launch. The few launches that fit
such numbers are made here, to be tested like any other: nothing is taken for granted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from fsr.contract.model import Contract
from fsr.hardware.c_types import BY_SPELLING
from fsr.hardware.limits import MAX_THREADS
from fsr.records import Launch, Plan
from fsr.source.tokens import tokenize
from fsr.testgen.numbers import numbers

MOST = 8
_DYNAMIC = re.compile(r"extern\s+__shared__\s+([\w ]+?)\s*\w+\s*\[")
_WARP = 32


def meant_plans(source: str, contract: Contract) -> list[Plan]:
    """At most :data:`MOST` plans of one launch in one dimension, likeliest first, other than the contract's own; [] for
    sources that fit that one."""
    launch = contract.plan.launches[0]
    flat = launch.grid[1:] == launch.block[1:] == ("1", "1") and launch.block[0].isdigit()
    if len(contract.plan.launches) != 1 or contract.plan.scratch or not flat:
        return []
    words = {t.text for t in tokenize(source)}
    dynamic = _DYNAMIC.search(source) if launch.shared_bytes == "0" else None
    if "blockIdx" not in words or (words & {"blockDim", "gridDim", "cooperative_groups"} and dynamic is None):
        return []
    element = BY_SPELLING.get(dynamic[1].strip()) if dynamic else None
    found = dict.fromkeys(_launches(source, launch, [s.name for s in contract.sizes]))
    bytes_ = element.bytes if element else 0
    plans = [
        replace(contract.plan, launches=(replace(one, shared_bytes=str(bytes_ * int(one.block[0]))),))
        for one in found
        if dynamic is None or bytes_
    ]
    return [plan for plan in plans if plan != contract.plan][:MOST]


def _launches(source: str, launch: Launch, sizes: list[str]) -> Iterator[Launch]:
    """The blocks that the source names, with the original's grid over that block and with a block an item."""
    own = int(launch.block[0])
    named = sorted(n for n in numbers(source) if _WARP <= n <= MAX_THREADS and n % _WARP == 0)
    blocks = [n for n in named if n != own] + [own] if named else [own]
    grids = [launch.grid[0], *sizes]
    for grid in grids:
        for block in blocks:
            text = re.sub(rf"\b{own}\b", str(block), grid)
            yield replace(launch, grid=(text, "1", "1"), block=(str(block), "1", "1"))
