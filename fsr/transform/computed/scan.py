"""scan-tiles: running folds along the contiguous dimension: neighbouring elements a thread, a line or a part a block.

A thread folds its own elements one after the other, lanes pass on what stands before them by shuffles, warps through
shared memory; a block walks along its part in tiles and carries the fold on. Lines that are too few for all
multiprocessors are split in parts: a first launch folds each part, and in a second one every block begins at the fold
of all parts before its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fsr.computation.computation import Statement
from fsr.computation.expression import Affine, Expr, Fold, names_in, renamed
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
_WARP, _FULL = 32, "0xffffffffu"
_MOST_PARTS = 1024


@dataclass(frozen=True)
class Scan:
    """``output``: over lines and then ``dim``, made of its own point and of ``fold``, which goes along the line up to
    the point (``inclusive``: the point itself too). ``body``: of the fold, over ``dim``."""

    scene: Scene
    output: Statement
    fold: Fold
    body: Expr
    inclusive: bool

    @property
    def dim(self) -> str:
        """The dimension along a line."""
        return self.scene.part.domain[-1][0]

    @property
    def lead(self) -> tuple[tuple[str, str], ...]:
        """The dimensions that number the lines."""
        return self.scene.part.domain[:-1]

    @property
    def limit(self) -> str:
        """The elements of a line, as C text."""
        return self.scene.size(self.scene.part.domain[-1][1])


def scan(scene: Scene) -> Scan | None:
    """The part as a scan; None where it is none."""
    part = scene.part
    found = one_fold(part) if part.domain else None
    if found is None:
        return None
    output, fold = found
    dim = part.domain[-1][0]
    (own, length), *_ = fold.dims
    if length not in (Affine(((dim, 1),), 0), Affine(((dim, 1),), 1)) or dim in names_in(fold.body):
        return None
    body = renamed(fold.body, lambda n: dim if n == own else n)
    reads = loads_in([body, value_of(output)])
    apart = any(plain(x) and any(dim in names_in(i) for i in x.indices[:-1]) for x in reads)
    if apart or not any(along(x, dim) for x in loads_in([body])):
        return None
    return Scan(scene, output, fold, body, length.constant == 1)


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
    kernel = _Kernel(found, *(int(params[k]) for k in ("threads", "pack", "packs", "parts")))
    return [kernel.scanned()] if kernel.parts == 1 else [kernel.folded(), kernel.scanned()]


@dataclass(frozen=True)
class _Kernel:
    found: Scan
    threads: int
    pack: int
    packs: int
    parts: int

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

    def _read(self, each_value: str) -> list[str]:
        """The values of a pack from ``$<dim>_first`` on, told as a statement about ``VALUE``."""
        found, scene = self.found, self.found.scene
        reads = Packs.of(scene, [found.body], found.dim, self.pack)

        def told(held: Mapping[Expr, str]) -> list[str]:
            lines, known = scene.named([found.body], held)
            return [*lines, each_value.replace("VALUE", scene.text(found.body, known))]

        single = reads.lanes(told({}), f"${found.dim} < $end")
        if self.pack == 1:
            return single
        whole = [*reads.fetch(), *reads.lanes(told(reads.held("$lane")))]
        test = f"${found.dim}_first + {self.pack} <= $end && {reads.aligned()}"
        return [f"if ({test}) {{", *indent(whole), "} else {", *indent(single), "}"]

    def folded(self) -> Written:
        """The first launch: a fold of each part."""
        found, scene = self.found, self.found.scene
        dim, op = found.dim, OPERATORS[found.fold.op]
        start = f"$begin + threadIdx.x * {self.pack}"
        head = f"for ({scene.index} ${dim}_first = {start}; ${dim}_first < $end; ${dim}_first += "
        scene.helpers.add(f"fsr_block_{op}")
        return self._written([
            *self._begin(),
            f"{c_type(found.fold)} $total = {identity(found.fold)};",
            "#pragma unroll 4",
            f"{head}{self.threads * self.pack}) {{", *indent(self._read(step(found.fold, "$total", "VALUE"))), "}",
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
        found, scene = self.found, self.found.scene
        dim, kind, items = found.dim, c_type(found.fold), self.pack * self.packs
        at = f"const {scene.index} ${dim}_first = $first + $pack * {self.pack};"
        read = [at, *self._read(f"$own[$pack * {self.pack} + $lane] = VALUE;")]
        chain = f"for (int $item = 1; $item < {items}; ++$item) {{"
        tile = [
            f"const {scene.index} $first = $tile + threadIdx.x * {items};",
            f"{kind} $own[{items}];",
            *unrolled("$item", items, [f"$own[$item] = {identity(found.fold)};"]),
            *unrolled("$pack", self.packs, read),
            "#pragma unroll", chain, *indent([step(found.fold, "$own[$item]", "$own[$item - 1]")]), "}",
            *self._passed_on(items),
            *unrolled("$pack", self.packs, [at, *self._stored()]),
        ]  # fmt: skip
        walk = f"for ({scene.index} $tile = $begin; $tile < $end; $tile += {self._tile}) {{"
        lines = [f"__shared__ {kind} $warps[{self.threads // _WARP}];", *self._begin(), *self._before(),
                 walk, *indent(tile), "}"]  # fmt: skip
        return self._written(lines, "scan")

    def _passed_on(self, items: int) -> list[str]:
        """``$before``: the fold of all before the thread's elements; ``$carry``: on to the next tile."""
        fold, kind = self.found.fold, c_type(self.found.fold)
        return [
            f"{kind} $sum = $own[{items - 1}];",
            "#pragma unroll",
            f"for (int $apart = 1; $apart < {_WARP}; $apart *= 2) {{",
            f"    const {kind} $left = __shfl_up_sync({_FULL}, $sum, $apart);",
            f"    if (threadIdx.x % {_WARP} >= $apart) {{", f"        {step(fold, '$sum', '$left')}", "    }",
            "}",
            f"if (threadIdx.x % {_WARP} == {_WARP - 1}) $warps[threadIdx.x / {_WARP}] = $sum;",
            "__syncthreads();",
            f"const {kind} $neighbour = __shfl_up_sync({_FULL}, $sum, 1);",
            f"{kind} $before = $carry;",
            *unrolled("$warp", self.threads // _WARP, [
                f"if ($warp < threadIdx.x / {_WARP}) {{", f"    {step(fold, '$before', '$warps[$warp]')}", "}",
                step(fold, "$carry", "$warps[$warp]"),
            ]),
            f"if (threadIdx.x % {_WARP} > 0) {{", f"    {step(fold, '$before', '$neighbour')}", "}",
            "__syncthreads();  // all have read what the next tile overwrites",
        ]  # fmt: skip

    def _stored(self) -> list[str]:
        found, scene = self.found, self.found.scene
        fold, value, out = found.fold, value_of(found.output), stores(scene)[0]
        item = f"$pack * {self.pack} + $lane"
        prefix = [f"{c_type(fold)} $prefix = $before;"]
        if found.inclusive:
            prefix.append(step(fold, "$prefix", f"$own[{item}]"))
        else:
            prefix += [f"if ({item} > 0) {{", f"    {step(fold, '$prefix', f'$own[{item} - 1]')}", "}"]
        reads = Packs.of(scene, [without(value, fold)], found.dim, self.pack)

        def told(place: str, held: Mapping[Expr, str]) -> list[str]:
            return [*prefix, *scene.assigned([(place, value)], {**held, fold: "$prefix"})]

        single = reads.lanes(told(scene.element(out), {}), f"${found.dim} < $end")
        if self.pack == 1:
            return single
        kind, made = pack_type(scene, out, self.pack), f"{scene.own(out.buffer)}_made"
        whole = [*reads.fetch(), f"{kind} {made};", *reads.lanes(told(f"{made}.v[$lane]", reads.held("$lane"))),
                 f"*reinterpret_cast<{kind} *>(&{reads.first(out)}) = {made};"]  # fmt: skip
        test = f"${found.dim}_first + {self.pack} <= $end && {reads.aligned([out])}"
        return [f"if ({test}) {{", *indent(whole), "} else {", *indent(single), "}"]
