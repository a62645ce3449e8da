"""Several outputs a thread, a block's width apart, so that neighbouring threads still touch neighbouring elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.threads import AXES
from fsr.records import Candidate
from fsr.source.form import Binary, Declare, For, Literal, Member, Name, Stmt, number
from fsr.source.walk import fresh
from fsr.transform.launch.block_size import regrid
from fsr.transform.launch.pointwise import Pointwise, id_declarations, id_expression, pointwise, pointwise_targets
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import INT_LIMIT, largest
from fsr.transform.target import Target, target_of

FACTORS = (2, 4, 8)
GAIN = 1.15
SLACK = 1 << 20  # ids beyond the bound that the last block may compute


@dataclass(frozen=True, slots=True)
class Coarsen:
    """Each thread does ``factor`` ids along x."""

    name: str = "thread-coarsening"
    aims_at: frozenset[str] = frozenset(["latency", "instructions", "bandwidth", "launch"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Kernels over global ids."""
        for target, point in pointwise_targets(subject):
            if point is None or "x" not in point.ids:
                continue
            most = largest(target.contract, point.bounds["x"][1])
            for factor in FACTORS:
                if most is not None and most <= INT_LIMIT - SLACK:
                    yield Move(self.name, target.region, (("factor", factor),), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with the loop over a thread's ids."""
        target = target_of(subject, move)
        point = pointwise(target)
        assert point is not None
        assert target.block is not None
        axis, factor = "x", int(move.param("factor"))
        kernel = replace(target.kernel, body=coarsened(target, point, axis, factor))
        block = dict(zip(AXES, target.block, strict=True))
        return rewritten(
            target,
            move, kernel, launch=lambda one: regrid(one, point, block, {axis: factor})
        )  # fmt: skip


def coarsened(target: Target, point: Pointwise, axis: str, factor: int) -> tuple[Stmt, ...]:
    """The body with a loop over the ``factor`` ids of a thread."""
    name, type_ = point.ids[axis].name, point.type_of(axis)
    first, at = fresh(f"first_{name}", target.names), fresh("c", target.names)
    offset = Binary("*", Name(at), Member(Name("blockDim"), axis))
    own = Declare(f"const {type_}", name, Binary("+", Name(first), offset))
    loop = For("int", at, Literal("0"), "<", number(factor), Literal("1"), (own, *point.guarded()), ("#pragma unroll",))
    start = Declare(f"const {type_}", first, id_expression(axis, factor))
    return (*id_declarations(point, skip=(axis,)), start, loop)
