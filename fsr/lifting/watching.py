"""Watched runs of a candidate, as terms of a graph."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fsr.backends.host.device import HostDevice
from fsr.backends.host.traced import TracedImage
from fsr.backends.host.tracing import Trace
from fsr.backends.protocol import Buffer, DeviceFault
from fsr.contract.model import Contract
from fsr.expressions import evaluate
from fsr.lifting.graph import Graph
from fsr.lifting.reading import Reader
from fsr.lifting.refused import Refused
from fsr.lifting.sampling import (
    FEW_BLOCKS,
    MOST_BLOCKS,
    ROOM_NODES,
    cells,
    part_of,
    shape_at,
    view,
    written_cells,
)  # fmt: skip
from fsr.records import Candidate, Case, Role, ScalarArgument
from fsr.testgen.placing import place
from fsr.testgen.values import build, integer_bounds

RUN_S = 2.0  # one watched run may take so long


@dataclass(frozen=True, slots=True)
class Run:
    """One watched run: its sizes, the shape of every buffer, and its trace. ``part``: not all blocks ran."""

    sizes: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    trace: Trace
    part: bool = False

    def cells(self, output: str) -> list[tuple[int, ...]]:
        """Elements of an output to look at."""
        shape, nodes = self.shapes[output], self.trace.results[output]
        if not self.part:
            return cells(shape)
        return written_cells(nodes, shape, len(self.trace.nodes) / max(1, int(np.count_nonzero(nodes))))

    def wrote(self, output: str, at: tuple[int, ...]) -> bool:
        """Whether a block that ran wrote an element."""
        shape = self.shapes[output]
        return bool(self.trace.results[output][int(np.ravel_multi_index(at, shape)) if shape else 0])


class Watcher:
    """Runs a candidate watched. ``image``: by TracingToolchain. ``deadline``: of time.monotonic()."""

    def __init__(
        self, contract: Contract, candidate: Candidate, image: TracedImage, device: HostDevice, deadline: float
    ) -> None:
        self.contract, self.candidate, self.image, self.device = contract, candidate, image, device
        self.deadline = deadline
        self.views = {a.name: view(a.shape) for a in contract.buffers()}
        self._blocks = FEW_BLOCKS  # of a run in part: as many as there is room for, once that is known
        self._readers: dict[tuple[int, int], tuple[Graph, Run, Reader]] = {}  # by what they are of

    def run(self, sizes: Mapping[str, int], seed: int, *, part: bool = False) -> Run:
        """One run at these sizes with data of that seed, ``part``: of a few blocks. Raises Refused."""
        case = Case("watched", tuple(sizes.items()), "normal", seed)
        launches, buffers = place(self.contract, self.candidate.plan, case, build(self.contract, case))
        left_s = min(2 * RUN_S if part else RUN_S, self.deadline - time.monotonic())
        if left_s <= 0:
            raise Refused("watching took too long")
        names = [
            ["" if isinstance(a, ScalarArgument) else self._scalar(a) for a in launch.args]
            for launch in self.candidate.plan.launches
        ]
        if len(launches) != len(names):
            raise Refused("a launch has nothing to do at small sizes")
        if part and (len(launches) != 1 or math.prod(launches[0].grid) <= MOST_BLOCKS):
            raise Refused("only single launches of many blocks are watched in part")

        def traced(count: int) -> Trace:
            blocks = [part_of(launches[0].grid, count)] if part else []
            return self.device.trace(self.image.image, launches, buffers, names, left_s, blocks)

        try:
            trace = traced(self._blocks)
            more = self._blocks * ROOM_NODES // max(1, len(trace.nodes))
            if part and more > self._blocks < MOST_BLOCKS:
                self._blocks = min(more, MOST_BLOCKS)
                trace = traced(self._blocks)
        except DeviceFault as fault:
            raise Refused(f"the watched run failed: {fault}") from None
        except KeyError as name:
            raise Refused(f"values of type {name} are not followed") from None
        return Run(sizes, self._shapes(sizes, buffers), trace, part)

    def _scalar(self, name: str) -> str:
        """The name of a scalar that is no size."""
        argument = next((a for a in self.contract.args if a.name == name), None)
        drawn = argument is not None and argument.role is Role.SCALAR and argument.value is None
        return name if drawn else ""

    def _shapes(self, sizes: Mapping[str, int], buffers: Sequence[Buffer]) -> dict[str, tuple[int, ...]]:
        shapes = {name: shape_at(dims, sizes) for name, dims in self.views.items()}
        for buffer in buffers:
            shapes.setdefault(buffer.name, buffer.array.shape)
        return shapes

    def terms(self, graph: Graph, run: Run, output: str, at: Sequence[tuple[int, ...]]) -> list[int]:
        """What elements of an output are. Raises Refused."""
        reader = self.reader(graph, run)
        shape = run.shapes[output]
        flat = [int(np.ravel_multi_index(c, shape)) if shape else 0 for c in at]
        return [self._given(graph, run, t) for t in reader.read([int(run.trace.results[output][f]) for f in flat])]

    def reader(self, graph: Graph, run: Run) -> Reader:
        """Makes terms of that run's nodes, each once."""
        key = id(graph), id(run)
        if key not in self._readers:
            made = Reader(graph, run.trace, self.image.operations, run.shapes, self._ranges(run.sizes))
            made.deadline = self.deadline
            self._readers[key] = graph, run, made
        return self._readers[key][2]

    def _ranges(self, sizes: Mapping[str, int]) -> dict[str, tuple[float, float]]:
        """What the contract says of integer elements."""
        found = {}
        for a in self.contract.buffers():
            if a.role is Role.IN and a.dtype.startswith(("int", "uint")):
                low, high = integer_bounds(a, sizes)
                found[a.name] = (float(low), float(high))
            if a.dtype == "bool":
                found[a.name] = (0.0, 1.0)
        return found

    def _given(self, graph: Graph, run: Run, term: int) -> int:
        """A term with the elements of buffers that always arrive with one value as that value."""
        constant = {a.name: a for a in self.contract.buffers() if a.value is not None}
        if not constant:
            return term
        known: dict[int, int] = {}

        def settled(e: int) -> int:
            if e not in known:
                x = graph.terms[e]
                if x[0] == "load" and x[1] in constant:
                    a = constant[x[1]]
                    number = float(evaluate(a.value or "0", run.sizes))
                    whole = a.dtype.startswith(("int", "uint"))
                    known[e] = graph.integer(int(number), a.dtype) if whole else graph.const(number, a.dtype)
                else:
                    parts = [settled(k) for k in graph.operands(e)]
                    known[e] = e if parts == list(graph.operands(e)) else graph.rebuilt(e, parts)
            return known[e]

        return settled(term)
