"""split-rows: results that are folds of few long rows (of all there is, too): several blocks a row, then one.

Each block folds packs of its part of a row and leaves what it found in scratch memory; a second launch folds that, in
the same order every time, and makes the results of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fsr.computation.computation import Statement
from fsr.computation.expression import Expr, Fold, names_in, renamed, valued
from fsr.computation.types import type_of
from fsr.records import Scratch
from fsr.source.names import indent
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.columns import lead_dims
from fsr.transform.computed.elements import stores
from fsr.transform.computed.folding import OPERATORS, c_type, checked, extent, folds_in, identity, step
from fsr.transform.computed.packs import Packs, widths
from fsr.transform.computed.parts import value_of
from fsr.transform.computed.row_form import ELEMENT
from fsr.transform.computed.scene import Scene, along, loads_in, plain
from fsr.transform.plain.c_text import NotPlain

Params = Mapping[str, int | str]
_FINISH, _UNROLLED = 256, 4


@dataclass(frozen=True)
class Split:
    """``folds`` over rows of ``length`` (C text), each with its body over the dimension ``k``; rows are numbered by the
    dimensions of the part, if there are any."""

    scene: Scene
    outputs: tuple[Statement, ...]
    folds: tuple[Fold, ...]
    bodies: tuple[Expr, ...]

    @property
    def length(self) -> str:
        """The elements of a row, as C text."""
        return self.scene.names.affine(extent(self.folds[0]))

    @property
    def rows(self) -> str:
        """The number of rows, as a size expression."""
        return " * ".join(f"({x})" for _, x in self.scene.part.domain) or "1"


def split(scene: Scene) -> Split | None:
    """The part as folds of rows; None where it is none."""
    part, outputs = scene.part, scene.part.whole
    if any(s.domain != part.domain for s in outputs):
        return None
    try:
        folds = tuple(dict.fromkeys(checked(f) for s in outputs for f in folds_in(value_of(s))))
    except NotPlain:
        return None
    if not folds or len({extent(f) for f in folds}) != 1 or {n for n, _ in extent(folds[0]).terms} - set(part.sizes):
        return None
    own = [f.dims[0][0] for f in folds]
    bodies = tuple(
        renamed(f.body, lambda n, dim=dim: ELEMENT if n == dim else n)  # type: ignore[misc]
        for f, dim in zip(folds, own, strict=True)
    )
    reads = loads_in(bodies)
    if any(plain(x) and any(ELEMENT in names_in(i) for i in x.indices[:-1]) for x in reads):
        return None
    known = {n for n, _ in part.domain} | set(part.sizes) | {ELEMENT}
    if any(names_in(b) - known for b in bodies) or not any(along(x, ELEMENT) for x in reads):
        return None
    return Split(scene, outputs, folds, bodies)


# ---------------------------------------------------------------- decisions


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    found = split(scene)
    if found is None:
        return
    rows = scene.timed(found.rows)
    length = valued(extent(found.folds[0]), scene.timed)
    gain = 4.0
    for pack in widths(found.bodies, ELEMENT):
        for threads in (256, 512, 128):
            for waves in (8, 4, 16):
                most = length // (threads * pack * _UNROLLED)
                parts = min(scene.gpu.sm_count * waves * 256 // threads // rows, most, 4096)
                if parts > 1:
                    yield {"threads": threads, "pack": pack, "parts": parts}, gain
                    gain *= 0.97


# ---------------------------------------------------------------- text


def written(scene: Scene, params: Params) -> list[Written]:
    """Both kernels. Raises NotPlain."""
    found = split(scene)
    if found is None:
        raise NotPlain("no folds of rows")
    threads, pack, parts = (int(params[k]) for k in ("threads", "pack", "parts"))
    scratch = tuple(
        Scratch(f"partial{n + 1}", type_of(f), f"{parts} * {found.rows}") for n, f in enumerate(found.folds)
    )
    return [_parts(found, threads, pack, parts, scratch), _finish(found, parts, scratch)]


def _totals(found: Split) -> list[str]:
    return [f"{c_type(f)} $total{n + 1} = {identity(f)};" for n, f in enumerate(found.folds)]


def _met(found: Split, threads: int) -> list[str]:
    """The threads' results as one."""
    ops = [OPERATORS[f.op] for f in found.folds]
    found.scene.helpers.update(f"fsr_block_{op}" for op in ops)
    return [f"$total{n + 1} = fsr_block_{op}<{threads}>($total{n + 1});" for n, op in enumerate(ops)]


def _parts(found: Split, threads: int, pack: int, parts: int, scratch: Sequence[Scratch]) -> Written:
    scene, at = found.scene, f"${ELEMENT}_first"
    reads = Packs.of(scene, found.bodies, ELEMENT, pack)

    def steps(held: Mapping[Expr, str]) -> list[str]:
        lines, known = scene.named(found.bodies, held)
        texts = [scene.text(b, known) for b in found.bodies]
        return [*lines, *(step(f, f"$total{n + 1}", texts[n]) for n, f in enumerate(found.folds))]

    inner = single = reads.lanes(steps({}), f"${ELEMENT} < {found.length}")
    if pack > 1:
        whole = [*reads.fetch(), *reads.lanes(steps(reads.held("$lane")))]
        test = f"{at} + {pack} <= {found.length} && {reads.aligned()}"
        inner = [f"if ({test}) {{", *indent(whole), "} else {", *indent(single), "}"]
    start = f"({scene.index})(blockIdx.x % {parts}) * {threads * pack} + threadIdx.x * {pack}"
    head = f"for ({scene.index} {at} = {start}; {at} < {found.length}; {at} += {parts * threads * pack}) {{"
    lines = [
        *lead_dims(scene, scene.part.domain, f"(blockIdx.x / {parts})"), *_totals(found),
        f"#pragma unroll {_UNROLLED}", head, *indent(inner), "}", *_met(found, threads),
        "if (threadIdx.x == 0) {", *(f"    ${s.name}[blockIdx.x] = $total{n + 1};" for n, s in enumerate(scratch)), "}",
    ]  # fmt: skip
    grid = (f"{parts} * {found.rows}", "1", "1")
    return Written(scene, lines, grid, (str(threads), "1", "1"), threads, "parts", tuple(scratch))


def _finish(found: Split, parts: int, scratch: Sequence[Scratch]) -> Written:
    scene = found.scene
    place = f"({scene.index})blockIdx.x * {parts} + $part"
    steps = [step(f, f"$total{n + 1}", f"${s.name}[{place}]")
             for n, (f, s) in enumerate(zip(found.folds, scratch, strict=True))]  # fmt: skip
    held: dict[Expr, str] = {f: f"$total{n + 1}" for n, f in enumerate(found.folds)}
    pairs = [(scene.element(x), value_of(s)) for x, s in zip(stores(scene), found.outputs, strict=True)]
    loop = f"for (int $part = threadIdx.x; $part < {parts}; $part += {_FINISH}) {{"
    lines = [
        *lead_dims(scene, scene.part.domain, "blockIdx.x"), *_totals(found),
        loop, *indent(steps), "}", *_met(found, _FINISH),
        "if (threadIdx.x == 0) {", *indent(scene.assigned(pairs, held)), "}",
    ]  # fmt: skip
    return Written(scene, lines, (found.rows, "1", "1"), (str(_FINISH), "1", "1"), _FINISH, "finish", tuple(scratch))
