"""The kernel of steps-in-block: each kernel of before is a function, which one block calls for all its threads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from fsr.analysis.threads import AXES
from fsr.analysis.types import bare
from fsr.expressions import names, to_c
from fsr.records import STEP, Candidate, Launch, ScalarArgument
from fsr.source.emit import emit_kernel, emit_stmts
from fsr.source.entry import beside
from fsr.source.form import Expr, KernelForm, Name, OpaqueStmt
from fsr.source.names import indent, words
from fsr.source.rewrite import definition, with_definitions
from fsr.source.tokens import skeleton
from fsr.transform.launch.apart import Apart
from fsr.transform.launch.merged_params import MergedParams, still_needed
from fsr.transform.launch.told_ids import ids_in, with_ids

_IDS = tuple((v, axis) for v in ("blockIdx", "threadIdx", "gridDim", "blockDim") for axis in AXES)
_CALLED = {"blockIdx": "block", "threadIdx": "thread", "gridDim": "blocks", "blockDim": "threads"}


@dataclass(frozen=True)
class Step(Apart):
    """A launch that becomes a step of a block."""

    @cached_property
    def threads(self) -> tuple[str, ...]:
        """How many there are in all, as size expressions: at the first repetition and at the last."""
        whole = " * ".join([f"({g})" for g in self.launch.grid if g != "1"] + [str(self.target.threads)])
        if STEP not in names(whole):
            return (whole,)
        ends = ("0", f"max(0, ({self.launch.repeat}) - 1)")
        return tuple(re.sub(rf"\b{STEP}\b", at, whole) for at in ends)

    @cached_property
    def ids(self) -> tuple[tuple[str, str], ...]:
        """The ids and extents that the kernel asks for."""
        asked = ids_in(self.target.kernel.body)
        return tuple(one for one in _IDS if one in asked)


@dataclass
class InBlock:
    """The candidate whose block of ``threads`` goes through all steps. ``condition``: on sizes, when it is launched at
    all; None for always."""

    candidate: Candidate
    steps: tuple[Step, ...]
    threads: int
    condition: str | None
    _stepped: dict[tuple[int, str], str] = field(default_factory=dict)  # position and parameter to a number's name

    def __post_init__(self) -> None:
        self._merged = MergedParams(words(skeleton(self.candidate.source)))
        self._ids = {one: self._merged.fresh(f"{_CALLED[one[0]]}_{one[1]}") for one in _IDS}
        self._at, self._step = self._merged.fresh("at"), self._merged.fresh("step")
        self._dims = {axis: self._merged.fresh(f"grid_{axis}") for axis in AXES}
        kernels = {step.target.kernel.name: step.target.kernel for step in self.steps}
        self._kernels = sorted(kernels.values(), key=lambda k: k.span or (0, 0))
        self._functions = {name: self._merged.fresh(f"{name}_thread") for name in kernels}
        self._name = self._merged.fresh(f"{self.steps[0].target.kernel.name}_steps")
        self._body = list(self._steps())

    # ------------------------------------------------------------ the candidate

    def source(self) -> str:
        """The text: functions in the place of kernels that nothing launches any more, else behind them; then the
        kernel, behind the last of them."""
        return with_definitions(self.candidate.source, self._kernels, self._parts)

    def _parts(self, kernel: KernelForm) -> Iterator[str]:
        if self._needed(kernel):
            yield definition(self.candidate.source, kernel)
        yield self._function(kernel)
        if kernel is self._kernels[-1]:
            yield self._kernel(kernel)

    def launches(self) -> tuple[Launch, ...]:
        """The plan's launches: those of before, where they are still needed, behind the new one."""
        old, first, count = self.candidate.plan.launches, self.steps[0].position, len(self.steps)
        return (*old[:first], self._launch(), *self._left(), *old[first + count :])

    def _left(self) -> Iterator[Launch]:
        if self.condition is not None:
            for step in self.steps:
                yield replace(step.launch, repeat=f"0 if {self.condition} else ({step.launch.repeat})")

    def _needed(self, kernel: KernelForm) -> bool:
        """Whether something else mentions a kernel."""
        own = {step.position for step in self.steps} if self.condition is None else set[int]()
        left = [one for i, one in enumerate(self.candidate.plan.launches) if i not in own]
        return still_needed(self.candidate.source, kernel, left)

    # ------------------------------------------------------------ the text

    def _function(self, kernel: KernelForm) -> str:
        """What a thread of a kernel does, told its ids."""
        step = next(s for s in self.steps if s.target.kernel.name == kernel.name)
        told: dict[tuple[str, str], Expr] = {one: Name(self._ids[one]) for one in step.ids}
        params = [f"{p.type} {p.name}".replace("* ", "*") for p in kernel.params]
        params += [f"unsigned {self._ids[one]}" for one in step.ids]
        head = f"__device__ __forceinline__ void {self._functions[kernel.name]}({', '.join(params)})"
        body = emit_stmts(with_ids(kernel.body, told), 1)
        return f"// What a thread of {kernel.name} does.\n{head}\n{{\n{body}}}"

    def _kernel(self, last: KernelForm) -> str:
        body = (OpaqueStmt("\n".join(indent(self._body)).strip()),)
        form = KernelForm(self._name, self._merged.params, body, launch_bounds=(str(self.threads),), prefix=last.prefix)
        return "// One block goes through what were launches; a barrier stands for the end of each.\n" + emit_kernel(
            form
        ).rstrip("\n")

    def _launch(self) -> Launch:
        grid = "1" if self.condition is None else f"1 if {self.condition} else 0"
        entry = beside(self.steps[0].launch.entry, self._name)
        return Launch(entry, (grid, "1", "1"), (str(self.threads), "1", "1"), "0", self._merged.args)

    def _steps(self) -> Iterator[str]:
        for number, step in enumerate(self.steps):
            end = [] if number + 1 == len(self.steps) and not step.launch.repeated else ["__syncthreads();"]
            dims = self._dimensions(step)
            if not step.launch.repeated:
                yield from (["{", *indent([*dims, *self._turns(step)]), "}"] if dims else self._turns(step))
                yield from end
                continue
            told = [f"const {kind} {name} = ({kind})({text});" for kind, name, text in self._numbers(step)]
            head = f"for (int {self._step} = 0; {self._step} < {self._c(step.launch.repeat)}; ++{self._step}) {{"
            yield from [head, *indent([*dims, *told, *self._turns(step), *end]), "}"]

    def _turns(self, step: Step) -> list[str]:
        """All threads of a launch, one block's threads at a time."""
        at, whole = self._at, self._whole(step)
        passed = [*self._passed(step), *self._told(step)]
        call = f"{self._functions[step.target.kernel.name]}({', '.join(passed)});"
        head = f"for (unsigned {at} = threadIdx.x; {at} < {whole}; {at} += {self.threads}u) {{"
        return [head, *indent([call]), "}"]

    def _told(self, step: Step) -> Iterator[str]:
        """The ids of a thread, from its number among all."""
        threads, grid = step.target.threads, self._grid(step)
        for variable, axis in step.ids:
            place = AXES.index(axis)
            match variable:
                case "blockDim":
                    yield f"{step.block[place]}u"
                case "gridDim":
                    yield grid[place]
                case "threadIdx":
                    yield _apart(f"{self._at} % {threads}u", [f"{n}u" for n in step.block], place)
                case _:
                    yield _apart(f"{self._at} / {threads}u", grid, place)

    def _whole(self, step: Step) -> str:
        return " * ".join([*[g for g in self._grid(step) if g != "1u"], f"{step.target.threads}u"])

    def _grid(self, step: Step) -> list[str]:
        """The extents of the grid, as the kernel has them."""
        return [f"{g}u" if g.isdigit() else self._dims[axis] for axis, g in zip(AXES, step.launch.grid, strict=True)]

    def _dimensions(self, step: Step) -> list[str]:
        return [
            f"const unsigned {self._dims[axis]} = (unsigned)({self._c(g)});"
            for axis, g in zip(AXES, step.launch.grid, strict=True)
            if not g.isdigit()
        ]

    # ------------------------------------------------------------ what is passed

    def _passed(self, step: Step) -> Iterator[str]:
        """What the function of a step is called with."""
        for param, arg in zip(step.target.kernel.params, step.launch.args, strict=True):
            yield self._stepped[step.position, param.name] if _varies(step, arg) else self._merged.param(param, arg)

    def _numbers(self, step: Step) -> Iterator[tuple[str, str, str]]:
        """Type, name and value of the numbers that a repetition is told."""
        for param, arg in zip(step.target.kernel.params, step.launch.args, strict=True):
            if isinstance(arg, ScalarArgument) and _varies(step, arg):
                name = self._merged.named(param.name, param.name)
                self._stepped[step.position, param.name] = name
                yield bare(param.type), name, self._c(arg.value)

    def _c(self, text: str) -> str:
        """A size expression in C, over what the kernel is passed of sizes."""
        sizes = {n: self._merged.size(n) for n in sorted(names(text) - {STEP})}
        return to_c(text, {**sizes, STEP: self._step})


def _varies(step: Step, arg: str | ScalarArgument) -> bool:
    """Whether repetitions are told different numbers."""
    return isinstance(arg, ScalarArgument) and step.launch.repeated and STEP in names(arg.value)


def _apart(number: str, extents: list[str], place: int) -> str:
    """A number's place along an axis of a box, x first."""
    before = [e for e in extents[:place] if e != "1u"]
    if extents[place] == "1u":
        return "0u"
    below = f"{number} / ({' * '.join(before)})" if before else number
    return f"{below} % {extents[place]}" if any(e != "1u" for e in extents[place + 1 :]) else below
