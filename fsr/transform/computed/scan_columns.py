"""scan-columns: running folds along a dimension that is not the contiguous one: a block keeps a band of columns.

Lanes of a warp lie along the columns, each with a pack of them; a warp has several neighbouring rows, which it reads at
once and folds in registers. What stands before its rows comes from the other warps through shared memory, and from tile
to tile. Where columns are too few blocks, the rows are split: a first launch folds each part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fsr.computation.expression import Expr
from fsr.computation.types import type_of
from fsr.records import Scratch
from fsr.source.names import indent, unrolled
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.columns import lead_dims
from fsr.transform.computed.elements import stores
from fsr.transform.computed.folding import c_type, identity, step, without
from fsr.transform.computed.packs import Packs, pack_type, widths
from fsr.transform.computed.parts import value_of
from fsr.transform.computed.scan import InParts, scan
from fsr.transform.computed.scene import Scene
from fsr.transform.plain.c_text import NotPlain

Params = Mapping[str, int | str]
_LANES, _ROWS = 32, -2
_SHAPES = ((8, 8), (16, 8), (32, 8), (8, 4), (16, 4), (32, 4), (8, 16))  # warps, rows of each


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    found = scan(scene, _ROWS)
    if found is None:
        return
    width, rows, layers, gain = scene.timed(scene.part.domain[-1][1]), scene.timed(scene.part.domain[-2][1]), 1, 4.0
    for _, x in found.lead:
        layers *= scene.timed(x)
    for pack in widths([found.body], scene.part.domain[-1][0])[::-1]:
        blocks = layers * -(-width // (_LANES * pack))
        for warps, each in _SHAPES:
            few = min(scene.gpu.sm_count * 16 // warps // blocks, rows // (warps * each))
            for parts in dict.fromkeys((1, max(1, few))):
                yield {"warps": warps, "rows": each, "pack": pack, "parts": parts}, gain
                gain *= 0.98


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel, and before it the one that folds parts where there are several. Raises NotPlain."""
    found = scan(scene, _ROWS)
    if found is None:
        raise NotPlain("no scan along columns")
    return _Kernel.of(found, params).written()


@dataclass(frozen=True)
class _Kernel(InParts):
    warps: int
    rows: int
    pack: int

    @property
    def _column(self) -> str:
        return self.found.scene.part.domain[-1][0]

    @property
    def _width(self) -> str:
        return self.found.scene.part.domain[-1][1]

    @property
    def _tile(self) -> int:
        return self.warps * self.rows

    def _written(self, lines: list[str], suffix: str) -> Written:
        layers = " * ".join(f"({x})" for _, x in self.found.lead) or "1"
        scratch = (Scratch("partial", type_of(self.found.fold), f"{self.parts} * {layers} * ({self._width})"),)
        grid = (f"ceil_div({self._width}, {_LANES * self.pack})", str(self.parts), layers)
        return Written(self.found.scene, lines, grid, (str(_LANES), str(self.warps), "1"), _LANES * self.warps, suffix,
                       scratch if self.parts > 1 else ())  # fmt: skip

    def _begin(self) -> list[str]:
        """Which columns, and from where to where in them."""
        scene, limit, kind = self.found.scene, self.found.limit, c_type(self.found.fold)
        across = self.parts * self._tile
        lines = [
            f"__shared__ {kind} $totals[{self.warps}][{_LANES * self.pack}];",
            f"const {scene.index} ${self._column}_first = (blockIdx.x * {_LANES} + threadIdx.x) * {self.pack};",
            *lead_dims(scene, self.found.lead, "blockIdx.z"),
        ]
        if self.parts == 1:
            return [*lines, f"const {scene.index} $begin = 0, $end = {limit};"]
        return [
            *lines,
            f"const {scene.index} $length = ({limit} + {across - 1}) / {across} * {self._tile};  // of a part",
            f"const {scene.index} $begin = blockIdx.y * $length;",
            f"const {scene.index} $end = $begin + $length < {limit} ? $begin + $length : {limit};",
        ]

    def folded(self) -> Written:
        """The first launch: a fold of each column's parts."""
        found, scene = self.found, self.found.scene
        all_rows = f"{found.dim} = $begin + threadIdx.y; ${found.dim} < $end; ${found.dim} += {self.warps}"
        met = [
            f"const {scene.index} ${self._column} = ${self._column}_first + $lane;",
            f"$total[$lane] = {identity(found.fold)};",
            *unrolled("$warp", self.warps, [self._add("$total[$lane]")]),
            f"if ({self._inside()}) {{", f"    $partial[{self._at('blockIdx.y')}] = $total[$lane];", "}",
        ]  # fmt: skip
        return self._written([
            *self._begin(),
            f"{c_type(found.fold)} $total[{self.pack}];",
            *unrolled("$lane", self.pack, [f"$total[$lane] = {identity(found.fold)};"]),
            "#pragma unroll 4",
            f"for ({scene.index} ${all_rows}) {{",
            *indent(self._read(step(found.fold, "$total[$lane]", "VALUE"))), "}",
            *self._meet("$total[$lane]"),
            "if (threadIdx.y == 0) {", *indent(unrolled("$lane", self.pack, met)), "}",
        ], "parts")  # fmt: skip

    def scanned(self) -> Written:
        """The launch that writes."""
        found, scene, kind, pack = self.found, self.found.scene, c_type(self.found.fold), self.pack
        own = self._own("$row")
        before = step(found.fold, own, self._own("($row - 1)"))
        chain = ["if ($row > 0) {", *indent(unrolled("$lane", pack, [before])), "}"]
        each_row = [
            *unrolled("$lane", pack, [f"{own} = {identity(found.fold)};"]),
            f"const {scene.index} ${found.dim} = $first + $row;",
            f"if (${found.dim} < $end) {{", *indent(self._read(f"{own} = VALUE;")), "}",
            *chain,
        ]  # fmt: skip
        warps = [f"if ($warp < (int)threadIdx.y) {{ {self._add('$base[$lane]')} }}", self._add("$carry[$lane]")]
        tile = [
            f"const {scene.index} $first = $tile + threadIdx.y * {self.rows};",
            f"{kind} $own[{self.rows * pack}], $base[{pack}];",
            *unrolled("$row", self.rows, each_row),
            *self._meet(f"$own[{(self.rows - 1) * pack} + $lane]"),
            *unrolled("$lane", pack, ["$base[$lane] = $carry[$lane];", *unrolled("$warp", self.warps, warps)]),
            "__syncthreads();  // all have read what the next tile overwrites",
            *unrolled("$row", self.rows, [
                f"const {scene.index} ${found.dim} = $first + $row;",
                f"if (${found.dim} < $end) {{", *indent(self._stored()), "}",
            ]),
        ]  # fmt: skip
        walk = f"for ({scene.index} $tile = $begin; $tile < $end; $tile += {self._tile}) {{"
        return self._written([*self._begin(), *self._before(), walk, *indent(tile), "}"], "scan")

    def _before(self) -> list[str]:
        """What stands before the block's part of each column."""
        fold, scene = self.found.fold, self.found.scene
        lines = [f"{c_type(fold)} $carry[{self.pack}];"]
        inner = [f"$carry[$lane] = {identity(fold)};"]
        if self.parts > 1:
            there = f"$partial[{self._at('$part')}]"
            inner += [
                f"const {scene.index} ${self._column} = ${self._column}_first + $lane;",
                f"for (int $part = 0; {self._inside()} && $part < (int)blockIdx.y; ++$part) {{",
                f"    {step(fold, '$carry[$lane]', there)}", "}",
            ]  # fmt: skip
        return [*lines, *unrolled("$lane", self.pack, inner)]

    def _own(self, row: str) -> str:
        """A lane's fold up to one of its warp's rows."""
        return f"$own[{row} * {self.pack} + $lane]"

    def _at(self, part: str) -> str:
        index = self.found.scene.index
        return f"(({index})blockIdx.z * {self.parts} + {part}) * {self.found.scene.size(self._width)} + ${self._column}"

    def _add(self, result: str) -> str:
        return step(self.found.fold, result, f"$totals[$warp][threadIdx.x * {self.pack} + $lane]")

    def _meet(self, value: str) -> list[str]:
        """Each warp's fold in shared memory."""
        put = f"$totals[threadIdx.y][threadIdx.x * {self.pack} + $lane] = {value};"
        return [*unrolled("$lane", self.pack, [put]), "__syncthreads();"]

    # ------------------------------------------------------------ rows

    def _read(self, each_value: str) -> list[str]:
        """The values of a row's pack, told as a statement about ``VALUE``."""
        scene, body = self.found.scene, self.found.body
        reads = Packs.of(scene, [body], self._column, self.pack)

        def told(held: Mapping[Expr, str]) -> list[str]:
            lines, known = scene.named([body], held)
            return [*lines, each_value.replace("VALUE", scene.text(body, known))]

        whole = [*reads.fetch(), *reads.lanes(told(reads.held("$lane")))]
        return self._whole_or_single(reads.aligned(), whole, reads.lanes(told({}), self._inside()))

    def _stored(self) -> list[str]:
        """The outputs of a row's pack."""
        scene, fold, value = self.found.scene, self.found.fold, value_of(self.found.output)
        out, first = stores(scene), f"{c_type(fold)} $prefix = $base[$lane];"
        if self.found.inclusive:
            prefix = [first, step(fold, "$prefix", self._own("$row"))]
        else:
            prefix = [first, "if ($row > 0) {", f"    {step(fold, '$prefix', self._own('($row - 1)'))}", "}"]
        reads = Packs.of(scene, [without(value, fold)], self._column, self.pack)
        name, written = f"{scene.own(out[0].buffer)}_made", reads.first(out[0])
        kind = pack_type(scene, out[0], self.pack)
        made = scene.assigned([(f"{name}.v[$lane]", value)], {**reads.held("$lane"), fold: "$prefix"})
        whole = [*reads.fetch(), f"{kind} {name};", *reads.lanes([*prefix, *made]),
                 f"*reinterpret_cast<{kind} *>(&{written}) = {name};"]  # fmt: skip
        alone = scene.assigned([(scene.element(out[0]), value)], {fold: "$prefix"})
        single = reads.lanes([*prefix, *alone], self._inside())
        return self._whole_or_single(reads.aligned(out), whole, single)

    def _inside(self) -> str:
        return f"${self._column} < {self.found.scene.size(self._width)}"

    def _whole_or_single(self, aligned: str, whole: list[str], single: list[str]) -> list[str]:
        if self.pack == 1:
            return single
        test = f"${self._column}_first + {self.pack} <= {self.found.scene.size(self._width)} && {aligned}"
        return [f"if ({test}) {{", *indent(whole), "} else {", *indent(single), "}"]
