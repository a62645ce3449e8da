"""tile-contraction: a fold of what two operands have there: products of matrices in any layout, convolutions too.

Each operand may be contiguous along the folded dimensions, along its own, or neither; what is folded over several
(channels and a window) counts through all of them. Other dimensions (batches, heads, rows of pictures) become layers of
the grid. What is made of the fold (a start value, bias, scale, activation) is done
in registers before the result is written, in packs. ``tile``: one output a thread, in blocks of that many squared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from fsr.computation.computation import Statement
from fsr.computation.expression import Affine, Const, Expr, Fold, Load, Op, children, fixed, names_in, rebuilt
from fsr.computation.printing import affine_text
from fsr.computation.types import CASTS, type_of
from fsr.hardware.c_types import BY_DTYPE
from fsr.hardware.limits import REGISTERS_PER_SM
from fsr.source.names import indent
from fsr.transform.computed.assembly import Dim3, Written
from fsr.transform.computed.columns import lead_dims
from fsr.transform.computed.elements import stores
from fsr.transform.computed.folding import c_type, identity, one_fold, step, without
from fsr.transform.computed.packs import Packs
from fsr.transform.computed.parts import name_of, value_of
from fsr.transform.computed.scene import Scene, along, loads_in, plain, word
from fsr.transform.gemm.config import FIRST, GemmConfig, fits, promise
from fsr.transform.gemm.text import GemmParts, Operand, gemm_body, simple_body, vector_structs
from fsr.transform.plain.c_text import TYPES, NotPlain
from fsr.transform.sizes import largest

Params = Mapping[str, int | str]
Dim = tuple[str, str]
_MOST_LAYERS, _INT = 65535, 2**31 - 1


@dataclass(frozen=True)
class Side:
    """One operand: what is read, as which value, and its own dimension."""

    load: Load
    value: Expr
    dim: Dim


@dataclass(frozen=True)
class Contraction:
    """``a`` goes along rows of the output, ``b`` along its last dimension; ``batch``: all other dimensions."""

    scene: Scene
    output: Statement
    fold: Fold
    a: Side
    b: Side
    batch: tuple[Dim, ...]

    @cached_property
    def dims(self) -> tuple[tuple[str, Affine], ...]:
        """The dimensions that are folded and how far they go, in an order in which an operand has them in memory."""
        found = dict(self.fold.dims)
        for load in (self.a.load, self.b.load):
            last = [name_of(i) for i in load.indices[-len(found) :]]
            if set(last) == set(found):
                return tuple((n, found[n]) for n in last if n is not None)
        return self.fold.dims

    @property
    def folded(self) -> list[str]:
        """The names of the dimensions that are folded."""
        return [name for name, _ in self.dims]

    @property
    def output_dtype(self) -> str:
        """The element type of what is written."""
        return stores(self.scene)[0].dtype

    def timed_shape(self) -> tuple[int, int, int]:
        """Layers, rows and columns of the output at the first timed sizes."""
        layers = math.prod(self.scene.timed(x) for _, x in self.batch)
        return layers, self.scene.timed(self.a.dim[1]), self.scene.timed(self.b.dim[1])

    def depth_text(self) -> str:
        """C text of how many terms are folded, a word or in brackets. Raises NotPlain."""
        return _bracketed(" * ".join(self._extents()))

    def _extents(self) -> list[str]:
        return [_bracketed(self.scene.names.affine(x)) for _, x in self.dims]

    def places(self, k: str) -> dict[str, str]:
        """C text of where each folded dimension is at the ``k``-th term. Raises NotPlain."""
        extents, found = self._extents(), dict[str, str]()
        for n, name in enumerate(self.folded):
            below = _bracketed(" * ".join(extents[n + 1 :])) if extents[n + 1 :] else ""
            text = f"{_bracketed(k)} / {below}" if below else _bracketed(k)
            found[name] = _bracketed(f"{text} % {extents[n]}" if n else text)
        return found


def contraction(scene: Scene) -> Contraction | None:
    """The part as a contraction; None where it is none."""
    part = scene.part
    found = one_fold(part, several=True) if len(part.domain) > 1 else None
    if found is None:
        return None
    output, fold = found
    reads = loads_in([fold.body])
    if len(reads) != 2 or not all(plain(x) for x in reads) or not _counted(fold, scene):
        return None
    if names_in(_unread(fold.body)) & {n for n, _ in (*part.domain, *fold.dims)}:
        return None  # a factor that is told by the place alone
    sides = [_side(x, reads[1 - n], fold, scene) for n, x in enumerate(reads)]
    last = part.domain[-1][0]
    a, b = sides if sides[1] and sides[1].dim[0] == last else sides[::-1]
    if a is None or b is None or b.dim[0] != last:
        return None
    batch = tuple(d for d in part.domain if d not in (a.dim, b.dim))
    layers = " * ".join(f"({x})" for _, x in batch) or "1"
    if set(part.box) - {a.dim[0], b.dim[0]} and not part.by_points:
        return None
    if {n for n, _ in batch} - names_in(a.load) - names_in(b.load) or not _fits(scene, layers, _MOST_LAYERS):
        return None
    return Contraction(scene, output, fold, a, b, batch)


def _counted(fold: Fold, scene: Scene) -> bool:
    """Whether sizes tell how many terms there are, and an int counts them."""
    if {n for _, x in fold.dims for n, _ in x.terms} - set(scene.part.sizes):
        return False
    return len(fold.dims) == 1 or _fits(scene, " * ".join(f"({affine_text(x)})" for _, x in fold.dims), _INT)


def _fits(scene: Scene, size: str, most: int) -> bool:
    """Whether a size expression is at most that, whatever the sizes."""
    found = largest(scene.target.contract, size)
    return found is not None and found <= most


def _unread(e: Expr) -> Expr:
    """The expression with a number in place of everything that is read."""
    return Const(0.0, "float32") if isinstance(e, Load) else rebuilt(e, tuple(map(_unread, children(e))))


def _side(load: Load, other: Load, fold: Fold, scene: Scene) -> Side | None:
    """An operand, if dimensions of the output are its own and it moves with the fold: the last one of all, or else the
    longest."""
    own = [d for d in scene.part.domain if d[0] in names_in(load) and d[0] not in names_in(other)]
    if not own or not {n for n, _ in fold.dims} & names_in(load):
        return None
    casts = [e for e in _above(fold.body, load) if isinstance(e, Op) and e.name in CASTS]
    dim = own[-1] if own[-1] == scene.part.domain[-1] else max(own, key=lambda d: scene.timed(d[1]))
    return Side(load, casts[0] if casts else load, dim)


def _above(e: Expr, load: Load) -> Iterator[Expr]:
    """What a read stands in directly."""
    if isinstance(e, Op):
        if load in e.args:
            yield e
        for part in e.args:
            yield from _above(part, load)


def _neutral(c: Contraction) -> bool:
    """Whether operands that are zero change nothing: a sum of products of both."""
    body = c.fold.body
    if c.fold.op != "sum" or not isinstance(body, Op) or body.name != "prod":
        return False
    factors = [x for x in body.args if not isinstance(x, Const)]
    return len(factors) == 2 and set(factors) == {c.a.value, c.b.value}


# ---------------------------------------------------------------- decisions


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    c = contraction(scene)
    if c is None:
        return
    layers, m, n = c.timed_shape()
    gpu = scene.gpu
    ranked = sorted(FIRST, key=lambda config: -promise(config, m * layers, n, gpu))
    for config in ranked:
        if fits(config, *_bytes(c)):
            yield dict(config.params()), 4.0 + 9.0 * promise(config, m * layers, n, gpu)
    for tile in (32, 16):
        yield {"tile": tile}, 2.5


def _bytes(c: Contraction) -> tuple[int, int, int]:
    sizes = [BY_DTYPE[type_of(e)].bytes for e in (c.fold, c.a.value, c.b.value)]
    return sizes[0], sizes[1], sizes[2]


# ---------------------------------------------------------------- text


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel. Raises NotPlain."""
    c = contraction(scene)
    if c is None:
        raise NotPlain("no contraction")
    parts = gemm_parts(c)
    if "tile" in params:
        return [_plain_tile(c, parts, int(params["tile"]))]
    config = GemmConfig(**{k: int(v) for k, v in params.items()})
    blocks = REGISTERS_PER_SM // (config.threads * config.registers(*_bytes(c)))
    lines, grid = _lines(gemm_body(parts, config)), grid_of(c, config.bm, config.bn)
    return [Written(scene, lines, grid, (str(config.threads), "1", "1"), config.threads, "product",
                    blocks=blocks if blocks > 1 else 0, before=(vector_structs(parts),))]  # fmt: skip


def _plain_tile(c: Contraction, parts: GemmParts, tile: int) -> Written:
    """One output a thread."""
    grid, block = grid_of(c, tile, tile), (str(tile), str(tile), "1")
    return Written(c.scene, _lines(simple_body(parts, tile)), grid, block, tile * tile, "product")


def _lines(body: str) -> list[str]:
    return [line.removeprefix("    ") for line in body.splitlines()]


def grid_of(c: Contraction, bm: int, bn: int) -> Dim3:
    """Blocks of bm x bn outputs, and a layer for each value of what both operands have."""
    layers = " * ".join(f"({x})" for _, x in c.batch) or "1"
    return f"ceil_div({c.b.dim[1]}, {bn})", f"ceil_div({c.a.dim[1]}, {bm})", layers


def batch_lines(c: Contraction) -> list[str]:
    """Declarations of the dimensions that both operands have."""
    return [_own(c, line) for line in lead_dims(c.scene, c.batch, "blockIdx.z")]


def gemm_parts(c: Contraction) -> GemmParts:
    """The contraction as the texts of tiles see it. Raises NotPlain."""
    scene = c.scene
    return GemmParts(
        a=operand_of(c, c.a),
        b=operand_of(c, c.b),
        acc_type=c_type(c.fold),
        start=lambda m, n, acc: f"{acc} = {identity(c.fold)};",
        combine=lambda acc, a, b: step(c.fold, acc, scene.text(c.fold.body, {c.a.value: a, c.b.value: b})),
        finish=lambda m, n, acc, run: "\n".join(
            line.replace("$PLACE_M", m).replace("$PLACE_N", n).replace("$ACC", acc) for line in finished(c, run)
        ),
        zero_is_neutral=_neutral(c),
        k_type=scene.index,
        k_start="0",
        k_end=c.depth_text(),
        uniform="\n".join(batch_lines(c)),
    )


def operand_of(c: Contraction, side: Side) -> Operand:
    """One factor as tiles see it. Raises NotPlain."""
    scene, load, deep = c.scene, side.load, _deep(c, side.load)
    where = "k" if deep else "outer" if along(load, side.dim[0]) else ""
    others = {side.dim[0]} if where == "k" else set(c.folded)

    def at(row: str, k: str) -> str:
        places = c.places(k)
        if deep and len(c.folded) > 1:  # they count through what lies one behind the other
            first = fixed(load, dict.fromkeys(c.folded, 0))
            assert isinstance(first, Load)
            element = f"{scene.element(first).removesuffix(']')} + $at_{c.folded[0]}]"
            places = {c.folded[0]: _bracketed(k)}
        else:
            element = scene.element(load)
        element = word(_own(c, element), f"at_{side.dim[0]}", _bracketed(row))
        for name, text in places.items():
            element = word(element, f"at_{name}", text)
        return element

    def value(element: str) -> str:
        return scene.text(side.value, {load: element})

    held = BY_DTYPE[type_of(side.value)].spelling
    kind = TYPES.get(type_of(side.value), held)
    inner = " * ".join(f"({x})" for x in scene.shape(load.buffer)[-len(c.folded) if deep else -1 :])
    stride = scene.size(inner) if len(load.indices) > 1 and others & names_in(load) else "0"
    return Operand(
        load.dtype, kind, at, value, lambda row: f"{row} < {scene.size(side.dim[1])}", where, stride,
        "y" if side is c.a else "x", scene.index,
    )  # fmt: skip


def _deep(c: Contraction, load: Load) -> bool:
    """Whether neighbouring terms of the fold are neighbours in memory."""
    count = len(c.folded)
    extents = [affine_text(x) for _, x in c.dims]
    last, shape = [name_of(i) for i in load.indices[-count:]], list(c.scene.shape(load.buffer)[-count:])
    alone = not any(set(c.folded) & names_in(i) for i in load.indices[:-count])
    return last == c.folded and shape[1:] == extents[1:] and alone


def _bracketed(text: str) -> str:
    return text if text.lstrip("$").isidentifier() or text.isdigit() else f"({text})"


def _own(c: Contraction, line: str) -> str:
    """The line with dimensions called otherwise than the tiles' own variables."""
    for name in (*(n for n, _ in c.scene.part.domain), *c.folded):
        line = word(line, name, f"$at_{name}")
        line = word(line, f"{name}_first", f"$at_{name}_first")
    return line


def finished(c: Contraction, run: int) -> list[str]:
    """Statements that make ``run`` neighbouring outputs of their folds, from row ``$PLACE_M`` and column ``$PLACE_N``
    on, and write them. ``$ACC``: the fold of lane ``$lane``."""
    scene, (m, m_extent), (n, n_extent) = c.scene, c.a.dim, c.b.dim
    out, value = stores(scene)[0], value_of(c.output)
    reads = Packs.of(scene, [without(value, c.fold)], n, run)
    limit, box = scene.size(n_extent), {} if scene.part.by_points else scene.part.box
    inside = {name: f" && ${name} >= {box[name]}" if name in box else "" for name in (m, n)}
    single = reads.lanes(scene.assigned([(scene.element(out), value)], {c.fold: "$ACC"}), f"${n} < {limit}{inside[n]}")
    lines = single
    if run * BY_DTYPE[out.dtype].bytes in (4, 8, 16) and run > 1:
        whole = reads.made([out], [value], {c.fold: "$ACC"})
        test = f"${n}_first + {run} <= {limit} && {reads.aligned([out])}{inside[n].replace(f'${n}', f'${n}_first')}"
        lines = [f"if ({test}) {{", *indent(whole), "} else {", *indent(single), "}"]
    lines = [
        f"const {scene.index} ${m} = $PLACE_M;",
        f"const {scene.index} ${n}_first = $PLACE_N;",
        f"if (${m} < {scene.size(m_extent)}{inside[m]}) {{", *indent(lines), "}",
    ]  # fmt: skip
    return [_own(c, line) for line in lines]
