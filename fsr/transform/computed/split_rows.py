"""split-rows: results that are folds of few long rows (of all there is, too): several blocks a row, then one.

Each block folds packs of its part of a row and leaves what it found in scratch memory; a second launch folds that, in
the same order every time, and makes the results of it. A row may lie in pieces (a channel's elements of each image):
the folded dimensions are counted through as one then, and a block may make all of a row.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fsr.computation.computation import Statement
from fsr.computation.expression import Affine, Expr, Fold, Load, names_in, renamed, valued
from fsr.computation.printing import affine_text
from fsr.computation.types import type_of
from fsr.records import Scratch
from fsr.source.names import indent, unrolled
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.columns import lead_dims
from fsr.transform.computed.elements import stores
from fsr.transform.computed.folding import OPERATORS, c_type, checked, folds_in, identity, step
from fsr.transform.computed.packs import Packs, widths
from fsr.transform.computed.parts import value_of
from fsr.transform.computed.row_form import ELEMENT
from fsr.transform.computed.scene import Scene, along, loads_in, plain
from fsr.transform.plain.c_text import NotPlain

Params = Mapping[str, int | str]
_FINISH, _UNROLLED = 256, 4
_MOST_OF_RECORD = 16  # numbers


@dataclass(frozen=True)
class Split:
    """``folds`` over the dimensions ``dims`` (extents by their names, the contiguous one last), each with its body over
    these; rows are numbered by the dimensions of the part, if there are any."""

    scene: Scene
    outputs: tuple[Statement, ...]
    folds: tuple[Fold, ...]
    dims: Mapping[str, Affine]
    bodies: tuple[Expr, ...]

    @property
    def piece(self) -> str:
        """The contiguous elements of a row, as C text."""
        return self.scene.names.affine(self.dims[ELEMENT])

    @property
    def length(self) -> str:
        """The elements of a row, as C text."""
        texts = [self.scene.names.affine(x) for x in self.dims.values()]
        return texts[0] if len(texts) == 1 else " * ".join(f"({t})" for t in texts)

    @property
    def timed_length(self) -> int:
        """The elements of a row at the first timed sizes."""
        return math.prod(valued(x, self.scene.timed) for x in self.dims.values())

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
        folds = tuple(dict.fromkeys(checked(f, several=True) for s in outputs for f in folds_in(value_of(s))))
    except NotPlain:
        return None
    own = [_named(f) for f in folds]
    if not own or any(one is None or [*one[0].items()] != [*own[0][0].items()] for one in own):  # type: ignore[index]
        return None
    dims, bodies = own[0][0], tuple(body for _, body in own)  # type: ignore[index,misc]
    if any(n not in part.sizes for x in dims.values() for n, _ in x.terms):
        return None
    reads = loads_in(bodies)
    if any(plain(x) and not _near(scene, x) for x in reads):
        return None
    known = {n for n, _ in part.domain} | set(part.sizes) | set(dims)
    whole = any(along(x, ELEMENT) and set(dims) <= names_in(x) for x in reads)
    if not whole or any(names_in(b) - known for b in bodies):
        return None
    return Split(scene, outputs, folds, dims, bodies)


def _near(scene: Scene, load: Load) -> bool:
    """Whether what neighbouring elements of a row read is adjacent, or in adjacent records of a few numbers."""
    own = [n for n, i in enumerate(load.indices) if ELEMENT in names_in(i)]
    inner = scene.shape(load.buffer)[min(own) + 1 :] if own else ()
    return all(extent.isdigit() for extent in inner) and math.prod(map(int, inner)) <= _MOST_OF_RECORD


def _named(fold: Fold) -> tuple[dict[str, Affine], Expr] | None:
    """A fold's dimensions and its body, both by the names that they have here: the one along which something is read
    is last. None where there is no such."""
    reads = loads_in((fold.body,))
    last = next((n for n, _ in reversed(fold.dims) if any(along(x, n) for x in reads)), None)
    if last is None:
        return None
    order = [d for d in fold.dims if d[0] != last] + [d for d in fold.dims if d[0] == last]
    called = {n: f"segment{k + 1}" for k, (n, _) in enumerate(order[:-1])} | {last: ELEMENT}
    return {called[n]: x for n, x in order}, renamed(fold.body, lambda n: called.get(n, n))


# ---------------------------------------------------------------- decisions


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    found = split(scene)
    if found is None:
        return
    rows = scene.timed(found.rows)
    alone = len(found.dims) > 1 or not scene.part.domain  # nothing else makes a row in pieces, or all there is
    least, gain = 1 if alone else 2, 4.0
    told = set[tuple[int, int, int]]()
    for pack, threads, waves in itertools.product(widths(found.bodies, ELEMENT), (256, 512, 128), (8, 4, 16)):
        most = found.timed_length // (threads * pack * _UNROLLED)
        parts = max(min(scene.gpu.sm_count * waves * 256 // threads // rows, most, 4096), 1)
        if parts >= least and (threads, pack, parts) not in told:
            told.add((threads, pack, parts))
            yield {"threads": threads, "pack": pack, "parts": parts}, gain
            gain *= 0.97


# ---------------------------------------------------------------- text


def written(scene: Scene, params: Params) -> list[Written]:
    """Both kernels. Raises NotPlain."""
    found = split(scene)
    if found is None:
        raise NotPlain("no folds of rows")
    threads, pack, parts = (int(params[k]) for k in ("threads", "pack", "parts"))
    if parts == 1:
        return [_parts(found, threads, pack, 1, ())]
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
    scene, several = found.scene, len(found.dims) > 1
    at = "$place" if several else f"${ELEMENT}_first"
    reads = Packs.of(scene, found.bodies, ELEMENT, pack)

    def steps(held: Mapping[Expr, str]) -> list[str]:
        lines, known = scene.named(found.bodies, held)
        texts = [scene.text(b, known) for b in found.bodies]
        return [*lines, *(step(f, f"$total{n + 1}", texts[n]) for n, f in enumerate(found.folds))]

    inner = single = _single(found, reads, steps({}))
    if pack > 1:
        whole = [*reads.fetch(), *reads.lanes(steps(reads.held("$lane")))]
        test = f"{at} + {pack} <= {found.length} && {reads.aligned()}"
        if several:
            whole = [*_dims_at(found, at, f"{ELEMENT}_first"), *whole]
            test = f"{found.piece} % {pack} == 0 && {reads.aligned()}"  # no pack lies in two pieces, nor past the end
        inner = [f"if ({test}) {{", *indent(whole), "} else {", *indent(single), "}"]
    before = f"({scene.index})(blockIdx.x % {parts}) * {threads * pack} + " if scratch else ""
    start = f"{before}threadIdx.x * {pack}"
    head = f"for ({scene.index} {at} = {start}; {at} < {found.length}; {at} += {parts * threads * pack}) {{"
    lines = [
        *lead_dims(scene, scene.part.domain, f"(blockIdx.x / {parts})" if scratch else "blockIdx.x"), *_totals(found),
        f"#pragma unroll {_UNROLLED}", head, *indent(inner), "}", *_met(found, threads),
        "if (threadIdx.x == 0) {", *indent(_left(found, scratch)), "}",
    ]  # fmt: skip
    grid, name = (f"{parts} * {found.rows}", "parts") if scratch else (found.rows, "rows")
    return Written(scene, lines, (grid, "1", "1"), (str(threads), "1", "1"), threads, name, tuple(scratch))


def _single(found: Split, reads: Packs, steps: list[str]) -> list[str]:
    """A pack's elements one by one, those that a row has."""
    if len(found.dims) == 1:
        return reads.lanes(steps, f"${ELEMENT} < {found.length}")
    own = [f"const {found.scene.index} $lane_place = $place + $lane;", f"if ($lane_place < {found.length}) {{"]
    return unrolled("$lane", reads.width, [*own, *indent([*_dims_at(found, "$lane_place", ELEMENT), *steps]), "}"])


def _dims_at(found: Split, place: str, last: str) -> list[str]:
    """Declarations of the folded dimensions at a place in the row, as though its pieces lay in one."""
    names = [*list(found.dims)[:-1], last]
    sized = [(n, affine_text(x)) for n, x in zip(names, found.dims.values(), strict=True)]
    return lead_dims(found.scene, sized, place)


def _left(found: Split, scratch: Sequence[Scratch]) -> list[str]:
    """What a block leaves: its part of each fold, or the results where it has all of them."""
    if not scratch:
        return _results(found)
    return [f"${s.name}[blockIdx.x] = $total{n + 1};" for n, s in enumerate(scratch)]


def _results(found: Split) -> list[str]:
    held: dict[Expr, str] = {f: f"$total{n + 1}" for n, f in enumerate(found.folds)}
    pairs = [(found.scene.element(x), value_of(s)) for x, s in zip(stores(found.scene), found.outputs, strict=True)]
    return found.scene.assigned(pairs, held)


def _finish(found: Split, parts: int, scratch: Sequence[Scratch]) -> Written:
    scene = found.scene
    place = f"({scene.index})blockIdx.x * {parts} + $part"
    steps = [step(f, f"$total{n + 1}", f"${s.name}[{place}]")
             for n, (f, s) in enumerate(zip(found.folds, scratch, strict=True))]  # fmt: skip
    loop = f"for (int $part = threadIdx.x; $part < {parts}; $part += {_FINISH}) {{"
    lines = [
        *lead_dims(scene, scene.part.domain, "blockIdx.x"), *_totals(found),
        loop, *indent(steps), "}", *_met(found, _FINISH),
        "if (threadIdx.x == 0) {", *indent(_results(found)), "}",
    ]  # fmt: skip
    return Written(scene, lines, (found.rows, "1", "1"), (str(_FINISH), "1", "1"), _FINISH, "finish", tuple(scratch))
