"""A grid-stride loop over a grid that fills the GPU once or a few times: fewer blocks to start and retire."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.records import Candidate
from fsr.source.form import Binary, For, Member, Name
from fsr.transform.launch.pointwise import Pointwise, id_expression, pointwise, pointwise_targets
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import INT_LIMIT, largest
from fsr.transform.target import target_of

THREADS = (256, 512)
ROUNDS = (1, 4)  # how many times over the grid fills the GPU at full occupancy
GAIN = 1.05


@dataclass(frozen=True, slots=True)
class GridStride:
    """``if (i < n) ...`` becomes ``for (i = ...; i < n; i += blockDim.x * gridDim.x) ...``."""

    name: str = "grid-stride"
    aims_at: frozenset[str] = frozenset(["launch", "occupancy", "instructions"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Kernels over one global id, with a grid that leaves more than one id to some threads."""
        for target, point in pointwise_targets(subject):
            if point is None or set(point.ids) != {"x"}:
                continue
            most = largest(target.contract, point.bounds["x"][1])
            for threads in THREADS:
                for rounds in ROUNDS:
                    blocks = _blocks(subject, threads, rounds)
                    if most is not None and blocks * threads < most <= INT_LIMIT - blocks * threads:
                        yield Move(self.name, target.region, (("threads", threads), ("blocks", blocks)), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with the loop and the capped grid."""
        target = target_of(subject, move)
        point = pointwise(target)
        assert point is not None
        threads, blocks = int(move.param("threads")), int(move.param("blocks"))
        bounds = (str(threads),) if target.kernel.launch_bounds else ()
        kernel = replace(target.kernel, body=(strided(point),), launch_bounds=bounds)
        grid = f"min(ceil_div({point.bounds['x'][1]}, {threads}), {blocks})"
        return rewritten(
            target,
            move, kernel,
            launch=lambda one: replace(one, grid=(grid, "1", "1"), block=(str(threads), "1", "1")),
        )  # fmt: skip


def _blocks(subject: Subject, threads: int, rounds: int) -> int:
    return subject.gpu.sm_count * (subject.gpu.max_threads_per_sm // threads) * rounds


def strided(point: Pointwise) -> For:
    """The kernel's work as a loop over its one id."""
    name = point.ids["x"].name
    step = Binary("*", Member(Name("blockDim"), "x"), Member(Name("gridDim"), "x"))
    body = (*point.lead, *point.core)
    return For(point.type_of("x"), name, id_expression("x"), "<", point.bounds["x"][0], step, body)
