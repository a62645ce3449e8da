"""fold-rows-columns: values of a row's elements and folds along the columns, of the same elements, in one reading: the
gradient of a norm by its input and by its weights.

A warp or a block takes one row after the other. It holds the row in registers, folds it, writes what is made of it, and
adds to what it has folded of each column so far, which stays in registers until the last row; a second launch folds
what the blocks have found, in their order. Rows that do not fit, or in which packs do not begin where memory lets them,
are worked on an element at a time, and what a block has of each column stands in memory meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fsr.computation.expression import PLACES, Expr, Load, names_in, renamed
from fsr.computation.printing import affine_text
from fsr.computation.types import type_of
from fsr.hardware.limits import STATIC_SHARED_BYTES
from fsr.records import Scratch
from fsr.source.names import indent, unrolled
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.columns import Columns, columns, finish, scratch_of
from fsr.transform.computed.folding import OPERATORS, c_type, extent, identity, step
from fsr.transform.computed.packs import MOST_BYTES, pack_type
from fsr.transform.computed.parts import Part, value_of
from fsr.transform.computed.row_form import ELEMENT, RowFold, Rows, reads, rows, shared_by_row
from fsr.transform.computed.scene import Scene, along, bytes_of, loads_in, plain, surely, word
from fsr.transform.plain.c_text import TYPES
from fsr.transform.sizes import always

Params = Mapping[str, int | str]
_WARP, _WARPS = 32, 4  # rows that a block works on at a time, where each is a warp's
_REGISTERS, _OTHER_REGISTERS, _MOST_REGISTERS = 65536, 32, 160
_FINISHING = 32  # warps of a block that folds what blocks have found


@dataclass(frozen=True)
class Both:
    """``scene``: of all outputs together; ``rows``: the values of elements and of rows; ``columns``: the folds along
    the columns; ``bodies``: of those, over the row's dimension and ``k``."""

    scene: Scene
    rows: Rows
    columns: Columns
    bodies: tuple[Expr, ...]

    @property
    def row(self) -> tuple[str, str]:
        """The rows: name and extent."""
        return self.rows.dims[0]

    @property
    def streams(self) -> list[Load]:
        """The rows' own elements that are read."""
        return [x for x in self.along if self.row[0] in names_in(x)]

    @property
    def along(self) -> list[Load]:
        """All that is read along a row."""
        walked = [e for walk in self.rows.walks for e in walk]
        return [x for x in reads([*walked, *self.bodies]) if along(x, ELEMENT)]


def both(one: Scene, other: Scene) -> Both | None:
    """Two parts, one of rows and one of columns, as what is made in one reading; None where they are none."""
    found, across = rows(one), columns(other)
    if found is None or across is None or not found.elements or len(found.dims) != 1 or across.lead:
        return None
    (row, many), ((column, width), over) = found.dims[0], (across.dim, across.folds[0].dims[0][0])
    told = ((affine_text(extent(across.folds[0])), many), (width, found.length))
    if any(a != b and not always(one.target.contract, f"({a}) == ({b})") for a, b in told):
        return None
    if one.part.written & (one.part.read | other.part.read) or other.part.written & one.part.read:
        return None
    if any(f.op in PLACES for f in (*across.folds, *(f.fold for phase in found.phases for f in phase))):
        return None
    part = _together(one.part, other.part)
    if part is None:
        return None
    called = {over: row, column: ELEMENT}
    bodies = tuple(renamed(f.body, lambda n: called.get(n, n)) for f in across.folds)
    loads, sure = loads_in(bodies), surely(bodies)
    if any(not plain(x) or x not in sure for x in loads):
        return None
    if any(ELEMENT in names_in(x) and not along(x, ELEMENT) for x in loads):
        return None
    return Both(replace(one, part=part, wide=one.wide or other.wide, found={}), found, across, bodies)


def _together(one: Part, other: Part) -> Part | None:
    """Both parts as one, over the domain of the first; None where a buffer has one shape here and another there."""
    buffers = {b.name: b for b in one.buffers}
    if any(buffers.setdefault(b.name, b) != b for b in other.buffers):
        return None
    sizes = tuple(dict.fromkeys((*one.sizes, *other.sizes)))
    return Part(sizes, tuple(buffers.values()), one.domain, one.made, (*one.outputs, *other.outputs))


# ---------------------------------------------------------------- decisions


def configurations(found: Both) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    scene, length = found.scene, found.scene.timed(found.rows.length)
    if not found.streams or {x for x in found.along if bytes_of(x) != bytes_of(found.along[0])}:
        return
    pack, gain = MOST_BYTES // bytes_of(found.along[0]), 5.0
    sums = sum(1 if type_of(f) in ("float32", "int32") else 2 for f in found.columns.folds)
    for threads in (32, 256, 128, 512, 64, 1024):
        slots = -(-length // (threads * pack))
        words = slots * pack * (len(found.streams) * bytes_of(found.along[0]) / 4 + sums) + _OTHER_REGISTERS
        block = threads * (_WARPS if threads == _WARP else 1)
        resident = int(min(_REGISTERS // (words * block), 2048 // block, 16))
        if words > _MOST_REGISTERS or not resident or length < threads * pack / 2:
            continue
        if threads == _WARP and _WARPS * slots * pack * _WARP * 8 > STATIC_SHARED_BYTES:
            continue
        for each in dict.fromkeys(max(1, resident * share // 4) for share in (3, 2, 4)):  # fewer leave less behind
            params = {"threads": threads, "pack": pack, "slots": slots, "blocks": scene.gpu.sm_count * each}
            yield dict(params), gain
            gain *= 0.97


# ---------------------------------------------------------------- text


def written(found: Both, params: Params) -> list[Written]:
    """The kernel, and the one that finishes. Raises NotPlain."""
    threads, pack, slots, blocks = (int(params[k]) for k in ("threads", "pack", "slots", "blocks"))
    scratch = scratch_of(found.columns, blocks)
    first = _Kernel(found, threads, pack, slots, blocks, scratch).written()
    return [first, finish(found.columns, blocks, scratch, _FINISHING)]


@dataclass
class _Kernel:
    both: Both
    threads: int  # of a row
    pack: int
    slots: int
    blocks: int
    scratch: tuple[Scratch, ...]
    names: dict[Load, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        scene, found = self.both.scene, self.both.rows
        for x in [*self.both.along, *(w for w, _ in found.elements)]:
            base = scene.own(x.buffer)
            self.names.setdefault(x, base if base not in self.names.values() else f"{base}{len(self.names)}")
        self.totals: dict[Expr, str] = {}
        for f in (f for phase in found.phases for f in phase):
            self.totals[f.value] = f"$result{len(self.totals) + 1}"
        self.limit, self.rows = scene.size(found.length), scene.size(self.both.row[1])

    @property
    def _block(self) -> int:
        return self.threads * (_WARPS if self.threads == _WARP else 1)

    def written(self) -> Written:
        """The whole kernel."""
        whole, single = self._whole(), self._single()
        lines = [
            f"if ({self._fits()}) {{  // a row stays in registers",
            *indent(whole),
            "} else {",
            *indent(single),
            "}",
        ]
        shape = (str(self._block), "1", "1")
        return Written(self.both.scene, lines, (str(self.blocks), "1", "1"), shape, self._block, "rows", self.scratch)

    def _fits(self) -> str:
        """Whether a row fits, and packs begin where memory lets them."""
        scene, tests = self.both.scene, [f"{self.limit} <= {self.slots * self.threads * self.pack}"]
        if self.pack > 1:
            tests.append(f"{self.limit} % {self.pack} == 0")
        for buffer in dict.fromkeys(x.buffer for x in self.names):
            x = next(x for x in self.names if x.buffer == buffer)
            name, needed = scene.names.names[buffer], bytes_of(x) * self.pack
            if scene.target.alignment(name) % needed:
                scene.helpers.add("fsr_aligned")
                tests.append(f"fsr_aligned<{needed}>({name})")
        return " && ".join(tests)

    def _each_row(self, first: str, apart: str, inner: list[str]) -> list[str]:
        row, index = self.both.row[0], self.both.scene.index
        return [f"for ({index} ${row} = {first}; ${row} < {self.rows}; ${row} += {apart}) {{", *indent(inner), "}"]

    # ------------------------------------------------------------ by packs

    def _whole(self) -> list[str]:
        folds, team = self.both.columns.folds, self.threads == _WARP
        lines = [f"{c_type(f)} $column{n + 1}[{self.slots}][{self.pack}];" for n, f in enumerate(folds)]
        start = [f"$column{n + 1}[$slot][$lane] = {identity(f)};" for n, f in enumerate(folds)]
        lines += unrolled("$slot", self.slots, unrolled("$lane", self.pack, start))
        thread = f"threadIdx.x % {_WARP}" if team else "threadIdx.x"
        first = f"blockIdx.x * {_WARPS} + threadIdx.x / {_WARP}" if team else "blockIdx.x"
        apart = f"{self.blocks * _WARPS}" if team else f"{self.blocks}"
        lines = [f"const int $thread = {thread};", *lines, *self._each_row(first, apart, self._row_by_packs())]
        return [*lines, *(self._met() if team else self._left())]

    def _slots(self, inner: list[str]) -> list[str]:
        """The lines for each pack of a row that a thread has."""
        place = f"const int ${ELEMENT}_first = ($slot * {self.threads} + $thread) * {self.pack};"
        return unrolled("$slot", self.slots, [place, f"if (${ELEMENT}_first < {self.limit}) {{", *indent(inner), "}"])

    def _row_by_packs(self) -> list[str]:
        scene, found, stay = self.both.scene, self.both.rows, self.both.streams
        lines = [f"{pack_type(scene, x, self.pack)} {self.names[x]}_kept[{self.slots}];" for x in stay]
        lines += self._slots([f"{self.names[x]}_kept[$slot] = {self._pack(x)};" for x in stay])
        for phase in found.phases:
            lines += [f"{c_type(f.fold)} {self.totals[f.value]} = {identity(f.fold)};" for f in phase]
            lines += self._slots(self._by_lanes([f.body for f in phase], self._steps(phase, self._held())))
            lines += self._joined(phase, self.threads)
        more, held = self._shared()
        values = [v for _, v in found.elements]
        made = [f"{self.names[w]}_made" for w, _ in found.elements]
        kinds = [pack_type(scene, w, self.pack) for w, _ in found.elements]
        pairs = [(f"{name}.v[$lane]", v) for name, v in zip(made, values, strict=True)]
        writes = [f"*reinterpret_cast<{kind} *>(&{self._first(w)}) = {name};"
                  for kind, name, (w, _) in zip(kinds, made, found.elements, strict=True)]  # fmt: skip
        inner = [*scene.assigned(pairs, held), *self._added(held)]
        declared = [f"{kind} {name};" for kind, name in zip(kinds, made, strict=True)]
        last = [*declared, *self._by_lanes([*values, *self.both.bodies], inner), *writes]
        return [*lines, *more, *self._slots(last), *self._results()]

    def _by_lanes(self, exprs: Sequence[Expr], inner: list[str]) -> list[str]:
        """The lines for each lane, behind the packs that they read and that do not stay."""
        fresh = [x for x in reads(exprs) if x in self.names and x not in self.both.streams]
        kinds = {x: pack_type(self.both.scene, x, self.pack) for x in fresh}
        fetched = [f"const {kinds[x]} {self.names[x]}_pack = {self._pack(x)};" for x in fresh]
        if any(f"${ELEMENT}" in line for line in inner):
            inner = [f"const int ${ELEMENT} = ${ELEMENT}_first + $lane;", *inner]
        return [*fetched, *unrolled("$lane", self.pack, inner)]

    def _held(self) -> dict[Expr, str]:
        """What stands for reads in the lines of a lane."""
        stay = self.both.streams
        packs = {x: f"{self.names[x]}_kept[$slot]" if x in stay else f"{self.names[x]}_pack" for x in self.both.along}
        return {**self.totals, **{x: f"{name}.v[$lane]" for x, name in packs.items()}}

    def _first(self, x: Load) -> str:
        return word(self.both.scene.element(x), ELEMENT, f"${ELEMENT}_first")

    def _pack(self, x: Load) -> str:
        return f"*reinterpret_cast<const {pack_type(self.both.scene, x, self.pack)} *>(&{self._first(x)})"

    def _added(self, held: Mapping[Expr, str]) -> list[str]:
        """What the elements of a row add to the columns."""
        lines, known = self.both.scene.named(self.both.bodies, held)
        folds = zip(self.both.columns.folds, self.both.bodies, strict=True)
        return [*lines, *(step(f, f"$column{n + 1}[$slot][$lane]", self.both.scene.text(body, known))
                          for n, (f, body) in enumerate(folds))]  # fmt: skip

    def _left(self) -> list[str]:
        """What a block has found, where its threads have a column each."""
        place = f"$partial{{}}[{self._at()} + ${ELEMENT}_first + $lane] = $column{{}}[$slot][$lane];"
        puts = [place.format(n + 1, n + 1) for n in range(len(self.scratch))]
        return self._slots(unrolled("$lane", self.pack, puts))

    def _at(self) -> str:
        return f"({self.both.scene.index})blockIdx.x * {self.limit}"

    def _met(self) -> list[str]:
        """What the warps of a block have found, folded in their order."""
        lines, across = list[str](), self.slots * _WARP * self.pack
        for n, f in enumerate(self.both.columns.folds):
            own = f"$shared{n + 1}"
            put = f"{own}[threadIdx.x / {_WARP}][${ELEMENT}_first + $lane] = $column{n + 1}[$slot][$lane];"
            add = step(f, "$total", f"{own}[$warp][$at]")
            lines += [
                f"__shared__ {c_type(f)} {own}[{_WARPS}][{across}];",
                *self._slots(unrolled("$lane", self.pack, [put])),
                "__syncthreads();",
                f"for (int $at = threadIdx.x; $at < {self.limit}; $at += {self._block}) {{",
                f"    {c_type(f)} $total = {own}[0][$at];",
                *indent(["#pragma unroll", f"for (int $warp = 1; $warp < {_WARPS}; ++$warp) {{", f"    {add}", "}"]),
                f"    $partial{n + 1}[{self._at()} + $at] = $total;", "}",
            ]  # fmt: skip
        return lines

    # ------------------------------------------------------------ by elements

    def _single(self) -> list[str]:
        """The block works on one row at a time."""
        scene, found = self.both.scene, self.both.rows
        walk = f"for (int ${ELEMENT} = $thread; ${ELEMENT} < {self.limit}; ${ELEMENT} += {self._block}) {{"
        places = [f"$partial{n + 1}[{self._at()} + ${ELEMENT}]" for n in range(len(self.scratch))]
        folds = list(zip(self.both.columns.folds, self.both.bodies, places, strict=True))
        row = list[str]()
        for phase in found.phases:
            row += [f"{c_type(f.fold)} {self.totals[f.value]} = {identity(f.fold)};" for f in phase]
            row += [walk, *indent(self._steps(phase, self.totals)), "}", *self._joined(phase, self._block)]
        more, held = self._shared()
        held = {e: t for e, t in held.items() if not t.endswith(".v[$lane]")}
        pairs = [(scene.element(w), v) for w, v in found.elements]
        adds = [step(f, place, scene.text(body, held)) for f, body, place in folds]
        row += [*more, walk, *indent(adds), *indent(scene.assigned(pairs, held)), "}", *self._results()]
        begin = [f"{place} = {identity(f)};" for f, _, place in folds]
        return ["const int $thread = threadIdx.x;", walk, *indent(begin), "}",
                *self._each_row("blockIdx.x", str(self.blocks), row)]  # fmt: skip

    # ------------------------------------------------------------ both

    def _steps(self, phase: Sequence[RowFold], held: Mapping[Expr, str]) -> list[str]:
        lines, known = self.both.scene.named([f.body for f in phase], held)
        return [*lines, *(step(f.fold, self.totals[f.value], self.both.scene.text(f.body, known)) for f in phase)]

    def _joined(self, phase: Sequence[RowFold], threads: int) -> list[str]:
        lines = []
        for f in phase:
            op = OPERATORS[f.fold.op]
            called = f"fsr_warp_{op}" if threads == _WARP else f"fsr_block_{op}"
            self.both.scene.helpers.add(called)
            own = called if threads == _WARP else f"{called}<{threads}>"
            lines.append(f"{self.totals[f.value]} = {own}({self.totals[f.value]});")
        return lines

    def _shared(self) -> tuple[list[str], dict[Expr, str]]:
        """What all elements of a row share, and what stands for everything that is at hand."""
        scene, held = self.both.scene, self._held()
        values = [v for _, v in self.both.rows.elements]
        lines, sure = list[str](), surely(values)
        wanted = dict.fromkeys(x for v in values for x in shared_by_row(v))
        for n, e in enumerate(x for x in wanted if scene.harmless(x, sure)):
            lines.append(f"const {TYPES[type_of(e)]} $shared_{n + 1} = {scene.text(e, held)};")
            held[e] = f"$shared_{n + 1}"
        return lines, held

    def _results(self) -> list[str]:
        """What is written for the row itself."""
        if not self.both.rows.results:
            return []
        pairs = [(self.both.scene.element(Load(s.target, s.place, "")), value_of(s)) for s in self.both.rows.results]
        return ["if ($thread == 0) {", *indent(self.both.scene.assigned(pairs, self.totals)), "}"]
