"""The kernel of join-steps: what one step does as a function, called for one step after the other."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property

from fsr.analysis.types import bare
from fsr.expressions import names, to_c
from fsr.records import STEP, Launch, ScalarArgument
from fsr.source.braces import changed_inside
from fsr.source.emit import emit_stmts
from fsr.source.entry import beside, spelt_out
from fsr.source.form import Binary, Expr, Index, KernelForm, Name, OpaqueExpr, OpaqueStmt, Param
from fsr.source.mapping import rewrite
from fsr.source.names import indent
from fsr.source.walk import Block, fresh
from fsr.transform.launch.joined_steps import Steps
from fsr.transform.launch.joined_tiles import Tile
from fsr.transform.launch.told_ids import with_ids

# The number of a step has few bits: a double has its root exactly.
_ROOT = """__device__ __forceinline__ long long fsr_isqrt(long long a)
{
    return (long long)sqrt((double)a);
}
"""


@dataclass(frozen=True)
class Joined:
    """The new kernel's parts: ``threads`` of a block go through the steps of a tile."""

    steps: Steps
    tile: Tile
    threads: int
    name: str  # the new kernel's
    body: Block  # of the old one, as it is written

    @cached_property
    def _written(self) -> tuple[Param, ...]:
        return self.steps.written(self.tile)

    @cached_property
    def _names(self) -> dict[str, str]:
        """Names that the kernel has none of, by what they stand for."""
        taken = set(self.steps.target.names)
        wanted = ["turn", "step", "steps", "blocks", "block", "thread", "grid", "one", "chunk", "more", "at", "spread"]
        wanted += [f"{p.name}_{what}" for p in self._written for what in ("tile", "count", "first")]
        wanted += [f"{name}_of" for name in (*self.steps.told, "blocks")] + sorted(self._sizes)
        found = {}
        for name in wanted:
            found[name] = fresh(name, taken)
            taken.add(found[name])
        found["turn"] = fresh(f"{self.steps.target.kernel.name}_turn", taken)
        return found

    @property
    def _sizes(self) -> set[str]:
        """Sizes that the numbers of a repetition depend on."""
        grid = names(self.steps.launch.grid[0]) if self.steps.launch.reshaped else set()
        return {n for a in self.steps.told.values() for n in names(a.value)}.union(grid) - {STEP}

    @cached_property
    def _told(self) -> dict[str, tuple[str, str, str]]:
        """What is another number at each repetition: its name, type, value, and the name of those of many."""
        n, kernel = self._names, self.steps.target.kernel
        found = {name: (bare(kernel.param(name).type), a.value, n[f"{name}_of"]) for name, a in self.steps.told.items()}
        if self.steps.launch.reshaped:
            found[n["blocks"]] = "unsigned int", self.steps.launch.grid[0], n["blocks_of"]
        return found

    def turn(self) -> str:
        """What the kernel did, as a function of the ids of before."""
        n, kernel = self._names, self.steps.target.kernel
        told: dict[tuple[str, str], Expr] = {("threadIdx", "x"): Name(n["thread"]), ("blockIdx", "x"): Name(n["block"])}
        told |= {("blockDim", "x"): Name(f"{self.steps.threads}u"), ("gridDim", "x"): Name(n["grid"])}
        told |= {(v, axis): Name("0u") for v in ("threadIdx", "blockIdx") for axis in "yz"}
        told |= {(v, axis): Name("1u") for v in ("blockDim", "gridDim") for axis in "yz"}
        if self.steps.rows != "1":  # as they are
            told = {key: e for key, e in told.items() if key not in (("blockIdx", "y"), ("gridDim", "y"))}
        own = {p.name: Name(n[f"{p.name}_first"]) for p in self._written}
        first = {name: own[buffer] for name, buffer in self.steps.same.items() if buffer in own}

        def moved(e: Expr) -> Expr | None:
            match e:
                case Index(Name(name), index) if name in first:
                    return Index(Name(name), Binary("-", rewrite(index, moved), first[name]))
                case Name(name) if name in first:
                    return Binary("-", e, first[name])
                case OpaqueExpr():
                    return changed_inside(e, lambda part: rewrite(part, moved))
            return None

        body = rewrite(with_ids(self.body, told), moved)
        params = [f"{p.type} {p.name}".replace("* ", "*") for p in kernel.params]
        params += [f"unsigned {f.text}" for f in own.values()]
        params += [f"unsigned {n[name]}" for name in ("block", "thread", "grid")]
        head = f"// What a thread of {kernel.name} does; a buffer x that it writes begins at its element x_first."
        head += "" if kernel.template is None else f"\ntemplate <{kernel.template}>"
        return (
            f"{head}\n__device__ __forceinline__ void {n['turn']}({', '.join(params)})\n{{\n{emit_stmts(body, 1)}}}\n"
        )

    @property
    def helpers(self) -> str:
        """What stands at the head of the file."""
        return _ROOT if any("isqrt" in a.value for a in self.steps.told.values()) else ""

    def kernel(self) -> KernelForm:
        """The kernel that goes through all steps that it can."""
        old = self.steps.target.kernel
        kept = tuple(replace(p, restrict=False) for p in old.params if p.name not in self.steps.told)
        more = [Param("int", self._names["step"]), Param("int", self._names["steps"])]
        more += [] if self.steps.launch.reshaped else [Param("unsigned int", self._names["blocks"])]
        more += [Param("unsigned int", self._names[f"{p.name}_count"]) for p in self._written]
        more += [Param("long long", self._names[s]) for s in sorted(self._sizes)]
        body = OpaqueStmt("\n".join(indent([*self._far(), *self._near()])).strip())
        bounds = (str(self.threads),) if old.launch_bounds else ()
        return replace(old, name=self.name, params=(*kept, *more), body=(body,), launch_bounds=bounds)

    def launch(self, launch: Launch) -> Launch:
        """The launch: where a step is no longer to be begun its grid is empty."""
        tiles, beyond = self.steps.tiles(self.tile), f"ceil_div({launch.grid[0]}, {self.tile.blocks})"
        grid = f"({tiles}) if step == 0 else 0"
        if self.tile.bound is not None:
            value, most = self.tile.bound.value, self.tile.bound.most
            before = re.sub(rf"\b{STEP}\b", f"({STEP} - 1)", value)
            begun = f"({tiles}) if step == 0 else (({tiles}) if (({before}) <= {most}) == 0 else 0)"
            grid = f"({begun}) if ({value}) <= {most} else ({beyond})"
        told = set(self.steps.told)
        args = [a for p, a in zip(self.steps.target.kernel.params, launch.args, strict=True) if p.name not in told]
        args += [ScalarArgument("int32", STEP), ScalarArgument("int32", launch.repeat)]
        args += [] if launch.reshaped else [ScalarArgument("uint32", launch.grid[0])]
        for param in self._written:
            count = self.steps.count(param)
            assert count is not None
            args.append(ScalarArgument("uint32", count))
        args += [ScalarArgument("int64", s) for s in sorted(self._sizes)]
        entry = spelt_out(launch.entry, beside(launch.entry, self.name))
        shape = (grid, self.steps.rows, "1"), (str(self.threads), "1", "1")
        return replace(launch, entry=entry, grid=shape[0], block=shape[1], args=tuple(args))

    def _numbers(self, step: str) -> dict[str, str]:
        """By what is told a number of the repetition: that, in C."""
        n = self._names
        renamed = {STEP: step, **{s: n[s] for s in self._sizes}}
        found = {}
        for name, (kind, value, _) in self._told.items():
            text = to_c(value, renamed)
            text = re.sub(r"\[\]\(long long a\) \{ long long r = 0;.*?return r; \}", "fsr_isqrt", text)
            found[name] = f"({kind}){text}"
        return found

    def _turns(self, buffers: dict[str, str], firsts: list[str]) -> list[str]:
        """All that the blocks of a tile do in one step."""
        n, threads = self._names, self.steps.threads
        kernel = self.steps.target.kernel
        params = [buffers.get(self.steps.same.get(p.name, ""), p.name) for p in kernel.params]
        own = ", ".join(name for _, name in kernel.template_parameters)
        turn = n["turn"] + (f"<{own}>" if own else "")
        one, most = n["one"], f"{self.tile.blocks * threads}u"
        block, thread = f"blockIdx.x * {self.tile.blocks}u + {one} / {threads}u", f"{one} % {threads}u"
        lines = list[str]()
        if buffers and self.tile.spread is not None:
            most = n["spread"]
            lines = [f"const unsigned {most} = {self.tile.blocks * threads}u / {self.tile.spread.text};"]
            block, thread = (f"(blockIdx.x * {most} + {one}) {op} {threads}u" for op in "/%")
        passed = ", ".join([*params, *firsts, block, thread, n["blocks"]])
        return [
            *lines,
            f"for (unsigned {one} = threadIdx.x; {one} < {most}; {one} += {self.threads}u) {{",
            f"    if ({block} < {n['blocks']}) {turn}({passed});",
            "}",
        ]

    def _far(self) -> list[str]:
        """A step that reaches beyond the tile."""
        if self.tile.bound is None:
            return []
        told = self._numbers(self._names["step"])
        own = [f"const auto {name} = {text};" for name, text in told.items()]
        test = f"if (!({self.tile.bound.text} <= {self.tile.bound.most})) {{"
        inner = [*self._turns({}, ["0u"] * len(self._written)), "return;"]
        return ["{", *indent([*own, test, *indent(inner), "}"]), "}"]

    def _near(self) -> list[str]:
        """Steps within the tile, one after the other."""
        n, elements = self._names, self.tile.elements
        buffers = {p.name: n[f"{p.name}_tile"] for p in self._written}
        firsts = [n[f"{p.name}_first"] for p in self._written]
        lines = ["// Steps that keep to a tile follow one another in this launch."]
        lines += [f"__shared__ {bare(p.type)} {buffers[p.name]}[{elements[p.name]}];" for p in self._written]
        lines += [f"__shared__ {kind} {many}[{self.threads}];" for kind, _, many in self._told.values()]
        for first, p in zip(firsts, self._written, strict=True):
            row = "" if self.steps.rows == "1" else f"blockIdx.y * {n[f'{p.name}_count']} + "
            lines.append(f"const unsigned {first} = {row}blockIdx.x * {elements[p.name]}u;")
        lines += self._copy("{tile}[{at}] = {buffer}[{first} + {at}];")
        chunk, step, more, threads = n["chunk"], n["step"], n["more"], self.threads
        own = [
            f"{self._told[name][2]}[threadIdx.x] = {text};"
            for name, text in self._numbers(f"({chunk} + (int)threadIdx.x)").items()
        ]
        inside = [f"const {kind} {name} = {many}[{n['at']}];" for name, (kind, _, many) in self._told.items()]
        if self.tile.bound is not None:
            inside += [f"{more} = {self.tile.bound.text} <= {self.tile.bound.most};", f"if (!{more}) break;"]
        inside += [*self._turns(buffers, firsts), "__syncthreads();"]
        at, steps = n["at"], n["steps"]
        loop = [
            f"if ({chunk} + (int)threadIdx.x < {steps}) {{", *indent(own), "}",
            "__syncthreads();",
            f"for (int {at} = 0; {at} < {threads} && {chunk} + {at} < {steps}; ++{at}) {{", *indent(inside), "}",
            "__syncthreads();",
        ]  # fmt: skip
        lines += [f"bool {more} = true;"]
        lines += [
            f"for (int {chunk} = {step}; {more} && {chunk} < {steps}; {chunk} += {threads}) {{",
            *indent(loop),
            "}",
        ]
        return [*lines, *self._copy("{buffer}[{first} + {at}] = {tile}[{at}];")]

    def _copy(self, text: str) -> list[str]:
        """All of a tile's elements that there are."""
        n, lines = self._names, list[str]()
        for p in self._written:
            count, first, at = n[f"{p.name}_count"], n[f"{p.name}_first"], n["at"]
            parts = {"tile": n[f"{p.name}_tile"], "buffer": p.name, "first": first, "at": at}
            head = (
                f"for (unsigned {at} = threadIdx.x; {at} < {self.tile.elements[p.name]}u; {at} += {self.threads}u) {{"
            )
            place = first if self.steps.rows == "1" else f"blockIdx.x * {self.tile.elements[p.name]}u"
            lines += [head, f"    if ({place} + {at} < {count}) {text.format(**parts)}", "}"]
        return lines
