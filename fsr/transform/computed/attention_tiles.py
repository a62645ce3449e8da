"""tile-attention: a block keeps some queries and walks over the keys, the softmax's folds carried on from tile to tile.

Scores never see global memory: a tile of them is made in registers from queries and keys in shared memory, becomes
powers less the largest score so far, and is multiplied with a tile of values; what was summed before is scaled down
where a larger score comes (online softmax: Milakov and Gimelshein, arXiv 1805.02867; FlashAttention, arXiv 2205.14135).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fsr.computation.expression import Expr, Load
from fsr.contract.model import Contract
from fsr.source.names import indent, unrolled
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.attention_form import Attention, attention
from fsr.transform.computed.columns import lead_dims
from fsr.transform.computed.elements import stores
from fsr.transform.computed.folding import c_type, extent
from fsr.transform.computed.parts import value_of
from fsr.transform.computed.scene import Scene
from fsr.transform.plain.c_text import NotPlain
from fsr.transform.sizes import largest

Params = Mapping[str, int | str]
_SIDE, _THREADS = 16, 256  # threads lie in a square: along queries, and along keys or columns
_GROUP = 64  # columns that the threads of a row have between them, four each
_MOST_COLUMNS = 256
_PACK = "fsr_pack<float, 4>"


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
    gain = 20.0
    for queries, keys in ((64, 64), (64, 32), (128, 64), (128, 32), (32, 64)):
        if 4 * _floats(queries, keys, columns) <= scene.gpu.max_shared_bytes:
            yield {"queries": queries, "keys": keys, "columns": columns}, gain
            gain *= 0.97


def _floats(queries: int, keys: int, columns: int) -> int:
    return (queries + 2 * keys) * (columns + 4) + queries * (keys + 4)


# ---------------------------------------------------------------- text


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel. Raises NotPlain."""
    found = found_in(scene)
    if found is None:
        raise NotPlain("no attention")
    return [_Kernel(scene, found, *(int(params[k]) for k in ("queries", "keys", "columns"))).written()]


@dataclass(frozen=True)
class _Kernel:
    scene: Scene
    found: Attention
    queries: int
    keys: int
    columns: int

    def __post_init__(self) -> None:
        self.scene.helpers.add("fsr_pack")

    @property
    def _wide(self) -> int:
        """Floats from one row in shared memory to the next: packs of neighbouring rows are in other banks."""
        return self.columns + 4

    @property
    def _rows(self) -> int:
        """Queries a thread."""
        return self.queries // _SIDE

    @property
    def _across(self) -> int:
        """Scores of a query a thread."""
        return self.keys // _SIDE

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
            *lead_dims(scene, found.lead, "(blockIdx.x / $tiles)"),
            f"const int $first = ($tiles - 1 - blockIdx.x % $tiles) * {self.queries};  // long rows first",
            f"const int $down = threadIdx.x / {_SIDE} * {self._rows}, $side = threadIdx.x % {_SIDE};",
            f"const int $depth = {scene.names.affine(extent(found.product))}, $width = {scene.size(found.column[1])};",
            *self._filled("$queries", self.queries, (found.query[0], "$first", self._limit), depth, found.q),
            *self._begun(),
            f"const int $last = $first + {self.queries} < {self._limit} ? $first + {self.queries} : {self._limit};",
            f"const int $end = [&](int ${found.query[0]}) {{ return {self._end}; }}($last - 1);",
            f"for (int $tile = 0; $tile < $end; $tile += {self.keys}) {{", *indent(self._tile()), "}",
            *self._stored(),
        ]  # fmt: skip
        lead = "".join(f" * ({x})" for _, x in found.lead)
        grid = (f"ceil_div({found.query[1]}, {self.queries}){lead}", "1", "1")
        shared = str(4 * _floats(self.queries, self.keys, self.columns))
        return Written(scene, lines, grid, (str(_THREADS), "1", "1"), _THREADS, "attention", shared_bytes=shared)

    def _room(self) -> list[str]:
        lines = ["extern __shared__ __align__(16) unsigned char $room[];",
                 "float *$queries = reinterpret_cast<float *>($room);"]  # fmt: skip
        before, size = "$queries", self.queries * self._wide
        for name, more in (("$keys", self.keys * self._wide), ("$values", self.keys * self._wide), ("$powers", 0)):
            lines.append(f"float *{name} = {before} + {size};")
            before, size = name, more
        return lines

    def _filled(self, place: str, rows: int, row: Sequence[str], column: Sequence[str], value: Expr) -> list[str]:
        """A tile in shared memory, zero where it is beyond an edge. ``row``: its dimension, where it begins and ends;
        ``column``: its dimension and where it ends."""
        (row_dim, first, limit), (dim, width) = row, column
        inner = [
            f"const int $row = $at / {self.columns}, ${dim} = $at % {self.columns};",
            f"const int ${row_dim} = {first} + $row;",
            f"const bool $inside = ${row_dim} < {limit} && ${dim} < {width};",
            f"{place}[$row * {self._wide} + ${dim}] = $inside ? {self.scene.text(value)} : 0.0f;",
        ]
        head = f"for (int $at = threadIdx.x; $at < {rows * self.columns}; $at += {_THREADS}) {{"
        return ["#pragma unroll 4", head, *indent(inner), "}"]

    def _begun(self) -> list[str]:
        rows, groups, total = self._rows, self.columns // _GROUP, c_type(self.found.totals[0])
        begin = ["$top[$row] = -INFINITY;", "$total[$row] = 0;"]
        clear = unrolled("$group", groups, unrolled("$lane", 4, ["$sums[$row][$group].v[$lane] = 0.0f;"]))
        return [f"{_PACK} $sums[{rows}][{groups}];", f"float $top[{rows}];", f"{total} $total[{rows}];",
                *unrolled("$row", rows, [*begin, *clear])]  # fmt: skip

    def _tile(self) -> list[str]:
        found = self.found
        keys = found.key, "$tile", "$end"
        return [
            "__syncthreads();",
            *self._filled("$keys", self.keys, keys, (found.product.dims[0][0], "$depth"), found.k),
            *self._filled("$values", self.keys, keys, (found.column[0], "$width"), found.v),
            "__syncthreads();",
            *self._products(),
            *unrolled("$row", self._rows, self._softened()),
            "__syncthreads();",
            *self._weighed(),
        ]  # fmt: skip

    def _products(self) -> list[str]:
        fetch_q = f"$a[$row] = *reinterpret_cast<const {_PACK} *>(&$queries[($down + $row) * {self._wide} + $at]);"
        at_k = f"($side + {_SIDE} * $key) * {self._wide} + $at"
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
        """One query's scores as powers, and what was summed before scaled to them."""
        found, scene, total = self.found, self.scene, c_type(self.found.totals[0])
        row, key = found.query[0], found.key
        place = [f"const int ${key} = $tile + $side + {_SIDE} * $key;"]
        score = scene.text(found.score, {found.product: "$score[$row][$key]"})
        power = scene.text(found.power, {found.score: "$score[$row][$key]", found.top: "$most"})
        faded = unrolled("$lane", 4, ["$sums[$row][$group].v[$lane] *= $fade;"])
        return [
            f"const int ${row} = $first + $down + $row;",
            f"const int $length = ${row} < {self._limit} ? {self._end} : 0;",
            "float $most = $top[$row];",
            *unrolled("$key", self._across, [
                *place, f"$score[$row][$key] = ${key} < $length ? {score} : -INFINITY;",
                "$most = fmaxf($most, $score[$row][$key]);",
            ]),
            *_shuffled("$most = fmaxf($most, OTHER);", "$most"),
            "const float $fade = $top[$row] == -INFINITY ? 0.0f : expf($top[$row] - $most);",
            f"{total} $sum = 0;",
            *unrolled("$key", self._across, [
                *place, f"const float $power = ${key} < $length ? {power} : 0.0f;",
                f"$powers[($down + $row) * {self.keys + 4} + $side + {_SIDE} * $key] = $power;",
                "$sum += $power;",
            ]),
            *_shuffled("$sum += OTHER;", "$sum"),
            "$total[$row] = $total[$row] * $fade + $sum;",
            "$top[$row] = $most;",
            *unrolled("$group", self.columns // _GROUP, faded),
        ]  # fmt: skip

    def _weighed(self) -> list[str]:
        groups = self.columns // _GROUP
        at_p = f"($down + $row) * {self.keys + 4} + $at"
        at_v = f"($at + $key) * {self._wide} + $group * {_GROUP} + $side * 4"
        step = ["$sums[$row][$group].v[$lane] += $p[$row].v[$key] * $v.v[$lane];"]
        return [
            "#pragma unroll 2",
            f"for (int $at = 0; $at < {self.keys}; $at += 4) {{",
            *indent([
                f"{_PACK} $p[{self._rows}];",
                *unrolled("$row", self._rows, [f"$p[$row] = *reinterpret_cast<const {_PACK} *>(&$powers[{at_p}]);"]),
                *unrolled("$group", groups, [
                    f"if ($group * {_GROUP} >= $width) break;",
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
            f"const int ${column} = $group * {_GROUP} + $side * 4 + $lane;",
            f"if (${row} < {self._limit} && ${column} < $width) {{",
            f"    const {c_type(found.fold)} $result = {weighed};",
            *indent(scene.assigned([(scene.element(out), found.value)], {**held, found.fold: "$result"})),
            "}",
        ]
        return unrolled("$row", self._rows, [
            f"const int ${row} = $first + $down + $row;",
            *unrolled("$group", self.columns // _GROUP, unrolled("$lane", 4, inner)),
        ])  # fmt: skip


def _shuffled(step: str, own: str) -> list[str]:
    """The step with the value of every other thread of the row."""
    other = f"__shfl_xor_sync(0xffffffffu, {own}, $apart)"
    return ["#pragma unroll", f"for (int $apart = {_SIDE // 2}; $apart > 0; $apart /= 2) {{",
            f"    {step.replace('OTHER', other)}", "}"]  # fmt: skip
