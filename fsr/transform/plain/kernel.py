"""The body and the launch of a kernel that computes what a computation says, a thread a point or a row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fsr.computation.computation import Computation, Statement
from fsr.computation.data_rows import has_data_rows
from fsr.computation.expression import Affine, Case, Expr, Fold, Load, Number, children, distinct
from fsr.computation.types import type_of
from fsr.expressions import evaluate
from fsr.transform.plain.c_text import TYPES, NotPlain, bare
from fsr.transform.plain.names import Names
from fsr.transform.plain.row_loops import row_loop
from fsr.transform.target import Target

_START = {"sum": "0", "prod": "1", "max": "-INFINITY", "min": "INFINITY"}
_INT = 2**31 - 1
_Test = tuple[Affine, str, Affine]
_MAX_GRID_Z = 65535
_ROWS, _COLUMNS, _LINE = 8, 32, 128  # threads a block: of points in two dimensions, of points or rows in one


@dataclass(frozen=True)
class Plain:
    """A kernel's text (``$names`` are to be settled), its launch, and the parameters that it has beside those of the
    original: their names and size expressions."""

    body: str
    grid: tuple[str, str, str]
    block: tuple[str, str, str]
    parameters: tuple[tuple[str, str], ...] = ()


def plain_kernel(c: Computation, target: Target) -> Plain:
    """Raises NotPlain where the computation needs more than loops over its dimensions."""
    if any(s.value is None or s.kind not in ("map", "fold") for s in c.statements):
        raise NotPlain("not only maps and folds")
    return _Kernel(c, target).written()


class _Kernel:
    def __init__(self, c: Computation, target: Target) -> None:
        self.c, self.target = c, target
        self.called = Names(c, target)
        self.sizes, self.writer = self.called.sizes, self.called.writer
        self.names, self.extents, self.affine = self.called.names, self.called.extents, self.called.affine
        self.made = [s for s in c.statements if s.target.startswith("_")]
        self.outputs = [s for s in c.statements if not s.target.startswith("_")]
        self.domain = self.made[0].domain if self.made else self.outputs[0].domain

    def written(self) -> Plain:
        """The whole kernel."""
        self._legal()
        lines = [*self._thread(), ""]
        for s in self.made:
            lines += self._statement(s, ())
        for s in self.outputs:
            lines += self._statement(s, s.domain[len(self.domain) :])
        grid, block = self._launch()
        used = "\n".join(lines)
        more = tuple((name, size) for size, name in self.sizes.more.items() if name in used)
        return Plain(used, grid, block, more)

    def _legal(self) -> None:
        """Values between statements belong to one thread, and nobody reads what another thread writes."""
        extents = [x for _, x in self.domain]
        if any([x for _, x in s.domain] != extents for s in self.made) or not self.domain:
            raise NotPlain("folds over different domains")
        if any([x for _, x in s.domain][: len(extents)] != extents for s in self.outputs):
            raise NotPlain("outputs of different domains")
        own = {s.target: s.place for s in self.outputs}
        for s in self.c.statements:
            for e in distinct(s.value) if s.value is not None else ():
                if isinstance(e, Load) and e.buffer in own and (s.target != e.buffer or e.indices != own[e.buffer]):
                    raise NotPlain("an output is read elsewhere")
                if isinstance(e, Load) and e.buffer.startswith("_") and len(e.indices) != len(extents):
                    raise NotPlain("a value of another domain")
        for b in self.c.buffers:
            if not b.name.startswith("_") and self._most(b.shape) > _INT:
                raise NotPlain("more elements than an int counts")

    def _most(self, shape: Sequence[str]) -> float:
        largest = {s.name: s.maximum for s in self.target.contract.sizes}
        return math.prod(float(evaluate(x, largest)) for x in shape)

    def _thread(self) -> list[str]:
        """Which point or row a thread is of."""
        dims = [f"${name}" for name, _ in self.domain]
        extents = [self.sizes.text(x) for _, x in self.domain]
        if len(dims) == 1:
            return [
                f"int {dims[0]} = blockIdx.x * blockDim.x + threadIdx.x;",
                f"if ({dims[0]} >= {extents[0]}) return;",
            ]
        lines = [f"int {dims[-1]} = blockIdx.x * blockDim.x + threadIdx.x;",
                 f"int {dims[-2]} = blockIdx.y * blockDim.y + threadIdx.y;"]  # fmt: skip
        rest = dims[:-2]
        if rest and self._most([x for _, x in self.domain[:-2]]) > _MAX_GRID_Z:
            raise NotPlain("more layers than a grid has")
        for n, dim in enumerate(rest):
            below = [f" / ({' * '.join(extents[n + 1 : -2])})"] if n + 1 < len(rest) else [""]
            within = f" % {extents[n]}" if n else ""
            value = f"(int)blockIdx.z{below[0]}"
            lines.append(f"int {dim} = {f'({value}){within}' if within else value};")
        lines.append(f"if ({dims[-2]} >= {extents[-2]} || {dims[-1]} >= {extents[-1]}) return;")
        return lines

    def _launch(self) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
        extents = [x for _, x in self.domain]
        if len(extents) == 1:
            return (f"ceil_div({extents[0]}, {_LINE})", "1", "1"), (str(_LINE), "1", "1")
        layers = " * ".join(f"({x})" for x in extents[:-2]) or "1"
        grid = (f"ceil_div({extents[-1]}, {_COLUMNS})", f"ceil_div({extents[-2]}, {_ROWS})", layers)
        return grid, (str(_COLUMNS), str(_ROWS), "1")

    # ------------------------------------------------------------ statements

    def _statement(self, s: Statement, loops: Sequence[tuple[str, str]]) -> list[str]:
        assert s.value is not None
        kept = s.target.startswith("_")
        name = self.names[s.target]
        lines: list[str] = []
        if isinstance(s.value, Fold):
            name = name if kept else "$total"
            begun, *loops_ = self._fold(name, s.value)
            asked = self._asked(s.target) if kept else ""
            lines += [begun, *([f"if ({asked}) {{", *_deeper(loops_), "}"] if asked else loops_)]
            value = name
        else:
            value = bare(self.writer.text(s.value))
        if kept:
            return [*lines, ""]
        at = self.writer.flat(s.target, s.place)
        written, asked = self._written(s, value)
        store = f"{self.names[s.target]}[{at}] = {written};"
        lines += [f"if ({asked}) {{", *_deeper([store]), "}"] if asked else [store]
        for dim, extent in reversed(loops):
            lines = [f"for (int ${dim} = 0; ${dim} < {self.sizes.text(extent)}; ${dim}++) {{", *_deeper(lines), "}"]
        return lines

    def _written(self, s: Statement, value: str) -> tuple[str, str]:
        """What is written, and where; '' everywhere. Of rows of data those that stay are another launch's, which need
        not have written them yet."""
        if isinstance(s.value, Case) and has_data_rows(self.c):
            left, right = self.affine(s.value.left), self.affine(s.value.right)
            own = Load(s.target, s.place, type_of(s.value))
            if s.value.no == own:
                return bare(self.writer.text(s.value.yes)), f"{left} <= {right}"
            if s.value.yes == own:
                return bare(self.writer.text(s.value.no)), f"{left} > {right}"
        return value, ""

    def _fold(self, name: str, fold: Fold) -> list[str]:
        if fold.op not in _START or any(isinstance(e, Fold) for e in distinct(fold.body)):
            raise NotPlain(f"a fold by {fold.op}")
        dtype = type_of(fold)
        if dtype not in ("float32", "float64", "int32", "int64") or (fold.op in ("max", "min") and dtype[0] == "i"):
            raise NotPlain(f"a fold of {dtype}")
        start = _START[fold.op]
        if start.isdigit():
            start += {"float32": ".0f", "float64": ".0"}.get(dtype, "")
        row = row_loop(fold, self.target.contract)
        value = bare(row.term(self.writer) if row is not None else self.writer.text(fold.body))
        call = {"float32": f"f{fold.op}f", "float64": f"f{fold.op}"}.get(dtype, fold.op)
        step = {"sum": f"{name} += {value};", "prod": f"{name} *= {value};"}.get(
            fold.op, f"{name} = {call}({name}, {value});"
        )
        lines = [step]
        if fold.inside:
            lines = [f"if ({' && '.join(self._within(fold.body))}) {{", *_deeper(lines), "}"]
        if row is not None:
            lines = [f"for ({row.head(self.writer)}) {{", *_deeper(lines), "}"]
        for dim, extent in () if row is not None else reversed(fold.dims):
            lines = [f"for (int ${dim} = 0; ${dim} < {self.affine(extent)}; ${dim}++) {{", *_deeper(lines), "}"]
        return [f"{TYPES[dtype]} {name} = {start};", *lines]

    def _asked(self, made: str) -> str:
        """When a value between statements is used; '' always. What it reads may lie outside of its buffer elsewhere."""
        found = [path for s in self.c.statements if s.value is not None for path in _paths(s.value, made, ())]
        own = {*self.c.sizes, *(name for name, _ in self.domain)}
        used = {n for path in found for a, _, b in path for n, _ in (*a.terms, *b.terms)}
        if not all(found) or not found or any(n.isidentifier() for n in used - own):
            return ""
        texts = [" && ".join(f"{self.affine(a)} {how} {self.affine(b)}" for a, how, b in path) for path in found]
        texts = list(dict.fromkeys(texts))
        return texts[0] if len(texts) == 1 else " || ".join(f"({text})" for text in texts)

    def _within(self, body: Expr) -> list[str]:
        tests: dict[str, None] = {}
        for e in distinct(body):
            if isinstance(e, Load) and e.buffer in self.extents:
                for part, extent in zip(e.indices, self.extents[e.buffer], strict=True):
                    if isinstance(part, Number) and len(getattr(part.index, "terms", ())) + bool(
                        getattr(part.index, "constant", 0)
                    ) > 1:  # fmt: skip
                        text = self.writer.text(part)
                        tests[f"{text} >= 0 && {text} < {extent}"] = None
        if not tests:
            raise NotPlain("an edge that no index shows")
        return list(tests)


def _paths(e: Expr, made: str, path: tuple[_Test, ...]) -> Iterator[tuple[_Test, ...]]:
    """The tests on the way to each use of a value between statements."""
    if isinstance(e, Load) and e.buffer == made:
        yield path
    if isinstance(e, Case):
        yield from _paths(e.yes, made, (*path, (e.left, "<=", e.right)))
        yield from _paths(e.no, made, (*path, (e.left, ">", e.right)))
        return
    for part in children(e):
        yield from _paths(part, made, path)


def _deeper(lines: Sequence[str]) -> list[str]:
    return ["    " + line for line in lines]
