"""The kernel of fuse-launches: kernels of before are functions, called one after the other for a thread's points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from fsr.analysis.types import bare
from fsr.records import Candidate, Launch, Plan, ScalarArgument
from fsr.source.emit import declared, emit_expr, emit_kernel, emit_stmts
from fsr.source.entry import beside
from fsr.source.form import Expr, KernelForm, Name, OpaqueStmt, Param
from fsr.source.mapping import substitute
from fsr.source.names import indent, words
from fsr.source.rewrite import definition, with_definitions
from fsr.source.tokens import skeleton
from fsr.source.walk import fresh, names_in, taken_names
from fsr.transform.fuse.points import Points
from fsr.transform.fuse.runs import Run
from fsr.transform.fuse.steps import Step
from fsr.transform.fuse.values import Value, with_value
from fsr.transform.launch.merged_params import MergedParams, still_needed
from fsr.transform.launch.pointwise import id_expression
from fsr.transform.launch.told_ids import ids_in, with_ids


@dataclass
class Fused:
    """The candidate in which a run is one launch. ``values``: buffers that became variables; ``before``: launches from
    between that go in front of it."""

    candidate: Candidate
    run: Run
    values: dict[str, Value]
    before: tuple[int, ...]
    _functions: dict[tuple[str, str], str] = field(default_factory=dict)  # kernel and parameters to its name
    _bodies: dict[str, list[str]] = field(default_factory=dict)  # the functions of each kernel
    _counts: dict[tuple[str, str], str] = field(default_factory=dict)  # axis and blocks along it to their name
    _open: set[str] = field(default_factory=set)  # parameters that were not restrict everywhere

    def __post_init__(self) -> None:
        self._merged = MergedParams(words(skeleton(self.candidate.source)))
        host = self.run.grid.host.point if self.run.grid.by_points else None
        self._ids = {} if host is None else {a: self._merged.named(host.ids[a][0], f"at_{a}") for a in sorted(host.ids)}
        self._variables = {b: self._merged.named(b, f"{b}_here") for b in self.values}
        kernels = {step.target.kernel.name: step.target.kernel for step in self.run.steps}
        self._kernels = sorted(kernels.values(), key=lambda k: k.span or (0, 0))
        self._name = self._merged.fresh(f"{self.run.steps[0].target.kernel.name}_fused")
        self._body = [line for step in self.run.steps for line in self._lines(step)]

    # ------------------------------------------------------------ the candidate

    def source(self) -> str:
        """The text: functions in the place of kernels that nothing launches any more, else behind them; then the
        kernel, behind the last of them."""
        return with_definitions(self.candidate.source, self._kernels, self._parts)

    def plan(self) -> Plan:
        """The plan, with one launch in the place of the run, and without scratch that became variables."""
        old, own = self.candidate.plan, self.run.positions
        others = [i for i in range(len(old.launches)) if i not in own]
        first = [i for i in others if i < own[0] or i in self.before]
        behind = [old.launches[i] for i in others if i not in first]
        launches = [*(old.launches[i] for i in first), self._launch(), *behind]
        scratch = tuple(s for s in old.scratch if s.name not in self.values)
        return replace(old, launches=tuple(launches), scratch=scratch)

    def _parts(self, kernel: KernelForm) -> Iterator[str]:
        left = [one for i, one in enumerate(self.candidate.plan.launches) if i not in self.run.positions]
        if still_needed(self.candidate.source, kernel, left):
            yield definition(self.candidate.source, kernel)
        yield from self._bodies[kernel.name]
        if kernel is self._kernels[-1]:
            yield self._kernel(kernel)

    def _launch(self) -> Launch:
        host = self.run.grid.host
        entry = beside(host.launch.entry, self._name)
        return replace(host.launch, entry=entry, grid=self._extents(), args=self._merged.args)

    def _extents(self) -> tuple[str, str, str]:
        """Of the grid: as it was, or as many blocks as the step with the most points needs."""
        host = self.run.grid.host
        regular = [s for s in self.run.steps if not (self.run.grid.by_points and self.run.grid.counts(s))]
        alike = all(s.launch.grid == host.launch.grid and s.block == host.block and s.point and not s.point.loop
                    for s in regular)  # fmt: skip
        if not self.run.grid.by_points:
            return self.run.grid.blocks(self.run.steps) if self.run.uneven else host.launch.grid
        if alike:
            return host.launch.grid
        grid = list(host.launch.grid)
        for place, axis in enumerate("xyz"):
            bounds = {s.bounds[axis]: s.point.bounds[axis][1] for s in regular if s.point and axis in s.bounds}
            if bounds:
                needed = [f"ceil_div({text}, {host.block[place]})" for text in bounds.values()]
                grid[place] = needed[0] if len(needed) == 1 else f"max({', '.join(needed)})"
        return grid[0], grid[1], grid[2]

    # ------------------------------------------------------------ the text

    def _kernel(self, last: KernelForm) -> str:
        written = self.run.written
        passed = {p.name: a for p, a in zip(self._merged.params, self._merged.args, strict=True) if isinstance(a, str)}
        params = tuple(
            replace(p, restrict=p.is_pointer and p.name not in self._open and passed[p.name] not in written)
            for p in self._merged.params
        )
        told = [f"{declared(v.type, self._variables[b])} = {v.initial};" for b, v in self.values.items()]
        body = (OpaqueStmt("\n".join(indent([*self._id_lines(), *told, *self._body])).strip()),)
        form = KernelForm(self._name, params, body, prefix=last.prefix)
        return "// What were launches, one after the other for each thread.\n" + emit_kernel(form).rstrip("\n")

    def _id_lines(self) -> Iterator[str]:
        host = self.run.grid.host.point
        for axis, name in self._ids.items():
            assert host is not None
            yield f"const {host.ids[axis][1]} {name} = {emit_expr(id_expression(axis))};"

    def _lines(self, step: Step) -> Iterator[str]:
        """A step's call, under the bounds of the points where it does not ask for them itself."""
        passed = []
        for param, arg in zip(step.target.kernel.params, step.launch.args, strict=True):
            if arg in self.values:
                passed.append(self._variables[str(arg)])
                continue
            name = self._merged.param(param, arg)
            passed.append(name)
            if param.is_pointer and not param.restrict:
                self._open.add(name)
        counts = self.run.grid.by_points and self.run.grid.counts(step)
        if self.run.grid.by_points and step.point is not None:
            passed += [self._number(step.point)] if counts else [self._ids[axis] for axis in sorted(step.point.ids)]
        blocks = self._blocks(step)
        passed += [name for axis, name in blocks.items() if ("gridDim", axis) in ids_in(step.target.kernel.body)]
        entry = step.launch.entry
        call = f"{self._function(step)}{entry[entry.index('<') :] if '<' in entry else ''}({', '.join(passed)});"
        # By the plan's sizes there may be less than none of them.
        tests = [f"(int)blockIdx.{axis} < {name}" for axis, name in blocks.items()]
        if counts:
            tests = [f"{self._ids[axis]} < {self._bound(axis)}" for axis in sorted(self._ids)]
        yield from [f"if ({' && '.join(tests)}) {{", *indent([call]), "}"] if tests else [call]

    def _blocks(self, step: Step) -> dict[str, str]:
        """What the kernel calls the blocks of a step, by axis, where there are more of the grid."""
        found = dict[str, str]()
        for axis, count in self.run.grid.own_counts(step, self.run.steps).items():
            if not count.isdigit() and (axis, count) not in self._counts:
                param = Param("int", self._merged.fresh(f"blocks_{axis}"))
                self._counts[axis, count] = self._merged.param(param, ScalarArgument("int32", count))
            found[axis] = count if count.isdigit() else self._counts[axis, count]
        return found

    def _bound(self, axis: str) -> str:
        """What the host's ids are less than, as the kernel has it."""
        host = self.run.grid.host
        assert host.point is not None
        kernel, args = host.target.kernel, host.launch.args
        values: dict[str, Expr] = {}
        bound = host.point.bounds[axis][0]
        for param, arg in zip(kernel.params, args, strict=True):
            if param.name in names_in(bound):
                values[param.name] = Name(self._merged.param(param, arg))
        text = emit_expr(substitute(bound, values))
        return text if text.isidentifier() or text.isdigit() else f"({text})"

    def _number(self, point: Points) -> str:
        """The number of a thread's point."""
        axes = sorted(self._ids, reverse=True)
        host = self.run.grid.host.point
        wide, own = point.ids["x"][1], "" if host is None else host.ids[axes[0]][1]
        text = self._ids[axes[0]] if wide == own else f"({wide}){self._ids[axes[0]]}"
        for n, axis in enumerate(axes[1:]):
            text = f"{text if n == 0 else f'({text})'} * {self._bound(axis)} + {self._ids[axis]}"
        return text

    def _function(self, step: Step) -> str:
        """The name of the function that does what a thread of a step did; its text is noted."""
        kernel = step.target.kernel
        params, ids, body = list[str](), list[str](), kernel.body
        if self.run.grid.by_points and step.point is not None:
            body = step.point.body
            for axis in sorted(step.point.ids):
                name, kind = step.point.ids[axis]
                ids.append(f"{kind} {name}")
        for param in kernel.params:
            buffer = step.target.passed.get(param.name, "")
            if param.is_pointer and buffer in self.values:
                body = with_value(body, param.name) or body
                reads = "const" in param.type.split("*")[0]
                params.append(f"{bare(param.type)} {'' if reads else '&'}{param.name}")
            else:
                params.append(_spelt(replace(param, restrict=param.restrict and buffer not in self.run.written)))
        for axis in self._blocks(step):
            if ("gridDim", axis) in ids_in(body):
                name = fresh(f"blocks_{axis}", taken_names(kernel))
                body = with_ids(body, {("gridDim", axis): Name(name)})
                ids.append(f"unsigned int {name}")
        key = (kernel.name, ", ".join([*params, *ids]))
        if key not in self._functions:
            name = self._functions[key] = self._merged.fresh(f"{kernel.name}_{'point' if self._ids else 'thread'}")
            self._bodies.setdefault(kernel.name, []).append(_definition(kernel, name, key[1], emit_stmts(body, 1)))
        return self._functions[key]


def _definition(kernel: KernelForm, name: str, params: str, body: str) -> str:
    template = "" if kernel.template is None else f"template <{kernel.template}>\n"
    head = f"__device__ __forceinline__ void {name}({params})"
    return f"// What a thread of {kernel.name} does.\n{template}{head}\n{{\n{body}}}"


def _spelt(param: Param) -> str:
    return declared(param.type, param.name) if not param.restrict else f"{param.type}__restrict__ {param.name}"
