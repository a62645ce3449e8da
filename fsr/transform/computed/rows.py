"""fold-rows: lanes, a warp or a block a row, packs of neighbouring elements, a row in registers while it is worked on.

A row need not begin where a pack may: packs begin at multiples of their width in memory, and of the first, elements
before the row are left out. Rows that are longer than the registers hold are read again for every walk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from fsr.computation.expression import PLACES, Expr, Load, Op, names_in
from fsr.computation.types import type_of
from fsr.source.names import indent, unrolled
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.attention_form import uncast
from fsr.transform.computed.columns import lead_dims
from fsr.transform.computed.folding import OPERATORS, begun, best, c_type, identity, step
from fsr.transform.computed.gathered import side_by_side
from fsr.transform.computed.packs import pack_type
from fsr.transform.computed.parts import value_of
from fsr.transform.computed.row_decisions import WARP
from fsr.transform.computed.row_form import (
    ELEMENT,
    RowFold,
    Rows,
    in_its_place,
    kept_between,
    leaves,
    reads,
    rows,
    shared_by_row,
    streams,
)
from fsr.transform.computed.scene import Scene, bytes_of, surely, word
from fsr.transform.plain.c_text import TYPES, NotPlain

Params = Mapping[str, int | str]
Walked = Callable[[], list[str]]  # what is done with a pack, in lines
_BLOCK = 128  # threads of a block where a row has a warp, or fewer lanes


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel. Raises NotPlain."""
    found = rows(scene)
    if found is None:
        raise NotPlain("no rows")
    threads, pack, slots = (int(params[k]) for k in ("threads", "pack", "slots"))
    return [RowKernel(found, threads, pack, slots, str(params["keep"])).written()]


@dataclass(frozen=True)
class _Around:
    """Of a walk: what stands before and after the elements of a pack, and what is done with a pack where it is not one
    thing for each of its elements."""

    before: Sequence[str] = ()
    after: Callable[[], list[str]] = list
    lanes: Callable[[], list[str]] | None = None


@dataclass
class RowKernel:
    rows: Rows
    threads: int
    pack: int
    slots: int
    keep: str
    names: dict[Load, str] = field(default_factory=dict)
    low: bool = False  # whether an element may lie before the row,
    high: bool = True  # or behind it, in the lines being written
    sure: bool = False  # whether it is known there that the row's own packs are whole

    def __post_init__(self) -> None:
        scene = self.rows.scene
        for x in [*streams(self.rows), *(w for w, _ in self.rows.elements)]:
            base = scene.own(x.buffer)
            self.names.setdefault(x, base if base not in self.names.values() else f"{base}{len(self.names)}")
        self.totals: dict[Expr, str] = {}
        for f in (f for phase in self.rows.phases for f in phase):
            made = isinstance(f.value, Load) and scene.names.names[f.value.buffer]
            self.totals[f.value] = made or f"$result{len(self.totals) + 1}"
        self.limit = scene.size(self.rows.length)

    def written(self) -> Written:
        """The whole kernel."""
        scene, rows_ = self.rows.scene, self.rows
        count = " * ".join(f"({x})" for _, x in rows_.dims)
        per_block = self._per_block
        lines = [*self._row(), *self._shift()]
        if self.slots:
            words = "registers" if self.keep == "registers" else "shared memory"
            lines += [
                f"if ({self._fits()}) {{  // the row stays in {words}",
                *indent(self._walked(kept=True)), "} else {", *indent(self._walked(kept=False)), "}",
            ]  # fmt: skip
        else:
            lines += self._walked(kept=False)
        threads = self.threads * per_block
        grid = f"ceil_div({count}, {per_block})" if per_block > 1 else count
        size = self.slots * self.threads * self.pack * sum(bytes_of(x) for x in kept_between(rows_))
        shared = str(size) if self.keep == "shared" else "0"
        return Written(scene, lines, (grid, "1", "1"), (str(threads), "1", "1"), threads, "rows", shared_bytes=shared)

    @property
    def _per_block(self) -> int:
        """Rows of a block."""
        return _BLOCK // self.threads if self.threads <= WARP else 1

    @property
    def _in_memory(self) -> bool:
        """Whether what stays of a row stays in shared memory."""
        return self.keep in ("shared", "streamed")

    def _fits(self) -> str:
        """The condition under which every slot but the first and the last is within the row, and packs are whole."""
        across, shift = self.threads * self.pack, " + $shift" if self.pack > 1 else ""
        tests = [f"{self.limit}{shift} <= {self.slots * across}"]
        if self.slots > 1 and self.keep == "registers":
            tests.insert(0, f"{self.limit}{shift} > {(self.slots - 1) * across}")
        if self.pack > 1 and self.keep == "registers":
            tests += [f"{n}_whole" for n in self._alike.values()]
        return " && ".join(tests)

    @property
    def _first_offset(self) -> str:
        """The number of the row's first element, as most streams have it."""
        return self._offset(next(x for x in self.names if self.rows.dims[-1][0] in names_in(x)))

    @property
    def _alike(self) -> dict[Load, str]:
        """The names of the streams whose packs begin where those do."""
        return {x: n for x, n in self.names.items() if self._offset(x) == self._first_offset}

    @property
    def _count(self) -> str:
        """How many rows there are."""
        return " * ".join(self.rows.scene.size(x) for _, x in self.rows.dims)

    @property
    def _begin(self) -> str:
        """Where a thread's first pack begins in its row."""
        return f"$thread * {self.pack} - $shift" if self.pack > 1 else "$thread"

    def _row(self) -> list[str]:
        """Which row, and the thread's number in it."""
        scene = self.rows.scene
        if self.threads > WARP:
            return ["const int $thread = threadIdx.x;", *lead_dims(scene, self.rows.dims, "blockIdx.x")]
        number = f"({scene.index})blockIdx.x * {self._per_block} + threadIdx.x / {self.threads}"
        return [
            f"const {scene.index} $number = {number};",
            f"if ($number >= {self._count}) return;",
            f"const int $thread = threadIdx.x % {self.threads};",
            *lead_dims(scene, self.rows.dims, "$number"),
        ]

    def _shift(self) -> list[str]:
        """Where packs begin, and for each stream whether they may be read whole."""
        if self.pack == 1:
            return []
        lines = ["// Packs begin where memory lets them: so many elements before the row.", *self._shifted()]
        for x, name in self.names.items():
            tests = [] if x in self._alike else [f"({self._offset(x)}) % {self.pack} == $shift"]
            tests += self._aligned(x)
            lines.append(f"const bool {name}_whole = {' && '.join(tests) or 'true'};")
        return lines

    def _shifted(self) -> list[str]:
        """How many elements of a row's first pack lie before the row."""
        return [f"const int $shift = ({self._first_offset}) % {self.pack};"] if self.pack > 1 else []

    def _aligned(self, x: Load) -> list[str]:
        """The test of whether packs of a buffer may begin at its first element, where that is not known."""
        scene, needed, buffer = self.rows.scene, bytes_of(x) * self.pack, self.rows.scene.names.names[x.buffer]
        if scene.target.alignment(buffer) % needed == 0:
            return []
        scene.helpers.add("fsr_aligned")
        return [f"fsr_aligned<{needed}>({buffer})"]

    def _offset(self, x: Load) -> str:
        text = self.rows.scene.element(x).split("[", 1)[1][:-1]
        return word(text, ELEMENT, "0").removesuffix(" + 0")

    # ------------------------------------------------------------ walks

    def _walked(self, *, kept: bool) -> list[str]:
        scene, stay = self.rows.scene, kept_between(self.rows) if kept else []
        lines = self._room(stay)
        seen = self._there(stay)
        phases = self.rows.phases
        if self._online_first:
            lines += self._online(phases[0][0], phases[1], stay if kept else None, seen)
            phases = phases[2:]
        for phase in phases:
            lines += [line for f in phase for line in begun(f.fold, self.totals[f.value])]
            again = self._replacing(phase, stay)
            lines += self._walk([f.body for f in phase], self._steps(phase, stay, again), stay if kept else None, seen)
            lines += [self._joined(f) for f in phase]
            if again is not None:
                self.totals[uncast(again[0].body)] = self._lane(again[1])
        if self.rows.elements:
            lines += self._stored(stay if kept else None, seen)
        if self.rows.results:
            pairs = [(scene.element(Load(s.target, s.place, "")), value_of(s)) for s in self.rows.results]
            lines += ["if ($thread == 0) {", *indent(scene.assigned(pairs, self.totals)), "}"]
        self.totals = {e: t for e, t in self.totals.items() if not t.endswith(".v[$lane]")}
        return lines

    @property
    def _online_first(self) -> bool:
        """Whether the first two phases are made in one walk."""
        return self.keep == "online"

    def _there(self, stay: Sequence[Load]) -> set[Load]:
        """What stands in its place before the first walk."""
        return set()

    def _online(
        self, top: RowFold, powers: Sequence[RowFold], stay: Sequence[Load] | None, seen: set[Load]
    ) -> list[str]:
        """A maximum and sums of powers less it in one walk: what a thread has summed is scaled down where a larger
        value comes (Milakov and Gimelshein, arXiv 1805.02867). A pack's powers, none of which is below nought, are
        summed in their own type and converted once."""
        scene, most = self.rows.scene, self.totals[top.value]
        folds = (top, *powers)
        held = self._held([f.body for f in folds], stay or [])
        kind, exp = c_type(top.fold), "expf" if c_type(top.fold) == "float" else "exp"
        inner = [uncast(f.body) for f in powers]
        parts = [f"$part{n + 1}" if n else "$part" for n in range(len(powers))]
        larger = [f"const {kind} $value = {scene.text(top.body, held)};", "if ($value > $top) $top = $value;"]
        scale = [
            f"if ($top > {most}) {{",
            *indent([f"{self.totals[f.value]} *= {exp}({most} - $top);" for f in powers]),
            f"    {most} = $top;",
            "}",
        ]
        added = [f"{part} += {scene.text(e, {**held, top.value: most})};"
                 for part, e in zip(parts, inner, strict=True)]  # fmt: skip
        summed = [f"{self.totals[f.value]} += {part};" for f, part in zip(powers, parts, strict=True)]

        def pack() -> list[str]:  # scaled down once for all elements of a pack
            begun = [f"{TYPES[type_of(e)]} {part} = 0;" for part, e in zip(parts, inner, strict=True)]
            sums = [f"if ({most} != -INFINITY) {{", *indent([*begun, *self._lanes(added), *summed]), "}"]
            return [f"{kind} $top = -INFINITY;", *self._lanes(larger), *scale, *sums]

        scaled = [f"{self.totals[f.value]} *= $own == -INFINITY ? 0 : {exp}($own - {most});" for f in powers]
        return [
            *(f"{c_type(f.fold)} {self.totals[f.value]} = {identity(f.fold)};" for f in folds),
            *self._walk([f.body for f in folds], [*larger, *added], stay, seen, _Around(lanes=pack)),
            f"const {kind} $own = {most};",
            self._joined(top), *scaled, *map(self._joined, powers),
        ]  # fmt: skip

    def _room(self, stay: Sequence[Load]) -> list[str]:
        """Declarations of what holds a row between walks; in shared memory every thread has its own packs."""
        kinds = {x: pack_type(self.rows.scene, x, self.pack) for x in stay}
        if self.keep == "registers" or not stay:
            return [f"{kinds[x]} {self.names[x]}_kept[{self.slots}];" for x in stay]
        lines, start = ["extern __shared__ __align__(16) unsigned char $room[];"], 0
        for x in stay:
            at = f"$room + {start}" if start else "$room"
            lines.append(f"{kinds[x]} *{self.names[x]}_kept = reinterpret_cast<{kinds[x]} *>({at}) + $thread;")
            start += self.slots * self.threads * self.pack * bytes_of(x)
        return lines

    def _replacing(self, phase: Sequence[RowFold], stay: Sequence[Load]) -> tuple[RowFold, str] | None:
        """A fold whose values can take the place of what stays of the row, and the stream that they take it of."""
        return (phase[0], self.names[stay[0]]) if in_its_place(self.rows, phase, stay) is not None else None

    def _steps(self, phase: Sequence[RowFold], stay: Sequence[Load], again: tuple[RowFold, str] | None) -> list[str]:
        scene, held = self.rows.scene, self._held([f.body for f in phase], stay)
        if again is not None:
            place = self._lane(again[1])
            f, body = again[0], uncast(again[0].body)
            value = scene.text(f.body, {body: place})
            return [*scene.assigned([(place, body)], held), step(f.fold, self.totals[f.value], value)]
        bodies = [f.body for f in phase]
        beside, held = side_by_side(scene, bodies, held)
        lines, known = scene.named(bodies, held)
        return [*beside, *lines, *(self._step(f, known) for f in phase)]

    def _step(self, f: RowFold, held: Mapping[Expr, str]) -> str:
        text = partial(self.rows.scene.text, held=held)
        if f.fold.op not in PLACES:
            return step(f.fold, self.totals[f.value], text(f.body))
        assert isinstance(f.body, Op)
        return step(f.fold, self.totals[f.value], *map(text, f.body.args), rising=self.pack == 1)

    def _held(self, exprs: Sequence[Expr], stay: Sequence[Load]) -> dict[Expr, str]:
        held: dict[Expr, str] = dict(self.totals)
        for x in reads(exprs):
            if x in self.names:
                held[x] = self._lane(self.names[x]) if x in stay else f"{self.names[x]}_pack.v[$lane]"
        return held

    def _lane(self, name: str) -> str:
        """An element of a pack that stays, in the lines of one slot."""
        return f"{name}_kept[$slot].v[$lane]" if self.keep == "registers" else f"{name}_pack.v[$lane]"

    def _walk(
        self, exprs: Sequence[Expr], inner: list[str], stay: Sequence[Load] | None, seen: set[Load],
        around: _Around | None = None,
    ) -> list[str]:  # fmt: skip
        """One walk over the row. ``stay``: streams that stay in registers, None where the row is read again."""
        scene, across, around = self.rows.scene, self.threads * self.pack, around or _Around()
        at, first = f"${ELEMENT}_first", self._begin
        fresh = [x for x in dict.fromkeys(reads(exprs)) if x in self.names and x not in seen]
        seen |= set(stay or ())

        def body() -> list[str]:
            lines, back = list(around.before), list[str]()
            for x in dict.fromkeys((*fresh, *(stay or ()))):
                name, kept = self.names[x], stay is not None and x in stay
                mentioned = any(f"{name}_pack.v" in line for line in inner)
                if kept and self.keep == "registers":
                    lines += self._fetch(x, f"{name}_kept[$slot]") if x in fresh else []
                elif x in fresh:
                    lines += [f"{pack_type(scene, x, self.pack)} {name}_pack;", *self._fetch(x, f"{name}_pack")]
                elif mentioned:
                    lines += self._taken(x)
                changed = x in fresh or any(line.startswith(f"{name}_pack.v[$lane] =") for line in inner)
                back += [f"{name}_kept[$slot] = {name}_pack;"] if kept and changed and self._in_memory else []
            pack = self._lanes(inner) if around.lanes is None else around.lanes()
            return [*lines, *pack, *back, *around.after()]

        if stay is None or self._in_memory:
            counted = [f"const int $slot = {self._number(at)} * {self.threads};"] if stay else []
            return self._over(at, first, lambda: [*counted, *body()])
        lines, last = list[str](), self.slots - 1
        for slot in dict.fromkeys(("0", "$slot" if last > 1 else "0", str(last))):
            self.low, self.high, self.sure = slot == "0" and self.pack > 1, slot == str(last), True
            place = f"const int {at} = {slot} * {across} + {first};"
            part = [word(line, "slot", slot) for line in (place, *body())] if slot != "$slot" else [place, *body()]
            loop = f"for (int $slot = 1; $slot < {last}; ++$slot) {{"
            lines += ["#pragma unroll", loop, *indent(part), "}"] if slot == "$slot" else ["{", *indent(part), "}"]
        return lines

    def _taken(self, x: Load) -> list[str]:
        """The pack of a slot out of shared memory."""
        return [f"{pack_type(self.rows.scene, x, self.pack)} {self.names[x]}_pack = {self.names[x]}_kept[$slot];"]

    def _number(self, at: str) -> str:
        """Of a thread's packs, the number of the one that begins there."""
        across = self.threads * self.pack
        return f"({at} + $shift) / {across}" if self.pack > 1 else f"{at} / {across}"

    def _over(self, at: str, first: str, body: Walked) -> list[str]:
        """A loop over a thread's packs: those within the row without a test of their elements, then the one that
        begins before it, and what is left at its end."""
        across = self.threads * self.pack
        if self.pack == 1:
            self.low, self.high, self.sure = False, True, False
            head = f"for (int {at} = {first}; {at} < {self.limit}; {at} += {across}) {{"
            return ["#pragma unroll 4", head, *indent(body()), "}"]
        whole = [f"{n}_whole" for n in self._alike.values()]
        self.low, self.high, self.sure = False, False, True
        within = body()
        self.low, self.high, self.sure = True, True, False
        edges, rest = body(), f"${ELEMENT}_rest"
        return [
            "{",
            *indent([
                f"const int $begin = {first};",
                f"int {rest} = $begin < 0 ? $begin + {across} : $begin;",
                f"if ({' && '.join(whole) or 'true'}) {{",
                "    #pragma unroll 4",
                f"    for (; {rest} + {self.pack} <= {self.limit}; {rest} += {across}) {{",
                *indent(indent([f"const int {at} = {rest};", *within])),
                "    }",
                "}",
                f"for (int {at} = $begin < 0 ? $begin : {rest}; {at} < {self.limit};",
                f"     {at} = {at} < 0 ? {rest} : {at} + {across}) {{  // packs that are not whole",
                *indent(edges),
                "}",
            ]),
            "}",
        ]  # fmt: skip

    def _lanes(self, inner: Sequence[str]) -> list[str]:
        tests = [f"${ELEMENT} >= 0"] if self.low else []
        tests += [f"${ELEMENT} < {self.limit}"] if self.high else []
        lines = [f"if ({' && '.join(tests)}) {{", *indent(list(inner)), "}"] if tests else list(inner)
        if any(f"${ELEMENT}" in line for line in lines):
            lines = [f"const int ${ELEMENT} = ${ELEMENT}_first + $lane;", *lines]
        return unrolled("$lane", self.pack, lines)

    def chosen(self, x: Load, whole: str, single: list[str]) -> list[str]:
        """The access of a pack where it may be whole, else an element at a time."""
        own = x in self._alike and self.sure
        tests = [] if own else [f"{self.names[x]}_whole"]
        tests += [f"${ELEMENT}_first >= 0"] if self.low else []
        tests += [f"${ELEMENT}_first + {self.pack} <= {self.limit}"] if self.high else []
        if not tests:
            return [whole]
        return [f"if ({' && '.join(tests)}) {{", f"    {whole}", "} else {", *indent(single), "}"]

    def _fetch(self, x: Load, place: str) -> list[str]:
        scene = self.rows.scene
        single = self._lanes([f"{place}.v[$lane] = {scene.element(x)};"])
        if self.pack == 1:
            return single
        kind = pack_type(scene, x, self.pack)
        whole = f"{place} = *reinterpret_cast<const {kind} *>(&{word(scene.element(x), ELEMENT, f'${ELEMENT}_first')});"
        return self.chosen(x, whole, single)

    def _stored(self, stay: Sequence[Load] | None, seen: set[Load]) -> list[str]:
        """The last walk: a value for each element."""
        scene, values = self.rows.scene, [v for _, v in self.rows.elements]
        held = self._held(values, stay or [])
        row_wide = []
        wanted, sure = dict.fromkeys(x for v in values for x in shared_by_row(v)), surely(values)
        for n, e in enumerate(x for x in wanted if scene.harmless(x, sure)):
            row_wide.append(f"const {TYPES[type_of(e)]} $shared{n + 1} = {scene.text(e, held)};")
            held[e] = f"$shared{n + 1}"
        made = {w: f"{self.names[w]}_made" for w, _ in self.rows.elements}
        before = [f"{pack_type(scene, w, self.pack)} {name};" for w, name in made.items()]
        inner = scene.assigned([(f"{made[w]}.v[$lane]", v) for w, v in self.rows.elements], held)
        needed = [v for v in values if v not in held]

        def after() -> list[str]:
            lines = list[str]()
            for w, name in made.items():
                single = self._lanes([f"{scene.element(w)} = {name}.v[$lane];"])
                at = word(scene.element(w), ELEMENT, f"${ELEMENT}_first")
                whole = self._put(w, at, name)
                lines += single if self.pack == 1 else self.chosen(w, whole, single)
            return lines

        return [*row_wide, *self._walk(self._still(needed), inner, stay, seen, _Around(before, after))]

    def _put(self, w: Load, at: str, name: str) -> str:
        """The statement that writes a whole pack."""
        return f"*reinterpret_cast<{pack_type(self.rows.scene, w, self.pack)} *>(&{at}) = {name};"

    def _still(self, exprs: Sequence[Expr]) -> list[Expr]:
        """What is read for the expressions when values that stand in registers are taken from there."""
        held = {e for e, t in self.totals.items() if t.endswith(".v[$lane]")}
        return [x for e in exprs for x in leaves(e, held)]

    def _joined(self, f: RowFold) -> str:
        """The threads' results as one."""
        name, at = self.totals[f.value], f.fold.op in PLACES
        op = best(f.fold)[1] if at else OPERATORS[f.fold.op]
        called = f"fsr_{'lanes' if self.threads < WARP else 'warp' if self.threads == WARP else 'block'}_{op}"
        self.rows.scene.helpers.add(called)
        own = called if self.threads == WARP else f"{called}<{self.threads}>"
        return f"{own}({name}_best, {name});" if at else f"{name} = {own}({name});"
