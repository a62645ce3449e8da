"""scan-tiles: running folds along the contiguous dimension: neighbouring elements a thread, a line or a part a block.

A thread folds the elements of a pack one after the other, lanes pass on what stands before them by shuffles, warps
through shared memory; a block walks along its part in tiles and carries the fold on. Lines that are too few for all
multiprocessors are split in parts: a first launch folds each part, and in a second one every block begins at the fold
of all parts before its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Self

from fsr.computation.computation import Statement
from fsr.computation.expression import Affine, Expr, Fold, names_in, renamed
from fsr.computation.simplify import unpeeled
from fsr.computation.types import type_of
from fsr.records import Scratch
from fsr.source.names import indent, unrolled
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.columns import lead_dims
from fsr.transform.computed.elements import stores
from fsr.transform.computed.folding import OPERATORS, c_type, identity, one_fold, step, without
from fsr.transform.computed.packs import MOST_BYTES, Packs, pack_type
from fsr.transform.computed.parts import value_of
from fsr.transform.computed.scene import Scene, along, bytes_of, loads_in, plain
from fsr.transform.plain.c_text import NotPlain

Params = Mapping[str, int | str]
WARP, FULL = 32, "0xffffffffu"
_MOST_PARTS = 1024


@dataclass(frozen=True)
class Scan:
    """``output``: over lines and then ``dim``, made of its own point and of ``fold``, which goes along the line up to
    the point (``inclusive``: the point itself too). ``body``: of the fold, over ``dim``. ``at``: where the dimension
    stands among those of the domain, -1 the contiguous one."""

    scene: Scene
    output: Statement
    fold: Fold
    body: Expr
    inclusive: bool
    at: int = -1

    @property
    def dim(self) -> str:
        """The dimension along a line."""
        return self.scene.part.domain[self.at][0]

    @property
    def lead(self) -> tuple[tuple[str, str], ...]:
        """The dimensions before it."""
        return self.scene.part.domain[: self.at]

    @property
    def limit(self) -> str:
        """The elements of a line, as C text."""
        return self.scene.size(self.scene.part.domain[self.at][1])


def scan(scene: Scene, at: int = -1) -> Scan | None:
    """The part as a scan; None where it is none, or reads what another point overwrites. ``at``: see :class:`Scan`."""
    part = scene.part
    found = one_fold(part) if len(part.domain) >= -at else None
    if found is None:
        return None
    output, fold = replace(found[0], value=unpeeled(value_of(found[0]))), found[1]
    dim, last = part.domain[at][0], part.domain[-1][0]
    (own, length), *_ = fold.dims
    if length not in (Affine(((dim, 1),), 0), Affine(((dim, 1),), 1)) or dim in names_in(fold.body):
        return None
    body = renamed(fold.body, lambda n: dim if n == own else n)
    reads = loads_in([body, without(value_of(output), fold)])
    if any(x.buffer in part.written and x.indices != output.place for x in reads):
        return None
    apart = any(plain(x) and any(last in names_in(i) for i in x.indices[:-1]) for x in reads)
    if apart or not any(along(x, last) and dim in names_in(x) for x in loads_in([body])):
        return None
    return Scan(scene, output, fold, body, length.constant == 1, at)


# ---------------------------------------------------------------- decisions


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    found = scan(scene)
    if found is None:
        return
    lines, length = 1, scene.timed(scene.part.domain[-1][1])
    for _, x in found.lead:
        lines *= scene.timed(x)
    widest = max(1, MOST_BYTES // max(bytes_of(x) for x in (*loads_in([found.body]), *stores(scene))))
    gain = 4.0
    for waves in (4, 8, 1):
        for packs in (2, 1, 4):
            for threads in (256, 128, 512):
                tile = threads * packs * widest
                wanted = min(scene.gpu.sm_count * waves * 256 // threads // lines, -(-length // tile), _MOST_PARTS)
                yield {"threads": threads, "pack": widest, "packs": packs, "parts": max(1, wanted)}, gain
                gain *= 0.97
        if lines >= 2 * scene.gpu.sm_count:
            return


# ---------------------------------------------------------------- text


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel, and before it the one that folds parts where there are several. Raises NotPlain."""
    found = scan(scene)
    if found is None:
        raise NotPlain("no scan")
    return _Kernel.of(found, params).written()


@dataclass(frozen=True)
class InParts(ABC):
    """A scan whose lines are cut into ``parts``; the fields of those who write it are the move's parameters."""

    found: Scan
    parts: int

    @classmethod
    def of(cls, found: Scan, params: Params) -> Self:
        """With the parameters of a move."""
        return cls(found, **{field.name: int(params[field.name]) for field in fields(cls)[1:]})

    def written(self) -> list[Written]:
        """The kernel, and before it the one that folds parts where there are several."""
        return [self.scanned()] if self.parts == 1 else [self.folded(), self.scanned()]

    @abstractmethod
    def folded(self) -> Written:
        """The kernel that folds each part."""

    @abstractmethod
    def scanned(self) -> Written:
        """The kernel that scans, from what is before each part."""


@dataclass(frozen=True)
class _Kernel(InParts):
    threads: int
    pack: int
    packs: int

    @property
    def _tile(self) -> int:
        return self.threads * self.pack * self.packs

    @property
    def _scratch(self) -> tuple[Scratch, ...]:
        lines = "".join(f" * ({x})" for _, x in self.found.lead)
        return (Scratch("partial", type_of(self.found.fold), f"{self.parts}{lines}"),) if self.parts > 1 else ()

    def _written(self, lines: list[str], suffix: str) -> Written:
        grid = " * ".join((str(self.parts), *(f"({x})" for _, x in self.found.lead)))
        return Written(self.found.scene, lines, (grid, "1", "1"), (str(self.threads), "1", "1"), self.threads, suffix,
                       self._scratch)  # fmt: skip

    def _begin(self) -> list[str]:
        """Which line, and from where to where in it."""
        scene, limit = self.found.scene, self.found.limit
        number = "blockIdx.x" if self.parts == 1 else f"(blockIdx.x / {self.parts})"
        lines = lead_dims(scene, self.found.lead, number)
        if self.parts == 1:
            return [*lines, f"const {scene.index} $begin = 0, $end = {limit};"]
        across = self.parts * self._tile
        return [
            *lines,
            f"const int $part = blockIdx.x % {self.parts};",
            f"const {scene.index} $length = ({limit} + {across - 1}) / {across} * {self._tile};  // of a part",
            f"const {scene.index} $begin = $part * $length;",
            f"const {scene.index} $end = $begin + $length < {limit} ? $begin + $length : {limit};",
        ]

    def folded(self) -> Written:
        """The first launch: a fold of each part."""
        found, scene = self.found, self.found.scene
        dim, op = found.dim, OPERATORS[found.fold.op]
        start = f"$begin + threadIdx.x * {self.pack}"
        head = f"for ({scene.index} ${dim}_first = {start}; ${dim}_first < $end; ${dim}_first += "
        scene.helpers.add(f"fsr_block_{op}")
        steps = read(found, self.pack, step(found.fold, "$total", "VALUE"))
        return self._written([
            *self._begin(),
            f"{c_type(found.fold)} $total = {identity(found.fold)};",
            "#pragma unroll 4",
            f"{head}{self.threads * self.pack}) {{", *indent(steps), "}",
            f"$total = fsr_block_{op}<{self.threads}>($total);",
            "if (threadIdx.x == 0) $partial[blockIdx.x] = $total;",
        ], "parts")  # fmt: skip

    def _before(self) -> list[str]:
        """What stands before the block's part."""
        fold, op = self.found.fold, OPERATORS[self.found.fold.op]
        lines = [f"{c_type(fold)} $carry = {identity(fold)};"]
        if self.parts > 1:
            self.found.scene.helpers.add(f"fsr_block_{op}")
            loop = f"for (int $other = threadIdx.x; $other < $part; $other += {self.threads}) {{"
            place = "$partial[blockIdx.x - $part + $other]"
            lines += [loop, *indent([step(fold, "$carry", place)]), "}",
                      f"$carry = fsr_block_{op}<{self.threads}>($carry);"]  # fmt: skip
        return lines

    def scanned(self) -> Written:
        """The launch that writes."""
        found, kind = self.found, c_type(self.found.fold)
        walk = f"for ({found.scene.index} $tile = $begin; $tile < $end; $tile += {self._tile}) {{"
        tile = [
            *tile_read(found, self.pack, self.packs, "$tile"),
            f"if (threadIdx.x % {WARP} == 0) $warps[threadIdx.x / {WARP}] = $sum;",
            "__syncthreads();",
            f"{kind} $base = $carry;",
            *unrolled("$warp", self.threads // WARP, [
                f"if ($warp < threadIdx.x / {WARP}) {{", f"    {step(found.fold, '$base', '$warps[$warp]')}", "}",
                step(found.fold, "$carry", "$warps[$warp]"),
            ]),
            "__syncthreads();  // all have read what the next tile overwrites",
            *tile_written(found, self.pack, self.packs),
        ]  # fmt: skip
        lines = [f"__shared__ {kind} $warps[{self.threads // WARP}];", *self._begin(), *self._before(),
                 walk, *indent(tile), "}"]  # fmt: skip
        return self._written(lines, "scan")


# ---------------------------------------------------------------- tiles


def tile_read(found: Scan, pack: int, packs: int, first: str) -> list[str]:
    """A warp's part of the tile that begins at ``first``, folded: packs of its lanes stand next to each other, those of
    one lane a warp's width apart. ``$own``: of each element, the fold of its pack up to it; ``$before``: of each pack,
    that of what the warp has before it; ``$sum``: of all that the warp has."""
    scene, fold, kind = found.scene, found.fold, c_type(found.fold)
    lane, own = f"threadIdx.x % {WARP}", f"$own[$pack * {pack} + $item]"
    start = f"{first} + threadIdx.x / {WARP} * {WARP * pack * packs} + {lane} * {pack}"
    chain = [f"for (int $item = 1; $item < {pack}; ++$item) {{", f"    {step(fold, own, own[:-1] + ' - 1]')}", "}"]
    return [
        f"const {scene.index} $first = {start};",
        f"{kind} $own[{pack * packs}];",
        *unrolled("$item", pack * packs, [f"$own[$item] = {identity(fold)};"]),
        *unrolled("$pack", packs, [_at(found, pack), *read(found, pack, f"$own[$pack * {pack} + $lane] = VALUE;")]),
        f"{kind} $before[{packs}];",
        f"{kind} $sum = {identity(fold)};",
        *unrolled("$pack", packs, [
            *(["#pragma unroll", *chain] if pack > 1 else []),
            f"{kind} $upto = $own[$pack * {pack} + {pack - 1}];",
            "#pragma unroll",
            f"for (int $apart = 1; $apart < {WARP}; $apart *= 2) {{",
            f"    const {kind} $left = __shfl_up_sync({FULL}, $upto, $apart);",
            f"    if ({lane} >= $apart) {{", f"        {step(fold, '$upto', '$left')}", "    }",
            "}",
            f"const {kind} $neighbour = __shfl_up_sync({FULL}, $upto, 1);",
            "$before[$pack] = $sum;",
            f"if ({lane} > 0) {{", f"    {step(fold, '$before[$pack]', '$neighbour')}", "}",
            step(fold, "$sum", f"__shfl_sync({FULL}, $upto, {WARP - 1})"),
        ]),
    ]  # fmt: skip


def tile_written(found: Scan, pack: int, packs: int) -> list[str]:
    """The outputs of a warp's part. ``$base``: the fold of all that stands before the warp's."""
    add = step(found.fold, "$before[$pack]", "$base")
    return unrolled("$pack", packs, [_at(found, pack), add, *stored(found, pack, "$before[$pack]")])


def _at(found: Scan, pack: int) -> str:
    return f"const {found.scene.index} ${found.dim}_first = $first + $pack * {WARP * pack};"


def read(found: Scan, pack: int, each_value: str) -> list[str]:
    """The values of a pack from ``$<dim>_first`` on, told as a statement about ``VALUE``; what lies at ``$end`` or
    behind it is left."""
    scene = found.scene
    reads = Packs.of(scene, [found.body], found.dim, pack)

    def told(held: Mapping[Expr, str]) -> list[str]:
        lines, known = scene.named([found.body], held)
        return [*lines, each_value.replace("VALUE", scene.text(found.body, known))]

    single = reads.lanes(told({}), f"${found.dim} < $end")
    if pack == 1:
        return single
    whole = [*reads.fetch(), *reads.lanes(told(reads.held("$lane")))]
    return _whole_or_single(found, pack, reads.aligned(), whole, single)


def stored(found: Scan, pack: int, before: str) -> list[str]:
    """The outputs of a pack. ``before``: the fold of all that stands before it; ``$own[$pack * pack + $lane]``: of what
    stands in it up to a lane."""
    scene, fold, value, out = found.scene, found.fold, value_of(found.output), stores(found.scene)[0]
    item = f"$pack * {pack} + $lane"
    prefix = [f"{c_type(fold)} $prefix = {before};"]
    if found.inclusive:
        prefix.append(step(fold, "$prefix", f"$own[{item}]"))
    else:
        prefix += ["if ($lane > 0) {", f"    {step(fold, '$prefix', f'$own[{item} - 1]')}", "}"]
    reads = Packs.of(scene, [without(value, fold)], found.dim, pack)

    def told(place: str, held: Mapping[Expr, str]) -> list[str]:
        return [*prefix, *scene.assigned([(place, value)], {**held, fold: "$prefix"})]

    single = reads.lanes(told(scene.element(out), {}), f"${found.dim} < $end")
    if pack == 1:
        return single
    kind, made = pack_type(scene, out, pack), f"{scene.own(out.buffer)}_made"
    whole = [*reads.fetch(), f"{kind} {made};", *reads.lanes(told(f"{made}.v[$lane]", reads.held("$lane"))),
             f"*reinterpret_cast<{kind} *>(&{reads.first(out)}) = {made};"]  # fmt: skip
    return _whole_or_single(found, pack, reads.aligned([out]), whole, single)


def _whole_or_single(found: Scan, pack: int, aligned: str, whole: list[str], single: list[str]) -> list[str]:
    test = f"${found.dim}_first + {pack} <= $end && {aligned}"
    return [f"if ({test}) {{", *indent(whole), "} else {", *indent(single), "}"]
