"""split-attention: attention to float operands on tensor cores, at the accuracy of float.

As ``tile-attention`` walks over the keys (:mod:`attention_walk`), with both products as
:mod:`fsr.transform.computed.split_products` makes them. Scores, powers and sums stay in the registers where the
instruction leaves them: which key is which of a step's eight is free as long as both factors agree, so that the powers
of keys 2t and 2t + 1 are what lane t holds of a factor, and a lane reads four neighbours of a row of keys or values at
once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.computation.expression import Expr, Load
from fsr.computation.types import type_of
from fsr.contract.model import Contract
from fsr.hardware.limits import ASYNC_COPIES_FROM, REGISTERS_PER_SM
from fsr.source.names import indent, unrolled
from fsr.transform.computed import attention_tiles
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.attention_form import Attention
from fsr.transform.computed.attention_walk import PACK, Lane, Walk, either, found_in, most_columns, shuffled
from fsr.transform.computed.elements import stores
from fsr.transform.computed.folding import c_type, without
from fsr.transform.computed.packs import Packs
from fsr.transform.computed.scene import Scene, loads_in
from fsr.transform.computed.split_guard import guarded
from fsr.transform.computed.split_products import DEPTH, FUNCTIONS, MASK, STEPS, added, multiplied, split
from fsr.transform.plain.c_text import NotPlain

Params = Mapping[str, int | str]
_GROUP = 32  # a row in shared memory is whole groups of columns: those of the four packs that neighbouring lanes read
_NARROW, _MOST_COLUMNS = 64, 256
_OTHER_REGISTERS = 40  # of a thread at least, beside scores and sums
_ACROSS = 4  # factors of keys or values that are split at a time
_GAIN = 30.0
# Queries, keys, threads, and blocks of a multiprocessor, which share its registers: how fast they are beside the best
# one at heads of 64 columns and at wider ones (an H100, 2048 keys: 656 and 650 us, causal 372 and 365 us, of which this
# is a compromise).
_SHAPES = {
    (128, 64, 256, 1): (0.96, 1.0), (128, 32, 128, 2): (1.0, 0.9), (64, 32, 128, 3): (0.98, 0.8),
    (128, 32, 256, 2): (0.94, 0.9), (64, 64, 128, 2): (0.93, 0.95), (128, 32, 256, 1): (0.8, 0.94),
    (64, 32, 128, 4): (0.92, 0.7), (64, 16, 128, 4): (0.85, 0.75),
}  # fmt: skip


def splittable(scene: Scene) -> Attention | None:
    """The part as attention to floats that two terms of tf32 hold; None where it is none."""
    found = found_in(scene) if scene.gpu.capability >= ASYNC_COPIES_FROM else None
    if found is None or scene.target.contract.tolerance.exact:
        return None
    plain = all(isinstance(x, Load) and type_of(x) == "float32" for x in (found.q, found.k, found.v))
    return found if plain and next(attention_tiles.configurations(scene), None) is not None else None


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    found = splittable(scene)
    columns = None if found is None else _columns(found, scene.target.contract)
    if found is None or columns is None:
        return
    wide = columns > _NARROW
    for (queries, keys, threads, blocks), worth in sorted(_SHAPES.items(), key=lambda s: -s[1][wide]):
        kernel = _Kernel(scene, found, queries, keys, columns, threads, blocks)
        fits = kernel.shared_bytes <= scene.gpu.max_shared_bytes and kernel.resident == blocks
        if fits and kernel.held + _OTHER_REGISTERS <= kernel.registers:
            shape = {"queries": queries, "keys": keys, "columns": columns, "threads": threads, "blocks": blocks}
            yield dict(shape), _GAIN * worth[wide]


def _columns(found: Attention, contract: Contract) -> int | None:
    """Columns of a row in shared memory: as many as any head has, in whole groups."""
    columns = -(-(most_columns(found, contract) or 0) // _GROUP) * _GROUP
    return columns if 0 < columns <= _MOST_COLUMNS else None


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel. Raises NotPlain."""
    found = splittable(scene)
    if found is None:
        raise NotPlain("no attention to floats")
    decisions = (int(params[k]) for k in ("queries", "keys", "columns", "threads", "blocks"))
    ordinary, _ = next(attention_tiles.configurations(scene))
    factors = loads_in([found.q, found.k, found.v])
    kernel = replace(_Kernel(scene, found, *decisions).written(), suffix="attention")
    others = (replace(x, suffix="ordinary") for x in attention_tiles.written(scene, ordinary))
    return guarded(scene, factors, kernel, list(others))


@dataclass(frozen=True)
class _Kernel(Walk):
    """A warp has ``tiles`` of 16 queries. Of such a tile a lane holds rows ``$g`` and ``$g + 8`` (``$h``), of eight
    columns of scores two neighbours (``$e``) from ``2 * $t`` on."""

    blocks: int  # of a multiprocessor, which share its registers

    @property
    def pitches(self) -> tuple[int, int, int]:
        """See Walk. Eight lanes read four packs of two rows of queries and keys, two packs of every other row of
        values: each in other banks."""
        return self.columns + 16, self.columns + 16, self.columns + 4

    @property
    def powers(self) -> int:
        """See Walk."""
        return 0

    @property
    def registers(self) -> int:
        """See Walk."""
        return min(255, REGISTERS_PER_SM // (self.threads * self.blocks))

    @property
    def copied_at_once(self) -> int:
        """See Walk: few, which leaves registers to the products."""
        return 2

    @property
    def held(self) -> int:
        """Scores and sums of a thread."""
        return self.tiles * 4 * (self.across + self.columns // DEPTH)

    @property
    def tiles(self) -> int:
        """Of queries a warp."""
        return self.queries * 32 // (16 * self.threads)

    @property
    def across(self) -> int:
        """Instructions along a tile's keys."""
        return self.keys // DEPTH

    def before(self) -> tuple[str, ...]:
        """See Walk."""
        return FUNCTIONS

    def placed(self) -> list[str]:
        """See Walk."""
        return [MASK, "const int $g = threadIdx.x % 32 / 4, $t = threadIdx.x % 4;",
                f"const int $down = threadIdx.x / 32 * {16 * self.tiles};"]  # fmt: skip

    def begun(self) -> list[str]:
        """See Walk."""
        begin = ["$top[$m][$h] = -INFINITY;", "$total[$m][$h] = 0;"]
        reach = f"$first + $down + {16 * self.tiles - 1}"
        last = f"{reach} < {self.limit} ? {reach} : {self.limit} - 1"
        return [
            f"float $sums[{self.tiles}][{self.columns // DEPTH}][4] = {{}};",
            f"float $top[{self.tiles}][2];",
            f"{c_type(self.found.totals[0])} $total[{self.tiles}][2];",
            *self._rows(begin),
            f"const int $whole_keys = {self.length_of('$first + $down')};  // of the warp's first query",
            *([f"const int $reach = {self.length_of(last)};  // of its last"] if self._partly else []),
        ]  # fmt: skip

    @property
    def _partly(self) -> bool:
        """Whether the warps of a block have different keys."""
        return self.own_length

    def _rows(self, lines: list[str]) -> list[str]:
        return unrolled("$m", self.tiles, unrolled("$h", 2, lines))

    def scored(self) -> list[str]:
        """See Walk."""
        soft = (self._rows(self._softened(tested=tested)) for tested in (False, True))
        whole, some = map(indent, soft)
        products = [*self._products(),
                    f"if ($tile + {self.keys} <= $whole_keys) {{", *whole, "} else {", *some, "}"]  # fmt: skip
        return [f"float $score[{self.tiles}][{self.across}][4] = {{}};",
                *(either("$tile < $reach", products) if self._partly else products)]  # fmt: skip

    def _products(self) -> list[str]:
        of_queries, of_keys, _ = self.pitches
        q = f"$queries[($down + $m * 16 + $g + 8 * $h) * {of_queries} + $at + 4 * $t]"
        k = f"$keys[(($group + $n) * 8 + $g) * {of_keys} + $at + 4 * $t]"
        four = "const {pack} $four = *reinterpret_cast<const {pack} *>(&{place});"
        terms_a, terms_b = "$a[$m][$step]", "$b[$n][$step]"
        groups = min(_ACROSS, self.across)
        return [
            "#pragma unroll 1",
            f"for (int $at = 0; $at < $depth; $at += {STEPS * DEPTH}) {{",
            *indent([
                f"float $part[{self.tiles}][{self.across}][4] = {{}};",
                f"unsigned $a[{self.tiles}][{STEPS}][2][4];",
                *self._rows([
                    four.format(pack=PACK, place=q),
                    *unrolled("$step", STEPS, [split("$four.v[2 * $step]", terms_a, "$h"),
                                               split("$four.v[2 * $step + 1]", terms_a, "2 + $h")]),
                ]),
                "#pragma unroll",
                f"for (int $group = 0; $group < {self.across}; $group += {groups}) {{",
                *indent([
                    f"unsigned $b[{groups}][{STEPS}][2][2];",
                    *unrolled("$n", groups, [
                        four.format(pack=PACK, place=k),
                        *unrolled("$step", STEPS, [split("$four.v[2 * $step]", terms_b, "0"),
                                                   split("$four.v[2 * $step + 1]", terms_b, "1")]),
                    ]),
                    *unrolled("$step", STEPS, multiplied(
                        self.tiles, groups, "$part[$m][$group + $n]", "$a[$m][$step]", "$b[$n][$step]",
                    )),
                ]),
                "}",
                *added((("$m", self.tiles), ("$n", self.across)), "$score[$m][$n]", "$part[$m][$n]"),
            ]),
            "}",
        ]  # fmt: skip

    def _softened(self, *, tested: bool) -> list[str]:
        lane = Lane(
            "$score[$m][$n][2 * $h + $e]", "$n * 8 + 2 * $t + $e",
            lambda lines: unrolled("$n", self.across, unrolled("$e", 2, lines)), "$top[$m][$h]", "$total[$m][$h]",
            unrolled("$n", self.columns // DEPTH, unrolled("$e", 2, ["$sums[$m][$n][2 * $h + $e] *= $fade;"])),
            ["$score[$m][$n][2 * $h + $e] = $power;"], 4, tested,
        )  # fmt: skip
        return [self._query(), *self.softened(lane)]

    def _query(self) -> str:
        return f"const int ${self.found.query[0]} = $first + $down + $m * 16 + $g + 8 * $h;"

    def weighed(self) -> list[str]:
        """See Walk."""
        width = self.scene.size(self.found.column[1])
        beyond = [f"if ($group * {_GROUP} >= $width) break;"] if width != str(self.columns) else []
        power = [split(f"$score[$m][$c + $step][{e}]", "$a[$m][$step]", str(n)) for n, e in enumerate((0, 2, 1, 3))]
        value = f"$values[(($c + $step) * 8 + 2 * $t + $e) * {self.pitches[2]} + $group * {_GROUP} + 4 * $g]"
        lines = [
            "#pragma unroll",
            f"for (int $c = 0; $c < {self.across}; $c += {STEPS}) {{",
            *indent([
                f"unsigned $a[{self.tiles}][{STEPS}][2][4];",
                *unrolled("$m", self.tiles, unrolled("$step", STEPS, power)),
                *unrolled("$group", self.columns // _GROUP, [
                    *beyond,
                    f"float $part[{self.tiles}][4][4] = {{}};",
                    *unrolled("$step", STEPS, [
                        "unsigned $b[4][2][2];",
                        *unrolled("$e", 2, [
                            f"const {PACK} $four = *reinterpret_cast<const {PACK} *>(&{value});",
                            *unrolled("$n", 4, [split("$four.v[$n]", "$b[$n]", "$e")]),
                        ]),
                        *multiplied(self.tiles, 4, "$part[$m][$n]", "$a[$m][$step]", "$b[$n]"),
                    ]),
                    *added((("$m", self.tiles), ("$n", 4)), "$sums[$m][$group * 4 + $n]", "$part[$m][$n]"),
                ]),
            ]),
            "}",
        ]  # fmt: skip
        return either("$tile < $reach", lines) if self._partly else lines

    def stored(self) -> list[str]:
        """See Walk: four neighbours a lane."""
        found, scene = self.found, self.scene
        (row, _), (column, _) = found.query, found.column
        out: Load = stores(scene)[0]
        held: dict[Expr, str] = dict.fromkeys(found.totals, "$total[$m][$h]")
        sums = "$sums[$m][$group * 4 + $lane][2 * $h + $e]"
        weighed = scene.text(found.weight, {**held, found.power: sums})
        reads = Packs.of(scene, [without(found.value, found.fold)], column, 4)
        known = {**held, found.fold: "$result[$lane]"}
        whole = f"{reads.aligned([out])} && ${column}_first + 4 <= $width"
        single = reads.lanes(scene.assigned([(scene.element(out), found.value)], known), f"${column} < $width")
        inner = [
            f"const int ${column}_first = $group * {_GROUP} + 8 * $t + 4 * $e;",
            f"{c_type(found.fold)} $result[4];",
            *unrolled("$lane", 4, [f"$result[$lane] = {weighed};"]),
            f"if ({whole}) {{", *indent(reads.made([out], [found.value], known)), "} else {", *indent(single), "}",
        ]  # fmt: skip
        return self._rows([
            self._query(),
            *shuffled(4, "$total[$m][$h] += OTHER;", "$total[$m][$h]"),
            *either(f"${row} < {self.limit}",
                    unrolled("$group", self.columns // _GROUP, unrolled("$e", 2, inner))),
        ])  # fmt: skip
