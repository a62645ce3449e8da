"""The kernel of a reader that computes what it reads: its maker is a function of an element's number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.accesses import element
from fsr.analysis.types import bare
from fsr.records import Candidate, Plan, ScalarArgument
from fsr.source.emit import declared as spelt
from fsr.source.emit import emit_kernel, emit_stmts
from fsr.source.entry import beside
from fsr.source.form import Call, Expr, KernelForm, Name, Param, Return, Stmt
from fsr.source.mapping import map_exprs, map_stmts
from fsr.source.names import words
from fsr.source.rewrite import definition, with_definitions
from fsr.source.tokens import skeleton
from fsr.source.walk import declared, fresh, taken_names
from fsr.transform.fuse.feeds import Feed, parameter
from fsr.transform.fuse.values import Value, with_value
from fsr.transform.launch.merged_params import still_needed


@dataclass
class Fed:
    """The candidate without a maker."""

    candidate: Candidate
    feed: Feed

    def __post_init__(self) -> None:
        self._taken = set(words(skeleton(self.candidate.source)))
        maker, reader = self.feed.maker.target.kernel, self.feed.reader.target.kernel
        self._function = self._fresh(f"{maker.name}_element")
        self._name = self._fresh(f"{reader.name}_fused")
        self._kernels = sorted({k.name: k for k in (maker, reader)}.values(), key=lambda k: k.span or (0, 0))
        self._params, self._args = list[Param](), list[str | ScalarArgument]()
        for param, arg in zip(reader.params, self.feed.reader.launch.args, strict=True):
            if arg != self.feed.scratch.name:
                self._params.append(param)
                self._args.append(arg)
        self._passed = [self._param(p, a) for p, a in self._given()]

    def source(self) -> str:
        """The text: both in the place of the last of the two kernels."""
        return with_definitions(self.candidate.source, self._kernels, self._parts)

    def plan(self) -> Plan:
        """The plan without the maker and its buffer."""
        old, (maker, reader) = self.candidate.plan, self.feed.positions
        own = self.feed.reader.launch
        own = replace(own, entry=beside(own.entry, self._name), args=tuple(self._args))
        launches = [own if i == reader else one for i, one in enumerate(old.launches) if i != maker]
        return replace(old, launches=tuple(launches), scratch=tuple(s for s in old.scratch if s != self.feed.scratch))

    def _fresh(self, wanted: str) -> str:
        found = fresh(wanted, self._taken)
        self._taken.add(found)
        return found

    def _given(self) -> list[tuple[Param, str | ScalarArgument]]:
        """The maker's parameters and what it is passed, without the buffer."""
        maker = self.feed.maker
        pairs = zip(maker.target.kernel.params, maker.launch.args, strict=True)
        return [(param, arg) for param, arg in pairs if arg != self.feed.scratch.name]

    def _param(self, param: Param, arg: str | ScalarArgument) -> str:
        """What the reader calls what the maker is passed: it may be passed the same."""
        target = self.feed.reader.target
        own = target.known.changed | set(declared(target.kernel.body))
        for known, passed in zip(self._params, self._args, strict=True):
            if (passed, known.type.split()) == (arg, param.type.split()) and known.name not in own:
                return known.name
        name = fresh(param.name, {*taken_names(target.kernel), *(p.name for p in self._params), self._function})
        self._params.append(replace(param, name=name, default=""))
        self._args.append(arg)
        return name

    def _parts(self, kernel: KernelForm) -> Iterator[str]:
        left = [one for i, one in enumerate(self.candidate.plan.launches) if i not in self.feed.positions]
        if still_needed(self.candidate.source, kernel, left):
            yield definition(self.candidate.source, kernel)
        if kernel is self._kernels[-1]:
            yield self._element()
            yield self._kernel()

    def _element(self) -> str:
        """The maker for one element; those that it leaves out are 0, as in memory that was cleared."""
        maker, point = self.feed.maker, self.feed.maker.point
        assert point is not None
        made = parameter(maker, self.feed.scratch.name)
        value = Value(self.feed.scratch, bare(maker.target.kernel.param(made).type))
        body = map_stmts(with_value(point.body, made) or (), lambda s: _returned(s, made))
        name, kind = point.ids["x"]
        params = [f"{p.type}__restrict__ {p.name}" if p.restrict else spelt(p.type, p.name) for p, _ in self._given()]
        head = f"__device__ __forceinline__ {value.type} {self._function}({', '.join([*params, f'{kind} {name}'])})"
        lines = f"    {spelt(value.type, made)} = {value.initial};\n{emit_stmts(body, 1)}    return {made};\n"
        return f"// An element that {maker.target.kernel.name} wrote.\n{head}\n{{\n{lines}}}"

    def _kernel(self) -> str:
        kernel = self.feed.reader.target.kernel
        own = frozenset({parameter(self.feed.reader, self.feed.scratch.name)})

        def change(e: Expr) -> Expr:
            place = element(e, own)
            return e if place is None else Call(Name(self._function), (*map(Name, self._passed), *place[1]))

        form = replace(kernel, name=self._name, params=tuple(self._params), body=map_exprs(kernel.body, change))
        return emit_kernel(form).rstrip("\n")


def _returned(s: Stmt, name: str) -> Stmt:
    return Return(Name(name)) if isinstance(s, Return) else s
