"""fold-in-threads: results that are folds of a few terms each, windows whose size and step only the launch tells: a
thread has a pack of neighbouring results along contiguous memory and folds all terms of each, in the source's order.

Nothing is shared, so that terms may be read at any step, and places of extremes cost no exchange.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from fsr.computation.expression import PLACES, Affine, Expr, Fold, Load, Op, children, names_in, rebuilt
from fsr.computation.printing import affine_text
from fsr.computation.types import type_of
from fsr.source.names import indent
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.elements import a_pack_each, stores
from fsr.transform.computed.folding import c_type, checked, folds_in, identity, step
from fsr.transform.computed.packs import MOST_BYTES, Packs
from fsr.transform.computed.parts import name_of, number_of, value_of
from fsr.transform.computed.scene import Scene, along, bytes_of, loads_in
from fsr.transform.plain.c_text import TYPES, NotPlain

Params = Mapping[str, int | str]
_MOST_TERMS = 64  # of one result: of more a warp or a block folds faster than a thread
_MOST_OF_MANY, _MANY = 1024, 1 << 15  # of a padded window, which no warp folds, where results are enough threads
_SHORT = 16  # of so few the warps of a block that share them have hardly one each
_RATED = ("float32", "float64")  # values by which an extreme's place is told


@dataclass(frozen=True)
class Folded:
    """Results of points, and the folds that they are made of, all over the same box."""

    scene: Scene
    folds: tuple[Fold, ...]

    @cached_property
    def values(self) -> list[Expr]:
        """What is written, with the folds' results in place of the folds."""
        return [_with(value_of(s), dict(zip(self.folds, self.results, strict=True))) for s in self.scene.part.whole]

    @cached_property
    def results(self) -> list[Load]:
        """What stands for each fold's result."""
        return [Load(f"_result{n + 1}", (), type_of(f)) for n, f in enumerate(self.folds)]

    @cached_property
    def terms(self) -> dict[Expr, str]:
        """The values that are folded, each once, and the variables that hold one of each."""
        return {v: f"$term{n + 1}" for n, v in enumerate(dict.fromkeys(map(_value, self.folds)))}

    @property
    def bodies(self) -> list[Expr]:
        """What the folds are of, places too."""
        return [*self.terms, *(p for f in self.folds if (p := _place(f)) is not None)]

    @cached_property
    def within(self) -> list[Load]:
        """Of a padded window, the reads that a term must have within their buffers to take part."""
        return loads_in(self.terms) if self.folds[0].inside else []

    @property
    def last(self) -> str:
        """The dimension along contiguous memory."""
        return self.scene.part.domain[-1][0]


def _with(e: Expr, known: Mapping[Fold, Load]) -> Expr:
    if isinstance(e, Fold):
        return known[e]
    return rebuilt(e, tuple(_with(part, known) for part in children(e)))


def _place(fold: Fold) -> Expr | None:
    return fold.body.args[1] if fold.op in PLACES and isinstance(fold.body, Op) else None


def _value(fold: Fold) -> Expr:
    """What a fold compares or joins, of a type that does it plainly. Raises NotPlain."""
    if fold.op not in PLACES:
        return checked(replace(fold, inside=False), several=True).body
    assert isinstance(fold.body, Op)
    value, place = fold.body.args
    value = Op("float32", (value,)) if type_of(value) in ("float16", "bfloat16") else value
    if type_of(value) not in _RATED or folds_in(value) or folds_in(place):
        raise NotPlain(f"a place by {fold.op}")
    return value


def folded(scene: Scene) -> Folded | None:
    """The part as results of a few terms each; None where it is none."""
    part = scene.part
    names = [n for n, _ in part.domain]
    if not names or any(s.domain != part.domain or _dims(s.place) != names for s in part.whole):
        return None
    folds = tuple(dict.fromkeys(f for s in part.whole for f in folds_in(value_of(s))))
    if not folds or len({(f.dims, f.inside) for f in folds}) != 1:
        return None
    found, lengths = Folded(scene, folds), [x for _, x in folds[0].dims]
    points = math.prod(scene.timed(x) for _, x in part.domain)
    most = _MOST_OF_MANY if folds[0].inside and points >= _MANY else _MOST_TERMS
    if any(n not in part.sizes for x in lengths for n, _ in x.terms) or _count(scene, lengths) > most:
        return None
    try:
        terms = found.terms
        boxes = {frozenset(_limits(found, loads_in([v]))) for v in terms} if folds[0].inside else set()
    except NotPlain:
        return None
    many = len(boxes) > 1  # each has a box of its own then
    return found if found.last in names_in(folds[0]) and not many else None


def _dims(place: Sequence[Expr]) -> list[str | None]:
    """The dimensions that tell where a result stands, beside a component's number."""
    return [name_of(i) for i in place if number_of(i) is None]


def _count(scene: Scene, lengths: list[Affine]) -> int:
    count = 1
    for x in lengths:
        count *= scene.timed(affine_text(x))
    return count


# ---------------------------------------------------------------- decisions


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    found = folded(scene)
    if found is None:
        return
    reads, last = loads_in([*found.bodies, *found.values]), found.last
    apart = [x for x in reads if last in names_in(x) and not along(x, last) and not loads_in(x.indices)]
    apart += [x for x in found.within if along(x, last) and scene.shape(x.buffer)[-1] != scene.part.domain[-1][1]]
    sizes = [bytes_of(x) for x in (*stores(scene), *(x for x in reads if along(x, last)))]
    widest = 1 if apart else MOST_BYTES // max(sizes)
    lengths = [x for _, x in found.folds[0].dims]
    short = any(x.terms for x in lengths) and _count(scene, lengths) <= _SHORT
    gain, length = 1.3 if apart else 4.2 if short else 2.5, scene.timed(scene.part.domain[-1][1])
    for pack in dict.fromkeys((widest, max(1, widest // 2), 1)):
        for threads in (256, 128) if length >= pack else ():
            yield {"pack": pack, "threads": threads}, gain
            gain *= 0.96


# ---------------------------------------------------------------- text


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel. Raises NotPlain."""
    scene = scene.narrowed()
    found, pack, threads = folded(scene), int(params["pack"]), int(params["threads"])
    if found is None:
        raise NotPlain("no folds of a few terms")
    inner = _whole_or_single(found, pack, scene.size(scene.part.domain[-1][1]))
    lines, grid = a_pack_each(scene, pack, threads, inner)
    return [Written(scene, lines, (grid, "1", "1"), (str(threads), "1", "1"), threads, "folded")]


def _whole_or_single(found: Folded, pack: int, limit: str) -> list[str]:
    """Packs where every row has whole ones at addresses that allow them; else a thread's results one by one, as far
    apart as the row has packs."""
    scene, last = found.scene, found.last
    terms, rest = (Packs.of(scene, exprs, last, pack) for exprs in (found.bodies, found.values))
    written_ = stores(scene)
    pairs = [(scene.element(o), v) for o, v in zip(written_, found.values, strict=True)]
    single = [*_begun(found, ""), *_loops(found, _steps(found, {}, "")), *scene.assigned(pairs, _held(found, ""))]
    place = f"${last}_first / {pack} + $lane * ${last}_packs" if len(scene.part.domain) > 1 and pack > 1 else ""
    alone = rest.lanes(single, f"${last} < {limit}", place)
    if pack == 1:
        return alone
    whole = [
        *_begun(found, f"[{pack}]", rest),
        *_loops(found, [*terms.fetch(), *terms.lanes(_steps(found, terms.held("$lane"), "[$lane]"))]),
        *rest.made(written_, found.values, _held(found, "[$lane]")),
    ]
    fits = f"{limit} % {pack} == 0" if len(scene.part.domain) > 1 else f"${last}_first + {pack} <= {limit}"
    tests = dict.fromkeys((fits, *terms.aligned().split(" && "), *rest.aligned(written_).split(" && ")))
    test = " && ".join(t for t in tests if t != "true")
    return [f"if ({test}) {{", *indent(whole), "} else {", *indent(alone), "}"]


def _held(found: Folded, lane: str) -> dict[Expr, str]:
    return {r: f"$result{n + 1}{lane}" for n, r in enumerate(found.results)}


def _begun(found: Folded, lanes: str, packs: Packs | None = None) -> list[str]:
    """The results before the first term, and the values that extremes' places are told by."""
    declared, begun = list[str](), list[str]()
    lane = "[$lane]" if lanes else ""
    for n, f in enumerate(found.folds, 1):
        declared.append(f"{c_type(f)} $result{n}{lanes};")
        begun.append(f"$result{n}{lane} = {'0' if f.op in PLACES else identity(f)};")
        if f.op in PLACES:
            declared.append(f"{TYPES[type_of(_value(f))]} $best{n}{lanes};")
            begun.append(f"$best{n}{lane} = {identity(f)};")
    return [*declared, *(packs.lanes(begun) if packs else begun)]


def _loops(found: Folded, inner: list[str]) -> list[str]:
    scene = found.scene
    if tests := _tests(found):
        inner = [f"if ({' && '.join(tests)}) {{", *indent(inner), "}"]
    for n, (name, length) in enumerate(reversed(found.folds[0].dims)):
        head = f"for ({scene.index} ${name} = 0; ${name} < {scene.names.affine(length)}; ++${name}) {{"
        inner = [*(["#pragma unroll 4"] if not n else []), head, *indent(inner), "}"]
    return inner


def _tests(found: Folded) -> list[str]:
    """Whether a term of a padded window takes part, but for what is so at every point."""
    scene, tests = found.scene, dict[str, None]()
    for index, extent in _limits(found, found.within):
        at = f"({scene.text(index)})"
        tests |= {f"{at} >= 0": None, f"{at} < {scene.size(extent)}": None}
    return list(tests)


def _limits(found: Folded, reads: list[Load]) -> dict[tuple[Expr, str], None]:
    """The indices of reads that may lie outside, each with the extent that it must lie within."""
    extents = dict(found.scene.part.domain) | {n: affine_text(x) for n, x in found.folds[0].dims}
    limits = dict[tuple[Expr, str], None]()
    for x in reads:
        for index, extent in zip(x.indices, found.scene.shape(x.buffer), strict=True):
            number = number_of(index)
            goes_to = extents.get(name_of(index) or "")
            within = number is not None and extent.isdigit() and 0 <= number < int(extent)
            if not within and (goes_to is None or not found.scene.same(goes_to, extent)):
                limits[index, extent] = None
    return limits


def _steps(found: Folded, held: Mapping[Expr, str], lane: str) -> list[str]:
    """One term more of each fold."""
    lines = [f"const {TYPES[type_of(v)]} {name} = {found.scene.text(v, held)};" for v, name in found.terms.items()]
    for n, f in enumerate(found.folds, 1):
        result, best, value, place = f"$result{n}{lane}", f"$best{n}{lane}", found.terms[_value(f)], _place(f)
        if place is None:
            lines.append(step(f, result, value))
            continue
        lines.append(step(f, result, value, found.scene.text(place, held), best=best))
    return lines
