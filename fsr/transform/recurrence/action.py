"""``step-launches``: a block's loop over time as one launch a step, over blocks that share what a step multiplies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.hardware.limits import MAX_GRID, STATIC_SHARED_BYTES
from fsr.records import STEP, Candidate, Launch, ScalarArgument
from fsr.source.emit import emit_kernel, emit_stmts
from fsr.source.entry import beside
from fsr.source.form import Cast, Expr, KernelForm, Member, Name, OpaqueStmt, Param
from fsr.source.mapping import rewrite
from fsr.source.names import indent, settle, words
from fsr.source.tokens import skeleton
from fsr.source.walk import Block, walk_expr
from fsr.transform.protocol import Move, Subject
from fsr.transform.recurrence.form import Recurrence, elements, recurrence
from fsr.transform.recurrence.placing import AXES, Layout
from fsr.transform.recurrence.shared_state import THREAD, THREADS_OF_BLOCK
from fsr.transform.recurrence.step_text import StepText, Tile
from fsr.transform.recurrence.sums import Summed, sums_of
from fsr.transform.sizes import largest, largest_timed, timed_blocks
from fsr.transform.target import Target, target_of, targets

ENDS_THREADS = 256  # of a block before the first step and behind the last
_WALK = "for (unsigned $own = threadIdx.x; $own < $threads; $own += blockDim.x) {"
LANES, ITEMS, THREADS = (8, 16, 32), (1, 2, 4, 8, 16), (128, 256, 512)
MOST_SUMS = 96  # of a thread, in registers
OFFERED = 4
_LATENCY_NS, _LAUNCH_NS = 60.0, 2000.0  # of a turn's loads, several of them under way; of a step


@dataclass(frozen=True, slots=True)
class StepLaunches:
    """``lanes``, ``items``: what a block works on; ``threads``: of a block."""

    name: str = "step-launches"
    aims_at: frozenset[str] = frozenset(["latency", "occupancy", "bandwidth", "compute"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Recurrences whose blocks are too few for all multiprocessors."""
        if subject.keep_launch or any(size.name == STEP for size in subject.contract.sizes):
            return
        for target in targets(subject):
            blocks = timed_blocks(target.contract, target.launch)
            rec = recurrence(target) if 0 < blocks < subject.gpu.sm_count else None
            summed = sums_of(rec) if rec is not None else None
            if rec is None or summed is None or not summed.count:
                continue
            ranked = sorted(_tiles(subject, rec, summed), key=lambda pair: pair[0])
            for _, tile in ranked[:OFFERED]:
                params = (("items", tile.items), ("lanes", tile.lanes), ("threads", tile.threads))
                yield Move(self.name, target.region, params, 3.0)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with a launch a step."""
        target = target_of(subject, move)
        rec = recurrence(target)
        assert rec is not None
        summed = sums_of(rec)
        tile = Tile(*(int(move.param(name)) for name in ("lanes", "items", "threads")))
        return _Writer(Layout(rec, _axis(rec, summed), tile.items), summed, tile).candidate(move)


def _timed(target: Target, text: str) -> int:
    return largest_timed(target.contract, text) or 0


def _axis(rec: Recurrence, summed: Summed) -> str:
    """The axis of the grid along which most of what the sums read by lanes is the same; of several the longest."""
    grid = dict(zip(AXES, rec.target.launch.grid, strict=True))
    several = [a for a in AXES if grid[a] != "1"] or ["x"]

    def shared(axis: str) -> tuple[int, int]:
        read = [e for g in summed.groups for s in g.sums for e in elements(s.term) if _of_lanes(rec, e)]
        item = Member(Name("blockIdx"), axis)
        return sum(all(x != item for x in walk_expr(e)) for e in read), _timed(rec.target, grid[axis])

    return max(several, key=shared)


def _of_lanes(rec: Recurrence, e: object) -> bool:
    return any(x == THREAD for x in walk_expr(e))  # type: ignore[arg-type]


def _tiles(subject: Subject, rec: Recurrence, summed: Summed) -> Iterator[tuple[float, Tile]]:
    """(estimated ns of a step, tile) of those that fit."""
    layout = Layout(rec, _axis(rec, summed), 1)
    items, width, layers = (_timed(rec.target, x) for x in (layout.items, layout.threads, layout.layers))
    turns = sum(_turns(rec, g.loop) * sum(s.count for s in g.sums) for g in summed.groups)
    longest = max(_turns(rec, g.loop) for g in summed.groups)
    bytes_ = 8 if any(s.type == "double" for g in summed.groups for s in g.sums) else 4
    for lanes in LANES:
        for many in ITEMS:
            for threads in THREADS:
                tile = Tile(lanes, many, threads)
                held = summed.count * many
                parts = held * tile.warps * lanes * bytes_
                if parts > STATIC_SHARED_BYTES * 3 // 4 or many > 2 * items or held * bytes_ > 4 * MOST_SUMS:
                    continue
                if not _launchable(Layout(rec, layout.axis, many), lanes):
                    continue
                blocks = math.ceil(width / lanes) * math.ceil(items / many) * layers
                waves = math.ceil(blocks / subject.gpu.sm_count)
                clock = subject.gpu.clock_ghz
                adding = waves * turns * lanes * many / 64 / clock
                read = blocks * bytes_ * turns * (lanes + many / max(1, summed.count)) / 3000.0
                waiting = longest / tile.slices * _LATENCY_NS * waves
                yield _LAUNCH_NS + adding + read + waiting, tile


def _turns(rec: Recurrence, loop: object) -> int:
    bound = rec.target.timed(loop.bound)  # type: ignore[attr-defined]
    return bound or 64


def _launchable(layout: Layout, lanes: int) -> bool:
    """Whether grids and indices stay within their limits at all sizes."""
    contract = layout.target.contract
    limits = {f"ceil_div({layout.items}, {layout.tile})": MAX_GRID[1], layout.layers: MAX_GRID[2]}
    limits |= {layout.elements(a): 2**31 - 1 for a in layout.arrays}
    limits |= {f"ceil_div({layout.threads}, {lanes}) * {lanes}": 2**31 - 1}
    found = [(largest(contract, text), most) for text, most in limits.items()]
    return all(value is not None and value <= most for value, most in found)


class _Writer:
    def __init__(self, layout: Layout, summed: Summed, tile: Tile) -> None:
        self.layout, self.rec, self.summed, self.tile = layout, layout.rec, summed, tile
        self.target = layout.target
        self.form = layout.target.kernel
        self.text = StepText(layout, summed, tile)
        self.taken = words(skeleton(self.target.source))

    def candidate(self, move: Move) -> Candidate:
        """The candidate with the kernels and launches in place of the one."""
        first, last = (self._named(f"{self.form.name}_{word}") for word in ("start", "finish"))
        scope = beside(self.target.launch.entry, "")
        kernels = [self._start(first), self._step()] + ([self._finish(last)] if self.rec.after else [])
        old = self.target.launch
        sizes = (self.layout.items, self.layout.room, self.layout.threads)
        passed = (*old.args, *(s.name for s in self.layout.scratch()), *map(self._int, sizes))
        few = str(ENDS_THREADS), "1", "1"
        launches = [Launch(scope + first, old.grid, few, "0", passed), self._step_launch(passed)]
        if self.rec.after:
            ended = ScalarArgument("int32", f"({self.rec.count}) % 2")
            launches.append(Launch(scope + last, old.grid, few, "0", (*passed, ended)))
        plan, at = self.target.candidate.plan, self.target.position
        plan = replace(
            plan, launches=(*plan.launches[:at], *launches, *plan.launches[at + 1 :]),
            scratch=(*plan.scratch, *self.layout.scratch()),
        )  # fmt: skip
        data = self.target.source.encode()
        begin, end = self.form.span or (0, 0)
        code = "\n".join(kernels).rstrip("\n")
        source = data[:begin].decode() + code + data[end:].decode()
        old_candidate = self.target.candidate
        return replace(old_candidate, source=source, plan=plan, actions=(*old_candidate.actions, move.name))

    def _step_launch(self, passed: tuple[str | ScalarArgument, ...]) -> Launch:
        layout, old = self.layout, self.target.launch
        more = list[ScalarArgument]()
        if self.text.across:
            more.append(self._int(old.grid[AXES.index(self.text.across)]))
        more.append(ScalarArgument("int32", STEP))
        grid = (
            f"ceil_div({layout.threads}, {self.tile.lanes})",
            f"ceil_div({layout.items}, {self.tile.items})",
            layout.layers,
        )
        block = str(self.tile.threads), "1", "1"
        return Launch(old.entry, grid, block, "0", (*passed, *more), self.rec.count)

    def _int(self, text: str) -> ScalarArgument:
        return ScalarArgument("int32", text)

    def _named(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        return name

    # ------------------------------------------------------------ kernels

    def _kernel(self, name: str, more: tuple[Param, ...], lines: list[str], threads: int) -> str:
        params = tuple(replace(p, restrict=p.restrict or p.name in self.target.unaliased) for p in self.form.params)
        body = (OpaqueStmt("\n".join(indent(lines)).strip()),)
        form = KernelForm(
            name, (*params, *self.layout.params(), *more), body, launch_bounds=(str(threads),), prefix=self.form.prefix
        )
        return settle(emit_kernel(form), self.taken)

    def _start(self, name: str) -> str:
        """What is done before the first step, with its state left where steps find it."""
        layout, shared = self.layout, {a.root for a in self.rec.arrays.values()} | set(self.rec.arrays)
        stay = tuple(s for s in self.rec.before if getattr(s, "name", None) not in shared)
        inside = self._of_threads(stay, "new")
        inside += [f"{layout.register(r, layout.layer_text(), self._item())} = {r.name};" for r in self.rec.registers]
        lines = layout.versions(layout.layer_text(), layout.layers_text(), new="0")
        return self._kernel(name, (), [*lines, _WALK, *indent(inside), "}"], ENDS_THREADS)

    def _step(self) -> str:
        """One step."""
        across = (Param("int", "$across"),) if self.text.across else ()
        return self._kernel(self.form.name, (*across, Param("int", "$step")), self.text.body(), self.tile.threads)

    def _finish(self, name: str) -> str:
        """What is done behind the last step."""
        layout = self.layout
        inside = self._of_threads(tuple(self.rec.fixed), "old")
        for r in self.rec.registers:
            place = layout.register(r, layout.layer_text(), self._item())
            inside.append(f"{r.type.removeprefix('const ')} {r.name} = {place};")
        inside += self._of_threads(self.rec.after, "old")
        lines = layout.versions(layout.layer_text(), layout.layers_text(), old="$last")
        return self._kernel(name, (Param("int", "$last"),), [*lines, _WALK, *indent(inside), "}"], ENDS_THREADS)

    def _of_threads(self, part: Block, version: str) -> list[str]:
        """Statements as the thread ``$own`` of a block of the original's grid runs them, on one copy of the state."""
        made = self.layout.stated(part, Name(self._item()), lambda array, own, writes: version)
        values: dict[Expr, Expr] = {THREAD: Name("$own"), THREADS_OF_BLOCK: Cast("unsigned", Name("$threads"))}
        return emit_stmts(rewrite(made, values.get)).splitlines()

    def _item(self) -> str:
        return f"(int)blockIdx.{self.layout.axis}"
