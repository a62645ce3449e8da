"""Features of a plan and its kernels' text: what needs neither a compiler nor a device."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fsr.features.occupancy import occupancy
from fsr.features.schema import Binary, Source
from fsr.hardware.gpus import Target
from fsr.records import ConcreteLaunch, Resources
from fsr.source.form import Call, For, If, KernelForm, Name, While
from fsr.source.walk import Block, blocks_of, walk_exprs, walk_stmts


def main_launch(launches: Sequence[ConcreteLaunch]) -> ConcreteLaunch | None:
    """The launch with the most threads; None of none."""
    return max(launches, key=_grid_threads, default=None)


def _grid_threads(launch: ConcreteLaunch) -> int:
    return math.prod(launch.grid) * math.prod(launch.block)


def launch_features(launches: Sequence[ConcreteLaunch]) -> Source:
    """The part of Source that the plan tells."""
    main = main_launch(launches)
    if main is None:
        return Source(launches=0)
    return Source(len(launches), math.prod(main.block), _grid_threads(main))


def text_features(kernels: Mapping[str, KernelForm]) -> Source:
    """The part of Source that the kernels' text tells: sums over kernels, the depth of the deepest."""
    bodies = [kernel.body for kernel in kernels.values()]
    statements = [s for body in bodies for s in walk_stmts(body)]
    called = [
        e.callee.text for body in bodies for e in walk_exprs(body)
        if isinstance(e, Call) and isinstance(e.callee, Name)
    ]  # fmt: skip
    return Source(
        loops=sum(isinstance(s, For | While) for s in statements),
        loop_depth=max(map(_depth, bodies), default=0),
        branches=sum(isinstance(s, If) for s in statements),
        barriers=sum(name.startswith("__syncthreads") for name in called),
        atomics=sum(name.startswith("atomic") for name in called),
    )


def _depth(body: Block) -> int:
    inner = [(isinstance(s, For | While), max(map(_depth, blocks_of(s)), default=0)) for s in body]
    return max((loop + depth for loop, depth in inner), default=0)


def binary_features(
    launches: Sequence[ConcreteLaunch], resources: Mapping[str, Resources], gpu: Target
) -> Binary | None:
    """What the compiler's report means for the largest launch on a GPU; None for a plan without launches."""
    main = main_launch(launches)
    if main is None:
        return None
    needs = resources.get(main.entry, Resources())
    shared = main.shared_bytes + (needs.static_shared_bytes or 0)
    resident = occupancy(gpu, math.prod(main.block), needs.registers, shared)
    return Binary(
        needs.registers, needs.spill_bytes, needs.local_bytes, shared, resident.fraction, resident.limit
    )  # fmt: skip
