"""tile-attention: a block keeps some queries and walks over the keys, the softmax's folds carried on from tile to tile.

Scores never see global memory: a tile of them is made in registers from queries and keys in shared memory, becomes
powers less the largest score so far, and is multiplied with a tile of values; what was summed before is scaled down
where a larger score comes (online softmax: Milakov and Gimelshein, arXiv 1805.02867; FlashAttention, arXiv 2205.14135).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fsr.computation.expression import Expr, Load
from fsr.computation.types import type_of
from fsr.contract.model import Contract
from fsr.hardware.limits import ASYNC_COPIES_FROM, REGISTERS_PER_SM
from fsr.source.names import indent, unrolled
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.attention_form import Attention, attention
from fsr.transform.computed.columns import lead_dims
from fsr.transform.computed.elements import stores
from fsr.transform.computed.folding import c_type, extent
from fsr.transform.computed.packs import Packs
from fsr.transform.computed.parts import value_of
from fsr.transform.computed.scene import Scene
from fsr.transform.gemm.pipelined import HEADER
from fsr.transform.plain.c_text import NotPlain
from fsr.transform.sizes import largest

Params = Mapping[str, int | str]
_GROUP = 64  # a row in shared memory is so many columns, or twice that and so on
_MOST_COLUMNS = 256
_MOST_HELD, _OTHER_REGISTERS = 136, 40  # scores and sums of a thread at most, and what it needs beside its queries'
_PACK = "fsr_pack<float, 4>"
_GAIN = 20.0
# What was summed is scaled down where a score is higher by so much than those before: of keys in rising order each tile
# would scale it, and round it once more. Powers are at most e times what they would be.
_HIGHER = "1.0f"
# Queries, keys, threads, of which so many lie along keys and columns: how fast they are beside the best one at heads
# of 64 columns and at wider ones (an H200, causal, 2048 keys: 591 and 560 us; those that were not timed come last).
_SHAPES = {
    (128, 64, 128, 8): (1.0, 0.7), (128, 64, 256, 16): (0.74, 1.0), (64, 32, 128, 8): (0.96, 0.7),
    (64, 64, 256, 16): (0.85, 0.86), (64, 32, 256, 16): (0.76, 0.81), (64, 64, 128, 8): (0.8, 0.74),
    (128, 32, 256, 16): (0.7, 0.7), (32, 64, 256, 16): (0.65, 0.65),
}  # fmt: skip


def found_in(scene: Scene) -> Attention | None:
    """The part as attention; None where it is none."""
    part = scene.part
    if len(part.outputs) != 1 or len(part.domain) < 2:
        return None
    return attention(part.outputs[0], value_of(part.whole[0]), part.sizes)


def _columns(found: Attention, contract: Contract) -> int | None:
    """Columns of a row in shared memory: as many as any head has, in whole groups."""
    most = [largest(contract, x) for x in (found.column[1], _text(found))]
    sizes = [m for m in most if m is not None]
    columns = -(-max(sizes, default=0) // _GROUP) * _GROUP
    return columns if len(sizes) == len(most) and 0 < columns <= _MOST_COLUMNS else None


def _text(found: Attention) -> str:
    terms, constant = extent(found.product).terms, extent(found.product).constant
    return " + ".join((*(f"{k} * ({n})" for n, k in terms), str(constant)))


# ---------------------------------------------------------------- decisions


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    found = found_in(scene)
    columns = None if found is None else _columns(found, scene.target.contract)
    if found is None or columns is None:
        return
    wide = columns > _GROUP
    for (queries, keys, threads, side), worth in sorted(_SHAPES.items(), key=lambda s: -s[1][wide]):
        held = queries * side // threads * (keys + columns) // side
        if held <= _MOST_HELD and _room(queries, keys, columns) <= scene.gpu.max_shared_bytes:
            shape = {"queries": queries, "keys": keys, "columns": columns, "threads": threads, "side": side}
            yield dict(shape), _GAIN * worth[wide]


def _room(queries: int, keys: int, columns: int) -> int:
    """Bytes of shared memory that a block takes."""
    return 4 * ((queries + 2 * keys) * (columns + 4) + queries * (keys + 4))


# ---------------------------------------------------------------- text


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel. Raises NotPlain."""
    found = found_in(scene)
    if found is None:
        raise NotPlain("no attention")
    decisions = (int(params[k]) for k in ("queries", "keys", "columns", "threads", "side"))
    return [_Kernel(scene, found, *decisions).written()]


@dataclass(frozen=True)
class _Kernel:
    scene: Scene
    found: Attention
    queries: int
    keys: int
    columns: int
    threads: int
    side: int  # threads that share a query

    def __post_init__(self) -> None:
        self.scene.helpers.add("fsr_pack")

    @property
    def _wide(self) -> int:
        """Floats from one row in shared memory to the next: packs of neighbouring rows are in other banks."""
        return self.columns + 4

    @property
    def _rows(self) -> int:
        """Queries a thread, which lie so far apart as there are others: neighbours are in other banks."""
        return self.queries * self.side // self.threads

    @property
    def _groups(self) -> int:
        """Packs of a query's columns a thread."""
        return self.columns // (4 * self.side)

    def _at(self, wide: int, column: str) -> str:
        """The place of a query's element in shared memory."""
        return f"($down + $row * {self.threads // self.side}) * {wide} + {column}"

    @property
    def _across(self) -> int:
        """Scores of a query a thread."""
        return self.keys // self.side

    @property
    def _limit(self) -> str:
        return self.scene.size(self.found.query[1])

    @property
    def _end(self) -> str:
        """How many keys ``$<query>`` has."""
        return self.scene.names.affine(self.found.length)

    def written(self) -> Written:
        """The whole kernel."""
        found, scene = self.found, self.scene
        depth = found.product.dims[0][0], "$depth"
        lines = [
            *self._room(),
            f"const {scene.index} $tiles = ({self._limit} + {self.queries - 1}) / {self.queries};",
            *self._which(),
            f"const int $down = threadIdx.x / {self.side}, $side = threadIdx.x % {self.side};",
            f"const int $depth = {scene.names.affine(extent(found.product))}, $width = {scene.size(found.column[1])};",
            *self._filled("$queries", self.queries, (found.query[0], "$first", self._limit), depth, found.q),
            *self._begun(),
            f"const int $last = $first + {self.queries} < {self._limit} ? $first + {self.queries} : {self._limit};",
            f"const int $end = [&](int ${found.query[0]}) {{ return {self._end}; }}($last - 1);",
            *(self._keys_from("0") if self._ahead else []),
            f"for (int $tile = 0; $tile < $end; $tile += {self.keys}) {{", *indent(self._tile()), "}",
            *self._stored(),
        ]  # fmt: skip
        lead = "".join(f" * ({x})" for _, x in found.lead)
        grid = (f"ceil_div({found.query[1]}, {self.queries}){lead}", "1", "1")
        shared = _room(self.queries, self.keys, self.columns)
        registers = self._rows * (self._across + 4 * self._groups + 6) + _OTHER_REGISTERS
        resident = scene.gpu.shared_bytes_per_sm // (shared + scene.gpu.reserved_shared_bytes)
        blocks = min(resident, REGISTERS_PER_SM // (self.threads * registers))
        return Written(scene, lines, grid, (str(self.threads), "1", "1"), self.threads, "attention",
                       blocks=max(1, blocks), shared_bytes=str(shared),
                       includes=(HEADER,) if self._ahead else ())  # fmt: skip

    def _which(self) -> list[str]:
        """Which queries of which head are the block's. Where a query's number says how many keys it has, all heads'
        long rows come before short ones: a long row begun last would have the GPU to itself. Else a head's blocks
        come after one another, while the L2 holds its keys."""
        found, scene = self.found, self.scene
        if found.query[0] not in {name for name, _ in found.length.terms}:
            return [*lead_dims(scene, found.lead, "(blockIdx.x / $tiles)"),
                    f"const int $first = blockIdx.x % $tiles * {self.queries};"]  # fmt: skip
        heads = " * ".join(scene.size(x) for _, x in found.lead) or "1"
        return [
            f"const {scene.index} $heads = {heads};",
            *lead_dims(scene, found.lead, "(blockIdx.x % $heads)"),
            f"const int $first = ($tiles - 1 - blockIdx.x / $heads) * {self.queries};  // long rows first",
        ]

    def _room(self) -> list[str]:
        lines = ["extern __shared__ __align__(16) unsigned char $room[];",
                 "float *$queries = reinterpret_cast<float *>($room);"]  # fmt: skip
        before, size = "$queries", self.queries * self._wide
        for name, more in (("$keys", self.keys * self._wide), ("$values", self.keys * self._wide), ("$powers", 0)):
            lines.append(f"float *{name} = {before} + {size};")
            before, size = name, more
        return lines

    @property
    def _ahead(self) -> bool:
        """Whether a tile is on its way while another is worked on: of keys that are multiplied as they stand in memory,
        the next while values are weighed; of values, while keys are multiplied."""
        found = self.found
        plain = all(isinstance(x, Load) and type_of(x) == "float32" for x in (found.k, found.v))
        return plain and self.scene.gpu.capability >= ASYNC_COPIES_FROM

    def _keys_from(self, first: str) -> list[str]:
        keys = self.found.key, first, "$end"
        filled = self._filled("$keys", self.keys, keys, (self.found.product.dims[0][0], "$depth"), self.found.k,
                              ahead=self._ahead)  # fmt: skip
        return [*filled, "__pipeline_commit();"] if self._ahead else filled

    def _values(self) -> list[str]:
        filled = self._filled("$values", self.keys, (self.found.key, "$tile", "$end"), (self.found.column[0], "$width"),
                              self.found.v, ahead=self._ahead)  # fmt: skip
        return [*filled, "__pipeline_commit();"] if self._ahead else filled

    def _filled(
        self, place: str, rows: int, row: Sequence[str], column: Sequence[str], value: Expr, *, ahead: bool = False
    ) -> list[str]:
        """A tile in shared memory, zero where it is beyond an edge, a pack of four at a time. ``row``: its dimension,
        where it begins and ends; ``column``: its dimension and where it ends; ``ahead``: whether packs are copied while
        other work is done."""
        (row_dim, first, limit), (dim, width), scene = row, column, self.scene
        reads = Packs.of(scene, [value], dim, 4)
        put = f"$four.v[$lane] = {scene.text(value, reads.held('$lane'))};"
        whole, single = reads.lanes([put]), reads.lanes([f"$four.v[$lane] = {scene.text(value)};"], f"${dim} < {width}")
        put_all = f"*reinterpret_cast<{_PACK} *>($to) = $four;"
        all_there = f"$whole && ${row_dim} < {limit} && ${dim}_first < {width}"
        rest = _either(f"!$whole && ${row_dim} < {limit}", single)
        inner = [
            f"const int $row = $at / {self.columns}, ${dim}_first = $at % {self.columns}, ${row_dim} = {first} + $row;",
            f"float *$to = &{place}[$row * {self._wide} + ${dim}_first];",
        ]
        if ahead and len(reads.loads) == 1:
            copy = f"__pipeline_memcpy_async($to, &{reads.first(reads.loads[0])}, 16);"
            inner += [f"if ({all_there}) {{", f"    {copy}", "} else {",
                      *indent([f"{_PACK} $four = {{}};", *rest, put_all]), "}"]  # fmt: skip
        else:
            inner += [f"{_PACK} $four = {{}};", *_either(all_there, [*reads.fetch(), *whole]), *rest, put_all]
        head = f"for (int $at = 4 * threadIdx.x; $at < {rows * self.columns}; $at += {4 * self.threads}) {{"
        whole_test = f"const bool $whole = {width} % 4 == 0 && {reads.aligned()};"
        return ["{", f"    {whole_test}", "    #pragma unroll 8", *indent([head, *indent(inner), "}"]), "}"]

    def _begun(self) -> list[str]:
        rows, groups, total = self._rows, self._groups, c_type(self.found.totals[0])
        begin = ["$top[$row] = -INFINITY;", "$total[$row] = 0;"]
        clear = unrolled("$group", groups, unrolled("$lane", 4, ["$sums[$row][$group].v[$lane] = 0.0f;"]))
        return [f"{_PACK} $sums[{rows}][{groups}];", f"float $top[{rows}];", f"{total} $total[{rows}];",
                *unrolled("$row", rows, [*begin, *clear])]  # fmt: skip

    def _tile(self) -> list[str]:
        work = [*self._products(), *unrolled("$row", self._rows, self._softened())]
        if self._ahead:
            there = ["__pipeline_wait_prior(0);", "__syncthreads();"]
            more = _either(f"$tile + {self.keys} < $end", self._keys_from(f"$tile + {self.keys}"))
            return [*there, *self._values(), *work, *there, *more, *self._weighed()]
        return [
            "__syncthreads();", *self._keys_from("$tile"), *self._values(), "__syncthreads();", *work,
            "__syncwarp();  // a query's powers stay within its warp", *self._weighed(),
        ]  # fmt: skip

    def _products(self) -> list[str]:
        fetch_q = f"$a[$row] = *reinterpret_cast<const {_PACK} *>(&$queries[{self._at(self._wide, '$at')}]);"
        at_k = f"($side + {self.side} * $key) * {self._wide} + $at"
        fetch_k = f"$b[$key] = *reinterpret_cast<const {_PACK} *>(&$keys[{at_k}]);"
        step = ["$score[$row][$key] += $a[$row].v[$lane] * $b[$key].v[$lane];"]
        return [
            f"float $score[{self._rows}][{self._across}] = {{}};",
            "#pragma unroll 4",
            "for (int $at = 0; $at < $depth; $at += 4) {",
            *indent([
                f"{_PACK} $a[{self._rows}], $b[{self._across}];",
                *unrolled("$row", self._rows, [fetch_q]),
                *unrolled("$key", self._across, [fetch_k]),
                *unrolled("$row", self._rows, unrolled("$key", self._across, unrolled("$lane", 4, step))),
            ]),
            "}",
        ]  # fmt: skip

    def _softened(self) -> list[str]:
        """One query's scores as powers, and what was summed before scaled to them. One kernel takes the maximum of
        its own products, fused; of several, one wrote scores, rounded: far from nought that decides on the powers."""
        found, scene = self.found, self.scene
        row, key = found.query[0], found.key
        place = [f"const int ${key} = $tile + $side + {self.side} * $key;"]
        own, fused = "$score[$row][$key]", len(scene.target.contract.plan.launches) == 1
        score = scene.text(found.score, {found.product: own})
        power = scene.text(found.power, {found.product if fused else found.score: own, found.top: "$top[$row]"})
        faded = unrolled("$lane", 4, ["$sums[$row][$group].v[$lane] *= $fade;"])
        return [
            self._query(),
            f"const int $length = ${row} < {self._limit} ? {self._end} : 0;",
            "float $most = -INFINITY;",
            *unrolled("$key", self._across, [
                *place, f"const float $scaled = ${key} < $length ? {score} : -INFINITY;",
                *([] if fused else [f"{own} = $scaled;"]), "$most = fmaxf($most, $scaled);",
            ]),
            *self._shuffled("$most = fmaxf($most, OTHER);", "$most"),
            f"if ($most > $top[$row] + {_HIGHER}) {{",
            *indent([
                "const float $fade = $top[$row] == -INFINITY ? 0.0f : expf($top[$row] - $most);",
                "$total[$row] *= $fade;",
                "$top[$row] = $most;",
                *unrolled("$group", self._groups, faded),
            ]),
            "}",
            *unrolled("$key", self._across, [
                *place, f"const float $power = ${key} < $length ? {power} : 0.0f;",
                f"$powers[{self._at(self.keys + 4, f'$side + {self.side} * $key')}] = $power;",
                "$total[$row] += $power;",
            ]),
        ]  # fmt: skip

    def _weighed(self) -> list[str]:
        at_p = self._at(self.keys + 4, "$at")
        width = self.scene.size(self.found.column[1])
        beyond = [f"if ($group * {4 * self.side} >= $width) break;"] if width != str(self.columns) else []
        at_v = f"($at + $key) * {self._wide} + ($group * {self.side} + $side) * 4"
        step = ["$sums[$row][$group].v[$lane] += $p[$row].v[$key] * $v.v[$lane];"]
        return [
            "#pragma unroll 2",
            f"for (int $at = 0; $at < {self.keys}; $at += 4) {{",
            *indent([
                f"{_PACK} $p[{self._rows}];",
                *unrolled("$row", self._rows, [f"$p[$row] = *reinterpret_cast<const {_PACK} *>(&$powers[{at_p}]);"]),
                *unrolled("$group", self._groups, [
                    *beyond,
                    *unrolled("$key", 4, [
                        f"const {_PACK} $v = *reinterpret_cast<const {_PACK} *>(&$values[{at_v}]);",
                        *unrolled("$row", self._rows, unrolled("$lane", 4, step)),
                    ]),
                ]),
            ]),
            "}",
        ]  # fmt: skip

    def _stored(self) -> list[str]:
        found, scene = self.found, self.scene
        (row, _), (column, _) = found.query, found.column
        held: dict[Expr, str] = dict.fromkeys(found.totals, "$total[$row]")
        weighed = scene.text(found.weight, {**held, found.power: "$sums[$row][$group].v[$lane]"})
        out: Load = stores(scene)[0]
        inner = [
            f"const int ${column} = ($group * {self.side} + $side) * 4 + $lane;",
            f"if (${row} < {self._limit} && ${column} < $width) {{",
            f"    const {c_type(found.fold)} $result = {weighed};",
            *indent(scene.assigned([(scene.element(out), found.value)], {**held, found.fold: "$result"})),
            "}",
        ]
        return unrolled("$row", self._rows, [
            self._query(),
            *self._shuffled("$total[$row] += OTHER;", "$total[$row]"),
            *unrolled("$group", self._groups, unrolled("$lane", 4, inner)),
        ])  # fmt: skip

    def _query(self) -> str:
        return f"const int ${self.found.query[0]} = $first + $down + $row * {self.threads // self.side};"

    def _shuffled(self, step: str, own: str) -> list[str]:
        """The step with the value of every other thread of the row."""
        other = f"__shfl_xor_sync(0xffffffffu, {own}, $apart)"
        return ["#pragma unroll", f"for (int $apart = {self.side // 2}; $apart > 0; $apart /= 2) {{",
                f"    {step.replace('OTHER', other)}", "}"]  # fmt: skip


def _either(test: str, lines: list[str]) -> list[str]:
    return [f"if ({test}) {{", *indent(lines), "}"]
