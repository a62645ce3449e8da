"""fold-points: folds of what a point and every other one have in common (forces between bodies): lanes of a warp share
a point's folds, a thread has several points, and what the results of one point share is computed once.

Each lane takes every so many-th term, reads it once for all its points, by packs where a term's elements are one, and
the lanes' sums come together by shuffles. All of a point is read before any of it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fsr.computation.expression import (
    Affine,
    Expr,
    Fold,
    Load,
    Number,
    Recurrence,
    distinct,
    fixed,
    names_in,
    renamed,
)
from fsr.computation.simplify import simplified
from fsr.computation.types import type_of
from fsr.hardware.c_types import BY_DTYPE
from fsr.source.names import indent
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.folding import c_type, checked, extent, folds_in, identity, step
from fsr.transform.computed.packs import MOST_BYTES, pack_type
from fsr.transform.computed.parts import apart, name_of, value_of
from fsr.transform.computed.scene import Scene, bytes_of, loads_in
from fsr.transform.computed.shared_values import SharedValues
from fsr.transform.plain.c_text import TYPES, NotPlain

Params = Mapping[str, int | str]
_MOST_PARTS, _LEAST_TERMS = 8, 64  # results of a point, terms of a fold
_DTYPES = ("float32", "float64", "int32")
_OVER = "other"  # the dimension that all folds go over
_LANES, _POINTS, _THREADS = (32, 16, 8), (2, 4, 1), (256, 128)


@dataclass(frozen=True)
class _Points:
    """``dim``: name and extent; ``values``: what is written where, for one point; ``folds``: those in the values, and
    their bodies over one dimension."""

    scene: Scene
    dim: tuple[str, str]
    values: tuple[tuple[Load, Expr], ...]
    folds: tuple[tuple[Fold, Expr], ...]

    @property
    def length(self) -> Affine:
        """How many terms the folds have."""
        return extent(self.folds[0][0])


def _points(scene: Scene) -> _Points | None:
    """The part as points with folds of their own over all that there is; None where it is none."""
    return scene.once("points", lambda: _found(scene))


def _found(scene: Scene) -> _Points | None:
    part = scene.part
    dims, parts = part.domain, 1
    if len(dims) == 2 and dims[1][1].isdigit() and int(dims[1][1]) <= _MOST_PARTS:
        parts = int(dims[1][1])
    elif len(dims) != 1:
        return None
    dtypes, values = {b.name: b.dtype for b in part.buffers}, list[tuple[Load, Expr]]()
    for s in part.whole:
        if s.domain != part.domain or [name_of(i) for i in s.place] != [n for n, _ in dims]:
            return None
        for n in range(parts):
            at = {name: n for name, _ in dims[1:]}
            out = fixed(Load(s.target, s.place, dtypes[s.target]), at)
            assert isinstance(out, Load)
            value = simplified(fixed(value_of(s), at))
            if not (isinstance(value, Load) and (value.buffer, value.indices) == (out.buffer, out.indices)):
                values.append((out, value))  # others stay as they are
    found = list(dict.fromkeys(f for _, v in values for f in folds_in(v)))
    point = dims[0]
    try:
        folds = tuple((checked(f), _over_all(f)) for f in found)
    except NotPlain:
        return None
    made = _Points(scene, point, tuple(values), folds)
    return made if folds and _is_whole(made) else None


def _over_all(fold: Fold) -> Expr:
    """The body over the dimension that all folds share."""
    ((name, _),) = fold.dims
    return renamed(fold.body, lambda n: _OVER if n == name else n)


def _is_whole(found: _Points) -> bool:
    """Whether each point's folds are its own, over one length, and nobody reads what another point writes."""
    scene = found.scene

    def written(x: Load) -> bool:
        return any(out.buffer == x.buffer and not apart(out.indices, x.indices) for out, _ in found.values)

    if any(isinstance(e, Recurrence) for _, v in found.values for e in distinct(v)):
        return False
    if any(type_of(f) not in _DTYPES or f.op != "sum" or extent(f) != found.length for f, _ in found.folds):
        return False
    if any(out.dtype not in _DTYPES for out, _ in found.values):
        return False
    sides = [names_in(x) & {found.dim[0], _OVER} for x in loads_in([body for _, body in found.folds])]
    if {found.dim[0]} not in sides or {_OVER} not in sides or {found.dim[0], _OVER} in sides:
        return False  # something of the point, something of the others, and nothing of pairs
    if {n for n, _ in found.length.terms} - set(scene.part.sizes) or not found.length.terms:
        return False
    if any(map(written, loads_in([body for _, body in found.folds]))):
        return False
    own = {out.indices[0] for out, _ in found.values}
    reads = filter(written, loads_in([v for _, v in found.values]))
    return all(x.indices[0] in own and all(isinstance(i, Number) for i in x.indices) for x in reads)


# ---------------------------------------------------------------- decisions


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    found = _points(scene)
    if found is None or scene.wide or scene.timed(_text(found.length)) < _LEAST_TERMS:
        return
    gain = 3.0
    for threads in _THREADS:
        for lanes in _LANES:
            for points in _POINTS:
                yield {"lanes": lanes, "points": points, "threads": threads}, gain
                gain *= 0.97


def _text(a: Affine) -> str:
    parts = [f"{k} * ({n})" for n, k in a.terms] + ([str(a.constant)] if a.constant else [])
    return " + ".join(parts)


# ---------------------------------------------------------------- text


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel. Raises NotPlain."""
    found = _points(scene)
    if found is None or scene.wide:
        raise NotPlain("no points with folds over all others")
    lanes, points, threads = (int(params[k]) for k in ("lanes", "points", "threads"))
    name, count = found.dim
    many = scene.size(count)
    lines = [
        f"const int $of_warp = threadIdx.x % {lanes};",
        f"const int $first = (blockIdx.x * {threads // lanes} + threadIdx.x / {lanes}) * {points};",
    ]
    own = [x for x in loads_in([b for _, b in found.folds]) if _OVER not in names_in(x)]
    for p in range(points):
        lines.append(f"const int ${name}_{p} = min($first + {p}, {many} - 1);")
        lines += [f"{c_type(f)} $total{n}_{p} = {identity(f)};" for n, (f, _) in enumerate(found.folds)]
        for n, x in enumerate(own):
            lines.append(f"const {BY_DTYPE[x.dtype].spelling} $own{n}_{p} = {_at(found, scene.element(x), p)};")
    fetched, held = _fetched(found)
    loop = f"for (int ${_OVER} = $of_warp; ${_OVER} < {scene.names.affine(found.length)}; ${_OVER} += {lanes}) {{"
    inner = list(fetched)
    for p in range(points):
        inner += ["{", *indent(_terms(found, {**held, **{x: f"$own{n}_{p}" for n, x in enumerate(own)}}, p)), "}"]
    lines += [loop, *indent(inner), "}"]
    sums = [f"$total{n}_{p}" for p in range(points) for n in range(len(found.folds))]
    meet = [f"{x} += __shfl_xor_sync(0xffffffffu, {x}, $step);" for x in sums]
    lines += ["#pragma unroll", f"for (int $step = {lanes // 2}; $step > 0; $step /= 2) {{", *indent(meet), "}"]
    lines.append("if ($of_warp == 0) {")
    for p in range(points):
        inside = [f"const int ${name} = ${name}_{p};", *_stored(found, p)]
        lines += indent([f"if ($first + {p} < {many}) {{", *indent(inside), "}"])
    grid = (f"ceil_div({count}, {threads // lanes * points})", "1", "1")
    return [Written(scene, [*lines, "}"], grid, (str(threads), "1", "1"), threads, "points")]


def _at(found: _Points, text: str, p: int) -> str:
    """A text of the ``p``-th of a thread's points."""
    return text.replace(f"${found.dim[0]}", f"${found.dim[0]}_{p}") if f"${found.dim[0]}" in text else text


def _fetched(found: _Points) -> tuple[list[str], dict[Expr, str]]:
    """Reads of the term that is taken, whichever point it is for; what lies side by side in one access."""
    scene, lines, held = found.scene, list[str](), dict[Expr, str]()
    reads = [
        x for x in loads_in([b for _, b in found.folds]) if _OVER in names_in(x) and found.dim[0] not in names_in(x)
    ]
    rows: dict[tuple[str, tuple[Expr, ...]], list[Load]] = {}
    for x in reads:
        rows.setdefault((x.buffer, x.indices[:-1]), []).append(x)
    for (buffer, lead), members in rows.items():
        width = _width(scene, members)
        if width > 1:
            kind, name = pack_type(scene, members[0], width), f"$taken{len(lines)}"
            first = Load(buffer, (*lead, Number(Affine((), 0), "int64")), members[0].dtype)
            lines.append(f"const {kind} {name} = *reinterpret_cast<const {kind} *>(&{scene.element(first)});")
            held |= {x: f"{name}.v[{_last(x)}]" for x in members}
            continue
        for x in members:
            held[x] = f"$taken{len(lines)}"
            lines.append(f"const {BY_DTYPE[x.dtype].spelling} {held[x]} = {scene.element(x)};")
    return lines, held


def _last(load: Load) -> int | None:
    """The last index where it is a number."""
    match load.indices[-1]:
        case Number(Affine((), n), _) if len(load.indices) > 1:
            return n
    return None


def _width(scene: Scene, members: Sequence[Load]) -> int:
    """How many elements one access takes: a whole row of a power of two, on an address that allows it; else 1."""
    x, row = members[0], scene.shape(members[0].buffer)[-1]
    width = int(row) if row.isdigit() else 0
    fits = width in (2, 4) and width * bytes_of(x) <= MOST_BYTES and len(members) > 1
    promised = next((a.alignment for a in scene.target.contract.args if a.name == x.buffer), None) or 1
    aligned = promised % (width * bytes_of(x) or 1) == 0
    return width if fits and aligned and all(_last(m) is not None for m in members) else 1


def _terms(found: _Points, held: Mapping[Expr, str], p: int) -> list[str]:
    """One term more of each fold of a point."""
    values = SharedValues(held)
    pairs = [(f"$term{n}", values.add(body, {})) for n, (_, body) in enumerate(found.folds)]
    return [
        f"const int ${found.dim[0]} = ${found.dim[0]}_{p};",
        *(f"{c_type(f)} $term{n};" for n, (f, _) in enumerate(found.folds)),
        *values.assigned(pairs, found.scene.names.writer),
        *(step(f, f"$total{n}_{p}", f"$term{n}") for n, (f, _) in enumerate(found.folds)),
    ]


def _stored(found: _Points, p: int) -> list[str]:
    """A point's results, all of them before the first is written."""
    values = SharedValues({f: f"$total{n}_{p}" for n, (f, _) in enumerate(found.folds)})
    pairs = [(f"$made{n}", values.add(v, {})) for n, (_, v) in enumerate(found.values)]
    return [
        *(f"{TYPES[out.dtype]} $made{n};" for n, (out, _) in enumerate(found.values)),
        *values.assigned(pairs, found.scene.names.writer),
        *(f"{found.scene.element(out)} = $made{n};" for n, (out, _) in enumerate(found.values)),
    ]
