"""Watched runs of a candidate, as terms of a graph."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fsr.backends.host.device import HostDevice
from fsr.backends.host.traced import TracedImage
from fsr.backends.host.tracing import ASIDE, FULL, KINDS, Part, Trace
from fsr.backends.protocol import Buffer, DeviceFault
from fsr.contract.flags import asked_of, fixed_at
from fsr.contract.model import Argument, Contract
from fsr.contract.row_starts import RowStarts
from fsr.expressions import evaluate, names
from fsr.hardware.dtypes import is_float, numpy_dtype
from fsr.lifting.allowance import Allowance
from fsr.lifting.casts import as_stored
from fsr.lifting.graph import Graph
from fsr.lifting.points import Mask
from fsr.lifting.reading import Reader
from fsr.lifting.refused import Refused, TooMuch
from fsr.lifting.row_starts import chosen_starts
from fsr.lifting.sampling import (
    FEW_BLOCKS,
    MOST_BLOCKS,
    ROOM_NODES,
    cells,
    part_of,
    shape_at,
    some_threads,
    view,
)  # fmt: skip
from fsr.lifting.signs import BITS, FLOATS, Signs
from fsr.lifting.turns import cells_about_turns
from fsr.lifting.written import all_edges_seen, cells_about_edges, untouched_cells, written_cells
from fsr.records import Candidate, Case, FaultKind, Role, ScalarArgument
from fsr.testgen.bounds import float_bounds, integer_bounds
from fsr.testgen.placing import place
from fsr.testgen.values import CaseData, build

Array = np.ndarray[Any, Any]
Ints = np.ndarray[Any, np.dtype[np.int64]]
RUN_S = 2.0  # one watched run may take so long
_TOLD = "="  # before the type and the expression of a number that sizes tell: begins no name
_TOO_LONG = "watching took too long"
_FEW_MADE = 0.1  # of the elements that are looked at anywhere: what is written lies between them


@dataclass(frozen=True, slots=True)
class Run:
    """One watched run: its sizes, the shape of every buffer, and its trace. ``part``: not all blocks ran. ``kept``:
    outputs that keep what they held where nobody writes. ``periods``: lengths at whose ends elements are looked at."""

    sizes: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    trace: Trace
    part: bool = False
    kept: tuple[str, ...] = ()
    periods: tuple[int, ...] = ()

    def cells(self, output: str) -> list[tuple[int, ...]]:
        """Elements of an output to look at."""
        shape = self.shapes[output]
        if self.periods and not self.part:
            return cells_about_turns(shape, self.periods)
        if not self.part:
            made = self.made(output)
            found = cells(shape, len(self.trace.nodes) / max(1, sum(map(len, self.trace.results.values()))))
            seen = sum(bool(made[at]) for at in found)
            few = seen < _FEW_MADE * len(found) or not all_edges_seen(made, found)
            return cells_about_edges(made) if made.any() and few else found
        nodes = self.trace.known[output]
        made = self.trace.nodes["kind"][nodes[np.flatnonzero(nodes)]] > KINDS.index("load")
        found = written_cells(nodes, shape, len(self.trace.nodes) / max(1, int(made.sum())))
        return [*found, *(self.untouched(output) if output in self.kept else ())]

    def made(self, output: str) -> Mask:
        """Which elements of an output hold something else in the end than what they held."""
        nodes, shape = self.trace.nodes[self.trace.results[output]], self.shapes[output]
        read = (nodes["kind"] == KINDS.index("load")) & (nodes["a"] == self.trace.regions.index(output))
        held: Mask = read & (nodes["b"] == np.arange(len(nodes)))
        return ~held.reshape(shape)

    def untouched(self, output: str) -> list[tuple[int, ...]]:
        """Of a run in part, elements at an edge that nobody writes though their neighbours are written."""
        return untouched_cells(self.trace.results[output], self.shapes[output])

    def wrote(self, output: str, at: tuple[int, ...]) -> bool:
        """Whether a block that ran wrote an element."""
        shape = self.shapes[output]
        return bool(self.trace.known[output][int(np.ravel_multi_index(at, shape)) if shape else 0])


class Watcher:
    """Runs a candidate watched. ``image``: by TracingToolchain; ``starts``: arrays of row starts that are chosen, and
    taken as what they hold."""

    def __init__(
        self, contract: Contract, candidate: Candidate, image: TracedImage, device: HostDevice, allowance: Allowance,
        starts: Sequence[RowStarts] = (),
    ) -> None:  # fmt: skip
        self.contract, self.candidate, self.image, self.device = contract, candidate, image, device
        self.allowance, self.starts = allowance, starts
        self.empty_rows = False  # whether some of the rows of these are
        self.asked = asked_of(contract)
        self._sizes = {s.name for s in contract.sizes}
        self.views = {a.name: view(a.shape) for a in contract.buffers()}
        # Of a run in part: as many as there is room for, once that is known.
        self._blocks, self._threads, self._known = FEW_BLOCKS, tuple[int, ...](), False
        self._readers: dict[tuple[int, int], tuple[Graph, Run, Reader]] = {}  # by what they are of

    def run(self, sizes: Mapping[str, int], seed: int, *, part: bool = False, family: str = "normal") -> Run:
        """One run at these sizes and flags with data of that family and seed, ``part``: of a few blocks. Raises
        Refused; TooMuch where fewer sizes or blocks would do."""
        contract, own = fixed_at(self.contract, sizes)
        run = self._run(contract, Case("watched", tuple(own.items()), family, seed), part, ())[1]
        return replace(run, sizes=dict(sizes))

    def observed(self, case: Case) -> tuple[CaseData, dict[str, tuple[tuple[Ints, ...], Array]]]:
        """A case run in part, in other blocks too: its data, and for each output the indices and the values of elements
        that were written, or that nobody writes. Raises Refused."""
        data, run = self._run(self.contract, case, True, range(case.seed % 7, 10**9, 977))
        found = {}
        for a in self.contract.buffers():
            if a.role is Role.IN:
                continue
            shape, dtype = run.shapes[a.name], numpy_dtype(a.dtype)
            flat = np.flatnonzero(run.trace.known[a.name])
            values = run.trace.values(a.name, dtype)[flat]
            if a.role is Role.INOUT:
                edges = [int(np.ravel_multi_index(c, shape)) for c in run.untouched(a.name)]
                flat = np.concatenate([flat, np.array(edges, flat.dtype)])
                values = np.concatenate([values, data.arrays[a.name].reshape(-1)[edges]])
            found[a.name] = np.unravel_index(flat, shape), values
        return data, found

    def _run(self, contract: Contract, case: Case, part: bool, others: Sequence[int]) -> tuple[CaseData, Run]:
        if any(launch.repeated for launch in self.candidate.plan.launches):
            raise Refused("a launch is repeated")
        data = build(contract, case)
        data = replace(data, arrays={**data.arrays, **self._chosen(case)})
        launches, buffers = place(contract, self.candidate.plan, case, data)
        run_s = 2 * RUN_S if part else RUN_S
        left_s = min(run_s, self.allowance.left_s)
        if left_s <= 0:
            raise Refused(_TOO_LONG)
        names = [
            [self._passed(a) if isinstance(a, ScalarArgument) else self._scalar(a) for a in launch.args]
            for launch in self.candidate.plan.launches
        ]
        if len(launches) != len(names):
            raise Refused("a launch has nothing to do at small sizes")
        if part and len(launches) != 1:
            raise Refused("of several launches none is watched in part")

        told = [a.name for a in contract.buffers() if a.role is Role.IN and _is_one_value(a)]
        told += [s.buffer for s in self.starts]

        def traced() -> Trace:
            blocks = part_of(launches[0].grid, self._blocks, others) if part else ()
            some = Part([blocks], self._threads, self.image.alone, told) if part else Part(plain=told)
            with self.allowance.waiting(lambda: self.device.cpu_s):
                return self.device.trace(self.image.image, launches, buffers, names, left_s, some)

        try:
            if part and not self._known:
                self._threads = some_threads(launches[0].block)
            trace = traced()
            if ASIDE in trace.lost:
                self._threads = ()
                trace = traced()
            if part and not self._known:
                self._known = True
                if self._widened(len(trace.nodes), math.prod(launches[0].block)):
                    trace = traced()
        except DeviceFault as fault:
            if fault.fault.kind is FaultKind.HANG and left_s < run_s:  # it was given what was left of all the time
                raise Refused(_TOO_LONG) from None
            kind = TooMuch if fault.fault.kind is FaultKind.HANG else Refused
            raise kind(f"the watched run failed: {fault}") from None
        except KeyError as name:
            raise Refused(f"values of type {name} are not followed") from None
        if FULL in trace.lost:
            raise TooMuch(f"the watched run has {FULL}")
        sizes = case.size_map()
        kept = tuple(a.name for a in self.contract.buffers() if a.role is Role.INOUT)
        return data, Run(sizes, self.shapes(sizes, buffers), trace, part, kept)

    def _chosen(self, case: Case) -> dict[str, Array]:
        return {s.buffer: chosen_starts(s, case.size_map(), empty=self.empty_rows) for s in self.starts}

    def _widened(self, nodes: int, threads: int) -> bool:
        """Whether there is room for more threads or blocks of a run in part than the first one had."""
        before = self._blocks, self._threads
        whole = nodes * threads // len(self._threads) if self._threads else nodes
        if whole <= ROOM_NODES:
            self._threads, nodes = (), whole
        self._blocks = max(FEW_BLOCKS, min(FEW_BLOCKS * ROOM_NODES // max(1, nodes), MOST_BLOCKS))
        return before != (self._blocks, self._threads)

    def _scalar(self, name: str) -> str:
        """The name of a scalar that is no whole number told by sizes."""
        argument = next((a for a in self.contract.args if a.name == name), None)
        if argument is None or argument.role is not Role.SCALAR or name in self.asked:
            return ""
        if argument.value is not None:
            return self._passed(ScalarArgument(argument.dtype, str(argument.value)))
        return name

    def _passed(self, a: ScalarArgument) -> str:
        """A name for a floating number that sizes tell: as a constant it would be another one at each size."""
        if not is_float(numpy_dtype(a.dtype)) or not names(a.value) & self._sizes:
            return ""
        return f"{_TOLD}{a.dtype} {a.value}"

    def shapes(self, sizes: Mapping[str, int], buffers: Sequence[Buffer] = ()) -> dict[str, tuple[int, ...]]:
        """How long each buffer of the contract is at these sizes, and each of a run's."""
        shapes = {name: shape_at(dims, sizes) for name, dims in self.views.items()}
        for buffer in buffers:
            shapes.setdefault(buffer.name, buffer.array.shape)
        return shapes

    def terms(self, graph: Graph, run: Run, output: str, at: Sequence[tuple[int, ...]]) -> list[int]:
        """What elements of an output are. Raises Refused."""
        reader = self.reader(graph, run)
        shape = run.shapes[output]
        flat = [int(np.ravel_multi_index(c, shape)) if shape else 0 for c in at]
        nodes = [int(run.trace.results[output][f]) for f in flat]
        found = iter(reader.read([n for n in nodes if n]))
        homes = [graph.make("load", output, tuple(graph.integer(i, "int64") for i in c)) for c in at]
        terms = [next(found) if n else home for n, home in zip(nodes, homes, strict=True)]
        dtype = next((a.dtype for a in self.contract.args if a.name == output), "")
        if dtype.startswith("uint"):  # an element that is stored as it was read
            bare = [reader.signs.bare(t) for t in terms]
            terms = [b if graph.terms[t][0] == dtype[1:] else t for b, t in zip(bare, terms, strict=True)]
        return [as_stored(graph, self._given(graph, run, t), dtype) for t in terms]

    def homes(self, graph: Graph, run: Run, output: str, at: Sequence[tuple[int, ...]]) -> list[int]:
        """What elements of an output hold where nobody writes them."""
        loads = [graph.make("load", output, tuple(graph.integer(i, "int64") for i in c)) for c in at]
        return [self._given(graph, run, load) for load in loads]

    def reader(self, graph: Graph, run: Run) -> Reader:
        """Makes terms of that run's nodes, each once."""
        key = id(graph), id(run)
        if key not in self._readers:
            graph.infinite |= {a.name for a in self.contract.buffers() if not a.constraints.finite}
            made = Reader(graph, run.trace, self.image.operations, run.shapes, self._signs(graph, run.sizes))
            made.allowance = self.allowance
            made.told = {name: _number(graph, name, run) for name in run.trace.regions if name.startswith(_TOLD)}
            made.fixed = self._fixed(graph, run)
            self._readers[key] = graph, run, made
        return self._readers[key][2]

    def _fixed(self, graph: Graph, run: Run) -> dict[tuple[str, int], int]:
        """Whole numbers that all structures of a buffer have at a word, by the buffer and the word: sizes in constant
        memory, which addresses are made of."""
        return {
            (a.name, f.offset // 4): _whole(graph, int(evaluate(f.constraints.low, run.sizes)), f.dtype)
            for a in self.contract.buffers()
            if a.layout is not None and a.dtype == "uint32"
            for f in a.layout.fields
            if f.dtype in ("int32", "uint32")
            and f.constraints.low is not None
            and f.constraints.low == f.constraints.high
        }

    def _signs(self, graph: Graph, sizes: Mapping[str, int]) -> Signs:
        """With what the contract says of elements."""
        found = {}
        for a in self.contract.buffers():
            limited = a.constraints.low is not None and a.constraints.high is not None
            if limited and a.role is not Role.OUT:
                found[a.name] = float_bounds(a, sizes)
            if a.role is Role.IN and a.dtype.startswith(("int", "uint")):
                low, high = integer_bounds(a, sizes, "limits")  # others draw indices nearer 0
                found[a.name] = (float(low), float(high))
            if a.dtype == "bool":
                found[a.name] = (0.0, 1.0)
        return Signs(graph, {a.name: a.dtype for a in self.contract.args}, found)

    def _given(self, graph: Graph, run: Run, term: int) -> int:
        """A term with the elements of buffers that always arrive with one value as that value."""
        constant = {a.name: a for a in self.contract.buffers() if _is_one_value(a)}
        if not constant:
            return term
        known: dict[int, int] = {}

        def settled(e: int) -> int:
            if e not in known:
                x = graph.terms[e]
                if x[0] == "load" and x[1] in constant:
                    a = constant[x[1]]
                    number = float(evaluate(a.constraints.low or "0", run.sizes))
                    whole = a.dtype.startswith(("int", "uint"))
                    known[e] = _whole(graph, int(number), a.dtype) if whole else graph.const(number, a.dtype)
                else:
                    parts = [settled(k) for k in graph.operands(e)]
                    own = graph.terms[parts[0]] if x[0] in BITS else ("",)
                    known[e] = graph.rebuilt(e, parts)
                    if own[0] == "int" and abs(own[1]) < 1 << (BITS[x[0]] - 1):
                        known[e] = graph.integer(own[1], x[0])
            return known[e]

        return settled(term)


def _whole(graph: Graph, value: int, dtype: str) -> int:
    """An element of whole numbers as expressions have it: with a sign, which operations alone tell apart."""
    kept = dtype.removeprefix("u")
    return graph.integer(value - (value >> (BITS[kept] - 1) << BITS[kept]), kept)


def _number(graph: Graph, told: str, run: Run) -> int:
    """A number that sizes tell, by its name, as made of whole ones, which say how: ``1 / (16 * q)``."""
    dtype, _, value = told.removeprefix(_TOLD).partition(" ")
    return _made_of(graph, ast.parse(value.strip(), mode="eval").body, dtype, run)


def _made_of(graph: Graph, e: ast.expr, dtype: str, run: Run) -> int:
    number = float(evaluate(ast.unparse(e), run.sizes))
    if number.is_integer() and abs(number) < FLOATS["float64"]:
        factors = _factors(e)
        if len(factors) < 2:
            return graph.op(dtype, graph.integer(int(number), "int64"))
        made = [_made_of(graph, part, "float64", run) for part in factors]  # no sum of sizes tells a product of them
        return graph.op(dtype, graph.list_of("prod", made))
    if not isinstance(e, ast.BinOp) or not isinstance(e.op, ast.Div | ast.Mult):
        return graph.const(number, dtype)
    left, right = (_made_of(graph, part, dtype, run) for part in (e.left, e.right))
    return graph.divided(left, right) if isinstance(e.op, ast.Div) else graph.list_of("prod", [left, right])


def _factors(e: ast.expr) -> list[ast.expr]:
    """The factors of a product of sizes; the expression alone where it is none, or one of a size and a number."""
    match e:
        case ast.BinOp(left, ast.Mult(), right) if names(ast.unparse(left)) and names(ast.unparse(right)):
            return [*_factors(left), *_factors(right)]
        case ast.BinOp(base, ast.Pow(), ast.Constant(2 | 3 as power)) if names(ast.unparse(base)):
            return [base] * (2 if power == 2 else 3)
    return [e]


def _is_one_value(a: Argument) -> bool:
    """Whether a buffer always arrives with one value in all elements."""
    return a.constraints.low is not None and a.constraints.low == a.constraints.high
