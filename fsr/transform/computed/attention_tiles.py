"""tile-attention: a block keeps some queries and walks over the keys, the softmax's folds carried on from tile to tile.

Scores never see global memory: a tile of them is made in registers from queries and keys in shared memory, becomes
powers less the largest score so far, and is multiplied with a tile of values; what was summed before is scaled down
where a larger score comes (online softmax: Milakov and Gimelshein, arXiv 1805.02867; FlashAttention, arXiv 2205.14135).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fsr.computation.expression import Expr, Load
from fsr.contract.model import Contract
from fsr.source.names import indent, unrolled
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.attention_form import Attention
from fsr.transform.computed.attention_walk import PACK, Lane, Walk, found_in, most_columns, shuffled
from fsr.transform.computed.elements import stores
from fsr.transform.computed.folding import c_type
from fsr.transform.computed.scene import Scene
from fsr.transform.plain.c_text import NotPlain

Params = Mapping[str, int | str]
_GROUP = 64  # a row in shared memory is so many columns, or twice that and so on
_MOST_COLUMNS = 256
_MOST_HELD, _OTHER_REGISTERS = 136, 40  # scores and sums of a thread at most, and what it needs beside its queries'
_GAIN = 20.0
# Queries, keys, threads, of which so many lie along keys and columns: how fast they are beside the best one at heads
# of 64 columns and at wider ones (an H200, causal, 2048 keys: 591 and 560 us; those that were not timed come last).
_SHAPES = {
    (128, 64, 128, 8): (1.0, 0.7), (128, 64, 256, 16): (0.74, 1.0), (64, 32, 128, 8): (0.96, 0.7),
    (64, 64, 256, 16): (0.85, 0.86), (64, 32, 256, 16): (0.76, 0.81), (64, 64, 128, 8): (0.8, 0.74),
    (128, 32, 256, 16): (0.7, 0.7), (32, 64, 256, 16): (0.65, 0.65),
}  # fmt: skip


def _columns(found: Attention, contract: Contract) -> int | None:
    """Columns of a row in shared memory: as many as any head has, in whole groups."""
    columns = -(-(most_columns(found, contract) or 0) // _GROUP) * _GROUP
    return columns if 0 < columns <= _MOST_COLUMNS else None


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
class _Kernel(Walk):
    side: int  # threads that share a query

    @property
    def pitches(self) -> tuple[int, int, int]:
        """See Walk: packs of neighbouring rows are in other banks."""
        return (self.columns + 4,) * 3

    @property
    def powers(self) -> int:
        """See Walk."""
        return self.queries * (self.keys + 4)

    @property
    def registers(self) -> int:
        """See Walk."""
        return self._rows * (self._across + 4 * self._groups + 6) + _OTHER_REGISTERS

    @property
    def _wide(self) -> int:
        return self.pitches[0]

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

    def placed(self) -> list[str]:
        """See Walk."""
        return [f"const int $down = threadIdx.x / {self.side}, $side = threadIdx.x % {self.side};"]

    def scored(self) -> list[str]:
        """See Walk."""
        return [*self._products(), *unrolled("$row", self._rows, self._softened())]

    def begun(self) -> list[str]:
        """See Walk."""
        rows, groups, total = self._rows, self._groups, c_type(self.found.totals[0])
        begin = ["$top[$row] = -INFINITY;", "$total[$row] = 0;"]
        clear = unrolled("$group", groups, unrolled("$lane", 4, ["$sums[$row][$group].v[$lane] = 0.0f;"]))
        return [f"{PACK} $sums[{rows}][{groups}];", f"float $top[{rows}];", f"{total} $total[{rows}];",
                *unrolled("$row", rows, [*begin, *clear])]  # fmt: skip

    def _products(self) -> list[str]:
        fetch_q = f"$a[$row] = *reinterpret_cast<const {PACK} *>(&$queries[{self._at(self._wide, '$at')}]);"
        at_k = f"($side + {self.side} * $key) * {self._wide} + $at"
        fetch_k = f"$b[$key] = *reinterpret_cast<const {PACK} *>(&$keys[{at_k}]);"
        step = ["$score[$row][$key] += $a[$row].v[$lane] * $b[$key].v[$lane];"]
        return [
            f"float $score[{self._rows}][{self._across}] = {{}};",
            "#pragma unroll 4",
            "for (int $at = 0; $at < $depth; $at += 4) {",
            *indent([
                f"{PACK} $a[{self._rows}], $b[{self._across}];",
                *unrolled("$row", self._rows, [fetch_q]),
                *unrolled("$key", self._across, [fetch_k]),
                *unrolled("$row", self._rows, unrolled("$key", self._across, unrolled("$lane", 4, step))),
            ]),
            "}",
        ]  # fmt: skip

    def _softened(self) -> list[str]:
        key = f"$side + {self.side} * $key"
        lane = Lane(
            "$score[$row][$key]", key, lambda lines: unrolled("$key", self._across, lines),
            "$top[$row]", "$total[$row]",
            unrolled("$group", self._groups, unrolled("$lane", 4, ["$sums[$row][$group].v[$lane] *= $fade;"])),
            [f"$powers[{self._at(self.keys + 4, key)}] = $power;"], self.side,
        )  # fmt: skip
        return [self._query(), *self.softened(lane)]

    def weighed(self) -> list[str]:
        """See Walk."""
        at_p = self._at(self.keys + 4, "$at")
        width = self.scene.size(self.found.column[1])
        beyond = [f"if ($group * {4 * self.side} >= $width) break;"] if width != str(self.columns) else []
        at_v = f"($at + $key) * {self._wide} + ($group * {self.side} + $side) * 4"
        step = ["$sums[$row][$group].v[$lane] += $p[$row].v[$key] * $v.v[$lane];"]
        return [
            "#pragma unroll 2",
            f"for (int $at = 0; $at < {self.keys}; $at += 4) {{",
            *indent([
                f"{PACK} $p[{self._rows}];",
                *unrolled("$row", self._rows, [f"$p[$row] = *reinterpret_cast<const {PACK} *>(&$powers[{at_p}]);"]),
                *unrolled("$group", self._groups, [
                    *beyond,
                    *unrolled("$key", 4, [
                        f"const {PACK} $v = *reinterpret_cast<const {PACK} *>(&$values[{at_v}]);",
                        *unrolled("$row", self._rows, unrolled("$lane", 4, step)),
                    ]),
                ]),
            ]),
            "}",
        ]  # fmt: skip

    def stored(self) -> list[str]:
        """See Walk."""
        found, scene = self.found, self.scene
        (row, _), (column, _) = found.query, found.column
        held: dict[Expr, str] = dict.fromkeys(found.totals, "$total[$row]")
        weighed = scene.text(found.weight, {**held, found.power: "$sums[$row][$group].v[$lane]"})
        out: Load = stores(scene)[0]
        inner = [
            f"const int ${column} = ($group * {self.side} + $side) * 4 + $lane;",
            f"if (${row} < {self.limit} && ${column} < $width) {{",
            f"    const {c_type(found.fold)} $result = {weighed};",
            *indent(scene.assigned([(scene.element(out), found.value)], {**held, found.fold: "$result"})),
            "}",
        ]
        return unrolled("$row", self._rows, [
            self._query(),
            *shuffled(self.side, "$total[$row] += OTHER;", "$total[$row]"),
            *unrolled("$group", self._groups, unrolled("$lane", 4, inner)),
        ])  # fmt: skip

    def _query(self) -> str:
        return f"const int ${self.found.query[0]} = $first + $down + $row * {self.threads // self.side};"
