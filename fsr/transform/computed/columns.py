"""fold-columns: results along the contiguous dimension, folded over another: a block reads a band of columns.

Lanes of a warp lie along the columns, each with a pack of them; the warps of a block take every so many rows, and their
partial results meet in shared memory. Where columns are too few blocks, the rows are split among blocks too, whose
results a second launch folds in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fsr.computation.computation import Statement
from fsr.computation.expression import PLACES, Expr, Fold, Load, names_in, valued
from fsr.computation.types import type_of
from fsr.hardware.dtypes import float_limits, is_float, numpy_dtype
from fsr.records import Scratch
from fsr.source.names import indent, unrolled
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.folding import compared, extent, folds_in, identity, step
from fsr.transform.computed.magnitude import largest_magnitude
from fsr.transform.computed.packs import Packs, widths
from fsr.transform.computed.parts import value_of
from fsr.transform.computed.scene import Scene, along, loads_in
from fsr.transform.plain.c_text import TYPES, NotPlain

Params = Mapping[str, int | str]
_LANES = 32


@dataclass(frozen=True)
class Columns:
    """What the schedule works on: the outputs, all over ``lead`` dimensions and then ``dim``, and their folds."""

    scene: Scene
    outputs: tuple[Statement, ...]
    folds: tuple[Fold, ...]

    @property
    def dim(self) -> tuple[str, str]:
        """The columns: name and extent."""
        return self.scene.part.domain[-1]

    @property
    def lead(self) -> tuple[tuple[str, str], ...]:
        """The dimensions before them."""
        return self.scene.part.domain[:-1]

    @property
    def values(self) -> list[Expr]:
        """What the folds take in, step by step."""
        return [compared(f)[0] for f in self.folds]

    @property
    def rows(self) -> str:
        """How far the folds go, as C text."""
        return self.scene.names.affine(extent(self.folds[0]))


def columns(scene: Scene) -> Columns | None:
    """The part as folds along columns; None where it is none."""
    outputs = scene.part.whole
    if not scene.part.domain or any(s.domain != scene.part.domain for s in outputs) or not scene.folds_stay_inside:
        return None
    dim = scene.part.domain[-1][0]
    found = [f for s in outputs for f in folds_in(value_of(s))]
    folds = tuple(dict.fromkeys(found))
    try:
        for fold in folds:
            compared(fold)
    except NotPlain:
        return None
    if not folds or len({extent(f) for f in folds}) != 1 or len({f.dims[0][0] for f in folds}) != 1:
        return None
    over = folds[0].dims[0][0]
    if any(name not in names_in(f) for f in folds for name, _ in scene.part.domain):
        return None  # each would be reckoned many times
    reads = loads_in(f.body for f in folds)
    if not any(along(x, dim) and over in names_in(x) for x in reads):
        return None
    if any(dim in names_in(x) and over in names_in(x) and not along(x, dim) for x in reads):
        return None
    if any(_may_overflow_apart(scene, fold) for fold in folds):
        return None
    lengths = {n for n, _ in extent(folds[0]).terms}
    return Columns(scene, outputs, folds) if lengths <= set(scene.part.sizes) else None


def _may_overflow_apart(scene: Scene, fold: Fold) -> bool:
    """Whether a sum of products of several inputs may overflow in parts where it does not in order, unless the contract
    says, by the sum's length or by what the inputs are between, that the order of its terms may vary."""
    factors, contract = {x.buffer for x in loads_in([fold.body])}, scene.target.contract
    if fold.op != "sum" or len(factors) < 2 or contract.tolerance.sum_length is not None:
        return False
    dtype = numpy_dtype(type_of(fold))
    return not is_float(dtype) or 2 * largest_magnitude(fold, contract, scene.most) >= float_limits(dtype).largest


# ---------------------------------------------------------------- decisions


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    found = columns(scene)
    if found is None:
        return
    width = scene.timed(found.dim[1])
    rows = max(1, int(_value(found)))
    lead = 1
    for _, x in found.lead:
        lead *= scene.timed(x)
    seen = set()
    for pack in widths(found.values, found.dim[0]):
        for warps in (8, 16):
            blocks = lead * -(-width // (_LANES * pack))
            for waves in (4, 2, 8):
                wanted = max(1, min(scene.gpu.sm_count * waves * 8 // warps // blocks, rows // (warps * 8)))
                parts = 1 << (wanted.bit_length() - 1)
                key = (pack, warps, parts)
                if key not in seen:
                    seen.add(key)
                    yield {"pack": pack, "warps": warps, "parts": parts}, 4.0 * 0.97 ** len(seen)


def _value(found: Columns) -> float:
    return valued(extent(found.folds[0]), found.scene.timed)


# ---------------------------------------------------------------- text


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel, and the one that finishes where rows are split. Raises NotPlain."""
    found = columns(scene)
    if found is None:
        raise NotPlain("no folds along columns")
    pack, warps, parts = (int(params[k]) for k in ("pack", "warps", "parts"))
    reads = Packs.of(scene, found.values, found.dim[0], pack)
    if parts == 1:
        return [_kernel(found, reads, warps, 1, ())]
    scratch = scratch_of(found, parts)
    return [_kernel(found, reads, warps, parts, scratch), finish(found, parts, scratch)]


def scratch_of(found: Columns, parts: int) -> tuple[Scratch, ...]:
    """What the parts of the rows leave: for each fold a result a column, those of one part side by side; of a place,
    the value there too."""
    count = " * ".join(f"({x})" for _, x in found.scene.part.domain)
    return tuple(Scratch(f"partial{one.name}", one.dtype, f"{parts} * {count}") for one in partials(found))


@dataclass(frozen=True)
class Partial:
    """What stands for a fold that is not done yet: ``name``: its number, with ``_best`` for the value at a place."""

    name: str
    dtype: str
    begins: str

    @property
    def kind(self) -> str:
        """Its type in C."""
        return TYPES[self.dtype]


def partials(found: Columns) -> list[Partial]:
    """Of all folds, in their order."""
    every = list[Partial]()
    for n, f in enumerate(found.folds, 1):
        every.append(Partial(f"{n}", type_of(f), "0" if f.op in PLACES else identity(f)))
        if f.op in PLACES:
            every.append(Partial(f"{n}_best", type_of(compared(f)[0]), identity(f)))
    return every


def _joined(found: Columns, into: Callable[[str], str], other: Callable[[str], str]) -> list[str]:
    """The statements that take the results of another part in, both by the partial results' names."""
    lines = []
    for n, f in enumerate(found.folds, 1):
        if f.op in PLACES:
            best = f"{n}_best"
            lines.append(step(f, into(f"{n}"), other(best), other(f"{n}"), rising=False, best=into(best)))
        else:
            lines.append(step(f, into(f"{n}"), other(f"{n}")))
    return lines


def _kernel(found: Columns, reads: Packs, warps: int, parts: int, scratch: tuple[Scratch, ...]) -> Written:
    scene, (dim, width) = found.scene, found.dim
    over, pack = found.folds[0].dims[0][0], reads.width
    limit = scene.size(width)
    lines = [
        f"const {scene.index} ${dim}_first = (blockIdx.x * {_LANES} + threadIdx.x) * {pack};",
        *lead_dims(scene, found.lead, "blockIdx.z"),
        *(f"{one.kind} $result{one.name}[{pack}];" for one in partials(found)),
        *unrolled("$lane", pack, [f"$result{one.name}[$lane] = {one.begins};" for one in partials(found)]),
    ]
    first, apart = "threadIdx.y", str(warps)
    if parts > 1:
        first, apart = f"blockIdx.y * {warps} + threadIdx.y", f"{warps * parts}"
    head = f"for ({scene.index} ${over} = {first}; ${over} < {found.rows}; ${over} += {apart}) {{"
    packed = [
        "#pragma unroll 4",
        head,
        *indent([*reads.fetch(), *reads.lanes(_steps(found, reads.held("$lane")))]),
        "}",
    ]
    single = [head, *indent(reads.lanes(_steps(found, {}), f"${dim} < {limit}")), "}"]
    inside = f"${dim}_first + {pack} <= {limit}"
    if pack == 1:
        lines += [f"if ({inside}) {{", *indent(packed), "}"]
    else:
        test = reads.aligned()
        lines += [f"if ({inside} && {test}) {{", *indent(packed), "} else {", *indent(single), "}"]
    lines += _meet(found, pack, warps, parts, scratch)
    layers = " * ".join(f"({x})" for _, x in found.lead) or "1"
    grid = (f"ceil_div({width}, {_LANES * pack})", str(parts), layers)
    return Written(scene, lines, grid, (str(_LANES), str(warps), "1"), _LANES * warps, "columns", scratch)


def _steps(found: Columns, held: dict[Expr, str]) -> list[str]:
    lines = []
    for n, f in enumerate(found.folds, 1):
        value, place = compared(f)
        at = f"${place}" if place else ""
        lines.append(step(f, f"$result{n}[$lane]", found.scene.text(value, held), at, best=f"$result{n}_best[$lane]"))
    return lines


def _meet(found: Columns, pack: int, warps: int, parts: int, scratch: Sequence[Scratch]) -> list[str]:
    """The warps' results in shared memory, folded by as many threads as there are columns."""
    scene, (dim, width), across = found.scene, found.dim, _LANES * pack
    lines = ["// The warps of the block meet: a thread a column folds what they found."]
    every = partials(found)
    lines += [f"__shared__ {one.kind} $shared{one.name}[{warps}][{across}];" for one in every]
    put = [f"$shared{one.name}[threadIdx.y][threadIdx.x * {pack} + $lane] = $result{one.name}[$lane];"
           for one in every]  # fmt: skip
    lines += [*unrolled("$lane", pack, put), "__syncthreads();"]
    inner = [f"const {scene.index} ${dim} = blockIdx.x * {across} + $column;"]
    inner += [f"{one.kind} $total{one.name} = $shared{one.name}[0][$column];" for one in every]
    rest = _joined(found, "$total{}".format, "$shared{}[$warp][$column]".format)
    inner += ["#pragma unroll", f"for (int $warp = 1; $warp < {warps}; ++$warp) {{", *indent(rest), "}"]
    if parts > 1:
        row = flat_index(found, "blockIdx.y")
        out = [f"${s.name}[{row}] = $total{one.name};" for one, s in zip(every, scratch, strict=True)]
    else:
        out = stored(found)
    inner += [f"if (${dim} < {scene.size(width)}) {{", *indent(out), "}"]
    start = f"int $column = threadIdx.y * {_LANES} + threadIdx.x"
    return [*lines, f"for ({start}; $column < {across}; $column += {_LANES * warps}) {{", *indent(inner), "}"]


def flat_index(found: Columns, part: str) -> str:
    """Where a part's result stands: parts apart from each other, columns together."""
    scene = found.scene
    text = f"({scene.index}){part}"
    for n, (name, x) in enumerate(scene.part.domain):
        text = f"{f'({text})' if n else text} * {scene.size(x)} + ${name}"
    return text


def stored(found: Columns) -> list[str]:
    """The outputs of one column, from its totals."""
    held: dict[Expr, str] = {f: f"$total{n + 1}" for n, f in enumerate(found.folds)}
    pairs = [(found.scene.element(Load(s.target, s.place, "")), value_of(s)) for s in found.outputs]
    return found.scene.assigned(pairs, held)


def finish(found: Columns, parts: int, scratch: tuple[Scratch, ...], most: int = 8) -> Written:
    """A second launch: what the blocks of a column found, folded in their order, by blocks of at most so many warps."""
    scene, (dim, width), warps = found.scene, found.dim, min(most, parts)
    totals = [f"{one.kind} $result{one.name}[1];" for one in partials(found)]
    begin = [f"$result{one.name}[0] = {one.begins};" for one in partials(found)]
    at = flat_index(found, "$part")
    steps = _joined(found, "$result{}[0]".format, lambda name: f"$partial{name}[{at}]")
    loop = f"for (int $part = threadIdx.y; $part < {parts}; $part += {warps}) {{"
    lines = [
        f"const {scene.index} ${dim} = blockIdx.x * {_LANES} + threadIdx.x;",
        *lead_dims(scene, found.lead, "blockIdx.z"),
        *totals, *begin,
        f"if (${dim} < {scene.size(width)}) {{", *indent(["#pragma unroll 4", loop, *indent(steps), "}"]), "}",
    ]  # fmt: skip
    meet = _meet(found, 1, warps, 1, ())
    layers = " * ".join(f"({x})" for _, x in found.lead) or "1"
    grid = (f"ceil_div({width}, {_LANES})", "1", layers)
    return Written(scene, [*lines, *meet], grid, (str(_LANES), str(warps), "1"), _LANES * warps, "finish", scratch)


def lead_dims(scene: Scene, lead: Sequence[tuple[str, str]], index: str) -> list[str]:
    """Declarations of the dimensions before the last, from a number of a block that counts through all of them."""
    lines = []
    for n, (name, _) in enumerate(lead):
        below = [scene.size(x) for _, x in lead[n + 1 :]]
        text = f"({scene.index}){index}"
        if below:
            text = f"{text} / ({' * '.join(below)})"
        if n:
            text = f"{text} % {scene.size(lead[n][1])}"
        lines.append(f"const {scene.index} ${name} = {text};")
    return lines
